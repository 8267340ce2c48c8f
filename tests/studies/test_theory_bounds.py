"""Every bound of the paper: limits, monotony, and lower bound <= sandwich <= upper bound where its conditions hold."""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_ndtr

from protocol.coins import Floats
from server.mechanisms import standard
from server.mechanisms.gaussian import analytic_noise_multiplier, paper_noise_multiplier
from studies.moments import gram
from studies.theory import central, constants, local
from studies.theory.fitted import Fitted, fit_constant

FAILURE = 0.05
epsilons = st.floats(0.01, 30.0)
counts = st.integers(4, 10**8)
bounds = st.floats(0.05, 3.0)


@dataclass(frozen=True)
class Sample:
    """Rows with ||x|| <= 2 L, a parameter with ||theta|| <= B, and what theory needs to know of them."""

    rows: Floats
    theta: Floats
    feature_bound: float
    bound: float

    @property
    def slope(self) -> Floats:
        chance = expit(self.rows @ self.theta)
        return chance * (1 - chance)

    @property
    def sigma(self) -> Floats:
        return gram(self.rows)

    @property
    def eigenvalues(self) -> Floats:
        return np.linalg.eigvalsh(self.sigma)

    @property
    def curvature(self) -> float:
        return constants.curvature(self.feature_bound, self.bound)


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    p, seed = draw(st.integers(1, 6)), draw(st.integers(0, 2**32 - 1))
    feature_bound, bound = draw(bounds), draw(st.floats(0.05, 2.0))
    coins = np.random.default_rng(seed)
    rows = coins.normal(size=(60, p)) * coins.uniform(0.2, 1.0, p)
    rows *= 2 * feature_bound / np.linalg.norm(rows, axis=1).max()
    theta = coins.normal(size=p)
    theta *= bound * coins.uniform() / np.linalg.norm(theta)
    return Sample(rows, theta, feature_bound, bound)


def debiased(sample: Sample, epsilon: float) -> Floats:
    inverse = np.linalg.inv(gram(sample.rows, sample.slope))
    return inverse @ gram(sample.rows, sample.slope + constants.flip_noise(epsilon)) @ inverse


def rr_mle(sample: Sample, epsilon: float) -> Floats:
    slope = sample.slope
    return np.linalg.inv(gram(sample.rows, slope**2 / (slope + constants.flip_noise(epsilon))))


def seminorm(sample: Sample, covariance: Floats) -> float:
    return math.sqrt(np.trace(sample.sigma @ covariance))


def size(covariance: Floats) -> float:
    return math.sqrt(np.trace(covariance))


@given(samples(), epsilons, counts)
def test_local_lower_bounds_are_below_every_sandwich(sample: Sample, epsilon: float, n: int) -> None:
    p, covariance = len(sample.theta), rr_mle(sample, epsilon) / n
    # c = 4 is the constant that Cramer-Rao gives; the weaker form takes the largest eigenvalue.
    assert local.least_seminorm(n, epsilon, p, 4) <= seminorm(sample, covariance) * (1 + 1e-9)
    strong = local.least_l2(n, epsilon, p, float(np.trace(sample.sigma)), 4)
    assert strong <= size(covariance) * (1 + 1e-9)
    assert local.least_l2(n, epsilon, p, p * float(sample.eigenvalues[-1]), 4) <= strong * (1 + 1e-9)


@given(samples(), epsilons, counts)
def test_local_upper_bounds_are_above_the_sandwich(sample: Sample, epsilon: float, n: int) -> None:
    p, covariance, gamma = len(sample.theta), debiased(sample, epsilon) / n, sample.curvature
    smallest = float(sample.eigenvalues[0])
    # V <= coth^2(epsilon/2) / 4 Sigma and H >= gamma Sigma: C = 1/2 is enough to first order.
    assert seminorm(sample, covariance) <= local.debiased_seminorm(n, epsilon, p, gamma, FAILURE, 0.5)
    assert size(covariance) <= local.debiased_l2(n, epsilon, p, gamma, smallest, FAILURE, 0.5)
    once = local.sgd_l2(n, epsilon, sample.feature_bound, gamma, smallest, FAILURE, 1)
    assert size(covariance) <= once
    assert once <= local.sgd_l2_rakhlin(n, epsilon, sample.feature_bound, gamma, smallest, FAILURE)


