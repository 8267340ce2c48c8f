"""mle, debiased and naive: oracles, agreement with general optimisers, identities, and what has no answer."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from server.estimators import ESTIMATORS, Workspace
from server.estimators.base import Estimate, Evidence, Options
from server.estimators.features import Features
from server.estimators.newton import EstimationError, descend
from server.estimators.workspace import logistic_minimum, penalised
from server.kernels import Array
from server.kernels_solve import dot

FREE = Options(math.inf)
Draw = Callable[..., Any]


def estimate(name: str, evidence: Evidence, options: Options = FREE) -> Estimate:
    return ESTIMATORS[name](Workspace(evidence), options)


def of(rows: Any, labels: Any, contrast: float = 1.0) -> Evidence:
    x, y = np.array(rows, float), np.array(labels, np.uint8)
    return Evidence(x, None, y, (y - 0.5) @ x, contrast, (1 - contrast) / 2, 0.0)


def test_tiny_oracles(oracle: dict[int, float]) -> None:
    ones, labels = np.ones((8, 1)), [1] * 5 + [0] * 3
    assert estimate("debiased", of(ones, labels, math.tanh(1.0))).u[0] == pytest.approx(oracle[44], rel=1e-9)
    far = estimate("debiased", of(ones, labels, math.tanh(0.1)), Options(5.0))
    assert far.u[0] == pytest.approx(oracle[45], rel=1e-9)
    assert far.hit_boundary
    assert far.covariance is None
    assert far.warnings == ("interval-not-valid: the ball constraint is active",)
    x = [[1, 0], [0, 1], [1, 1], [1, -1], [-1, 0.5], [0.5, 2]]
    case = of(x, [1, 0, 1, 1, 0, 1], math.tanh(2.0))
    halved = dataclasses.replace(case, half_sum=case.half_sum / 2)  # the oracle's statistic has a factor 1/2 more
    np.testing.assert_allclose(estimate("debiased", halved).u, [oracle[47], oracle[48]], rtol=1e-8)


@pytest.mark.parametrize(
    "kind", [{}, {"epsilon": 2.0}, {"noise": 3.0}, {"noise": 3.0, "clipped": True}, {"scale": 0.5}, {"p": 1}]
)
@pytest.mark.parametrize("bound", [math.inf, 3.0, 0.7])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_minimisers_agree_with_a_general_optimiser(
    drawn: Draw, kind: dict[str, Any], bound: float, ridge: float
) -> None:
    case = drawn(1, 300, **kind)
    found = estimate("debiased", case.evidence, Options(bound, ridge=ridge))
    mean = case.evidence.half_sum / (300 * case.evidence.contrast)

    def loss(u: Any) -> float:
        z = case.x @ u
        return float(np.mean(case.weights * np.logaddexp(z / 2, -z / 2)) - mean @ u + ridge * u @ u / 2)

    def slope(u: Any) -> Any:
        return (case.weights * np.tanh(case.x @ u / 2) / 2) @ case.x / 300 - mean + ridge * u

    ball = {"type": "ineq", "fun": lambda u: bound**2 - u @ u, "jac": lambda u: -2 * u}
    if math.isinf(bound):
        theirs = minimize(loss, np.zeros(len(mean)), jac=slope, method="BFGS", options={"gtol": 1e-7}).x
    else:
        exact = {"ftol": 1e-15, "maxiter": 500}
        theirs = minimize(loss, np.zeros(len(mean)), jac=slope, method="SLSQP", options=exact, constraints=[ball]).x
        theirs *= min(1.0, bound / np.linalg.norm(theirs))  # it leaves the ball a little
    np.testing.assert_allclose(found.u, theirs, atol=1e-5)
    assert loss(found.u) <= loss(theirs) + 1e-12
    assert found.hit_boundary == (np.linalg.norm(found.u) > bound * (1 - 1e-9))
    multiplier = max(0.0, -slope(found.u) @ found.u / bound**2) if found.hit_boundary else 0.0
    np.testing.assert_allclose(slope(found.u) + multiplier * found.u, 0, atol=1e-9)


@pytest.mark.parametrize("p", [1, 4, 12])
def test_clear_labels_give_what_scikit_learn_gives(drawn: Draw, p: int) -> None:
    case = drawn([2, p], 700, p=p)
    theirs = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-12, solver="newton-cholesky")
    theirs.fit(case.x, case.labels)
    np.testing.assert_allclose(estimate("mle", case.evidence).u, theirs.coef_[0], rtol=1e-7, atol=1e-9)


def test_columns_of_any_scale_are_as_good(drawn: Draw) -> None:
    case = drawn(3, 900, p=3)
    scales = np.array([1e6, 1.0, 1e-6])
    scaled = of(case.x * scales, case.labels)
    np.testing.assert_allclose(estimate("mle", scaled).u * scales, estimate("mle", case.evidence).u, rtol=1e-7)


def test_a_start_on_a_sample_changes_nothing(drawn: Draw) -> None:
    case = drawn(4, 20_001, epsilon=1.0)
    features = Features.of(case.evidence.rows, None)
    assert features.sample is not None
    assert features.sample.count < 5_000
    mean = case.evidence.half_sum / (features.count * case.evidence.contrast)
    cold = Features.of(case.evidence.rows, None)
    object.__setattr__(cold, "sample", None)
    here, there = (logistic_minimum(which, mean, 3.0, 0.0) for which in (features, cold))
    np.testing.assert_allclose(here.u, there.u, rtol=1e-9)
    assert here.iterations < there.iterations


@pytest.mark.parametrize("scale", [1e-3, 0.5, 1.0, 30.0])
@pytest.mark.parametrize("bound", [0.4, math.inf])
def test_a_curvature_nearby_decides_the_way_alone(drawn: Draw, scale: float, bound: float) -> None:
    case = drawn(6, 9_000)
    features, mean = Features.of(case.evidence.rows, None), case.evidence.half_sum / 9_000
    objective, start = penalised(features, mean, 0.0), np.full(len(mean), 0.1)

    def slope(u: Array) -> tuple[float, Array]:
        value, gradient = features.slope(u)
        return value - dot(mean, u), gradient - mean

    rules: dict[str, Any] = {"bound": bound, "reach": features.reach, "tolerance": 1e-20, "exact": True}
    expected = descend(objective, start, **rules)
    found = descend(objective, start, **rules, slope=slope, nearby=scale * objective(start)[2])
    assert found.converged and found.hit_boundary == expected.hit_boundary
    np.testing.assert_allclose(found.u, expected.u, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.curvature, expected.curvature, rtol=1e-4)


def test_a_sample_that_lacks_an_item_is_no_harm() -> None:
    # The last feature is seen in the first rows only, between those that the sample takes.
    rng = np.random.default_rng(5)
    x = rng.normal(size=(20_000, 2))
    x[:, 1] *= (np.arange(20_000) < 400) & (np.arange(20_000) % 8 != 0)
    y = (rng.random(20_000) < 1 / (1 + np.exp(-x @ np.array([0.5, 1.0])))).astype(np.uint8)
    evidence = of(x, y)
    assert not Workspace(evidence).features.sample.rows[:, 1].any()  # type: ignore[union-attr]
    theirs = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-12, solver="newton-cholesky").fit(x, y)
    np.testing.assert_allclose(estimate("mle", evidence).u, theirs.coef_[0], rtol=1e-7)
    in_a_ball = estimate("mle", evidence, Options(9.0))  # where the sample has a minimum, with a curvature of nothing
    np.testing.assert_allclose(in_a_ball.u, theirs.coef_[0], rtol=1e-7)
    assert in_a_ball.covariance is not None


@pytest.mark.parametrize("name", ["mle", "debiased", "naive"])
def test_order_of_rows_and_sense_of_labels(drawn: Draw, name: str) -> None:
    evidence = drawn(6, 1_000).evidence
    there = estimate(name, evidence, Options(3.0)).u
    order = np.random.default_rng(0).permutation(1_000)
    mixed = dataclasses.replace(evidence, rows=evidence.rows[order], symbols=evidence.symbols[order])
    np.testing.assert_allclose(estimate(name, mixed, Options(3.0)).u, there, rtol=1e-12)
    other = dataclasses.replace(evidence, symbols=1 - evidence.symbols, half_sum=-evidence.half_sum)
    np.testing.assert_array_equal(estimate(name, other, Options(3.0)).u, -there)


def test_labels_enter_through_one_sum() -> None:
    rows = np.array([[1.0], [1.0], [2.0]] * 20 + [[1.0]] * 9)
    one = of(rows, [1, 1, 0] * 13 + [0, 0, 1] * 7 + [1] * 9, 0.8)
    other = of(rows, [0, 0, 1] * 13 + [1, 1, 0] * 7 + [1] * 9, 0.8)
    assert one.half_sum == other.half_sum == 4.5
    assert estimate("debiased", one, Options(3.0)).u == estimate("debiased", other, Options(3.0)).u
    assert estimate("rr-mle", one, Options(3.0)).u != estimate("rr-mle", other, Options(3.0)).u


def test_naive_shrinks_and_claims_no_interval(drawn: Draw) -> None:
    evidence = drawn(7, 4_000, epsilon=1.0).evidence
    naive, debiased = (estimate(name, evidence, Options(5.0)) for name in ("naive", "debiased"))
    assert np.linalg.norm(naive.u) < 0.6 * np.linalg.norm(debiased.u)
    assert naive.covariance is None
    assert naive.warnings == ()


@pytest.mark.parametrize("name", ["mle", "debiased", "naive"])
def test_separable_labels_have_no_minimiser_without_a_ball(name: str) -> None:
    x = np.random.default_rng(8).normal(size=(60, 2))
    with pytest.raises(EstimationError, match="give a finite bound or a ridge"):
        estimate(name, of(x, x[:, 0] > 0))
    with pytest.raises(EstimationError, match="give a finite bound or a ridge"):
        estimate(name, of(np.ones((5, 1)), [1] * 5))  # the gradient rounds to zero before it ends
    for bound in (5.0, 50.0, 1000.0):
        found = estimate(name, of(x, x[:, 0] > 0), Options(bound))
        assert found.hit_boundary
        assert np.linalg.norm(found.u) == pytest.approx(bound, rel=1e-12)
    assert np.isfinite(estimate(name, of(x, x[:, 0] > 0), Options(math.inf, ridge=1e-3)).u).all()


def test_nearly_separable_labels_do_have_one() -> None:
    x, y = np.append(np.linspace(1, 3, 50), 1e-3), [1] * 50 + [0]
    found = estimate("mle", of(x[:, None], y))
    theirs = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-14, solver="newton-cholesky", max_iter=500)
    theirs.fit(x[:, None], y)
    assert found.u[0] == pytest.approx(theirs.coef_[0, 0], rel=1e-6)


def test_a_statistic_out_of_reach_has_no_minimiser_without_a_ball() -> None:
    evidence = of(np.ones((8, 1)), [1] * 7 + [0], contrast=0.1)
    with pytest.raises(EstimationError, match="give a finite bound"):
        estimate("debiased", evidence)


def test_features_that_do_not_span_the_space(drawn: Draw) -> None:
    case = drawn(9, 200, p=2)
    twice = of(np.column_stack([case.x, case.x[:, 0]]), case.labels)
    with pytest.raises(EstimationError, match="do not span the space"):
        estimate("mle", twice)
    for options in (Options(5.0), Options(math.inf, ridge=1e-2)):
        found = estimate("mle", twice, options)
        assert found.u[0] == pytest.approx(found.u[2], abs=1e-6)  # of all minimisers the shortest, nearly
        assert found.covariance is None
        assert found.warnings == (
            "singular: the covariance has no inverse",
            "interval-not-valid: the features do not span the space",
        )
    nothing = estimate(
        "mle", dataclasses.replace(of(np.zeros((9, 2)), [1] * 9), half_sum=np.array([3.0, 4.0])), Options(5.0)
    )
    np.testing.assert_allclose(nothing.u, [3.0, 4.0])


def test_numbers_out_of_range_are_refused_not_returned() -> None:
    evidence = dataclasses.replace(of([[1.0], [-1.0]], [1, 1]), half_sum=np.array([1e300]))
    for options in (FREE, Options(3.0)):
        with pytest.raises(EstimationError):
            estimate("mle", evidence, options)


def test_randomised_labels_are_not_for_mle(drawn: Draw) -> None:
    with pytest.raises(ValueError, match=r"expected clear or central evidence for mle, got contrast .*: use debiased"):
        estimate("mle", drawn(10, 50, epsilon=1.0).evidence)
