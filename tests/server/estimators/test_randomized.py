"""rr-mle and rr-map: oracles, agreement with a general optimiser, limits."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from server.estimators import ESTIMATORS, Workspace
from server.estimators.base import Estimate, Evidence, Options
from server.estimators.newton import EstimationError

Draw = Callable[..., Any]


def estimate(name: str, evidence: Evidence, options: Options) -> Estimate:
    return ESTIMATORS[name](Workspace(evidence), options)


def loss_and_slope(evidence: Evidence, ridge: float, u: Any) -> tuple[float, Any]:
    """-(1/n) sum log q + ridge ||u||^2 / 2 from the definition of q."""
    sign = 2.0 * evidence.symbols - 1
    s = 1 / (1 + np.exp(-sign * (evidence.rows @ u)))
    q = evidence.flip + evidence.contrast * s
    slope = -(sign * evidence.contrast * s * (1 - s) / q) @ evidence.rows / len(sign) + ridge * u
    return float(-np.mean(np.log(q)) + ridge * u @ u / 2), slope


def test_saturated_model_oracle(oracle: dict[int, float]) -> None:
    labels = np.array([1] * 5 + [0] * 3, np.uint8)
    rows, contrast = np.ones((8, 1)), math.tanh(1.0)
    evidence = Evidence(rows, None, labels, (labels - 0.5) @ rows, contrast, (1 - contrast) / 2, 0.0)
    u = estimate("rr-mle", evidence, Options(math.inf)).u[0]
    assert u == pytest.approx(oracle[44], rel=1e-9)
    assert u == pytest.approx(oracle[46], rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("bound", [math.inf, 3.0, 0.7])
def test_both_agree_with_a_general_optimiser(drawn: Draw, epsilon: float, bound: float) -> None:
    evidence = drawn([1, 4], 3_000, epsilon=epsilon).evidence
    for name, ridge in (("rr-mle", 0.0), ("rr-map", 1 / (3_000 * 0.25))):
        found = estimate(name, evidence, Options(bound, tau=0.5))
        ball = {"type": "ineq", "fun": lambda u: bound**2 - u @ u, "jac": lambda u: -2 * u}
        start = ESTIMATORS["debiased"](Workspace(evidence), Options(min(bound, 5.0))).u

        def loss(u: Any, ridge: float = ridge) -> tuple[float, Any]:
            return loss_and_slope(evidence, ridge, u)

        if math.isinf(bound):
            theirs = minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-7}).x
        else:
            exact = {"ftol": 1e-15, "maxiter": 500}
            theirs = minimize(loss, start, jac=True, method="SLSQP", options=exact, constraints=[ball]).x
        theirs *= min(1.0, bound / np.linalg.norm(theirs))
        np.testing.assert_allclose(found.u, theirs, atol=3e-5)
        assert loss(found.u)[0] <= loss(theirs)[0] + 1e-11
        assert found.hit_boundary == (np.linalg.norm(found.u) > bound * (1 - 1e-9))


@pytest.mark.parametrize("seed", range(20))
def test_every_answer_is_a_stationary_point_however_little_is_known(drawn: Draw, seed: int) -> None:
    evidence = drawn([2, seed], 500, epsilon=0.1).evidence
    found = estimate("rr-mle", evidence, Options(3.0))
    assert np.linalg.norm(found.u) <= 3.0 * (1 + 1e-14)
    assert not [warning for warning in found.warnings if "converged" in warning]
    slope = loss_and_slope(evidence, 0.0, found.u)[1]
    multiplier = max(0.0, -slope @ found.u / 9) if found.hit_boundary else 0.0
    # The decrement of 1e-8 / n is a squared distance in a metric of about 1e-4 here.
    np.testing.assert_allclose(slope + multiplier * found.u, 0, atol=3e-7)
    # Downhill from the de-biased minimiser.
    start = estimate("debiased", evidence, Options(3.0)).u
    assert loss_and_slope(evidence, 0.0, found.u)[0] <= loss_and_slope(evidence, 0.0, start)[0]


def test_without_flips_all_estimators_are_the_clear_one(drawn: Draw) -> None:
    evidence = drawn(3, 2_000).evidence
    clear = estimate("mle", evidence, Options(3.0))
    for name in ("debiased", "rr-mle", "naive"):
        np.testing.assert_allclose(estimate(name, evidence, Options(3.0)).u, clear.u, rtol=1e-9)
    for name in ("debiased", "rr-mle"):
        np.testing.assert_allclose(estimate(name, evidence, Options(3.0)).covariance, clear.covariance, rtol=1e-5)
    ridge = Options(3.0, ridge=1 / (2_000 * 0.49))
    prior = estimate("rr-map", evidence, Options(3.0, tau=0.7))
    np.testing.assert_allclose(prior.u, estimate("mle", evidence, ridge).u, rtol=1e-6)


def test_at_epsilon_40_all_estimators_are_nearly_the_clear_one(drawn: Draw) -> None:
    case = drawn(3, 2_000, epsilon=40.0)
    clear = estimate("mle", drawn(3, 2_000).evidence, Options(3.0))
    for name in ("debiased", "rr-mle", "naive"):
        np.testing.assert_allclose(estimate(name, case.evidence, Options(3.0)).u, clear.u, rtol=1e-9)


def test_a_wide_prior_is_no_prior_and_a_narrow_one_is_an_answer(drawn: Draw) -> None:
    evidence = drawn(5, 3_000, epsilon=1.0).evidence
    mle = estimate("rr-mle", evidence, Options(5.0)).u
    np.testing.assert_allclose(estimate("rr-map", evidence, Options(5.0, tau=1e6)).u, mle, atol=1e-6)
    narrow = estimate("rr-map", evidence, Options(5.0, tau=1e-4))
    assert np.linalg.norm(narrow.u) < 1e-4
    np.testing.assert_allclose(narrow.covariance, 1e-8 * np.eye(4), atol=1e-11)


@pytest.mark.parametrize("name", ["rr-mle", "rr-map"])
def test_order_of_rows_and_sense_of_labels(drawn: Draw, name: str) -> None:
    evidence = drawn(6, 1_000, epsilon=1.0).evidence
    there = estimate(name, evidence, Options(3.0)).u
    order = np.random.default_rng(0).permutation(1_000)
    mixed = dataclasses.replace(evidence, rows=evidence.rows[order], symbols=evidence.symbols[order])
    np.testing.assert_allclose(estimate(name, mixed, Options(3.0)).u, there, rtol=1e-9)
    other = dataclasses.replace(evidence, symbols=1 - evidence.symbols, half_sum=-evidence.half_sum)
    np.testing.assert_array_equal(estimate(name, other, Options(3.0)).u, -there)


def test_no_answer_depends_on_the_other_arms(drawn: Draw) -> None:
    evidence, options = drawn(7, 20_000, epsilon=0.5).evidence, Options(3.0)
    names = [name for name in ESTIMATORS if name not in ("mle", "sgd", "objective-perturbation-sgd")]
    alone = {name: estimate(name, evidence, options).u.tobytes() for name in names}
    for order in (names, names[::-1]):
        shared = Workspace(evidence)
        assert {name: ESTIMATORS[name](shared, options).u.tobytes() for name in order} == alone


def test_no_answer_depends_on_threads(drawn: Draw) -> None:
    evidence, options = drawn(8, 9_000, p=30, epsilon=2.0).evidence, Options(9.0)
    names = ("debiased", "rr-mle", "debiased-sgd")
    answers = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            answers.append([estimate(name, evidence, options).u.tobytes() for name in names])
    assert answers[0] == answers[1]


def test_labels_that_say_nothing_about_a_maximum(drawn: Draw) -> None:
    labels, contrast = np.ones(8, np.uint8), math.tanh(0.5)
    rows = np.ones((8, 1))
    evidence = Evidence(rows, None, labels, (labels - 0.5) @ rows, contrast, (1 - contrast) / 2, 0.0)
    with pytest.raises(EstimationError, match="give a finite bound or a ridge"):
        estimate("rr-mle", evidence, Options(math.inf))
    assert estimate("rr-mle", evidence, Options(4.0)).hit_boundary
    assert math.isfinite(estimate("rr-map", evidence, Options(math.inf)).u[0])


def test_what_they_refuse(drawn: Draw) -> None:
    with pytest.raises(ValueError, match="expected ridge = 0 for rr-map"):
        estimate("rr-map", drawn(8, 50, epsilon=1.0).evidence, Options(3.0, ridge=0.1))
    with pytest.raises(ValueError, match="expected evidence with reported labels, got a central sum"):
        estimate("rr-mle", drawn(8, 50, noise=1.0).evidence, Options(3.0))
    with pytest.raises(ValueError, match="expected labels without clipping weights"):
        estimate("rr-mle", drawn(8, 50, clipped=True).evidence, Options(3.0))
