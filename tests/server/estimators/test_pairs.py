"""Comparisons of items, passed over by item: the same numbers as passes over all coordinates of all rows."""

import numpy as np
import pytest
from numpy.typing import NDArray

from protocol.features import project
from server.estimators.features import DenseFeatures, Features, PairFeatures

SIZES = [(1, 2), (3, 3), (511, 5), (513, 5), (1300, 30)]  # a tile holds 512 rows


def both(n: int, items: int, weighted: bool) -> tuple[PairFeatures, Features]:
    """The same comparisons twice; the last item is in all of them."""
    rng = np.random.default_rng([n, items])
    pairs = np.stack([rng.integers(0, items - 1, n), np.full(n, items - 1)], axis=1).astype(np.int32)
    pairs[::2] = pairs[::2, ::-1]
    x = np.zeros((n, items))
    x[np.arange(n), pairs[:, 1]] += 1
    x[np.arange(n), pairs[:, 0]] -= 1
    weights = rng.uniform(0.1, 1, n) if weighted else None
    rows = project(x) if weights is None else project(x) * weights[:, None]
    scales = np.empty(0) if weights is None else 1.0 / weights
    return PairFeatures(pairs, items, scales), Features.of(rows, weights)


def close(one: NDArray[np.float64] | float, other: NDArray[np.float64] | float) -> None:
    np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("n", "items"), SIZES)
@pytest.mark.parametrize("weighted", [False, True])
def test_both_ways_give_the_same(n: int, items: int, weighted: bool) -> None:
    ours, dense = both(n, items, weighted)
    u = np.random.default_rng(1).normal(size=items - 1)
    assert isinstance(dense, DenseFeatures)
    assert ours.shape == dense.shape == (n, items - 1)
    for one, other in zip(ours.cumulant(u), dense.cumulant(u), strict=True):
        close(one, other)
    close(ours.variances(u), dense.variances(u))
    close(ours.second_moment, dense.second_moment)
    hessian = dense.cumulant(u)[2]
    close(ours.score_variance(u, hessian, 0.3), dense.score_variance(u, hessian, 0.3))
    assert (ours.reach >= dense.reach - 1e-12).all()
    close(ours.take(slice(0, n, 2)).cumulant(u)[1], dense.take(slice(0, n, 2)).cumulant(u)[1])


@pytest.mark.parametrize(("n", "items"), SIZES)
@pytest.mark.parametrize("observed", [False, True])
@pytest.mark.parametrize("flip", [1e-30, 0.1, 0.45])
def test_likelihoods_of_reports_too(n: int, items: int, observed: bool, flip: float) -> None:
    ours, dense = both(n, items, False)
    rng = np.random.default_rng(2)
    u, signs = rng.normal(size=items - 1), np.where(rng.random(n) < 0.5, -1.0, 1.0)
    pair = ours.likelihood(signs, 1 - 2 * flip, flip, observed, u)
    for one, other in zip(pair, dense.likelihood(signs, 1 - 2 * flip, flip, observed, u), strict=True):
        close(one, other)


def test_an_item_in_every_row_loses_no_digits() -> None:
    """A million terms of one sign: the sum is right to the last digits, as pairwise sums are."""
    n = (1 << 20) - 3
    pairs = np.zeros((n, 2), dtype=np.int32)
    pairs[:, 1] = 1
    gradient = PairFeatures(pairs, 2, np.empty(0)).cumulant(np.array([0.7]))[1]
    one = PairFeatures(pairs[:1], 2, np.empty(0)).cumulant(np.array([0.7]))[1]
    assert abs(gradient - one)[0] < 2e-16
