"""Studies of other models of pairs from file to results: labels and scores follow F, splits do not matter."""

import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client.sources.synthetic import Synthetic
from protocol.arms import LINK_ESTIMATORS, mechanisms
from protocol.coins import Address, Stream, words
from protocol.features import differences
from protocol.links import LINKS
from protocol.store import FeatureStore
from protocol.strict import StudyError
from protocol.study import Study, cells
from protocol.study_file import parse
from protocol.trust import Trust
from server.kinds import kind_of
from server.outcome import Outcome
from server.tasks import offers
from studies.folder import Folder, open_study
from studies.in_process import run_cell
from studies.load import load
from studies.results import read
from studies.run import run
from studies.score import Scorer
from studies.summary import Setting, summarise
from studies.theory.constants import thurstone_slope
from studies.theory.sandwich import Theory, predict
from studies.truth import oracle_step

THETA = np.array([1.0, 0.5, 0.0, -0.5, -1.0])
MAIN = Path(__file__).parents[2] / "studies" / "toml" / "thurstone.toml"
OTHERS = [name for name in LINKS if name != "btl"]
CLIPPED = "gaussian-statistic-clipped"


def every_arm() -> list[dict[str, Any]]:
    """Each estimator with each mechanism that other models have."""
    return [
        {"trust": "none" if trust is None else trust.label, "mechanism": mechanism, "estimator": name}
        for trust, name in LINK_ESTIMATORS
        for mechanism in mechanisms(trust, "pairwise", "thurstone")
        if trust is not Trust.SHUFFLED  # of panels
    ]


def study(model: str, arms: list[dict[str, Any]], n: int = 300, repetitions: int = 2, **grid: Any) -> Study:
    problem = {"kind": "pairwise", "model": model, "dimension": 5, "features": "gaussian", "sum_zero": True}
    levels = {"epsilon": [Decimal("0.5"), Decimal(2)], "delta": [Decimal("1e-5")], **grid}
    head = {"name": model, "seed": 5, "repetitions": repetitions}
    return parse(
        {"study": head, "problem": {**problem, "bound": Decimal(3)}, "grid": {"n": [n], **levels}, "arm": arms}
    )


def outcomes(asked: Study, clients: int = 1) -> dict[tuple[object, ...], Outcome]:
    found = [outcome for cell in cells(asked) for outcome in run_cell(asked, THETA, cell, clients)]
    return {(outcome.arm.name, outcome.repetition, outcome.epsilon): outcome for outcome in found}


@pytest.mark.parametrize("model", OTHERS)
def test_splits_over_clients_do_not_matter(model: str) -> None:
    asked = study(model, every_arm(), n=101)
    one, many = outcomes(asked), outcomes(asked, clients=7)
    assert one.keys() == many.keys()
    for key, outcome in one.items():
        assert (outcome.theta == many[key].theta).all() and outcome.warnings == many[key].warnings


def test_other_models_send_what_the_logistic_one_sends() -> None:
    """The same question about the same rows: the model changes labels and estimates, not the claim or the channel."""
    arms = [{"trust": "local", "estimator": "rr-mle"}]
    (cell,) = cells(study("btl", arms))
    for model in OTHERS:
        left, right = (
            next(iter(offers(study(name, arms, epsilon=[Decimal(1)]), cell))).task for name in ("btl", model)
        )
        assert left is not None and right is not None
        assert (left.menu, left.epsilon, left.trust, left.ties) == (right.menu, right.epsilon, right.trust, right.ties)
        assert left.study != right.study and right.problem.model == model


@pytest.mark.parametrize("model", LINKS)
def test_labels_follow_the_model_by_one_coin_a_row(model: str) -> None:
    asked = study(model, [{"trust": "none", "estimator": "zero"}], n=4000)
    task = next(
        offer.task
        for offer in offers(study(model, [{"trust": "clear", "estimator": "mle"}], n=4000), cells(asked)[0])
        if offer.task is not None
    )
    own = Synthetic(asked.problem, THETA, 5, FeatureStore(5))
    labels = own.labels(task, 1, np.arange(4000)).reveal()
    x = differences(asked.problem, Address(5, Stream.PROBLEM, 4000, 1), 0, 4000)
    chance = LINKS[model].cdf(x @ THETA)
    coins = words(Address(5, Stream.LABELS, 4000, 1), 0, 4000)
    sure = np.abs((coins >> np.uint64(1)) / 2.0**63 - chance) > 1e-9
    assert sure.mean() > 0.999
    assert (labels == ((coins >> np.uint64(1)) / 2.0**63 < chance))[sure].all()


