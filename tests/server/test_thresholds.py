"""Thresholds against oracle values, against grids, and against the laws at which their bounds are sharp."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.descent_thresholds import contraction, convex_descent, strong_descent, strong_rounds
from server.thresholds import (
    CLIP,
    GROUP_FAILURE,
    TRUNCATE,
    bound_threshold,
    clip_constant,
    group_error_bound,
    group_threshold,
    groups_count,
    local_threshold,
    mean_error_bound,
    mse_threshold,
    paper_threshold,
    sparse_threshold,
)

Oracle = Callable[[str], float]
CLASSICAL = math.sqrt(8 * math.log(1.25e5)) / 1e4  # per unit of threshold: n = 10^4, epsilon = 1, delta = 10^-5
TAILS = st.floats(0.05, 1)
MOMENTS = st.floats(1e-6, 1e6)
NOISES = st.floats(1e-6, 10)


def test_oracles_of_one_dimension(heavy_oracle: Oracle) -> None:
    assert paper_threshold(16, 0.5, 10_000, 1, 1e-5, 0.05) == pytest.approx(heavy_oracle("B_paper"), rel=1e-13)
    found = bound_threshold(16, 0.5, 10_000, CLASSICAL, 0.05)
    assert found == pytest.approx(heavy_oracle("B_bound_opt"), rel=1e-8)  # found there by a search in values
    value = mean_error_bound(found, 16, 0.5, 10_000, CLASSICAL, 0.05)
    assert value == pytest.approx(heavy_oracle("bound value at B_bound_opt"), rel=1e-13)
    assert local_threshold(16, 0.5, 10_000, 8, TRUNCATE) == pytest.approx(heavy_oracle("B_local"), rel=1e-13)
    assert clip_constant(0.5) == pytest.approx(heavy_oracle("clip bias const"), rel=1e-14)


def test_oracles_of_groups_and_descent(heavy_oracle: Oracle) -> None:
    assert groups_count(10, 0.05, 10_000) == heavy_oracle("m (d=10,")
    assert groups_count(1000, 0.01, 10_000) == heavy_oracle("m (d=1000,")
    assert pytest.approx(heavy_oracle("MoM per-group failure p"), rel=1e-14) == GROUP_FAILURE
    assert contraction(0.25, 4) == pytest.approx(heavy_oracle("log-cosh contraction"), rel=1e-14)


@pytest.mark.parametrize("tail", [0.2, 0.5, 0.9, 1.0])
def test_the_clip_constant_is_the_largest_excess(tail: float) -> None:
    t = np.linspace(1, 50, 2_000_001)
    assert ((t - 1) / t ** (1 + tail)).max() == pytest.approx(clip_constant(tail), rel=1e-9)


def test_four_groups_a_logarithm_suffice() -> None:
    p = GROUP_FAILURE
    assert 0.5 * math.log(0.5 / p) + 0.5 * math.log(0.5 / (1 - p)) == pytest.approx(0.25, rel=1e-13)


@pytest.mark.parametrize("shape", [TRUNCATE, CLIP])
def test_the_bias_is_reached(shape: str) -> None:
    """Mass p on one point b: truncation just below b, clipping at b v / (1 + v)."""
    tail, threshold, p = 0.5, 7.0, 0.01
    b = threshold * (1 + 1e-12) if shape == TRUNCATE else threshold * (1 + tail) / tail
    moment = p * b ** (1 + tail)
    bias = p * (b if shape == TRUNCATE else b - threshold)
    constant = 1.0 if shape == TRUNCATE else clip_constant(tail)
    assert bias == pytest.approx(constant * moment * threshold**-tail, rel=1e-10)


@settings(max_examples=60)
@given(MOMENTS, TAILS, st.integers(2, 10**6), NOISES, st.sampled_from([TRUNCATE, CLIP]))
def test_minimisers_beat_their_neighbours(moment: float, tail: float, n: int, noise: float, shape: str) -> None:
    best = bound_threshold(moment, tail, n, noise, 0.05, shape)
    least = mean_error_bound(best, moment, tail, n, noise, 0.05, shape)
    other = mse_threshold(moment, tail, n, noise, shape)
    constant = (clip_constant(tail) if shape == CLIP else 1.0) * moment

    def mse(threshold: float) -> float:
        spread = moment * threshold ** (1 - tail) / n
        return constant**2 * threshold ** (-2 * tail) + spread + noise**2 * threshold**2

    for factor in (1e-3, 0.5, 0.99, 1.01, 2, 1e3):
        assert mean_error_bound(best * factor, moment, tail, n, noise, 0.05, shape) >= least * (1 - 1e-12)
        assert mse(other * factor) >= mse(other) * (1 - 1e-12)
    assert bound_threshold(moment, tail, n, noise * 2, 0.05, shape) <= best
    assert mse_threshold(2 * moment, tail, n, noise, shape) >= other * (1 - 1e-12)


def test_the_bound_holds_for_a_heavy_law() -> None:
    """The bound at failure 0.05, Pareto(1.6), 400 runs: it is five times too large, so it never fails."""
    n, noise = 2000, 0.01
    cut = bound_threshold(16, 0.5, n, noise, 0.05)
    limit = mean_error_bound(cut, 16, 0.5, n, noise, 0.05)
    drawn = np.random.default_rng(3)
    x = drawn.random((400, n)) ** (-1 / 1.6)
    means = np.where(x <= cut, x, 0).mean(axis=1) + noise * cut * drawn.standard_normal(400)
    assert np.abs(means - 1.6 / 0.6).max() < limit


def test_even_groups_and_few_records() -> None:
    assert groups_count(1000, 0.01, 10_000, even=True) == 50
    assert groups_count(1000, 0.01, 49, even=True) == 49
    assert groups_count(1000, 0.01, 5) == 5


def test_the_group_threshold_balances_bias_and_noise() -> None:
    tau = group_threshold(16, 0.5, 10_000, 1, 1e-5, 10, 24)
    noise = 24 * 10 * math.sqrt(8 * math.log(1.25e5)) / 1e4 * tau
    assert math.sqrt(10) * 16 * tau**-0.5 == pytest.approx(noise, rel=1e-12)
    size = 10_000 // 24
    assert group_error_bound(tau, 16, 0.5, size, 10, noise / tau / math.sqrt(10), 0.05) > 2 * noise


def test_the_sparse_threshold_balances_bias_and_noise() -> None:
    cut = sparse_threshold(6.662, 0.5, 2400, 1, 1e-5, 8, 100, 5, 0.05)
    noise = 8 * cut * math.sqrt(16 * math.log(1e5)) * math.log(8 * 100 * 5 / 0.05) / 2400
    assert 6.662 * cut**-0.5 == pytest.approx(noise, rel=1e-12)


def test_rounds_of_convex_descent() -> None:
    found = convex_descent(16, 0.9, 10**6, 1, 5, 10, 4)
    assert found.threshold == pytest.approx((16 * 1e6 / 5**1.5) ** (1 / 1.9), rel=1e-12)
    assert found.rounds == math.floor((10 * 1e6 / (found.threshold * 25)) ** 2)
    assert found.step == 4 / (10 * math.sqrt(found.rounds))
    assert convex_descent(16, 0.9, 10, 0.01, 5, 1e-3, 4).rounds == 1


def test_rounds_of_strongly_convex_descent() -> None:
    """After T rounds the start has shrunk to what the gradient's error leaves: kappa^T D <= G (a + b) / (a b)."""
    for error in (1e-6, 1e-3, 0.1, 10):
        rounds, kappa, left = strong_rounds(1, 4, 3, error), contraction(1, 4), error * 5 / 4
        assert kappa**rounds * 3 <= left * (1 + 1e-12)
        assert rounds == 1 or kappa ** (rounds - 1) * 3 > left
    derived = strong_descent(1, 1, 10**9, 1, 1e-5, 2, 0.05, (1, 2), 4)
    printed = strong_descent(1, 1, 10**9, 1, 1e-5, 2, 0.05, (1, 2), 4, paper=True)
    assert derived.step == 1 / 3
    assert derived.rounds > 5 and derived.gradient_error is not None and printed.gradient_error is not None
    assert derived.gradient_error < printed.gradient_error


def test_nonsense_is_refused() -> None:
    for tail in (0.0, -1.0, 1.5, math.nan):
        with pytest.raises(ValueError, match="tail"):
            clip_constant(tail)
    with pytest.raises(ValueError, match="shape"):
        mse_threshold(1, 0.5, 10, 0.1, "cut")
    with pytest.raises(ValueError, match="delta"):
        paper_threshold(1, 0.5, 10, 1, 1.0, 0.05)
    with pytest.raises(ValueError, match="moment"):
        local_threshold(math.inf, 0.5, 10, 4)
    with pytest.raises(ValueError, match="failure"):
        groups_count(3, 0.0, 10)
    with pytest.raises(ValueError, match="strength"):
        contraction(2, 1)
    with pytest.raises(ValueError, match="record a round"):
        strong_descent(1e-9, 1, 2, 1000, 1e-5, 1, 0.05, (1e-3, 2), 1e9)