@given(samples(), st.floats(1.001, 6), counts)
def test_the_bound_of_rr_mle_where_its_loss_is_convex(sample: Sample, times: float, n: int) -> None:
    threshold = constants.convexity_threshold(sample.feature_bound, sample.bound)
    epsilon = times * threshold
    found = local.rr_mle_seminorm(
        n, epsilon, len(sample.theta), sample.feature_bound, sample.bound, failure=FAILURE, constant=1
    )
    # gamma_epsilon Sigma <= I <= G_epsilon^2 Sigma: C = 1 is enough to first order.
    assert seminorm(sample, rr_mle(sample, epsilon) / n) <= found < math.inf
    same = (len(sample.theta), sample.feature_bound, sample.bound, FAILURE, 1)
    assert local.rr_mle_seminorm(n, threshold, *same) == math.inf


@given(samples(), st.floats(0.01, 8), st.sampled_from(["1e-9", "1e-5", "0.01"]), counts)
def test_central_bounds_hold_the_sandwich_between_them(sample: Sample, epsilon: float, slack: str, n: int) -> None:
    p, gamma, level, delta = len(sample.theta), sample.curvature, Decimal(repr(epsilon)), float(slack)
    stddev = analytic_noise_multiplier(level, Decimal(slack)) * float(np.linalg.norm(sample.rows, axis=1).max())
    inverse = np.linalg.inv(gram(sample.rows, sample.slope))
    covariance = inverse / n + (stddev / n) ** 2 * inverse @ inverse
    largest, smallest = float(sample.eigenvalues[-1]), float(sample.eigenvalues[0])
    # H <= Sigma / 4, and no (epsilon, delta) admits mu > 4 (epsilon + delta): c = 1 is enough.
    assert central.least_l2(n, epsilon, delta, p, largest, 1) <= size(covariance)
    assert central.least_seminorm(n, epsilon, delta, p, 1) <= seminorm(sample, covariance)
    upper = central.objective_l2(
        n, stddev, p, sample.feature_bound, sample.bound, gamma, smallest, ridge=0.0, failure=FAILURE, constant=1
    )
    enough = central.coverage_sample_size(p, sample.feature_bound, smallest, FAILURE)
    assert (upper == math.inf) == (n < enough)
    # tr H^-1 <= 4 L^2 / (gamma kappa)^2 where gamma <= 1/4 and p kappa <= 4 L^2: C = 2 is enough.
    assert size(covariance) <= 2 * upper


@given(samples(), st.floats(0.1, 100), counts)
def test_the_central_upper_bound_in_the_seminorm(sample: Sample, stddev: float, n: int) -> None:
    p, gamma = len(sample.theta), sample.curvature
    ridge = central.best_ridge(n, stddev, p, sample.bound)
    identity = np.eye(p)
    hessian = gram(sample.rows, sample.slope)
    inverse = np.linalg.inv(hessian + ridge * identity)
    bias = -ridge * inverse @ sample.theta
    square = inverse @ (hessian / n + (stddev / n) ** 2 * identity) @ inverse + np.outer(bias, bias)
    error = math.sqrt(np.trace((sample.sigma + ridge * identity) @ square))
    bound = partial(central.objective_seminorm, n, stddev, p, sample.bound, gamma, failure=FAILURE, constant=1)
    assert error <= bound(ridge=ridge)
    # The optimal ridge is optimal but for log(1 / failure).
    least = minimize_scalar(lambda x: bound(ridge=ridge * math.exp(x)), bounds=(-9, 9), method="bounded").fun
    assert bound(ridge=ridge) <= 2 * least


