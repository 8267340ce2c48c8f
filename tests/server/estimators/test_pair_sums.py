"""Sums by pair give what all reports in memory give."""

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from protocol.features import project
from protocol.mechanisms.randomized_response import randomized_response
from server.estimators.base import Evidence, Options
from server.estimators.features import PairFeatures
from server.estimators.minimiser import debiased, mle, naive
from server.estimators.pair_sums import PairSums, by_pair
from server.estimators.randomized import rr_mle
from server.estimators.sgd import debiased_sgd
from server.estimators.workspace import Workspace

ITEMS, N = 6, 4000
FREE = Options(bound=np.inf)


def both(epsilon: int | None, items: int = ITEMS) -> tuple[PairSums, Workspace]:
    """The same reports twice: by pair, and one by one."""
    rng = np.random.default_rng(5)
    design = np.sort(np.array([rng.choice(items, 2, replace=False) for _ in range(N)]), axis=1).astype(np.int32)
    design[::3] = design[::3, ::-1]
    theta = np.linspace(1.0, -1.0, items)
    y = (rng.random(N) < 1 / (1 + np.exp(theta[design[:, 0]] - theta[design[:, 1]]))).astype(np.uint8)
    flip, contrast = 0.0, 1.0
    if epsilon is not None:
        channel = randomized_response(Decimal(epsilon))
        flip = float(channel.probability(0, 1))
        contrast = float(channel.probability(0, 0) - channel.probability(0, 1))
        y ^= rng.random(N) < flip
    x = np.zeros((N, items))
    x[np.arange(N), design[:, 1]] += 1
    x[np.arange(N), design[:, 0]] -= 1
    rows = project(x)
    features = PairFeatures(design, items, np.empty(0))
    evidence = Evidence(rows, None, y, (y - 0.5) @ rows, contrast, flip, 0.0, features)
    ones = np.ones(N, dtype=np.int64)
    return PairSums(items, *by_pair(design, ones, y.astype(np.int64)), contrast, flip), Workspace(evidence)


@pytest.mark.parametrize("options", [FREE, Options(bound=1.0), Options(bound=np.inf, ridge=0.02)])
@pytest.mark.parametrize("epsilon", [None, 1])
def test_the_same_estimate_and_interval(epsilon: int | None, options: Options) -> None:
    sums, known = both(epsilon)
    assert sums.count == known.count == N
    for estimator in (debiased, naive) if epsilon else (mle, naive):
        ours, theirs = estimator(sums, options), estimator(known, options)
        np.testing.assert_allclose(ours.u, theirs.u, atol=1e-9)
        assert (ours.hit_boundary, ours.warnings) == (theirs.hit_boundary, theirs.warnings)
        assert (ours.covariance is None) == (theirs.covariance is None)
        if ours.covariance is not None and theirs.covariance is not None:
            np.testing.assert_allclose(ours.covariance, theirs.covariance, rtol=1e-7, atol=1e-12)


def test_many_items_as_a_graph() -> None:
    sums, known = both(None, items=320)
    bounded = replace(FREE, bound=5.0)
    np.testing.assert_allclose(mle(sums, bounded).u, mle(known, bounded).u, atol=1e-8)


def test_what_needs_each_report_says_so() -> None:
    sums, _ = both(1)
    for estimator in (rr_mle, debiased_sgd):
        with pytest.raises(ValueError, match="one by one"):
            estimator(sums, Options(bound=1.0))


def test_blocks_add_up_and_pairs_that_nobody_asked_change_nothing() -> None:
    design = np.array([[0, 1], [1, 2], [0, 1], [2, 1], [0, 2]], dtype=np.int32)
    pairs, counts, wins = by_pair(design, np.array([1, 2, 3, 4, 0]), np.array([1, 0, 2, 4, 0]))
    assert pairs.tolist() == [[0, 1], [0, 2], [1, 2], [2, 1]]
    assert (counts.tolist(), wins.tolist()) == ([4, 0, 2, 4], [3, 0, 0, 4])
    bounded = Options(bound=2.0)
    asked = PairSums(3, pairs[counts > 0], counts[counts > 0], wins[counts > 0], 1.0, 0.0)
    assert (mle(asked, bounded).u == mle(PairSums(3, pairs, counts, wins, 1.0, 0.0), bounded).u).all()


PAIRS, TEN, FIVE = np.array([[0, 1]], dtype=np.int32), np.array([10]), np.array([5])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((PAIRS.astype(np.int64), TEN, FIVE, 1.0, 0.0), "int32 pairs"),
        ((PAIRS, TEN.astype(float), FIVE, 1.0, 0.0), "int64 counts"),
        ((PAIRS, TEN, np.array([5, 5]), 1.0, 0.0), "int64 wins"),
        ((PAIRS, FIVE, TEN, 1.0, 0.0), "wins <= counts"),
        ((PAIRS, 0 * TEN, 0 * TEN, 1.0, 0.0), "at least one comparison"),
        ((PAIRS + np.int32(3), TEN, FIVE, 1.0, 0.0), "different items"),
        ((PAIRS * np.int32(0), TEN, FIVE, 1.0, 0.0), "different items"),
        ((PAIRS, TEN, FIVE, 1.0, 0.2), "contrast"),
        ((PAIRS, TEN, FIVE, float("nan"), float("nan")), "contrast"),
    ],
)
def test_sums_that_do_not_fit_are_refused(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PairSums(3, *arguments)  # type: ignore[arg-type]