@pytest.mark.parametrize("model", LINKS)
def test_scores_are_expectations_under_the_model(model: str) -> None:
    own = Scorer(study(model, [{"trust": "none", "estimator": "zero"}]), THETA)
    best = own.score(THETA, np.eye(4))
    assert best.error_l2 == 0 and best.excess_log_loss < 1e-15
    z, other = own._test @ THETA, own._test @ (0.3 * THETA[::-1])
    link = LINKS[model]
    s, q = link.cdf(z), link.cdf(other)
    found = own.score(0.3 * THETA[::-1], np.eye(4))
    divergence = s * np.log(s / q) + link.cdf(-z) * np.log(link.cdf(-z) / link.cdf(-other))
    assert found.excess_log_loss == pytest.approx(float(divergence.mean()), rel=1e-10)
    assert found.accuracy == pytest.approx(float(np.where(other > 0, s, link.cdf(-z)).mean()), rel=1e-12)
    far = [own.score(factor * THETA, np.eye(4)).excess_log_loss for factor in (5.0, 50.0)]
    assert 0 < far[0] < far[1] < math.inf


def test_a_study_from_file_to_results(tmp_path: Path) -> None:
    loaded = load(MAIN, ["study.repetitions=2", "grid.n=[200]", "grid.epsilon=[1.0]", "arm.4.step=oracle"])
    assert loaded.study.problem.model == "thurstone"
    table = run(loaded, tmp_path, jobs=1)
    again = open_study(Folder(tmp_path))
    assert again.sha256 == loaded.sha256 and again.study.fingerprint == loaded.study.fingerprint
    assert read(tmp_path / "results.parquet").equals(table)
    told = {row["estimator"]: " ".join(row["warnings"]) for row in table.to_pylist() if row["trust"] == "local"}
    assert "not convex" in told["debiased-sgd"] and "not convex" not in told["matching"]


@pytest.mark.parametrize(
    ("arm", "said"),
    [
        ({"trust": "local", "estimator": "debiased"}, "estimator"),
        ({"trust": "central", "estimator": "mle", "mechanism": CLIPPED}, "estimator"),
        ({"trust": "local", "estimator": "rr-mle", "interval": "bootstrap"}, "interval"),
        ({"trust": "local", "estimator": "matching", "mechanism": "randomized-response-menu"}, "mechanism"),
    ],
)
def test_what_a_model_does_not_have_is_refused(arm: dict[str, Any], said: str) -> None:
    with pytest.raises(StudyError, match=said):
        study("thurstone", [arm])
    with pytest.raises(StudyError, match="model"):
        study("logit", [{"trust": "none", "estimator": "zero"}])
    assert kind_of(study("btl", [{"trust": "none", "estimator": "zero"}]).problem).estimators.keys() >= {"debiased"}


@pytest.mark.parametrize("model", OTHERS)
def test_the_oracle_step_is_the_least_eigenvalue_of_the_information(model: str) -> None:
    asked = study(model, [{"trust": "none", "estimator": "zero"}])
    theory = Theory(asked.problem, THETA, 5)
    chance, slope = theory.variance, theory.slope
    information = (theory.rows * (slope**2 / chance)[:, None]).T @ theory.rows / len(theory.rows)
    assert float(oracle_step(asked, THETA)) == pytest.approx(np.linalg.eigvalsh(information)[0], rel=2e-6)


