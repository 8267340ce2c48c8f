"""Estimators of pairs under any symmetric model: the logistic one is the old one, minima are minima."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from protocol import arms
from protocol.links import LINKS
from server.estimators import ESTIMATORS
from server.estimators.base import Evidence, Options
from server.estimators.features import Features
from server.estimators.links import LINK_ESTIMATORS, LinkedFeatures, debiased_sgd, matching, mle, residual, sgd
from server.estimators.newton import EstimationError
from server.estimators.randomized import rr_mle
from server.estimators.workspace import Workspace

NONE = np.empty(0)
OTHERS = [name for name in LINKS if name != "btl"]
BALL = Options(3.0)


def features(rows: np.ndarray, name: str, weights: np.ndarray | None = None) -> LinkedFeatures:
    scales = NONE if weights is None else 1.0 / weights
    return LinkedFeatures(rows, scales, LINKS[name])


def draw(name: str, seed: int, n: int = 2000, epsilon: float | None = None, p: int = 3) -> Evidence:
    """Clear or randomised labels of a model at u = (1, 1/3, -1/3), ...; rows lie on a grid."""
    rng = np.random.default_rng(seed)
    rows = np.round(rng.normal(size=(n, p)) * 2**20) / 2**20
    chance = LINKS[name].cdf(rows @ truth(p))
    contrast, flip = 1.0, 0.0
    if epsilon is not None:
        contrast, flip = math.tanh(epsilon / 2), math.exp(-epsilon) / (1 + math.exp(-epsilon))
    symbols = (rng.random(n) < flip + contrast * chance).astype(np.uint8)
    return Evidence(rows, None, symbols, (symbols - 0.5) @ rows, contrast, flip, 0.0, features(rows, name))


def truth(p: int = 3) -> np.ndarray:
    return np.linspace(1.0, -1.0, p + 1)[:p]


def test_the_logistic_model_has_what_its_own_kernels_have() -> None:
    known = draw("btl", 1, epsilon=1.0)
    weights = np.minimum(1.0, 1.5 / np.linalg.norm(known.rows, axis=1))
    signs = 2.0 * known.symbols - 1.0
    u = np.array([0.4, -0.2, 0.1])
    for public, rows in ((None, known.rows), (weights, known.rows * weights[:, None])):
        own, other = features(rows, "btl", public), Features.of(rows, public)
        constant = math.log(2.0) * (1.0 if public is None else public.mean())
        left, right = own.cumulant(u), other.cumulant(u)
        assert left[0] + constant == pytest.approx(right[0], rel=1e-12)
        assert np.allclose(left[1], right[1], rtol=1e-12) and np.allclose(left[2], right[2], rtol=1e-12)
        assert np.allclose(own.variances(u), other.variances(u), rtol=1e-12)
        variance = other.score_variance(u, right[2], 0.7)
        assert np.allclose(own.score_variance(u, left[2], 0.7), variance, rtol=1e-12)
        assert np.allclose(own.reach, other.reach)
    own, other = features(known.rows, "btl"), Features.of(known.rows, None)
    for observed in (True, False):
        for law in ((known.contrast, known.flip), (1.0, 0.0)):
            for left, right in zip(
                own.likelihood(signs, *law, observed, u), other.likelihood(signs, *law, observed, u), strict=True
            ):
                assert np.allclose(left, right, rtol=1e-11)
    for name, old in (("matching", "debiased"), ("debiased-sgd", "debiased-sgd"), ("rr-mle", "rr-mle")):
        left, right = (
            LINK_ESTIMATORS[name](Workspace(known), BALL),
            ESTIMATORS[old](Workspace(replace(known, features=None)), BALL),
        )
        assert np.abs(left.u - right.u).max() < 1e-9
        assert left.covariance is None if right.covariance is None else np.allclose(left.covariance, right.covariance)


@given(seed=st.integers(0, 100), radius=st.floats(0.1, 4), epsilon=st.sampled_from([None, 0.3, 2.0]))
@pytest.mark.parametrize("name", LINKS)
def test_derivatives_are_those_of_the_values(name: str, seed: int, radius: float, epsilon: float | None) -> None:
    known = draw(name, seed, n=40, epsilon=epsilon)
    own, signs = features(known.rows, name), 2.0 * known.symbols - 1.0
    direction = np.random.default_rng(seed).normal(size=3)
    u, h = radius * direction / np.linalg.norm(direction), 1e-6

    def loss(at: np.ndarray, observed: bool = True) -> tuple[float, np.ndarray, np.ndarray]:
        return own.likelihood(signs, known.contrast, known.flip, observed, at)

    corner = np.abs(known.rows @ u).min() < 1e-4  # of the Laplace density
    for function in (own.cumulant, loss):
        _, gradient, curvature = function(u)
        for j, step in enumerate(h * np.eye(3)):
            ahead, behind = function(u + step), function(u - step)
            assert (ahead[0] - behind[0]) / (2 * h) == pytest.approx(gradient[j], rel=1e-6, abs=1e-8)
            if not corner:
                assert np.allclose((ahead[1] - behind[1]) / (2 * h), curvature[j], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("epsilon", [None, 1.0])
@pytest.mark.parametrize("name", OTHERS)
def test_minima_are_those_of_a_general_optimiser(name: str, epsilon: float | None) -> None:
    """Of the loss written out, on the ball; and where the ball is active a shorter ball has a longer loss."""
    known = draw(name, 3, epsilon=epsilon)
    link, score = LINKS[name], known.half_sum / (len(known.rows) * known.contrast)
    signs = 2.0 * known.symbols - 1.0

    def matched(u: np.ndarray) -> float:
        return float(link.primitive(known.rows @ u).mean() - score @ u)

    def unlikely(u: np.ndarray) -> float:
        return float(-np.log(known.flip + known.contrast * link.cdf(signs * (known.rows @ u))).mean())

    for loss, estimate in ((matched, matching), (unlikely, rr_mle)):
        found = estimate(Workspace(known), BALL)
        best = minimize(loss, truth(), method="BFGS", options={"gtol": 1e-9})
        assert loss(found.u) <= best.fun + 1e-12
        assert np.abs(found.u - best.x).max() < 1e-5 and found.covariance is not None
        short = 0.5 * float(np.linalg.norm(found.u))
        on_ball = estimate(Workspace(known), Options(short))
        free = {"type": "ineq", "fun": lambda u, most=short: most**2 - u @ u}
        best = minimize(loss, 0.3 * truth(), method="SLSQP", constraints=[free], options={"ftol": 1e-14})
        assert on_ball.hit_boundary and on_ball.covariance is None
        assert loss(on_ball.u) <= best.fun + 1e-9 and np.linalg.norm(on_ball.u) == pytest.approx(short)


@pytest.mark.parametrize("name", OTHERS)
def test_an_estimate_on_expected_labels_is_the_truth(name: str) -> None:
    """The equations are unbiased: with E y for y, and E g for g, their root is the truth, to rounding."""
    known = draw(name, 4, epsilon=0.5)
    chance = LINKS[name].cdf(known.rows @ truth())
    exact = replace(known, half_sum=known.contrast * ((chance - 0.5) @ known.rows))
    assert np.abs(matching(Workspace(exact), BALL).u - truth()).max() < 1e-9
    link, z, keep = LINKS[name], 0.7, known.flip + known.contrast
    for wins in (0.0, 1.0):  # E over reports of the de-biased slope is c times the slope of clear labels
        said = keep if wins else known.flip
        mean = said * residual(link, z, 1.0, known.contrast, known.flip)
        mean += (1 - said) * residual(link, z, 0.0, known.contrast, known.flip)
        clear = residual(link, z, wins, 1.0, 0.0)
        assert mean == pytest.approx(known.contrast * clear, rel=1e-12)


def test_the_debiased_log_loss_of_thurstone(oracle: dict[int, float]) -> None:
    """Its slope and its second derivative at one place, which is negative: it is not convex."""
    link, keep = LINKS["thurstone"], 1 / (1 + math.exp(-1.0))
    contrast, flip = 2 * keep - 1, 1 - keep
    assert residual(link, 0.3, 1.0, contrast, flip) == pytest.approx(oracle[31], rel=1e-14)
    z = np.array([2.0])
    second = float((keep * link.bend(z) - flip * link.bend(-z))[0])
    assert second == pytest.approx(oracle[32], rel=1e-12) and second < 0
    h = 1e-5
    slope = (residual(link, 2 + h, 1.0, contrast, flip) - residual(link, 2 - h, 1.0, contrast, flip)) / (2 * h)
    assert slope == pytest.approx(second, rel=1e-8)
    steepest = max(abs(residual(link, z, y, contrast, flip)) for z in np.linspace(-2, 2, 41) for y in (0.0, 1.0))
    assert 1 < steepest <= float(link.hazard(np.array([-2.0]))[0])


def test_descent_is_what_it_says() -> None:
    """Iterates written out, for one report of each kind, with the ball; and the pilot's step."""
    known = draw("thurstone", 5, n=300, epsilon=1.0)
    u = np.zeros(3)
    link, keep = LINKS["thurstone"], known.flip + known.contrast
    assert known.symbols is not None
    for t, (row, symbol) in enumerate(zip(known.rows, known.symbols, strict=True), start=1):
        ahead, behind = (float(link.hazard(np.array([z]))[0]) for z in (row @ u, -row @ u))
        slope = -keep * ahead - known.flip * behind if symbol else keep * behind + known.flip * ahead
        u = u - slope / (0.3 * known.contrast * t) * row
        u *= min(1.0, 2.0 / np.linalg.norm(u))
    found = debiased_sgd(Workspace(known), Options(2.0, step=0.3))
    assert np.abs(found.u - u).max() < 1e-12
    assert found.covariance is None and found.warnings == (
        "not-convex: the de-biased log-loss of this model is not convex: use matching",
    )
    own = features(known.rows, "thurstone")
    z = known.rows @ Workspace(known).pilot(2.0)
    weight = link.density(z) ** 2 / (link.cdf(z) * link.cdf(-z))
    alpha = float(np.linalg.eigvalsh((known.rows * weight[:, None]).T @ known.rows / 300)[0])
    assert np.allclose(
        own.information(Workspace(known).pilot(2.0)), (known.rows * weight[:, None]).T @ known.rows / 300
    )
    pilot, given = (debiased_sgd(Workspace(known), Options(2.0, step=step)).u for step in ("pilot", alpha))
    assert np.abs(pilot - given).max() < 1e-6
    with pytest.raises(EstimationError, match="finite bound"):
        debiased_sgd(Workspace(known), Options(math.inf))