@given(samples(), st.floats(0.05, 3), counts)
def test_shaped_noise(sample: Sample, mu: float, n: int) -> None:
    sigma, p = sample.sigma, len(sample.theta)
    leverage = float(np.einsum("ij,jk,ik->i", sample.rows, np.linalg.inv(sigma), sample.rows).max())
    inverse = np.linalg.inv(gram(sample.rows, sample.slope))
    noise = inverse @ (leverage / mu**2 * sigma) @ inverse / n**2
    assert seminorm(sample, noise) <= central.shaped_seminorm(n, mu, p, leverage, sample.curvature) * (1 + 1e-9)
    with pytest.raises(ValueError, match="expected leverage >= dimension"):
        central.shaped_seminorm(n, mu, p, p - 0.5, sample.curvature)


LOCAL: list[Callable[[float, float], float]] = [
    lambda n, epsilon: local.least_seminorm(n, epsilon, 4, 4),
    lambda n, epsilon: local.least_l2(n, epsilon, 4, 2.0, 4),
    lambda n, epsilon: local.rr_mle_seminorm(n, epsilon, 4, 0.5, 0.5, FAILURE, 1),
    lambda n, epsilon: local.debiased_seminorm(n, epsilon, 4, 0.1, FAILURE, 1),
    lambda n, epsilon: local.debiased_l2(n, epsilon, 4, 0.1, 0.2, FAILURE, 1),
    lambda n, epsilon: local.sgd_l2(n, epsilon, 1, 0.1, 0.2, FAILURE, 1),
    lambda n, epsilon: local.sgd_l2(n, epsilon, 1, 0.1, 0.2, FAILURE, 1, choices=5),
    lambda n, epsilon: local.sgd_l2_rakhlin(n, epsilon, 1, 0.1, 0.2, FAILURE),
    lambda n, epsilon: central.least_l2(n, epsilon, 1e-5, 4, 2.0, 1),
    lambda n, epsilon: central.least_seminorm(n, epsilon, 1e-5, 4, 1),
    lambda n, epsilon: central.objective_l2(
        n, central.objective_noise(epsilon, 1e-5, 1), 4, 1, 1, 0.1, 0.2, 0.01, FAILURE, 1
    ),
    lambda n, epsilon: central.objective_l2_rate(n, epsilon, 1e-5, 4, 1, 0.1, 0.2, FAILURE, 1, 1),
    lambda n, epsilon: central.objective_seminorm(
        n, central.objective_noise(epsilon, 1e-5, 1), 4, 1, 0.1, 0.01, FAILURE, 1
    ),
]


@pytest.mark.parametrize("bound", LOCAL)
@settings(max_examples=30)
@given(n=st.integers(100, 10**9), more=st.floats(1, 1e3), epsilon=st.floats(1e-3, 30), weaker=st.floats(1, 20))
def test_more_labels_and_less_privacy_never_hurt(
    bound: Callable[[float, float], float], n: int, more: float, epsilon: float, weaker: float
) -> None:
    here = bound(n, epsilon)
    assert bound(n * more, epsilon) <= here * (1 + 1e-12)
    assert bound(n, epsilon * weaker) <= here * (1 + 1e-12)


@pytest.mark.parametrize("bound", LOCAL[:2] + LOCAL[3:8])
def test_limits_of_epsilon(bound: Callable[[float, float], float]) -> None:
    # At no privacy all factors are 1; as epsilon vanishes, the error grows like its inverse.
    assert bound(1000, 60) == pytest.approx(bound(1000, 600), rel=1e-12)
    assert bound(1000, 1e-6) / bound(1000, 1e-5) == pytest.approx(10, rel=1e-4)


