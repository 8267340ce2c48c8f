"""Fits of many items by conjugate gradients: the minimisers that Newton's method with a Hessian finds."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from protocol.features import lift, project
from server.estimators import ESTIMATORS
from server.estimators.base import Evidence, Options
from server.estimators.features import PairFeatures
from server.estimators.graph_newton import MANY, joins
from server.estimators.newton import EstimationError, Minimum, descend
from server.estimators.workspace import Workspace, logistic_minimum, penalised
from server.kernels_graph import graph_cumulant, graph_product, graph_solve, groups
from server.kernels_pairs import pair_cumulant

ITEMS = MANY + 1
Floats = NDArray[np.float64]


def wins(halves: Floats, second: NDArray[Any], first: NDArray[Any], items: int) -> Floats:
    """sum_i halves_i (e_second - e_first), (items,)."""
    return np.asarray(np.bincount(second, halves, items) - np.bincount(first, halves, items), dtype=np.float64)


def drawn(n: int, contrast: float, weighted: bool = False, items: int = ITEMS) -> tuple[PairFeatures, Floats]:
    """Comparisons of random pairs, reported through a channel, and the mean (1/n c) sum (y - 1/2) v of reports."""
    rng = np.random.default_rng([n, items])
    first = rng.integers(0, items, n)
    second = (first + rng.integers(1, items, n)) % items
    theta, weights = rng.normal(size=items), rng.uniform(0.3, 1, n) if weighted else np.ones(n)
    chance = (1 - contrast) / 2 + contrast / (1 + np.exp(theta[first] - theta[second]))
    halves = (np.where(rng.random(n) < chance, 0.5, -0.5)) * weights
    sums = wins(halves, second, first, items)
    pairs = np.stack([first, second], axis=1).astype(np.int32)
    features = PairFeatures(pairs, items, 1 / weights if weighted else np.empty(0))
    return features, project(sums[None, :])[0] / (n * contrast)


def with_hessian(features: PairFeatures, mean: Floats, bound: float, ridge: float) -> Minimum:
    """The dense way, for comparison."""
    start = np.zeros(len(mean))
    return descend(penalised(features, mean, ridge), start, bound, features.reach, 1e-20, True, drift=features.drift)


@pytest.mark.parametrize(
    ("n", "contrast", "bound", "ridge", "weighted"),
    [
        (20_000, 1.0, math.inf, 0.0, False),
        (20_000, 0.9, 40.0, 0.0, True),
        (20_000, 0.4, 10.0, 0.0, False),
        (3_000, 0.2, math.inf, 1e-4, False),
        (2_000, 1.0, 3.0, 1e-3, True),
    ],
)
def test_both_ways_end_at_one_minimiser(n: int, contrast: float, bound: float, ridge: float, weighted: bool) -> None:
    features, mean = drawn(n, contrast, weighted)
    assert features.is_graph
    found, expected = logistic_minimum(features, mean, bound, ridge), with_hessian(features, mean, bound, ridge)
    assert found.converged
    assert found.hit_boundary == expected.hit_boundary
    np.testing.assert_allclose(found.u, expected.u, rtol=0, atol=1e-10)


def test_a_start_changes_nothing_but_last_digits() -> None:
    features, mean = drawn(20_000, 1.0)
    found = logistic_minimum(features, mean, math.inf, 0.0)
    again = logistic_minimum(features, mean, math.inf, 0.0, found.u)
    assert again.iterations <= 2
    np.testing.assert_allclose(again.u, found.u, rtol=0, atol=1e-11)


def test_an_item_that_never_wins_has_no_minimiser_without_a_ball() -> None:
    features, _ = drawn(20_000, 1.0)
    pairs = features.pairs
    halves = np.where(pairs[:, 0] == 0, 0.5, np.where(pairs[:, 1] == 0, -0.5, np.resize([0.5, -0.5], len(pairs))))
    sums = wins(halves, pairs[:, 1], pairs[:, 0], ITEMS)
    mean = project(sums[None, :])[0] / len(pairs)
    with pytest.raises(EstimationError, match="expected labels that determine a minimiser, found none without a ball"):
        logistic_minimum(features, mean, math.inf, 0.0)
    bounded = logistic_minimum(features, mean, 20.0, 0.0)
    assert bounded.hit_boundary
    assert int(lift(bounded.u).argmin()) == 0


def test_few_items_and_groups_that_nobody_compared_go_the_dense_way() -> None:
    assert not drawn(2_000, 1.0, items=MANY - 1)[0].is_graph
    pairs = np.arange(2 * MANY, dtype=np.int32).reshape(-1, 2)
    assert not joins(pairs, 2 * MANY)
    assert not PairFeatures(pairs, 2 * MANY, np.empty(0)).is_graph


@given(st.integers(1, 60), st.integers(0, 120), st.integers(0, 2**32 - 1))
def test_groups_are_those_of_a_graph(items: int, n: int, seed: int) -> None:
    pairs = np.random.default_rng(seed).integers(0, items, (n, 2)).astype(np.int32)
    graph = coo_array((np.ones(n), (pairs[:, 0], pairs[:, 1])), (items, items))
    assert groups(pairs, items) == connected_components(graph, directed=False)[0]


def test_an_estimate_has_the_covariance_at_its_minimum() -> None:
    features, mean = drawn(20_000, 1.0)
    rng = np.random.default_rng(0)
    symbols = (rng.random(features.count) < 0.5).astype(np.uint8)
    rows = np.zeros((features.count, ITEMS - 1))  # nobody looks at them where features are given
    evidence = Evidence(rows, None, symbols, mean * features.count, 1.0, 0.0, 0.0, features)
    found = ESTIMATORS["mle"](Workspace(evidence), Options(math.inf))
    assert found.warnings == ()
    assert found.covariance is not None
    hessian = features.cumulant(found.u)[2]
    np.testing.assert_allclose(found.covariance @ hessian * features.count, np.eye(ITEMS - 1), rtol=0, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_passes_over_the_graph_are_those_with_a_hessian(weighted: bool) -> None:
    features, _ = drawn(3_000, 1.0, weighted)
    rng = np.random.default_rng(3)
    theta, v = rng.normal(size=(2, ITEMS))
    value, gradient, hessian = pair_cumulant(features.pairs, features.scales, theta)
    same_value, same_gradient, parts = graph_cumulant(features.pairs, features.scales, theta)
    assert same_value == value
    np.testing.assert_array_equal(same_gradient, gradient)
    product = np.empty(ITEMS)
    graph_product(features.pairs, parts, 0.3, v, product)
    np.testing.assert_allclose(product, hessian @ v + 0.3 * v, rtol=0, atol=1e-14)


def test_conjugate_gradients_solve() -> None:
    features, _ = drawn(3_000, 1.0)
    rng = np.random.default_rng(4)
    theta, right = rng.normal(size=(2, ITEMS))
    right -= right.mean()
    parts = graph_cumulant(features.pairs, features.scales, theta)[2]
    x, residual = np.zeros(ITEMS), np.empty(ITEMS)
    steps = graph_solve(features.pairs, parts, 1e-5, right, 1e-10, x)
    graph_product(features.pairs, parts, 1e-5, x, residual)
    assert steps < ITEMS
    assert np.abs(residual - right).max() < 1e-8
    assert abs(x.sum()) < 1e-9 * np.abs(x).sum()
