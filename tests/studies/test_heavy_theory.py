"""Rates of heavy-tailed records: what falls with what, which bounds are below which, and special cases by hand."""

import math
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from studies.theory import heavy
from studies.theory.fitted import fit_constant

tails = st.floats(0.05, 1.0)
counts = st.integers(100, 10**7)
dimensions = st.integers(2, 1000)
epsilons = st.floats(0.05, 1.0)
DELTA, FAILURE, MOMENT = 1e-5, 0.05, 16.0


@given(tails, counts, epsilons)
@settings(max_examples=50)
def test_slopes_in_n_are_the_exponents(tail: float, n: int, epsilon: float) -> None:
    """Log errors at n and 10 n: exactly -v/(1+v), half of it, or twice it for risks."""
    more = (epsilon, DELTA, 5, MOMENT, tail, 1.0)
    rates: dict[Callable[[int], float], float] = {
        partial(
            heavy.mean_error, epsilon=epsilon, delta=DELTA, moment=MOMENT, tail=tail, failure=FAILURE, constant=1
        ): 1.0,
        partial(heavy.least_mean_error, epsilon=epsilon, moment=MOMENT, tail=tail, constant=1): 1.0,
        partial(heavy.least_local_error, epsilon=epsilon, moment=MOMENT, tail=tail, constant=1): 0.5,
        partial(heavy.mean_deviation, moment=MOMENT, tail=tail, failure=FAILURE): 1.0,
        partial(heavy.strong_risk, epsilon=epsilon, dimension=5, moment=MOMENT, tail=tail, constant=1): 2.0,
        lambda n: heavy.least_strong_risk(n, *more): 2.0,
        lambda n: heavy.least_convex_risk(n, *more): 1.0,
        lambda n: heavy.sparse_risk(n, epsilon, DELTA, 500, 4, MOMENT, tail, 1.0): 2.0,
        lambda n: heavy.least_sparse_risk(n, epsilon, DELTA, 500, 4, MOMENT, tail, 1.0): 2.0,
    }
    for rate, times in rates.items():
        slope = math.log10(rate(10 * n) / rate(n))
        assert slope == pytest.approx(-times * heavy.central_exponent(tail), abs=1e-9)
    assert heavy.local_exponent(tail) == heavy.central_exponent(tail) / 2


def test_two_laws_that_privacy_confuses(heavy_oracle: Callable[[str], float]) -> None:
    """0, or b with a chance p = 1 / (n epsilon): their means are as far apart as the least error says."""
    p, tail = 1e-3, 0.5
    b = p ** (-1 / (1 + tail))
    assert p * b ** (1 + tail) == pytest.approx(1, rel=1e-14)
    oracle = heavy_oracle("binary trunc-hist two-point lower bound mean gap")
    assert p * b == pytest.approx(oracle, rel=1e-14)
    assert heavy.least_mean_error(1000, 1.0, 1.0, tail, 1.0) == pytest.approx(oracle, rel=1e-14)


@given(tails, counts, dimensions, epsilons)
@settings(max_examples=50)
def test_bounds_are_in_order(tail: float, n: int, dimension: int, epsilon: float) -> None:
    """With all constants 1: lower below upper, approximate below pure privacy, and local above central."""
    at = (n, epsilon, dimension, MOMENT, tail, 1.0)
    lower = (n, epsilon, DELTA, dimension, MOMENT, tail, 1.0)
    pure = (n, epsilon, 0.0, dimension, MOMENT, tail, 1.0)
    logs = -math.log(DELTA)
    least = heavy.least_strong_risk(*lower)
    assert least == pytest.approx(heavy.strong_risk(*at) * logs ** heavy.central_exponent(tail))
    assert heavy.strong_risk(*at, paper=True) >= heavy.strong_risk(*at)
    assert heavy.convex_risk(*at) >= heavy.least_convex_risk(*lower) / logs
    if dimension > logs:
        assert heavy.least_strong_risk(*pure) > least
        assert heavy.least_convex_risk(*pure) > heavy.least_convex_risk(*lower)
    assert heavy.least_mean_error(n, epsilon, MOMENT, tail, 1) <= heavy.least_local_error(n, epsilon, MOMENT, tail, 1)
    sparse = heavy.least_sparse_risk(n, epsilon, DELTA, dimension, 2, MOMENT, tail, 1)
    assert sparse <= heavy.sparse_risk(n, epsilon, DELTA, dimension, 2, MOMENT, tail, 1) / min(1, math.log(dimension))


def test_with_a_variance() -> None:
    """v = 1, u = 4, n epsilon = 100."""
    assert heavy.least_mean_error(100, 1, 4, 1, 1) == pytest.approx(2 / 10)
    assert heavy.least_local_error(100, 1, 4, 1, 1) == pytest.approx(2 / math.sqrt(10))
    assert heavy.strong_risk(100, 1, 4, 4, 1, 1) == pytest.approx(4 * 4**1.5 / 100)
    assert heavy.strong_risk(100, 1, 4, 4, 1, 1, paper=True) == pytest.approx(4 * 4**2.5 / 100)
    assert heavy.least_strong_risk(100, 1, 0, 4, 4, 1, 1) == pytest.approx(4 * 4 * 4 / 100)
    assert heavy.mean_deviation(100, 4, 1, 0.5) == pytest.approx(math.sqrt(8 * 4 / 50))
    one = heavy.means_error(100, 1, DELTA, 1, 10, 4, 1, FAILURE, 1)
    logs, low = -math.log(FAILURE), -math.log(DELTA)
    by_hand = 4 / 10 + 2 * math.sqrt(logs / 100) + 10 * logs * math.sqrt(low) / 100 * math.sqrt(1 + logs)
    assert one == pytest.approx(by_hand)


def test_constants_say_where_they_come_from() -> None:
    shape = [heavy.least_mean_error(n, 1, MOMENT, 0.5, 1) for n in (100, 1000)]
    fitted = fit_constant(shape, [3 * shape[0], 2 * shape[1]], [100, 1000], "lower")
    assert str(fitted) == "fitted at n = 1,000" and fitted.constant == pytest.approx(2)


@pytest.mark.parametrize("tail", [0.0, -0.1, 1.1, math.nan])
def test_tails_outside_are_refused(tail: float) -> None:
    with pytest.raises(ValueError, match="expected 0 < tail <= 1"):
        heavy.central_exponent(tail)
    with pytest.raises(ValueError, match="expected 0 < tail <= 1"):
        heavy.convex_risk(100, 1, 2, 1, tail, 1)


def test_numbers_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="epsilon"):
        heavy.least_mean_error(100, 0, 1, 0.5, 1)
    with pytest.raises(ValueError, match="delta"):
        heavy.least_strong_risk(100, 1, 1.0, 2, 1, 0.5, 1)
