"""Draws from tables of whole numbers: the law itself, on both of its sides, and shares that add up to it."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

from protocol.coins import Address, Stream, words
from protocol.noise import LAWS
from protocol.noise.accounting import DRAWN
from protocol.noise.table import Table, table

NAMES = sorted(LAWS)
VARIANCES = [Fraction(1, 2), Fraction(7, 2), Fraction(40), Fraction(2500)]


def bounds(of: Table) -> list[int]:
    """P(K <= k) in units of 2^-128, with the last one, 2^128."""
    return [(int(high) << 64) + int(low) for high, low in zip(of.high, of.low, strict=True)] + [1 << 128]


def chances(of: Table) -> list[Fraction]:
    held = bounds(of)
    return [Fraction(after - before, 1 << 128) for before, after in zip([0, *held[:-1]], held, strict=True)]


@pytest.mark.parametrize("law", NAMES)
@pytest.mark.parametrize("variance", VARIANCES)
def test_a_table_is_the_law(law: str, variance: Fraction) -> None:
    of = table(law, variance)
    found, reach = chances(of), of.reach
    weights = [1 << 640]
    for (numerator, denominator), _ in zip(LAWS[law].ratios(variance), range(reach), strict=False):
        weights.append(weights[-1] * numerator // denominator)
    whole, unit = 2 * sum(weights) - weights[0], 1 << 128
    steps = [int(chance * unit) for chance in found]  # exact: they are in these units
    apart = sum(abs(Fraction(steps[reach + k], unit) - Fraction(weights[abs(k)], whole)) for k in range(reach + 1))
    assert apart <= Fraction(of.error) <= Fraction(DRAWN)
    assert sum(found) == 1
    spread = sum(k * k * float(found[reach + k]) for k in range(-reach, reach + 1))
    if law != "discrete-gaussian" or variance > 3:  # whose parameter is not quite its variance
        assert spread == pytest.approx(float(variance), rel=1e-12)
    shape = LAWS[law].shape(float(variance))
    likely = min(len(shape), reach + 1)
    both = 2 * shape.sum() - shape[0]
    if law != "binomial" or variance > 30:  # of few bits the shape ends before the last
        assert [float(p) for p in found[reach : reach + likely]] == pytest.approx(shape[:likely] / both, abs=1e-15)


@pytest.mark.parametrize("law", NAMES)
def test_bits_at_the_edge_of_a_value(law: str) -> None:
    of = table(law, Fraction(40))
    for place, bound in list(enumerate(bounds(of)[:-1]))[:: len(of.high) // 40]:
        pairs = [divmod(value, 1 << 64) for value in (max(bound - 1, 0), bound)]
        below, at = of.draw(np.array(pairs, dtype=np.uint64)).tolist()
        expected = next(k for k, other in enumerate(bounds(of)) if other > max(bound - 1, 0)) - of.reach
        assert below == expected
        assert at == next(k for k, other in enumerate(bounds(of)) if other > bound) - of.reach
        assert place - of.reach <= at
    ends = of.draw(np.array([[0, 0], [2**64 - 1, 2**64 - 1]], dtype=np.uint64)).tolist()
    assert ends[0] < 0 < ends[1] and abs(ends[0]) <= of.reach


@pytest.mark.parametrize("law", NAMES)
def test_draws_follow_the_law(law: str) -> None:
    """Counts of 2^17 draws of each kind, in cells of 20 or more: each rejects a right sampler once in 10^9."""
    of, count = table(law, Fraction(40)), 1 << 17
    drawn = words(Address(5, Stream.AUDIT, n=NAMES.index(law)), 0, 2 * count)
    expected = np.array([float(p) for p in chances(of)]) * count
    inner = np.flatnonzero(expected >= 20)
    for values in (of.draw(drawn.reshape(count, 2)), of.quantiles(drawn[:count])):
        seen = np.bincount(values + of.reach, minlength=len(expected)).astype(float)
        cells = np.append(seen[inner], count - seen[inner].sum())
        hoped = np.append(expected[inner], count - expected[inner].sum())
        statistic = float(((cells - hoped) ** 2 / hoped).sum())
        assert statistic <= chi2.isf(1e-9, len(cells) - 1)


@pytest.mark.parametrize("law", ["skellam", "binomial"])
def test_shares_add_up_to_the_law(law: str) -> None:
    share, rows = Fraction(1), 6
    one = np.array([float(p) for p in chances(table(law, share))])
    total = one
    for _ in range(rows - 1):
        total = np.convolve(total, one)
    whole = np.array([float(p) for p in chances(table(law, rows * share))])
    middle, centre, width = len(total) // 2, len(whole) // 2, min(len(total), len(whole)) // 2
    assert total[middle - width : middle + width + 1] == pytest.approx(
        whole[centre - width : centre + width + 1], abs=1e-15
    )


def test_refusals() -> None:
    for variance in (Fraction(0), Fraction(-1), Fraction(1 << 36)):  # the last takes what a node has not
        with pytest.raises(ValueError, match="variance"):
            table("skellam", variance)
    with pytest.raises(ValueError, match="fair bits"):
        table("binomial", Fraction(3, 4))
    assert math.isclose(table("binomial", Fraction(1, 2)).error, 0.0, abs_tol=1e-30)
