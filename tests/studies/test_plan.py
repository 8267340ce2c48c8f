"""`halftruth plan`: three questions with one answer, its sources, its doubts, and what it refuses."""

import argparse
import json
import shlex
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from studies.cli import main
from studies.folder import Folder
from studies.load import load
from studies.plan import add_arguments, make
from studies.plan.show import Plan, sentence
from studies.plan.validation import compare
from studies.plan.ways import WAYS, Setting, epsilon_needed, error_at, labels_needed, predict
from studies.report.view import View
from studies.run import run

STUDY = Path(__file__).parents[2] / "studies" / "toml" / "planning.toml"
SMALL = "--features gaussian --dimension 5 --theta=1,0.5,0,-0.5,-1 --sum-zero --bound 3"


def plan(flags: str) -> Plan:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return make(parser.parse_args(shlex.split(flags)))


@pytest.fixture(scope="module")
def assumed() -> Plan:
    return plan(f"{SMALL} --error 0.1 --epsilon 1")


def test_the_example_needs_as_many_labels_as_the_table_of_asymptotic_errors_says(assumed: Plan) -> None:
    # sqrt(n) times the error is 12.85, 16.6 and 4.55 there, to about 1 %.
    for name, rate in (("local", 12.85), ("local-debiased", 16.6), ("clear", 4.55)):
        found = assumed.answers[name]
        assert found is not None
        assert found.setting.n == pytest.approx((rate / 0.1) ** 2, rel=0.05)
        assert found.doubts == ()


@pytest.mark.parametrize(("epsilon", "times"), [("0.1", 737), ("0.5", 30), ("1", 8.0), ("2", 2.5), ("4", 1.2)])
def test_what_a_local_label_is_worth(epsilon: str, times: float) -> None:
    found = plan(f"{SMALL} --labels 1000000 --epsilon {epsilon}").answer
    assert found is not None
    assert 1 / found.worth == pytest.approx(times, rel=0.05)


@settings(max_examples=25)
@given(
    name=st.sampled_from(sorted(WAYS)),
    error=st.floats(0.01, 1),
    level=st.sampled_from(["0.01", "0.3", "1", "5"]),
)
def test_labels_error_and_level_agree(assumed: Plan, name: str, error: float, level: str) -> None:
    theory, way, delta = assumed.assumed.theory, WAYS[name], Decimal("1e-5")
    epsilon = None if name == "clear" else Decimal(level)
    n = labels_needed(theory, way, error, epsilon, delta)
    assert n is not None
    assert error_at(theory, way, Setting(n, epsilon, delta)) <= error
    assert n == 1 or error_at(theory, way, Setting(n - 1, epsilon, delta)) > error
    if epsilon is not None and n > 1:
        found = epsilon_needed(theory, way, error, n, delta)
        # n labels are a little more than epsilon needs, so that a little less than epsilon is enough.
        assert found is not None
        assert found <= epsilon * Decimal("1.0011")
        assert error_at(theory, way, Setting(n, found, delta)) <= error
        less = found * Decimal("0.998")
        assert error_at(theory, way, Setting(n, less, delta)) > error


def test_no_level_makes_up_for_missing_labels(assumed: Plan) -> None:
    theory = assumed.assumed.theory
    for name in ("local", "local-debiased", "central"):
        assert epsilon_needed(theory, WAYS[name], 0.1, 2000, Decimal("1e-5")) is None
    assert epsilon_needed(theory, WAYS["central"], 1e6, 2000, Decimal("1e-5")) == Decimal("1e-6")
    found = plan(f"{SMALL} --error 0.1 --labels 2000")
    assert found.answer is None
    assert "not even at epsilon = 40" in sentence(found)
    assert found.answers["clear"] is not None
    assert plan(f"{SMALL} --error 1e-20 --epsilon 1").answer is None


def test_where_the_noise_of_the_curator_stops_to_matter(assumed: Plan) -> None:
    assert assumed.crossing is not None
    n = round(assumed.crossing)
    theory, delta = assumed.assumed.theory, Decimal("1e-5")
    both = error_at(theory, WAYS["central"], Setting(n, Decimal(1), delta))
    alone = error_at(theory, WAYS["central"], Setting(n, Decimal(1000), delta))
    assert both / alone == pytest.approx(np.sqrt(2), rel=0.01)


