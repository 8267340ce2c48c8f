"""Estimates from sums of coarsely rounded rows: the unbiased equation, against Newton's method on it, plainly."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from protocol.features import project
from protocol.links import LINKS
from server.choice_view import clear_view
from server.estimators.base import Evidence
from server.estimators.choice_base import ChoiceEvidence, ChoiceFeatures, ChoiceWorkspace
from server.estimators.deferred import SummedChoices, SummedWorkspace, deferred
from server.estimators.links import LinkedFeatures
from server.estimators.newton import EstimationError, Minimum
from server.estimators.workspace import Workspace

Floats = NDArray[np.float64]
THETA = project(np.array([[1.0, 0.5, 0.0, -0.5, -1.0]]))[0]


def rows_of(n: int, seed: int = 3) -> Floats:
    return project(np.random.default_rng(seed).normal(size=(n, 5)) * np.sqrt(2))


def solved(equation: Callable[[Floats], Floats], start: Floats) -> Floats:
    """Newton's method with a Jacobian of differences: slow and obvious."""
    u = start.copy()
    for _ in range(60):
        value = equation(u)
        slopes = [(equation(u + 1e-6 * axis) - equation(u - 1e-6 * axis)) / 2e-6 for axis in np.eye(len(u))]
        step = np.linalg.solve(np.array(slopes).T, value)
        u = u - step
        if np.abs(step).max() < 1e-13:
            break
    return u


@pytest.mark.parametrize("model", ["btl", "thurstone"])
@pytest.mark.parametrize("scale", [2, 16])
@pytest.mark.parametrize("clipped", [False, True])
def test_pairs_against_a_plain_newton(model: str, scale: int, clipped: bool) -> None:
    x, link = rows_of(600), LINKS[model]
    weights = np.minimum(1.0, 2.0 / np.linalg.norm(x, axis=1)) if clipped else None
    v = x if weights is None else x * weights[:, None]
    q = np.trunc(scale * v) / scale
    y = np.random.default_rng(4).random(600) < link.cdf(x @ THETA)
    half = (y - 0.5) @ q + np.array([1.0, -2.0, 0.5, 3.0])
    features = None
    if model != "btl":
        features = LinkedFeatures(v, np.empty(0) if weights is None else 1 / weights, link)
    known = Evidence(v, weights, None, half, 1.0, 0.0, 0.1, features, summed=q)
    found = SummedWorkspace(known, link).minimum(1.0, np.inf, 0.0)
    expected = solved(lambda u: (link.cdf(x @ u) - 0.5) @ q - half, np.zeros(4))
    assert found.converged and np.abs(found.u - expected).max() <= 1e-9
    ridged = SummedWorkspace(known, link).minimum(1.0, np.inf, 0.3)
    expected = solved(lambda u: (link.cdf(x @ u) - 0.5) @ q - half + 600 * 0.3 * u, np.zeros(4))
    assert np.abs(ridged.u - expected).max() <= 1e-9


def test_on_the_ball_the_force_is_normal() -> None:
    x = rows_of(500)
    q = np.round(4 * x) / 4
    half = (1 / (1 + np.exp(-x @ (3 * THETA))) - 0.5) @ q
    found = SummedWorkspace(Evidence(x, None, None, half, 1.0, 0.0, 0.0, summed=q)).minimum(1.0, 1.5, 0.0)
    force = half - (1 / (1 + np.exp(-x @ found.u)) - 0.5) @ q
    assert found.hit_boundary and np.linalg.norm(found.u) == pytest.approx(1.5, rel=1e-12)
    assert force @ found.u / (np.linalg.norm(force) * 1.5) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("clipped", [False, True])
def test_choices_against_a_plain_newton(clipped: bool) -> None:
    generator = np.random.default_rng(5)
    x = generator.normal(size=(500, 4, 3))
    x -= x[:, :1]
    sizes = np.where(np.arange(500) % 3 == 0, 3, 4).astype(np.int32)
    present = np.arange(4) < sizes[:, None]
    x[~present] = 0.0
    weights = np.minimum(1.0, 2.0 / np.linalg.norm(x, axis=2).max(axis=1)) if clipped else np.ones(500)
    v = x * weights[:, None, None]
    q = np.trunc(4 * v) / 4

    def chances(u: Floats) -> Floats:
        z = np.where(present, x @ u, -np.inf)
        p = np.exp(z - z.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True)

    total = np.einsum("nk,nkj->j", chances(np.array([0.7, -0.3, 0.2])), q) + np.array([3.0, -1.0, 2.0])
    features = ChoiceFeatures(v, sizes, 1 / weights if clipped else np.empty(0))
    evidence = ChoiceEvidence(features, clear_view(), None, total, 0.1, summed=q)
    found = SummedChoices(evidence).minimum(np.inf, 0.0)
    expected = solved(lambda u: np.einsum("nk,nkj->j", chances(u), q) - total, np.zeros(3))
    assert np.abs(found.u - expected).max() <= 1e-9
    plain = ChoiceWorkspace(ChoiceEvidence(features, clear_view(), None, total, 0.1)).minimum(np.inf, 0.0)
    assert np.abs(plain.u - expected).max() > 1e-3


@pytest.mark.parametrize(("scale", "shrunk"), [(1, 0.930), (4, 0.995)])
def test_rounded_features_shrink_the_estimate_and_the_unbiased_equation_does_not(scale: int, shrunk: float) -> None:
    """Expected labels, so that nothing is left but rounding; what is known was measured on drawn ones."""
    x = rows_of(100_000)
    q = np.round(scale * x) / scale
    half = (1 / (1 + np.exp(-x @ THETA)) - 0.5) @ q
    rounded = Workspace(Evidence(q, None, None, half, 1.0, 0.0, 0.0)).minimum(1.0, np.inf, 0.0).u
    assert rounded @ THETA / (THETA @ THETA) == pytest.approx(shrunk, abs=0.006)
    known = SummedWorkspace(Evidence(x, None, None, half, 1.0, 0.0, 0.0, summed=q))
    assert np.abs(known.minimum(1.0, np.inf, 0.0).u - THETA).max() <= 1e-9


def test_steps_that_do_not_settle_are_no_estimate() -> None:
    def minimise(mean: Floats, start: Floats | None) -> Minimum:
        return Minimum(mean, np.eye(1), False, 1, 0.0, True)

    with pytest.raises(EstimationError, match="too coarse"):
        deferred(minimise, lambda u: -1.1 * u, np.ones(1))


def test_summed_rows_have_the_shape_of_rows() -> None:
    x = rows_of(10)
    with pytest.raises(ValueError, match="summed"):
        Evidence(x, None, None, np.zeros(4), 1.0, 0.0, 0.0, summed=x[:5])
    with pytest.raises(ValueError, match="finite summed"):
        Evidence(x, None, None, np.zeros(4), 1.0, 0.0, 0.0, summed=x * np.nan)
