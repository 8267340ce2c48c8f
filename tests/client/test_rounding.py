"""Numbers rounded to a grid at random: within their bound whatever the coins, and without a bias."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.draws import AddressedDraws, SecretDraws
from client.rounding import BLOCK, rounded, rounded_sum
from protocol.coins import Address, Stream, words
from protocol.noise.accounting import Shares
from protocol.noise.record_terms import RecordTerms, bounds
from protocol.record_terms import CLIP, L2, LINF, TRUNCATE, Bounded, bounded, squared_sensitivity

ALL = np.uint64(2**64 - 1)


def terms_of(how: Bounded, power: int, dimension: int) -> RecordTerms:
    shares = Shares("binomial", Fraction(4), 1, dimension)
    largest, longest, squared = bounds(how, power, dimension)
    return RecordTerms(how, shares, power, largest, longest, squared, 1 << 40)


@given(
    st.floats(1e-3, 1e6),
    st.sampled_from([LINF, L2]),
    st.sampled_from([CLIP, TRUNCATE]),
    st.integers(1, 9),
    st.integers(0, 12),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=60, deadline=None)
def test_two_rows_differ_by_no_more_than_the_sensitivity(
    threshold: float, norm: str, shape: str, dimension: int, fine: int, seed: int
) -> None:
    """Rows far beyond their bound, on it and within it, whatever their coins: those that always round up among them."""
    how = Bounded(threshold, norm, shape)
    terms = terms_of(how, int(np.frexp(threshold)[1]) - 1 - fine, dimension)
    drawn = np.random.default_rng(seed)
    values = bounded(drawn.standard_cauchy((40, dimension)) * threshold, how)
    coins = drawn.integers(0, 2**64, values.shape, dtype=np.uint64)
    coins[::3], coins[1::3] = 0, ALL
    whole = rounded(values, terms, coins)
    assert np.abs(whole).max() <= terms.largest
    squares = (whole.astype(object) ** 2).sum(axis=1)
    if terms.longest is not None:
        assert max(squares) <= terms.longest
    assert terms.sensitivity_squared == squared_sensitivity(how, terms.power, dimension)
    far = ((whole[:, None] - whole[None]).astype(object) ** 2).sum(axis=2).max()
    assert far <= terms.sensitivity_squared
    away = np.abs(whole * 2.0**terms.power - values) / 2.0**terms.power
    assert (away[coins[:, 0] == 0] <= 1.0 + (norm == L2) * 20).all()  # those that round up


def test_rounding_has_no_bias_and_truncation_has() -> None:
    """40,000 numbers of one size: the mean is off by 6.5 standard errors with a chance below 1e-10."""
    terms = terms_of(Bounded(8.0, L2), -3, 1)
    coins = words(Address(3, Stream.AUDIT, 1), 0, 40_000)[:, None]
    for value in (0.7, -2.33, 5.06):
        whole = rounded(np.full((40_000, 1), value), terms, coins) / 8.0
        part = (8 * abs(value)) % 1
        assert abs(whole.mean() - value) < 6.5 * np.sqrt(part * (1 - part) / 40_000) / 8
        assert abs(np.trunc(8 * value) / 8 - value) > 0.05 / 8


@pytest.mark.parametrize(("dimension", "least"), [(1, 99.0), (8, 99.0), (300, 99.0), (30_000, 65.0)])
def test_rows_on_their_bound_are_shortened_by_hardly_more_than_it_takes(dimension: int, least: float) -> None:
    """Rows of 100 units: their length along where they point is within 1 % of it, and less where most numbers are 0."""
    how = Bounded(100.0, L2)
    terms, drawn = terms_of(how, 0, dimension), np.random.default_rng(5)
    values = bounded((drawn.standard_normal((2000 if dimension < 1000 else 20, dimension)) ** 2 + 1) * 1e4, how)
    coins = drawn.integers(0, 2**64, values.shape, dtype=np.uint64)
    whole = rounded(values, terms, coins)
    along = (whole * values).sum(axis=1) / 100.0
    assert least < along.mean() < 100.0 and along.min() > least - 6.0


def test_a_sum_is_that_of_its_rows_however_they_are_split() -> None:
    how, count = Bounded(3.0), 2 * BLOCK + 7
    terms, draws = terms_of(how, -6, 2), AddressedDraws(9, count, 0)
    rows = np.arange(count)
    values = bounded(np.random.default_rng(1).standard_cauchy((count, 2)), how)
    whole = rounded_sum(lambda part, _: values[part], terms, rows, draws)
    split = [
        rounded_sum(lambda part, _: values[part], terms, rows[first::3], draws) for first in range(3)
    ]  # a client's rows need not be neighbours
    assert np.array_equal(whole, np.sum(split, axis=0))
    assert np.array_equal(whole * 64, np.round(whole * 64))


def test_coins_of_the_system_are_others_each_time() -> None:
    values, terms = np.full((500, 1), 0.5), terms_of(Bounded(4.0), 0, 1)
    first, second = (
        rounded(values, terms, SecretDraws().roundings(np.arange(500), 1)) for _ in range(2)
    )  # alike with a chance of 2^-500
    assert not np.array_equal(first, second) and set(np.unique(first)) == {0, 1}


@pytest.mark.parametrize("threshold", [0.3, 0.49])
def test_a_grid_without_a_number_within_the_bound_is_none(threshold: float) -> None:
    with pytest.raises(ValueError, match="finer than the threshold"):
        terms_of(Bounded(threshold), -1, 1)
