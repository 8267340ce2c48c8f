"""Fitted tails, running quantiles and randomised bits: laws that are known, and what is refused."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from protocol.coins import Address, Floats, Stream, Words, uniform, words
from server.mechanisms.selection_noise import laplace
from server.mechanisms.threshold_choice import counts_above, threshold_grid
from server.mechanisms.threshold_fits import (
    FittedTail,
    adaptive_step,
    debiased_fractions,
    fit_tail,
    local_choice,
    local_target,
)

GRID = threshold_grid()


def pareto(n: int, index: float, repetition: int = 0) -> Floats:
    drawn: Floats = uniform(words(Address(31, Stream.LABELS, n, repetition), 0, n)) ** (-1 / index)
    return drawn


def coins(count: int, repetition: int = 0) -> np.ndarray:
    return words(Address(31, Stream.CURATOR, repetition=repetition), 0, count)


def tail_histogram(counts: NDArray[np.int64], level: float, coins: Words) -> Floats:
    """Bins of counts, each with Laplace noise of scale 2 / level."""
    noisy: Floats = counts - np.append(counts[1:], 0) + 2 / level * laplace(coins)
    return noisy


@pytest.mark.parametrize("index", [1.3, 1.6, 1.95])
def test_the_index_of_a_pareto_law_is_found(index: float) -> None:
    """10^5 records at level 1: within 0.05 in each of five runs (the index's own error is below 0.01)."""
    for repetition in range(5):
        counts = counts_above(pareto(100_000, index, repetition), GRID)
        fitted = fit_tail(tail_histogram(counts, 1.0, coins(len(GRID), repetition)), GRID, 100_000, 1.0)
        assert fitted is not None
        assert fitted.index == pytest.approx(index, abs=0.05)
        assert fitted.tail == pytest.approx(index - 1.05, abs=0.05)
        assert fitted.threshold(0.001) == pytest.approx(0.001 ** (-1 / index), rel=0.1)
        exact = index / (index - 1 - fitted.tail)  # E X^(1+v), if it were finite, at the fitted v
        assert 0.3 * exact < fitted.moment < 3 * exact or exact < 0


def test_light_tails_and_few_records_have_no_fit() -> None:
    assert fit_tail(np.zeros(len(GRID)), GRID, 1000, 1.0) is None
    few = tail_histogram(counts_above(pareto(50, 1.5), GRID), 0.1, coins(len(GRID)))
    assert fit_tail(few, GRID, 50, 0.1) is None


def test_a_running_quantile_settles() -> None:
    x, threshold = pareto(10_000, 1.6), 1.0
    for _ in range(200):
        threshold = adaptive_step(threshold, float((x <= threshold).mean()), 0.99, 0.5)
    assert float((x <= threshold).mean()) == pytest.approx(0.99, abs=0.01)


@given(st.floats(1e-3, 1e3), st.floats(-1, 2), st.floats(0.01, 0.99), st.floats(0.01, 1))
def test_a_step_goes_the_right_way(threshold: float, below: float, quantile: float, rate: float) -> None:
    moved = adaptive_step(threshold, below, quantile, rate)
    assert (moved > threshold) is (below < quantile) or moved == pytest.approx(threshold)


def test_fractions_are_unbiased_exactly() -> None:
    """The mean of de-biased fractions over all outcomes of three randomised bits."""
    kept = 0.8
    for true in ((0, 0, 1), (1, 1, 0), (1, 1, 1), (0, 0, 0)):
        mean = 0.0
        for code in range(8):
            bits = [code >> place & 1 for place in range(3)]
            p = math.prod(kept if bit == fact else 1 - kept for bit, fact in zip(bits, true, strict=True))
            mean += p * float(debiased_fractions(np.array([sum(bits)]), np.array([3]), kept)[0])
        assert mean == pytest.approx(sum(true) / 3, abs=1e-15)


def test_a_local_choice_finds_the_quantile() -> None:
    """61 thresholds, 4000 holders each at level 1: the choice leaves 0.2 to 5 times the wanted share above it."""
    kept, each = math.e / (1 + math.e), 4000
    target = local_target(4.0, 10_000)
    assert target == pytest.approx(0.014)
    below = np.array([(pareto(each, 1.6, 100 + place) <= cut).sum() for place, cut in enumerate(GRID)])
    lies = uniform(coins(each * len(GRID))).reshape(len(GRID), each) >= kept
    told = np.array([row[:b].size - row[:b].sum() + row[b:].sum() for row, b in zip(lies, below, strict=True)])
    reports = np.full(len(GRID), each)
    cut = local_choice(debiased_fractions(told, reports, kept), reports, GRID, 0.05)
    assert 0.01 < cut**-1.6 < 0.25


def test_a_local_choice_is_monotone_and_ends() -> None:
    reports = np.full(4, 10)
    cuts = np.array([1.0, 2, 3, 4])
    assert local_choice(np.array([0.5, 0.99, 0.7, 1.0]), reports, cuts, 0.1) == 4
    assert local_choice(np.array([0.5, 0.95, 0.99, 1.0]), reports, cuts, 0.1) == 2
    assert local_choice(np.zeros(4), reports, cuts, 0.1) == 4


def test_nonsense_is_refused() -> None:
    one, two = np.array([1]), np.array([1, 2])
    for call in (
        lambda: adaptive_step(0.0, 0.5, 0.5, 0.1),
        lambda: adaptive_step(1.0, math.nan, 0.5, 0.1),
        lambda: adaptive_step(1.0, 0.5, 1.0, 0.1),
        lambda: debiased_fractions(one, one, 0.5),
        lambda: debiased_fractions(two, np.array([1, 1]), 0.7),
        lambda: debiased_fractions(0 * one, 0 * one, 0.7),
        lambda: FittedTail(1.5, 1.0, 0.45, 30.0).threshold(0.0),
        lambda: local_target(0.0, 3),
        lambda: local_choice(np.zeros(2), one, np.zeros(2), 0.1),
    ):
        with pytest.raises(ValueError, match="expected"):
            call()
