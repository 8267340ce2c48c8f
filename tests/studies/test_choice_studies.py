"""Studies of top choices from file to results: two choices are a pair, splits do not matter, theory fits."""

import math
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protocol.arms import CHOICE_ESTIMATORS, MECHANISMS
from protocol.strict import StudyError
from protocol.study import Study, cells
from protocol.study_file import parse
from protocol.trust import Trust
from server.choice_view import clear_view
from server.outcome import Outcome
from studies.choice_score import ChoiceScorer, choice_curvature, scorer
from studies.folder import Folder, open_study
from studies.in_process import run_cell
from studies.load import load
from studies.results import read
from studies.run import run
from studies.score import Scorer
from studies.summary import Setting, summarise
from studies.theory.choices import ChoiceTheory
from studies.theory.sandwich import Theory, predict

THETA = np.array([1.0, 0.5, 0.0, -0.5, -1.0])
Key = tuple[str, int, Decimal | None]


def study(kind: str, arms: list[dict[str, Any]], n: int = 300, repetitions: int = 2, **problem: Any) -> Study:
    asked = {"kind": kind, "dimension": 5, "features": "sphere", "sum_zero": True, "bound": Decimal(3), **problem}
    grid = {"n": [n], "epsilon": [Decimal("0.5"), Decimal(2)], "delta": [Decimal("1e-5")]}
    head = {"name": "choices", "seed": 5, "repetitions": repetitions}
    return parse({"study": head, "problem": asked, "grid": grid, "arm": arms})


def every_arm() -> list[dict[str, Any]]:
    return [
        {"trust": "none" if trust is None else trust.label, "mechanism": mechanism, "estimator": name}
        for trust, name in CHOICE_ESTIMATORS
        for mechanism in MECHANISMS[trust, "choice"]
        if (name != "literal" or mechanism == "k-randomized-response") and trust is not Trust.SHUFFLED
    ]


def outcomes(asked: Study, clients: int = 1) -> dict[Key, Outcome]:
    found = [outcome for cell in cells(asked) for outcome in run_cell(asked, THETA, cell, clients)]
    return {(outcome.arm.name, outcome.repetition, outcome.epsilon): outcome for outcome in found}


def test_a_study_of_two_choices_is_one_of_pairs() -> None:
    """Features, labels, reports, estimates and claims; sums are the same bits, and so is their noise."""
    local = ("debiased-sgd", "debiased", "rr-mle", "rr-map", "naive")
    arms = [{"trust": "clear", "estimator": "mle"}, {"trust": "clear", "estimator": "sgd"}]
    arms += [{"trust": "local", "estimator": name} for name in local]
    arms += [{"trust": "central", "mechanism": name, "estimator": "mle"} for name in MECHANISMS_OF_SUMS]
    arms[-1] |= {"radius": Decimal(1)}
    of_two = [arm | {"mechanism": "k-randomized-response"} if arm["trust"] == "local" else arm for arm in arms]
    pairs, two = outcomes(study("pairwise", arms)), outcomes(study("choice", of_two, choices=2))
    for (name, *place), pair in pairs.items():
        choice = two[(name.replace("randomized-response", "k-randomized-response"), *place)]  # type: ignore[index]
        assert np.abs(pair.theta - choice.theta).max() < 1e-10
        assert pair.hit_boundary == choice.hit_boundary and pair.claim == choice.claim
        assert pair.computed_epsilon == choice.computed_epsilon
        assert (pair.ci_low is None) == (choice.ci_low is None)
        if pair.ci_low is not None and choice.ci_low is not None:
            assert np.abs(pair.ci_low - choice.ci_low).max() < 1e-5


MECHANISMS_OF_SUMS = ("objective-perturbation-paper", "gaussian-statistic", "gaussian-statistic-clipped")


def test_splits_over_clients_do_not_matter() -> None:
    asked = study("choice", every_arm(), n=101, repetitions=2, choices=4, features="gaussian")
    one, many = outcomes(asked), outcomes(asked, clients=7)
    assert one.keys() == many.keys()
    for key, outcome in one.items():
        assert (outcome.theta == many[key].theta).all()
        assert outcome.warnings == many[key].warnings