def test_limits_of_the_price() -> None:
    assert local.price(700) == 1
    assert local.price(1e-6) == pytest.approx(1e12, rel=1e-5)
    # The lower bound's 1 + 1/(e^eps - 1)^2 and the upper bound's coth^2(eps/2) agree up to a factor of at most 5.
    for epsilon in np.geomspace(1e-3, 30, 50):
        assert 1 <= constants.debias_factor(epsilon) ** 2 / local.price(epsilon) <= 5
    assert central.least_l2(10**6, 50, 1e-9, 4, 2, 1) == pytest.approx(math.sqrt(4 / 2 / 10**6), rel=1e-6)
    assert central.least_l2(10, 1e-7, 1e-9, 4, 2, 1) == pytest.approx(math.sqrt(2) / (10 * 1.01e-7), rel=1e-6)


@given(st.floats(-20, 20), st.floats(-20, 20))
def test_the_divergence_of_two_answers(z: float, other: float) -> None:
    found = constants.bernoulli_divergence(z, other)
    assert 0 <= found <= constants.divergence_bound(z, other) + 1e-12 <= constants.divergence_bound(z, other, 1) + 1e-12


def test_the_constant_of_the_divergence_is_sharp() -> None:
    ratio = constants.bernoulli_divergence(-5e-4, 5e-4) / constants.divergence_bound(-5e-4, 5e-4)
    assert ratio == pytest.approx(1, rel=1e-6)


@given(epsilons, bounds, bounds)
def test_curvature_and_slope_of_the_likelihood_of_reports(epsilon: float, feature_bound: float, bound: float) -> None:
    z = np.linspace(-2 * feature_bound * bound, 2 * feature_bound * bound, 2001)
    keep, contrast, wins = expit(epsilon), np.tanh(epsilon / 2), expit(z)
    chance = expit(-epsilon) + contrast * wins
    first = contrast * wins * expit(-z) / chance
    second = first / chance * (keep * wins**2 - expit(-epsilon) * expit(-z) ** 2)
    least = constants.rr_curvature(epsilon, feature_bound, bound)
    largest = constants.rr_slope(epsilon, feature_bound, bound)
    assert least <= second.min() + 1e-12
    assert least == pytest.approx(second.min(), rel=1e-2, abs=1e-9)
    assert first.max() <= largest * (1 + 1e-12) and largest == pytest.approx(first.max(), rel=1e-3)
    assert largest <= 1
    threshold = constants.convexity_threshold(feature_bound, bound)
    assume(abs(epsilon - threshold) > 1e-6 * threshold)
    assert (least > 0) == (epsilon > threshold)


def test_the_slope_inside_is_a_hyperbolic_tangent() -> None:
    assert constants.rr_slope(1.0, 2, 2) == pytest.approx(math.tanh(0.25), rel=1e-12)


def test_constants_of_other_models() -> None:
    z = np.linspace(-2, 2, 4001)
    second = -np.diff(log_ndtr(z), 2) / (z[1] - z[0]) ** 2
    assert constants.thurstone_curvature(1, 1) == pytest.approx(second.min(), rel=2e-3)
    assert constants.top_choice_curvature(1, 1) == pytest.approx(math.exp(-4) / 2)
    assert constants.top_choice_curvature(1, 1, 10**9) == pytest.approx(constants.top_choice_curvature(1, 1))
    assert constants.top_choice_curvature(1, 1, 2) == pytest.approx(math.exp(-4) / 4)
    coins = np.random.default_rng(5)
    for choices in (2, 3, 6):
        points = coins.normal(size=(200, choices, 3))
        points /= np.maximum(1, np.linalg.norm(points, axis=2))[:, :, None]
        theta = np.array([0.6, 0.0, -0.8])
        chances = np.exp(points @ theta)
        chances /= chances.sum(axis=1, keepdims=True)
        centred = points - np.einsum("nk,nkd->nd", chances, points)[:, None, :]
        hessian = np.einsum("nk,nkd,nke->de", chances, centred, centred) / 200
        pairs = points[:, :, None, :] - points[:, None, :, :]
        coverage = min(
            np.linalg.eigvalsh(gram(pairs[:, j, k]))[0] for j in range(choices) for k in range(j + 1, choices)
        )
        least = constants.top_choice_curvature(1, 1, choices) * coverage
        assert least <= np.linalg.eigvalsh(hessian)[0]