@pytest.mark.parametrize("name", OTHERS)
def test_labels_that_determine_nothing_are_recognised_without_a_ball(name: str) -> None:
    """Separable labels, and sums out of reach: the loss has no minimiser, and none is returned."""
    known = draw(name, 6, n=200, p=2)
    symbols = (known.rows @ truth(2) > 0).astype(np.uint8)
    separable = replace(known, symbols=symbols, half_sum=(symbols - 0.5) @ known.rows)
    beyond = replace(known, half_sum=2.0 * separable.half_sum)
    for evidence, estimate in ((separable, matching), (separable, mle), (beyond, matching)):
        with pytest.raises(EstimationError, match="without a ball"):
            estimate(Workspace(evidence), Options(math.inf))
    assert matching(Workspace(separable), BALL).hit_boundary
    assert matching(Workspace(separable), Options(math.inf, ridge=0.01)).u.shape == (2,)


def test_clear_estimators_refuse_randomised_labels() -> None:
    known = Workspace(draw("thurstone", 7, n=50, epsilon=1.0))
    for estimate in (mle, sgd):
        with pytest.raises(ValueError, match="clear labels"):
            estimate(known, BALL)


@pytest.mark.parametrize("name", OTHERS)
def test_the_tempered_ridge_is_the_posterior_mode_near_zero(name: str) -> None:
    """Scores near 0: n (A - s u) / T has the curvature and the noise of a log-likelihood there.

    The ridge is T / (n tau^2), T = 1 / (4 f(0) c^2), so at a narrow prior the mode is tau^2 f(0) 4 c^2 times
    the sum S / c, to first order, as for reports with variance 1/4 and slope c f(0).
    """
    known = draw(name, 8, epsilon=0.5)
    tau = 1e-3
    found = matching(Workspace(known), Options(math.inf, ridge="tempered", tau=tau)).u
    slope = known.contrast * float(LINKS[name].density(np.zeros(1))[0])
    likely = tau**2 * slope * 4.0 * known.half_sum  # gradient of the log-likelihood of reports at 0, times tau^2
    assert found == pytest.approx(likely, rel=2e-2)


def test_every_arm_has_its_estimator() -> None:
    assert {name for trust, name in arms.LINK_ESTIMATORS if trust is not None} == set(LINK_ESTIMATORS)


def test_rows_of_a_sample_keep_their_model() -> None:
    own = features(np.ones((20000, 2)), "cauchy")
    assert own.sample is not None and own.sample.link is LINKS["cauchy"]
    assert own.take(slice(5)).shape == (5, 2)