def test_noise_in_shares_costs_what_honest_rows_have_to_make_up() -> None:
    """sigma^2 / h in place of sigma^2: what noise adds to a squared error is the curator's, over h."""
    added = {}
    for honest in ("1", "0.5", "0.25"):
        found = plan(f"{SMALL} --labels 8000 --epsilon 0.3 --honest {honest}").answers
        quiet = plan(f"{SMALL} --labels 8000 --epsilon 1000 --honest {honest}").answers
        one, two, no = found["distributed"], found["central"], quiet["central"]
        assert one is not None and two is not None and no is not None
        added[honest] = (one.error**2 - no.error**2) / (two.error**2 - no.error**2)
    assert added == pytest.approx({"1": 1, "0.5": 2, "0.25": 4}, rel=1e-3)
    usual = plan(f"{SMALL} --error 0.1 --epsilon 1 --trust distributed --survivors 0.5")
    told = plan(f"{SMALL} --error 0.1 --epsilon 1 --trust distributed --survivors 0.5 --honest 0.45")
    assert sentence(usual) == sentence(told) != sentence(plan(f"{SMALL} --error 0.1 --epsilon 1 --trust distributed"))


def test_doubts(assumed: Plan) -> None:
    theory, delta = assumed.assumed.theory, Decimal("1e-5")

    def doubts(name: str, n: int, epsilon: str) -> str:
        return "; ".join(predict(theory, WAYS[name], Setting(n, Decimal(epsilon), delta)).doubts)

    assert doubts("local", 100_000, "1") == ""
    far = doubts("local", 1000, "0.1")
    for word in ("the ball of radius 3", "scores of pairs are off by", "the answer 0 is as good"):
        assert word in far
    assert "fewer than 50 labels a coordinate" in doubts("central", 150, "4")
    free = plan("--features gaussian --dimension 3 --theta 0,0,0 --labels 20 --epsilon 0.1").answer
    assert free is not None
    assert not any("ball" in doubt.split(":")[0] or "answer 0" in doubt for doubt in free.doubts)


def test_a_covariance_is_the_law_of_features(tmp_path: Path, assumed: Plan) -> None:
    np.savetxt(tmp_path / "c.csv", 2 * np.eye(5), delimiter=",")
    np.save(tmp_path / "c.npy", 2 * np.eye(5))
    flags = "--theta=1,0.5,0,-0.5,-1 --sum-zero --bound 3 --error 0.1 --epsilon 1"
    for name in ("c.csv", "c.npy"):
        found = plan(f"--covariance {tmp_path / name} {flags}")
        for way in WAYS:
            one, other = found.answers[way], assumed.answers[way]
            assert one is not None and other is not None
            assert one.setting.n == pytest.approx(other.setting.n, rel=1e-3)
    coins = np.random.default_rng(8).normal(size=(4, 4))
    np.save(tmp_path / "d.npy", coins @ coins.T)
    theory = plan(f"--covariance {tmp_path / 'd.npy'} --theta 0,0,0,0 --error 1 --epsilon 1").assumed.theory
    # 2^17 rows: a relative standard error of about 0.4 % in each entry of its own scale; 6 of them.
    scale = np.sqrt(np.outer(np.diag(coins @ coins.T), np.diag(coins @ coins.T)))
    assert (np.abs(theory.second_moments - coins @ coins.T) <= 0.024 * scale).all()


def test_features_and_pilots_of_files(tmp_path: Path) -> None:
    coins = np.random.default_rng(4)
    x, theta = coins.normal(size=(3000, 3)), np.array([0.5, -1.0, 0.25])
    np.savez(tmp_path / "pilot.npz", x=x, theta=theta)
    np.savetxt(tmp_path / "x.csv", x, delimiter=",")
    one = plan(f"--pilot {tmp_path / 'pilot.npz'} --error 0.2 --epsilon 1")
    two = plan(f"--features {tmp_path / 'x.csv'} --dimension 3 --theta 0.5,-1,0.25 --error 0.2 --epsilon 1")
    drawn = plan("--features gaussian --dimension 3 --theta 0.5,-1,0.25 --error 0.2 --epsilon 1")
    for way in WAYS:
        first, second, third = one.answers[way], two.answers[way], drawn.answers[way]
        assert first is not None and second is not None and third is not None
        assert first.setting.n == second.setting.n
    assert "longer than the truth" in one.doubts[0]
    assert two.doubts == ()


