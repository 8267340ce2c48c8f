"""Regions: their lowest values against a general solver, and their matrices against the estimators' covariances."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import NonlinearConstraint, minimize
from scipy.special import expit
from scipy.stats import chi2

from server.estimators import ESTIMATORS
from server.estimators.base import Evidence, Options
from server.estimators.workspace import Workspace
from server.policies.ball import lowest_in_ball
from server.policies.region import BALL_SHARE, Region, wald_region
from server.policies.spread import Spread, of_likelihood, of_score

Array = NDArray[np.float64]


def region(rng: np.random.Generator, p: int, inside: float = 1.0) -> Region:
    """A random ellipsoid whose centre lies in the ball of radius `inside`."""
    root = rng.normal(size=(p, p)) * np.exp(rng.uniform(-2, 2, p))
    centre = rng.normal(size=p)
    centre *= inside * rng.uniform() / np.linalg.norm(centre)
    return Region(centre, root @ root.T + 0.01 * np.eye(p), float(np.exp(rng.uniform(-2, 2))))


def solved(here: Region, w: Array, bound: float) -> float:
    """min w . u by a general solver."""

    def ellipsoid(u: Array) -> float:
        return float((u - here.centre) @ here.precision @ (u - here.centre)) / here.radius**2

    def slope(u: Array) -> Array:
        steep: Array = 2 * here.precision @ (u - here.centre) / here.radius**2
        return steep

    limits = [
        NonlinearConstraint(ellipsoid, -np.inf, 1.0, jac=slope),
        NonlinearConstraint(lambda u: u @ u / bound**2, -np.inf, 1.0, jac=lambda u: 2 * u / bound**2),
    ]
    options = {"maxiter": 500, "ftol": 1e-13}
    found = minimize(lambda u: w @ u, here.centre, jac=lambda u: w, method="SLSQP", constraints=limits, options=options)
    assert ellipsoid(found.x) <= 1 + 1e-6
    assert found.x @ found.x <= bound**2 * (1 + 1e-6)
    return float(w @ found.x)


@given(st.integers(0, 10_000), st.integers(1, 6))
def test_the_lowest_value_is_taken_at_a_point_of_the_region_and_nowhere_beaten(seed: int, p: int) -> None:
    rng = np.random.default_rng(seed)
    here, w = region(rng, p), rng.normal(size=p)
    step = np.linalg.solve(here.precision, w)
    point = here.centre - here.radius * step / math.sqrt(w @ step)
    assert w @ point == pytest.approx(float(here.lowest(w)), abs=1e-9 * (1 + np.abs(w).sum() * 100))
    directions = rng.normal(size=(200, p))
    lengths = np.sqrt(((directions @ here.precision) * directions).sum(axis=1))
    others = here.centre + 0.999 * here.radius * directions / lengths[:, None]
    assert all(here.holds(other) for other in others)
    assert (others @ w >= float(here.lowest(w)) - 1e-9).all()


@pytest.mark.parametrize("p", range(1, 7))
@pytest.mark.parametrize("seed", range(8))
def test_the_ball_and_the_region_at_once_against_a_general_solver(seed: int, p: int) -> None:
    rng = np.random.default_rng(seed)
    bound = float(np.exp(rng.uniform(-1, 1)))
    here, w = region(rng, p, inside=bound), rng.normal(size=p)
    worst = lowest_in_ball(here, bound, w)
    scale = bound * float(np.linalg.norm(w))
    assert worst.value == pytest.approx(solved(here, w, bound), abs=3e-5 * scale)
    gap = worst.u - here.centre
    assert gap @ here.precision @ gap <= here.radius**2 * (1 + 1e-6)
    assert np.linalg.norm(worst.u) <= bound * (1 + 1e-7)
    assert w @ worst.u == pytest.approx(worst.value, abs=1e-9 * scale)


@pytest.mark.parametrize("seed", range(20))
def test_in_the_plane_against_every_point_of_both_borders(seed: int) -> None:
    """The minimum of a linear function lies on a border: 20,000 points of each, those that break the other left out."""
    rng = np.random.default_rng(seed)
    bound = float(np.exp(rng.uniform(-1, 1)))
    here, w = region(rng, 2, inside=bound), rng.normal(size=2)
    turn = np.linspace(0, 2 * np.pi, 20_001)
    circle = np.column_stack((np.cos(turn), np.sin(turn)))
    sizes, axes = here.axes
    ellipse = here.centre + here.radius * (circle / np.sqrt(sizes)) @ axes.T
    on_ball = bound * circle
    gaps = on_ball - here.centre
    kept = [
        ellipse[(ellipse**2).sum(axis=1) <= bound**2],
        on_ball[((gaps @ here.precision) * gaps).sum(axis=1) <= here.radius**2],
    ]
    expected = min((float((points @ w).min()) for points in kept if len(points)), default=np.nan)
    found = lowest_in_ball(here, bound, w).value
    assert found <= expected + 1e-9
    assert found == pytest.approx(expected, abs=2e-3 * bound * float(np.linalg.norm(w)))


def test_each_of_the_three_cases_occurs_and_is_exact() -> None:
    w = np.array([3.0, 4.0])
    small = Region(np.zeros(2), np.eye(2), 0.5)
    assert lowest_in_ball(small, 1.0, w).value == pytest.approx(-2.5)  # the region alone
    large = Region(np.array([0.3, 0.0]), np.eye(2), 2.0)
    assert lowest_in_ball(large, 1.0, w).value == pytest.approx(-5.0)  # the ball alone
    both = Region(np.array([0.6, 0.0]), np.diag([1.0, 1e-12 + 0.0001]), 0.5)
    worst = lowest_in_ball(both, 1.0, np.array([0.0, 1.0]))  # u = (0.1 .. 1.1, .), on the circle
    assert np.linalg.norm(worst.u) == pytest.approx(1.0)
    assert worst.value == pytest.approx(-1.0, abs=2e-2)
    assert lowest_in_ball(both, 1.0, np.zeros(2)).value == 0.0


def test_what_is_refused() -> None:
    here = Region(np.array([2.0, 0.0]), np.eye(2), 0.5)
    with pytest.raises(ValueError, match="centre lies in the ball"):
        lowest_in_ball(here, 1.0, np.ones(2))
    with pytest.raises(ValueError, match="bound > 0"):
        lowest_in_ball(here, 0.0, np.ones(2))
    with pytest.raises(ValueError, match="singular"):
        Region(np.zeros(2), np.diag([1.0, 0.0]), 1.0)
    with pytest.raises(ValueError, match="radius > 0"):
        Region(np.zeros(2), np.eye(2), math.nan)
    with pytest.raises(ValueError, match="finite"):
        Region(np.array([np.nan, 0.0]), np.eye(2), 1.0)
    with pytest.raises(ValueError, match=r"shape \(2, 2\)"):
        Region(np.zeros(2), np.eye(3), 1.0)
    with pytest.raises(ValueError, match="level"):
        wald_region(np.zeros(2), Spread(np.eye(2), np.eye(2), 10), 1.0)


def seen(rng: np.random.Generator, flip: float, stddev: float, clipped: bool) -> Workspace:
    """Evidence of one repetition: 4,000 labels in three dimensions."""
    rows, weights = rng.normal(size=(4000, 3)), None
    labels = rng.uniform(size=4000) < expit(rows @ np.array([0.8, -0.4, 0.1]))
    labels ^= rng.uniform(size=4000) < flip
    if clipped:
        weights = np.minimum(1.0, 1.5 / np.linalg.norm(rows, axis=1))
        rows = rows * weights[:, None]
    half_sum = (labels - 0.5) @ rows + stddev * rng.normal(size=3)
    symbols = None if clipped or stddev else labels.astype(np.uint8)
    return Workspace(Evidence(rows, weights, symbols, half_sum, 1.0 - 2 * flip, flip, stddev))


@pytest.mark.parametrize(
    ("estimator", "flip", "stddev", "clipped"),
    [
        ("mle", 0.0, 0.0, False),
        ("mle", 0.0, 20.0, False),
        ("mle", 0.0, 20.0, True),
        ("debiased", 0.25, 0.0, False),
        ("rr-mle", 0.25, 0.0, False),
        ("rr-map", 0.25, 0.0, False),
    ],
)
def test_inside_the_ball_the_region_is_the_walds_ellipsoid(
    estimator: str, flip: float, stddev: float, clipped: bool
) -> None:
    known = seen(np.random.default_rng(3), flip, stddev, clipped)
    options = Options(bound=3.0)
    estimate = ESTIMATORS[estimator](known, options)
    assert estimate.covariance is not None
    features, contrast = known.features, 1.0 - 2 * flip
    if estimator in ("mle", "debiased"):
        spread = of_score(features, estimate.u, contrast, flip, stddev)
    else:
        ridge = 1.0 / (4000 * options.tau**2) if estimator == "rr-map" else 0.0
        spread = of_likelihood(features, estimate.u, contrast, flip, ridge)
    here = wald_region(estimate.u, spread, 0.95)
    np.testing.assert_allclose(np.linalg.inv(here.precision), estimate.covariance, rtol=1e-6, atol=1e-12)
    assert here.radius**2 == pytest.approx(chi2.ppf(0.95, 3))


def test_on_the_ball_the_norm_is_the_losses() -> None:
    bread, meat = np.diag([1.0, 4.0]), np.diag([2.0, 4.0])
    here = wald_region(np.zeros(2), Spread(bread, meat, 100), 0.95, active=True)
    np.testing.assert_array_equal(here.precision, 100 * bread)
    assert here.radius**2 == pytest.approx(2.0 * chi2.ppf(0.95, 2))


def test_the_region_on_the_ball_holds_the_parameter_as_often_as_it_says() -> None:
    """A linear model, in which first order is exact: 1,000 estimates projected onto the ball in the norm of H.

    The share of regions that hold the parameter is at least 0.95; 5.5 standard errors below: false alarm 2e-8.
    """
    rng = np.random.default_rng(11)
    bread, meat, n, bound, count = np.diag([1.0, 0.2]), np.diag([1.5, 1.0]), 50, 1.0, 1000
    parameter = np.array([0.6, 0.79])  # close to the border
    free = parameter + rng.normal(size=(count, 2)) * np.sqrt(meat.diagonal()) / bread.diagonal() / math.sqrt(n)
    held = active = 0
    for point in free:
        outside = point @ point > bound**2
        u = nearest(point, bread.diagonal(), bound) if outside else point
        held += wald_region(u, Spread(bread, meat, n), 0.95, bound, outside).holds(parameter)
        active += outside
    assert active > 250
    assert held / count > 0.95 - 5.5 * math.sqrt(0.95 * 0.05 / count)


def nearest(point: Array, sizes: Array, bound: float) -> Array:
    """The point of the ball that is nearest in the norm of diag(sizes): u = (sizes point) / (sizes + t)."""
    low, high = 0.0, 1e6
    for _ in range(200):
        middle = 0.5 * (low + high)
        u = sizes * point / (sizes + middle)
        low, high = (middle, high) if u @ u > bound**2 else (low, middle)
    return u


def test_the_ball_makes_a_region_out_of_rows_that_do_not_span_the_space() -> None:
    flat = np.diag([4.0, 0.0])
    with pytest.raises(ValueError, match="singular"):
        wald_region(np.zeros(2), Spread(flat, flat, 100), 0.95)
    square = chi2.ppf(0.95, 2)
    for meat in (flat, np.diag([5.0, 0.0])):
        here = wald_region(np.array([0.1, 0.2]), Spread(flat, meat, 100), 0.95, bound=2.0)
        np.testing.assert_allclose(np.diag(here.precision)[1], BALL_SHARE * square / 16)
        assert here.radius**2 == pytest.approx(1.01 * square)
        assert here.holds(np.array([0.1, 2.0])) and here.holds(np.array([0.1, -2.0]))
        assert not here.holds(np.array([0.6, 0.2]))
