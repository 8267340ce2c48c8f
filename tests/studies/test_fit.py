"""`halftruth fit` on real files: against another implementation, twice, and used wrongly."""

import json
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from client.labeler import Node
from client.ledger_view import read_entries, read_labelers
from client.replies import reply as carried
from client.sources.loading import read_table
from protocol.privacy import Unit
from server.release_file import read_releases
from studies import in_process
from studies.cli import main

FILES = ("first_names.csv", "german_parties_2009.csv")
ADDRESSED = ("--public-data", "--coins", "addressed", "--seed", "7")

Fitted = dict[str, Any]


def run(capsys: pytest.CaptureFixture[str], *words: object) -> Fitted:
    """The JSON that a fit prints."""
    assert main(["fit", *map(str, words), "--json"]) == 0
    found: Fitted = json.loads(capsys.readouterr().out)
    return found


def scores(found: Fitted) -> NDArray[np.float64]:
    """Estimates by item name."""
    lines = sorted(found["ranking"], key=lambda line: line["item"])
    return np.array([line["estimate"] for line in lines])


def write(folder: Path, *rows: str) -> Path:
    path = folder / "votes.csv"
    path.write_text("\n".join(("labeler,item_a,item_b,winner", *rows, "")), encoding="utf-8")
    return path


@pytest.fixture(params=FILES)
def votes(request: pytest.FixtureRequest, shared_data: Path) -> Path:
    """A real file: 192 labelers, 15 comparisons of 6 items each."""
    return shared_data / "pairwise" / str(request.param)