def test_the_order_of_what_theory_predicts() -> None:
    """Clear MLE is best; RR-MLE is no worse than matching; all meet where nothing is flipped or added."""
    arms = study("thurstone", every_arm()).arms
    theory = Theory(study("thurstone", every_arm()).problem, THETA, 5)
    by_name = {(arm.trust, arm.estimator, arm.mechanism): arm for arm in arms}

    def error(trust: Trust, name: str, mechanism: str, epsilon: float) -> float:
        found = predict(theory, by_name[trust, name, mechanism], 1000, Decimal(str(epsilon)), Decimal("1e-5"))
        assert found is not None
        return found

    clear, matched = (error(Trust.CLEAR, name, "none", 1) for name in ("mle", "matching"))
    assert clear == theory.without_privacy(1000) < matched < 1.1 * clear
    for epsilon in (0.5, 2.0):
        best = error(Trust.LOCAL, "rr-mle", "randomized-response", epsilon)
        assert clear < best < error(Trust.LOCAL, "matching", "randomized-response", epsilon)
    assert error(Trust.LOCAL, "rr-mle", "randomized-response", 40) == pytest.approx(clear, rel=1e-9)
    assert error(Trust.LOCAL, "matching", "randomized-response", 40) == pytest.approx(matched, rel=1e-9)
    assert error(Trust.CENTRAL, "matching", "gaussian-statistic", 40) == pytest.approx(matched, rel=0.1)
    assert predict(theory, by_name[Trust.LOCAL, "debiased-sgd", "randomized-response"], 1000, Decimal(1), None) is None


def test_the_slope_of_a_gradient() -> None:
    assert thurstone_slope(1.0, 1.0) == pytest.approx(
        math.exp(-2) / math.sqrt(2 * math.pi) / 0.5 / math.erfc(math.sqrt(2))
    )


def test_intervals_of_the_matching_loss_cover(tmp_path: Path) -> None:
    """60 repetitions with 5 coordinates: at 95 % coverage the share has a standard error of at most 2.0 % (coordinates
    of a repetition are dependent: up to 1.5 times independent ones), so 4.5 of them, 9 %, fail once in 100,000."""
    arms = [{"trust": "local", "estimator": "matching"}, {"trust": "local", "estimator": "rr-mle"}]
    asked = study("thurstone", arms, n=3000, repetitions=60, epsilon=[Decimal(2)])
    held: dict[str, list[np.ndarray]] = {}
    for outcome in outcomes(asked).values():
        assert outcome.ci_low is not None and outcome.ci_high is not None
        inside = (outcome.ci_low <= THETA) & (outcome.ci_high >= THETA)
        held.setdefault(outcome.arm.estimator, []).append(inside)
    for shares in held.values():
        assert abs(float(np.mean(shares)) - 0.95) < 0.09


# Mean error of an independent prototype, and its standard error, at n = 5000.
PROTOTYPE = {0.5: (0.643, 0.080), 1.0: (0.391, 0.060), 2.0: (0.136, 0.014)}


@pytest.mark.slow
def test_errors_are_those_of_a_prototype_and_of_theory(tmp_path: Path) -> None:
    """Three cells within 4 joint standard errors of the prototype; likelihoods and sums within 20 % of the sandwich.

    Two fixed runs are compared; the seed was chosen before the first look. One direction has most of the error, so the
    root mean square over 200 repetitions has a relative standard error of 5 % at most: 4 of them fail once in 16,000.
    The matching loss of reports is left out: at this n its error is 15 % above the first order (docs/ESTIMATORS.md, 6).
    """
    loaded = load(MAIN, ["study.repetitions=200"])
    table = run(loaded, tmp_path)
    found = {(one.setting, one.arm): one.moments for one in summarise(table)}
    for epsilon, (mean, error) in PROTOTYPE.items():
        own = found[Setting(5000, epsilon, 1e-5), "local/randomized-response/matching"]
        assert abs(own.mean - mean) < 4 * math.hypot(own.se, error), epsilon
    theory = Theory(loaded.study.problem, THETA, loaded.study.seed)
    errors: dict[tuple[str, float], list[float]] = {}
    for row in table.to_pylist():
        if row["trust"] != "none" and row["estimator"] in ("matching", "mle", "rr-mle"):
            errors.setdefault((row["arm"], row["epsilon"] or 0.0), []).append(row["error_l2"])
    by_name = {arm.name: arm for arm in loaded.study.arms}
    for (name, epsilon), seen in errors.items():
        if by_name[name].trust is Trust.LOCAL and (epsilon < 2 or by_name[name].estimator == "matching"):
            continue
        level = Decimal(str(epsilon)) if epsilon else None
        expected = predict(theory, by_name[name], 5000, level, Decimal("1e-5"))
        assert expected == pytest.approx(math.sqrt(np.mean(np.square(seen))), rel=0.2), (name, epsilon)