def test_factors_of_randomised_response(oracle: dict[int, float]) -> None:
    assert constants.debias_factor(1.0) == pytest.approx(oracle[5], rel=1e-12)
    assert constants.debias_factor(0.1) == pytest.approx(oracle[6], rel=1e-12)
    assert constants.debias_factor(1.0, 5) == pytest.approx(oracle[11], rel=1e-12)


@given(st.integers(2, 400), st.floats(0.01, 1), st.floats(0.1, 3))
def test_the_recursion_of_descent_is_solved(n: int, alpha: float, feature_bound: float) -> None:
    squared = 7.0  # any start: the step t = 2 forgets it
    for t in range(2, n + 1):
        squared = local.sgd_recursion(squared, t, alpha, feature_bound)
    found = local.sgd_mean_square(n, alpha, feature_bound)
    assert found == pytest.approx(squared, rel=1e-9)
    assert found <= (2 * feature_bound / alpha) ** 2 / n


@given(st.integers(1, 500), st.floats(0.01, 1), st.floats(0.1, 2), st.floats(-1, 1), st.floats(-1, 1))
def test_one_step_obeys_the_recursion(t: int, alpha: float, feature_bound: float, at: float, gradient: float) -> None:
    # In one dimension with truth 0 and drift g(theta) = alpha theta: the descent step on alpha theta - z.
    gradient *= 2 * feature_bound
    noise = alpha * at - gradient
    after = (at - gradient / (alpha * t)) ** 2
    assert after <= local.sgd_recursion(at**2, t, alpha, feature_bound, noise * at) + 1e-9 * (1 + after)


def test_noise_of_the_paper(oracle: dict[int, float]) -> None:
    assert central.objective_noise(1, 1e-5, 1) == pytest.approx(oracle[33], rel=1e-12)
    executed = 2 * 0.7 * paper_noise_multiplier(Decimal("0.5"), Decimal("1e-6"))
    assert central.objective_noise(0.5, 1e-6, 0.7) == pytest.approx(executed, rel=1e-12)


def test_fitted_constants_touch_at_the_largest_n_only() -> None:
    shape = [2.0, 1.0, 1.0, 0.5]
    measured = [1.0, 5.0, 3.0, 2.0]
    n = [100, 400, 400, 400]
    assert fit_constant(shape, measured, n, "lower") == Fitted(3.0, 400)
    assert fit_constant(shape, measured, n, "upper") == Fitted(5.0, 400)
    assert fit_constant(shape, measured, n, "lower", power=0.5) == Fitted(9.0, 400)
    assert str(Fitted(1.0, 100000)) == "fitted at n = 100,000"
    for wrong in ([], [1.0], [math.nan] * 4, [0.0] * 4):
        with pytest.raises(ValueError, match="expected"):
            fit_constant(wrong, measured, n, "lower")


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_every_bound_refuses_what_is_no_level(bad: float) -> None:
    for bound in LOCAL:
        with pytest.raises(ValueError, match="expected"):
            bound(1000, bad)
        with pytest.raises(ValueError, match="expected"):
            bound(bad, 1.0)


def test_every_bound_says_where_it_is_from() -> None:
    tools = {"positive", "probability", "bernoulli_divergence", "deviation"}
    for module in (local, central, standard, constants):
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ == module.__name__ and not name.startswith("_") and name not in tools:
                assert "Source: " in (inspect.getdoc(function) or ""), f"{module.__name__}:{name}"