def test_clear_agrees_with_logistic_regression(votes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = read_table(votes, public=False)
    x = np.zeros((len(table.pairs), len(table.items)))
    x[np.arange(len(x)), table.pairs[:, 1]] = 1
    x[np.arange(len(x)), table.pairs[:, 0]] = -1
    # The last item's score is fixed at 0, so that the other's model is identified.
    model = LogisticRegression(C=np.inf, fit_intercept=False, solver="newton-cg", tol=1e-13, max_iter=1000)
    model.fit(x[:, :-1], table.values.reveal())
    expected = np.append(model.coef_[0], 0.0)
    found = run(capsys, votes, "--trust", "clear")
    assert np.abs(scores(found) - (expected - expected.mean())).max() < 1e-6
    assert found["claimed_epsilon"] is None
    assert (found["rows"], found["labels"], found["labelers"]) == (2880, 2880, 192)
    assert [line["rank"] for line in found["ranking"]] == [1, 2, 3, 4, 5, 6]
    assert all(
        line["comparisons"] == 960 and line["low"] < line["estimate"] < line["high"] for line in found["ranking"]
    )


def test_local_answers_once(votes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = (votes, "--trust", "local", "--epsilon", "1", "--state", tmp_path)
    first = run(capsys, *words)
    ledger = (tmp_path / "ledger.sqlite").read_bytes()
    second = run(capsys, *words)
    assert (tmp_path / "ledger.sqlite").read_bytes() == ledger
    assert (first.pop("charged_labels"), second.pop("charged_labels")) == (2880, 0)
    assert first == second
    assert (first["claimed_epsilon"], first["unit"], first["coins"]) == (1.0, "label", "os")
    assert 0.99 < first["computed_epsilon"] <= 1


def test_what_follows_the_reports_is_free(votes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = (votes, "--trust", "local", "--epsilon", "2", "--state", tmp_path)
    run(capsys, *words)
    for estimator in ("rr-map", "debiased", "debiased-sgd"):
        assert run(capsys, *words, "--estimator", estimator, "--bound", "3")["charged_labels"] == 0


def test_another_level_is_charged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    votes = write(tmp_path, "r1,x,y,x", "r2,y,x,x")
    words = (votes, "--trust", "local", "--state", tmp_path / "state", "--epsilon")
    assert [run(capsys, *words, level)["charged_labels"] for level in ("1", "2", "1.0")] == [2, 2, 0]


def test_central_releases_once(votes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = (votes, "--trust", "central", "--epsilon", "1", "--state", tmp_path)
    first, second = run(capsys, *words), run(capsys, *words)
    assert (first.pop("charged_labels"), second.pop("charged_labels")) == (2880, 0)
    assert first == second
    assert (first["claimed_delta"], first["coins"]) == (1e-5, "os")
    assert run(capsys, *words, "--bound", "2")["charged_labels"] == 0


def test_a_lost_release_is_not_made_again_for_free(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = (write(tmp_path, "r1,x,y,x", "r1,y,z,y"), "--trust", "central", "--state", tmp_path / "state", "--epsilon")
    run(capsys, *words, "1")
    (tmp_path / "state" / "curator.sqlite").unlink()
    assert main(["fit", *map(str, words), "1"]) == 1
    assert "expected the release" in capsys.readouterr().err
    assert run(capsys, *words, "2")["charged_labels"] == 2


def test_a_curators_ledger_tells_labels_through_the_noisy_sum_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = []
    for winner in ("x", "y"):
        state = tmp_path / winner
        state.mkdir()
        votes = write(state, f"r1,x,y,{winner}", "r1,y,z,y")
        run(capsys, votes, "--trust", "central", "--epsilon", "1", "--state", state)
        (release,) = read_releases(state / "curator.sqlite")
        kept.append((release.request, release.stddev))
    assert kept[0] == kept[1]


@pytest.mark.parametrize("trust", ["local", "central"])
def test_files_about_other_items_are_other_labels(
    trust: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both files have the same item numbers in all rows; the ledger must not answer for one with the other."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        votes = write(tmp_path / name, f"r1,{name}1,{name}2,{name}1", f"r2,{name}2,{name}1,{name}1")
        words = (votes, "--trust", trust, "--epsilon", "1", "--state", tmp_path / "state")
        assert run(capsys, *words)["charged_labels"] == 2
        assert run(capsys, *words)["charged_labels"] == 0


@pytest.mark.parametrize("trust", ["local", "central"])
def test_no_name_crosses_the_border(
    trust: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    crossed: list[bytes] = []

    def overheard(raw: bytes, node: Node) -> bytes:
        reply = carried(raw, node)
        crossed.extend((raw, reply))
        return reply

    monkeypatch.setattr(in_process, "reply", overheard)
    votes = write(tmp_path, "anna-labeler,apple-item,pear-item,apple-item", "bert-labeler,apple-item,pear-item,item_b")
    run(capsys, votes, "--trust", trust, "--epsilon", "1", "--state", tmp_path / "state-folder")
    assert len(crossed) == 2
    for name in (b"labeler", b"item", b"apple", b"votes", b"state", str(tmp_path).encode()):
        assert not any(name in raw.replace(b"items", b"") for raw in crossed)


def test_weak_privacy_is_close_to_clear(votes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Fixed coins. At epsilon = 8 one label in 3,000 flips: the standard error of a score hardly differs from clear."""
    clear = run(capsys, votes, "--trust", "clear")
    local = run(capsys, votes, "--trust", "local", "--epsilon", "8", *ADDRESSED)
    central = run(capsys, votes, "--trust", "central", "--epsilon", "8", *ADDRESSED)
    assert np.abs(scores(local) - scores(clear)).max() < 0.02
    assert np.abs(scores(central) - scores(clear)).max() < 0.02


def test_addressed_coins_repeat_and_leave_no_ledger(votes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = (votes, "--trust", "local", "--epsilon", "1", *ADDRESSED)
    first = run(capsys, *words)
    assert first == run(capsys, *words)
    assert (first["coins"], first["state"]) == ("addressed", None)
    assert first["guarantee"].startswith("Guarantee: none")
    assert (scores(run(capsys, *words[:-1], "8")) != scores(first)).any()


def test_a_label_in_two_rows_pays_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    votes = write(tmp_path, "r1,x,y,x", "r1,y,x,y", "r1,x,y,y", "r2,x,y,y")
    for trust in ("local", "central"):
        found = run(capsys, votes, "--trust", trust, "--epsilon", "1", "--state", tmp_path / trust)
        assert (found["rows"], found["labels"], found["charged_labels"]) == (4, 2, 2)
        assert [line["comparisons"] for line in found["ranking"]] == [2, 2]
    assert [line["comparisons"] for line in run(capsys, votes, "--trust", "clear")["ranking"]] == [4, 4]


TIED = ("r1,x,y,x", "r1,y,z,tie", "r1,x,z,z", "r2,x,y,y", "r2,y,z,z", "r2,z,x,tie", "r3,x,y,x")


def test_a_clear_tie_is_half_a_win_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same maximum as of all rows twice, ties once for each side."""
    wins = [row for row in TIED for _ in range(2) if "tie" not in row]
    wins += ["r1,y,z,y", "r1,y,z,z", "r2,z,x,z", "r2,z,x,x"]
    found = run(capsys, write(tmp_path, *TIED), "--trust", "clear")
    doubled = run(capsys, write(tmp_path, *wins), "--trust", "clear")
    assert np.abs(scores(found) - scores(doubled)).max() < 1e-12
    assert found["ties"] == "half"
    for ties, comparisons in (("coin", 7), ("drop", 5)):
        found = run(capsys, write(tmp_path, *TIED), "--trust", "clear", "--ties", ties, "--bound", "5")
        assert sum(line["comparisons"] for line in found["ranking"]) == 2 * comparisons


@pytest.mark.parametrize(
    ("trust", "ties"), [("local", "coin"), ("local", "randomized"), ("central", "coin"), ("central", "half")]
)
def test_ties_under_a_claim_cost_no_more_and_show_nothing(
    trust: str, ties: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--trust", trust, "--epsilon", "1", "--ties", ties, "--state", tmp_path / "state")
    first = run(capsys, write(tmp_path, *TIED), *words)
    assert (first["claimed_epsilon"], first["charged_labels"], first["ties"]) == (1, 7, ties)
    assert sum(line["comparisons"] for line in first["ranking"]) == 14
    # Another file about the same labels, without ties, is answered from the ledger: the same bytes.
    second = run(capsys, write(tmp_path, *(row.replace("tie", "z") for row in TIED)), *words)
    assert (second["charged_labels"], second["ranking"]) == (0, first["ranking"])


def test_randomised_ties_are_estimated_by_what_has_a_meaning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At epsilon 40 nothing is flipped: the scores are those of half wins in clear. Each table is paid for."""
    words = ("--trust", "local", "--epsilon", "40", "--ties", "randomized", "--bound", "5", "--state", tmp_path / "s")
    votes = write(tmp_path, *TIED)
    clear, found = run(capsys, votes, "--trust", "clear", "--bound", "5"), run(capsys, votes, *words)
    assert (found["estimator"], found["charged_labels"]) == ("debiased", 7)
    assert 39.9 < found["computed_epsilon"] <= 40  # the table counts in units of 2^-63
    assert np.abs(scores(found) - scores(clear)).max() < 1e-9
    assert run(capsys, votes, *words, "--estimator", "debiased-sgd")["charged_labels"] == 0
    assert run(capsys, votes, *(word if word != "randomized" else "coin" for word in words))["charged_labels"] == 7
    assert main(["fit", str(votes), *map(str, words)]) == 0
    said = capsys.readouterr().out
    assert "a label is reported as another value with probability 8.7e-18" in said
    assert "Nothing charged" in said and "rr-map" not in said


def test_ties_are_dropped_under_a_claim_only_where_they_are_public(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    votes = write(tmp_path, *TIED)
    words = ("--trust", "local", "--epsilon", "1", "--ties", "drop")
    assert main(["fit", str(votes), *words, "--state", str(tmp_path)]) == 2
    assert "--ties-public" in capsys.readouterr().err
    found = run(capsys, votes, *words, "--ties-public", "--state", tmp_path / "state")
    assert found["charged_labels"] == 5
    assert "same ties, which are public" in found["guarantee"]


@pytest.mark.parametrize("trust", ["local", "central"])
def test_a_labeler_never_pays_more_than_the_claim(
    trust: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (write(tmp_path, *TIED), "--trust", trust, "--epsilon", "1", "--unit", "labeler", "--cap", "2")
    found = run(capsys, *words, "--state", tmp_path / "state")
    assert (found["claimed_epsilon"], found["unit"], found["charged_labels"]) == (1, "labeler", 5)
    assert found["neighbours"] == "replace all labels of one labeler"
    spent = {spent.labeler: spent.epsilon for spent in read_labelers(tmp_path / "state" / "ledger.sqlite")}
    paid = {"local": Decimal("0.5"), "central": Decimal(1)}[trust]
    assert spent == {"r1": 1, "r2": 1, "r3": paid}
    (entry,) = read_entries(tmp_path / "state" / "ledger.sqlite")
    assert (entry.unit, entry.epsilon) == (Unit.LABELER, paid)
    if trust == "local":
        assert 0.99 < found["computed_epsilon"] <= 1
    again = run(capsys, *words, "--state", tmp_path / "state")
    assert (again["charged_labels"], again["ranking"]) == (0, found["ranking"])


def test_no_finite_estimate_is_an_error_that_names_the_groups(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    votes = write(tmp_path, "r1,top,mid,top", "r2,mid,top,mid", "r1,top,low,top", "r2,mid,low,mid")
    assert main(["fit", str(votes), "--trust", "clear"]) == 1
    said = capsys.readouterr().err
    assert "{mid, top}, {low}" in said
    assert "--bound" in said
    found = run(capsys, votes, "--trust", "clear", "--bound", "5")
    assert found["hit_boundary"]
    assert found["ranking"][-1]["item"] == "low"
    assert all(line["low"] is None for line in found["ranking"])


@pytest.mark.parametrize("words", [("--trust", "local"), ("--trust", "central"), ("--unit", "labeler", "--cap", "1")])
@pytest.mark.parametrize("rows", [("r,x,y,x",), ("r,x,y,tie",), ("r,x,y,",), tuple(f"r{i},x,y,x" for i in range(9))])
def test_one_label_and_labels_that_all_agree_are_fitted(
    rows: tuple[str, ...], words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A single label, a single tie, a missing winner: the claim is kept and scores are finite, whatever the answer."""
    trust = () if "--trust" in words else ("--trust", "central")
    found = run(capsys, write(tmp_path, *rows), *words, *trust, "--epsilon", "1", "--state", tmp_path / "state")
    assert found["charged_labels"] == len(rows)
    assert np.isfinite(scores(found)).all()
    assert abs(scores(found).sum()) < 1e-9


def test_labels_that_all_agree_have_no_clear_maximum(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    votes = write(tmp_path, *(f"r{i},x,y,x" for i in range(9)))
    assert main(["fit", str(votes), "--trust", "clear"]) == 1
    assert "--bound" in capsys.readouterr().err
    found = run(capsys, votes, "--trust", "clear", "--bound", "3")
    assert found["hit_boundary"]
    assert scores(found) == pytest.approx(np.array([3, -3]) / np.sqrt(2))
    tie = run(capsys, write(tmp_path, "r,x,y,tie"), "--trust", "clear")
    assert scores(tie).tolist() == [0.0, 0.0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [("clear", "--bound", "60"), ("local", "--epsilon", "2"), ("central", "--epsilon", "1")]
)
def test_a_thousand_items(words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Below a minute of this process's time on one core: every item beats those of smaller numbers, mostly."""
    rng = np.random.default_rng(0)
    rows = []
    for row in range(20_000):
        a, b = rng.choice(1000, 2, replace=False)
        won = "item_b" if rng.random() < 1 / (1 + np.exp((a - b) / 250)) else "item_a"
        rows.append(f"r{row // 20},i{a:03},i{b:03},{won}")
    started = time.process_time()
    found = run(capsys, write(tmp_path, *rows), "--trust", *words, "--state", tmp_path / "state")
    assert time.process_time() - started < 60
    assert np.corrcoef(scores(found), np.arange(1000))[0, 1] > 0.5


def test_items_that_nobody_compared_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    votes = write(tmp_path, "r1,a,b,a", "r2,a,b,b", "r1,c,d,c", "r2,c,d,d")
    found = run(capsys, votes, "--trust", "local", "--epsilon", "4", "--state", tmp_path / "state")
    assert any("{a, b}, {c, d}" in warning for warning in found["warnings"])


def test_a_person_reads_ranking_guarantee_and_cost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    votes = write(tmp_path, "r1,[red]x,y\x1b[31m,item_a", "r2,[red]x,y\x1b[31m,item_b")
    words = ["fit", str(votes), "--trust", "local", "--epsilon", "1", "--state", str(tmp_path / "state")]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "[red]x" in said
    assert "\x1b[31m" not in said
    assert "Guarantee: epsilon = 1 per label; neighbours: replace one label" in said
    assert "Charged: 2 labels, epsilon = 1 each" in said
    assert main(words) == 0
    assert "Nothing charged" in capsys.readouterr().out


def test_a_ledger_that_cannot_be_kept_answers_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    votes = write(tmp_path, "r1,x,y,x")
    state = tmp_path / "state"
    state.mkdir()
    (state / "ledger.sqlite").write_text("not a ledger", encoding="utf-8")
    assert main(["fit", str(votes), "--trust", "local", "--epsilon", "1", "--state", str(state)]) == 1
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--trust", "local"], "--epsilon"),
        (["--trust", "local", "--epsilon", "0"], "--epsilon"),
        (["--trust", "local", "--epsilon", "nan"], "--epsilon"),
        (["--trust", "clear", "--epsilon", "1"], "--epsilon"),
        (["--trust", "local", "--epsilon", "1", "--delta", "1e-5"], "--delta"),
        (["--trust", "central", "--epsilon", "1", "--delta", "1"], "--delta"),
        (["--trust", "central", "--epsilon", "1", "--delta", ""], "--delta"),
        (["--trust", "central", "--epsilon", "1001"], "epsilon <= 1000"),
        (["--trust", "central", "--epsilon", "1", "--delta", "1e-61"], "delta >= 1E-60"),
        (["--trust", "central", "--epsilon", "1", "--estimator", "rr-mle"], "--estimator"),
        (["--trust", "clear", "--bound", "0"], "--bound"),
        (["--trust", "local", "--epsilon", "1", "--ties", "half"], "--ties half"),
        (["--trust", "clear", "--ties", "randomized"], "--ties randomized: only --trust local"),
        (["--trust", "central", "--epsilon", "1", "--ties", "randomized"], "--ties randomized: only --trust local"),
        (
            ["--trust", "local", "--epsilon", "1", "--ties", "randomized", "--estimator", "rr-mle"],
            "use debiased or debiased-sgd",
        ),
        (["--trust", "clear", "--unit", "labeler", "--cap", "2"], "--unit labeler"),
        (["--trust", "local", "--epsilon", "1", "--unit", "labeler"], "--cap"),
        (["--trust", "local", "--epsilon", "1", "--unit", "labeler", "--cap", "0"], "--cap"),
        (["--trust", "local", "--epsilon", "1", "--cap", "2"], "--cap"),
        (["--trust", "clear", "--bound", "inf"], "--bound"),
        (["--trust", "local", "--epsilon", "1", "--coins", "addressed", "--seed", "7"], "--public-data"),
        (["--trust", "local", "--epsilon", "1", "--coins", "addressed", "--public-data"], "--seed"),
        (["--trust", "local", "--epsilon", "1", "--seed", "7"], "--seed"),
        (["--trust", "local", "--epsilon", "1", *ADDRESSED[:-1], "-1"], "--seed"),
    ],
)
def test_wrong_use(words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    votes = write(tmp_path, "r1,x,y,x")
    assert main(["fit", str(votes), *words, "--state", str(tmp_path / "state")]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "state").exists()


def test_a_file_in_the_place_of_the_state_folder_is_wrong_use(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    votes = write(tmp_path, "r1,x,y,x")
    assert main(["fit", str(votes), "--trust", "local", "--epsilon", "1", "--state", str(votes)]) == 2
    assert f"--state: expected a folder, got the file {votes}" in capsys.readouterr().err


def test_a_file_that_does_not_read_is_wrong_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    votes = write(tmp_path, "r1,x,y,x", "r1,x,z,up")
    assert main(["fit", str(votes), "--trust", "clear"]) == 2
    assert "line 3" in capsys.readouterr().err
    assert main(["fit", str(tmp_path / "none.csv"), "--trust", "clear"]) == 2
    assert "none.csv" in capsys.readouterr().err