def test_a_study_and_its_results_folder(finished: Path, study_path: Path) -> None:
    one = plan(f"--study {study_path} --error 0.2 --epsilon 1")
    two = plan(f"--study {finished} --error 0.2 --epsilon 1")
    assert {way: found and found.setting.n for way, found in one.answers.items()} == {
        way: found and found.setting.n for way, found in two.answers.items()
    }
    assert "study small" in one.assumed.words


def test_a_fit_is_a_pilot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    coins, names = np.random.default_rng(2), ("tea", "coffee", "milk", "water")
    lines = ["labeler,item_a,item_b,winner"]
    for row in range(300):
        a, b = coins.choice(4, 2, replace=False)
        first = coins.uniform() < 1 / (1 + np.exp(a - b))
        lines.append(f"p{row},{names[a]},{names[b]},{names[a] if first else names[b]}")
    (tmp_path / "votes.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert main(["fit", str(tmp_path / "votes.csv"), "--trust", "clear", "--json"]) == 0
    (tmp_path / "pilot.json").write_text(capsys.readouterr().out, encoding="utf-8")
    found = plan(f"--pilot {tmp_path / 'pilot.json'} --error 0.3 --epsilon 1")
    assert found.assumed.theory.problem.reduced_dimension == 3
    clear, local = found.answers["clear"], found.answers["local"]
    assert clear is not None and local is not None
    # With equal scores H = 1/6 on three free coordinates, and n error^2 = tr H^-1 = 18: the least there is.
    assert clear.setting.n >= 18 / 0.3**2
    assert 4 < local.setting.n / clear.setting.n < 12


def test_the_command_in_text_and_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", *shlex.split(SMALL), "--error", "0.1", "--epsilon", "1", "--trust", "central"]
    assert main(words) == 0
    text = capsys.readouterr().out
    assert "central, Gaussian on the clipped sum: " in text
    assert "noise costs as much as sampling at n = " in text
    assert "enough noise where 0.9 of the rows stay" in text
    assert main([*words, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["answer"] in text
    assert set(content["ways"]) == set(WAYS)
    assert content["ways"]["local"]["label_worth"] == pytest.approx(0.125, rel=0.02)
    with pytest.raises(SystemExit):
        main(["plan", "--help"])
    assert "halftruth plan --error 0.1 --epsilon 1 --trust local" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("--error 0.1", "expected two of --error, --epsilon and --labels"),
        ("--error 0.1 --epsilon 1 --honest 0", "--honest: expected a share of the rows"),
        ("--error 0.1 --epsilon 1 --survivors 0.5 --honest 0.6", "--honest: expected at most the 0.5 of --survivors"),
        ("--error 0.1 --epsilon 1 --labels 3", "expected two of"),
        ("--error 0 --epsilon 1", "--error: expected a number > 0"),
        ("--error nan --epsilon 1", "--error"),
        ("--error 1 --epsilon 1 --features gaussian --dimension 1 --theta 1 --bound x", "--bound"),
        ("--error 0.1 --epsilon -1", "expected"),
        ("--error 0.1 --epsilon 1 --delta 1", "--delta"),
        ("--labels 1.5 --epsilon 1", "--labels: expected an integer"),
        ("--error 0.1 --epsilon 1 --theta 0,1", "--theta: does not go with --study"),
        ("--error 0.1 --epsilon 1 --features gaussian --theta 0,1", "--dimension D"),
        ("--error 0.1 --epsilon 1 --features gaussian --dimension 2", "such as --theta 0,0"),
        ("--error 0.1 --epsilon 1 --features gaussian --dimension 2 --theta 0,1,2", "expected 2 finite numbers"),
        ("--error 0.1 --epsilon 1 --features gaussian --dimension 2 --theta 0,x", "expected numbers with commas"),
        ("--error 0.1 --epsilon 1 --features gaussian --dimension 2 --theta 1,1 --sum-zero", "expected a sum of 0"),
        (
            "--error 0.1 --epsilon 1 --features gaussian --dimension 2 --theta 1,1 --bound 1",
            "norm of at most the bound",
        ),
        ("--error 0.1 --epsilon 1 --features nowhere.csv --dimension 2 --theta 1,1", "nowhere.csv"),
        ("--error 0.1 --epsilon 1 --study a.toml --pilot b.npz", "expected one of --study"),
        ("--error 0.1 --epsilon 1 --pilot nowhere.npz", "nowhere.npz"),
        ("--error 0.1 --epsilon 1 --pilot nowhere.json", "nowhere.json"),
        ("--error 0.1 --epsilon 1 --covariance nowhere.npy --theta 1", "nowhere.npy"),
        ("--error 0.1 --epsilon 1 --study nowhere.toml", "nowhere.toml"),
    ],
)
def test_wrong_use_says_what_to_do(flags: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *shlex.split(flags)]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("matrix", "said"),
    [
        (np.eye(2)[:1], "expected a square matrix"),
        (np.array([[1.0, 2.0], [0.0, 1.0]]), "symmetric"),
        (np.array([[1.0, 2.0], [2.0, 1.0]]), "without negative eigenvalues"),
        (np.array([[1.0, 1.0], [1.0, 1.0]]), "span the space"),
        (np.array([[np.nan, 0.0], [0.0, 1.0]]), "finite numbers"),
    ],
)
def test_what_is_no_covariance(
    matrix: np.ndarray, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "c.npy", matrix)
    flags = ["--covariance", str(tmp_path / "c.npy"), "--theta", "1,1", "--error", "1", "--epsilon", "1"]
    assert main(["plan", *flags]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "expected the output of halftruth fit --json"),
        ("[1]", "expected the output of halftruth fit --json"),
        ("{", "expected the output of halftruth fit --json"),
        (
            '{"ranking": [{"estimate": 1}], "coefficients": [], "hit_boundary": false, "bound": null}',
            "expected 2 to 512 items",
        ),
        (
            '{"ranking": [{"estimate": 1}, {"estimate": 0}], "coefficients": [1], "hit_boundary": 0, "bound": null}',
            "as .npz",
        ),
    ],
)
def test_what_is_no_pilot(text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.json").write_text(text, encoding="utf-8")
    assert main(["plan", "--pilot", str(tmp_path / "p.json"), "--error", "1", "--epsilon", "1"]) == 2
    assert said in capsys.readouterr().err
    np.savez(tmp_path / "p.npz", x=np.eye(2))
    assert main(["plan", "--pilot", str(tmp_path / "p.npz"), "--error", "1", "--epsilon", "1"]) == 2
    assert "expected arrays x and theta" in capsys.readouterr().err


def test_predicted_and_measured_errors_stand_side_by_side(finished: Path) -> None:
    found = compare(View.open(Folder(finished)))
    # Two n; clear once, two local ways at two levels; the study's central arm clips at a radius of its own.
    assert [one.predicted.way.name for one in found].count("clear") == 2
    assert len(found) == 2 * (1 + 2 * 2)
    assert all(0.3 < one.ratio < 2 and 0 < one.se < one.measured / 3 for one in found)


@pytest.mark.slow
@pytest.mark.parametrize("features", ["gaussian", "sphere"])
def test_plans_hold_where_they_have_no_doubt(features: str, tmp_path: Path) -> None:
    """Measured within 10 % of predicted. A fixed run: the seed was chosen before the first look.

    1,000 repetitions: standard errors of ratios are below 2 %, of those without a doubt. Their second-order error is
    below 6 %, so that chance has to bring two standard errors more at the worst setting.
    """
    run(load(STUDY, [f"problem.features={features}"]), tmp_path)
    found = compare(View.open(Folder(tmp_path)))
    assert len(found) == 3 * (1 + 4 * 4)
    sound = [one for one in found if not one.predicted.doubts]
    assert len(sound) == {"gaussian": 24, "sphere": 36}[features]
    assert all(abs(one.ratio - 1) <= 0.10 for one in sound), [(one.predicted.setting, one.ratio) for one in sound]
    # The doubt is deserved: far beyond its limit, and before the ball cuts errors, they are larger than predicted.
    bent = [one for one in found if one.predicted.score_error > 0.5 and one.boundary_rate < 0.05]
    assert all(one.ratio > 1.05 for one in bent)