def test_a_study_with_rows_of_different_sizes_from_file_to_results(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    sizes = rng.integers(2, 5, size=80)
    np.savez(tmp_path / "sets.npz", phi=rng.normal(size=(80, 4, 3)), sizes=sizes)
    path = tmp_path / "study.toml"
    arms = "\n".join(
        f"[[arm]]\ntrust = 'local'\nmechanism = '{name}'\nestimator = 'debiased'"
        for name in MECHANISMS[LOCAL, "choice"]
    )
    path.write_text(
        "study = { name = 'file', seed = 3, repetitions = 2 }\n"
        "problem = { kind = 'choice', choices = 4, dimension = 3, features = 'sets.npz', theta = [1, 0, -1], "
        "bound = 2 }\n"
        f"grid = {{ n = [80], epsilon = [1.0], delta = [1e-5] }}\n{arms}\n",
        encoding="utf-8",
    )
    loaded = load(path)
    assert loaded.study.problem.sizes is not None and (loaded.study.problem.sizes == sizes).all()
    table = run(loaded, tmp_path / "out", jobs=1)
    assert len(table) == 2 * len(MECHANISMS[LOCAL, "choice"])
    again = open_study(Folder(tmp_path / "out"))
    assert again.sha256 == loaded.sha256 and again.study.fingerprint == loaded.study.fingerprint
    assert read(tmp_path / "out" / "results.parquet").equals(table)
    np.savez(tmp_path / "sets.npz", phi=rng.normal(size=(80, 4, 3)), sizes=sizes + 2)
    with pytest.raises(StudyError, match="sizes up to 4"):
        load(path)
    np.savez(tmp_path / "sets.npz", x=rng.normal(size=(80, 4, 3)))
    with pytest.raises(StudyError, match="arrays 'phi'"):
        load(path)


LOCAL = next(trust for trust, name in CHOICE_ESTIMATORS if name == "debiased")


def test_scores_of_two_choices_are_those_of_pairs() -> None:
    arms = [{"trust": "clear", "estimator": "mle"}]
    pairs, two = study("pairwise", arms), study("choice", arms, choices=2)
    left, right = scorer(pairs, THETA), scorer(two, THETA)
    assert type(left) is Scorer and type(right) is ChoiceScorer
    assert np.allclose(left.covariance(300, 1), right.covariance(300, 1), rtol=1e-12)
    for estimate in (THETA, 0.3 * THETA[::-1], np.zeros(5)):
        one, other = (own.score(estimate, own.covariance(300, 0)) for own in (left, right))
        for name in ("error_l2", "error_sigma", "excess_log_loss", "accuracy"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-9, abs=1e-12)


def test_scores_of_more_choices() -> None:
    asked = study("choice", [{"trust": "clear", "estimator": "mle"}], choices=4, features="gaussian")
    own = scorer(asked, THETA)
    best = own.score(THETA, own.covariance(300, 0))
    assert best.error_l2 == best.error_sigma == 0 and best.excess_log_loss < 1e-15
    worse = own.score(-THETA, own.covariance(300, 0))
    assert worse.accuracy < 0.25 < best.accuracy and worse.excess_log_loss > 1
    with pytest.raises(ValueError, match="finite estimate"):
        own.score(np.full(5, np.nan), np.eye(4))


def test_theory_of_two_choices_is_that_of_pairs() -> None:
    """Both over their own fixed draws: 2^17 rows of pairs, 2^14 of choices, so they agree to some per cent."""
    arms = [{"trust": "clear", "estimator": "mle"}]
    pairs = Theory(study("pairwise", arms).problem, THETA, 5)
    asked = study("choice", every_arm(), choices=2)
    two = Theory(asked.problem, THETA, 5)
    names = {"debiased", "rr-mle", "mle"}
    compared = 0
    for arm in asked.arms:
        if (
            arm.estimator not in names
            or arm.mechanism == "gaussian-statistic-clipped"
            or arm.trust is Trust.DISTRIBUTED
        ):
            continue
        level = None if arm.trust_name == "clear" else Decimal(1)
        predicted = predict(two, arm, 1000, level, Decimal("1e-5"))
        same = arm if arm.trust is not LOCAL else next(a for a in PAIR_ARMS if a.estimator == arm.estimator)
        expected = predict(pairs, same, 1000, level, Decimal("1e-5"))
        if predicted is None or expected is None:
            assert arm.mechanism == "subset-selection"
            continue
        compared += 1
        assert predicted == pytest.approx(expected, rel=0.03)
    assert compared >= 7


PAIR_ARMS = study("pairwise", [{"trust": "local", "estimator": name} for name in ("debiased", "rr-mle")]).arms


def test_curvature_is_that_of_the_kernels() -> None:
    asked = study("choice", [{"trust": "clear", "estimator": "mle"}], choices=5, features="gaussian")
    theory = ChoiceTheory(Theory(asked.problem, THETA, 5))
    covariance = theory.sandwich(clear_view())[0]
    assert np.allclose(np.linalg.inv(covariance), choice_curvature(asked.problem, THETA, 5), rtol=0.05, atol=0.02)


MAIN = Path(__file__).parents[2] / "studies" / "toml" / "choices.toml"
# Mean error of an independent prototype, and its standard error, at K = 5, n = 5000, 30 repetitions.
PROTOTYPE = {
    ("debiased", 0.5): (0.650, 0.072),
    ("debiased", 1.0): (0.268, 0.021),
    ("debiased", 2.0): (0.099, 0.010),
    ("debiased", 4.0): (0.0522, None),
    ("literal", 2.0): (1.42, None),
    ("literal", 4.0): (0.0556, None),
    ("mle", None): (0.042, None),
}


@pytest.mark.slow
def test_errors_are_those_of_a_prototype(tmp_path: Path) -> None:
    """Seven cells, each within 4 joint standard errors; where the prototype states none, twice the own one is taken.

    Two fixed runs are compared; the seed was chosen before the first look.
    """
    content = tomllib.loads(MAIN.read_text("utf-8"))
    assert content["study"]["seed"] == 7
    sets = ["study.repetitions=30", "grid.n=[5000]", "grid.epsilon=[0.5, 1.0, 2.0, 4.0]", "problem.choices=5"]
    table = run(load(MAIN, sets), tmp_path)
    found = {(one.setting, one.arm): one.moments for one in summarise(table)}
    apart = {}
    for (name, epsilon), (mean, error) in PROTOTYPE.items():
        arm = "clear/none/mle" if name == "mle" else f"local/k-randomized-response/{name}"
        own = found[Setting(5000, epsilon, None if epsilon is None else 1e-5), arm]
        apart[name, epsilon] = (own.mean - mean) / math.hypot(own.se, own.se if error is None else error)
    assert max(map(abs, apart.values())) < 4, apart
