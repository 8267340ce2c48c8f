"""Randomisers of one number: their laws as integers, enumerated, and their variances and levels against formulas."""

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2, kstest
from scipy.stats import laplace as laplace_law

from protocol.numeric.discrete_laplace import DiscreteLaplace, discrete_laplace
from protocol.numeric.duchi import Duchi, duchi
from protocol.numeric.hybrid import Hybrid, hybrid
from protocol.numeric.laplace import laplace
from protocol.numeric.piecewise import Piecewise, piecewise
from protocol.numeric.sampling import below, fewest, leans, most, subset

Law = dict[Fraction, Fraction]
levels = st.decimals(min_value=Decimal("1e-9"), max_value=40, allow_nan=False, places=9).filter(lambda e: e > 0)
TOTAL = 1 << 63


def rng(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(seed))


def words(seed: int, *shape: int) -> np.ndarray:
    return rng(seed).integers(0, 1 << 64, size=shape, dtype=np.uint64)


def nearly_uniform(count: int) -> list[Fraction]:
    """The law of floor(o count / 2^64) for a uniform odd o below 2^64, from the first odd number of each value."""
    firsts = [-(-value * 2 * TOTAL // count) | 1 for value in range(count + 1)]
    return [Fraction((after - first) // 2, TOTAL) for first, after in pairwise(firsts)]


def of_duchi(channel: Duchi, t: float) -> Law:
    """P(k) is the number of coins below 2^62 + trunc(t lean), over 2^63."""
    size = Fraction(1 << 62, channel.lean)
    plus = Fraction((1 << 62) + int(t * float(channel.lean)), TOTAL)
    return {size: plus, -size: 1 - plus}


def of_piecewise(channel: Piecewise, t: float) -> Law:
    """The mixture of two windows and of all outputs, each nearly uniform."""
    p, place = Fraction(channel.hit, TOTAL), t * channel.steps
    low = math.floor(place)
    high = Fraction(int((place - low) * 2.0**63), TOTAL)
    everywhere, window = nearly_uniform(channel.count), nearly_uniform(channel.window)
    law = [(1 - p) * chance for chance in everywhere]
    for step, weight in ((low, 1 - high), (low + 1, high)):
        for j in range(channel.window) if weight else ():
            law[step + channel.steps + j] += p * weight * window[j]
    cell = TOTAL / Fraction(channel.hit * channel.steps)
    return {Fraction(2 * j - channel.count + 1, 2) * cell: chance for j, chance in enumerate(law)}


def of_discrete_laplace(channel: DiscreteLaplace, t: float) -> Law:
    """The mixture of two places with noise from the table and of all outputs, nearly uniform."""
    place = t * channel.steps
    low = math.floor(place)
    high = Fraction(int((place - low) * 2.0**63), TOTAL)
    law = [(1 - channel.chance) * chance for chance in nearly_uniform(channel.count)]
    table = [Fraction(count, TOTAL) for count in (*channel.counts[::-1], *channel.counts)]
    for step, weight in ((low, 1 - high), (low + 1, high)):
        for j, chance in enumerate(table if weight else ()):
            law[step + channel.steps + j] += weight * chance
    return {Fraction(2 * j - channel.count + 1, 2) * channel.cell: chance for j, chance in enumerate(law)}


def of_hybrid(channel: Hybrid, t: float) -> Law:
    p = Fraction(channel.wide.hit, TOTAL)
    law = {output: p * chance for output, chance in of_piecewise(channel.wide, t).items()}
    for output, chance in of_duchi(channel.narrow, t).items():
        law[output] = law.get(output, Fraction(0)) + (1 - p) * chance
    return law


def moments(law: Law) -> tuple[Fraction, Fraction]:
    """The mean and the mean square."""
    assert sum(law.values()) == 1
    mean = sum(output * chance for output, chance in law.items())
    return Fraction(mean), Fraction(sum(output * output * chance for output, chance in law.items()))


def enumerated_level(laws: list[Law]) -> Fraction:
    """The largest ratio of probabilities of one output."""
    assert all(set(law) == set(laws[0]) for law in laws)
    return max(max(law[o] for law in laws) / min(law[o] for law in laws) for o in laws[0])


def keeps(level: Decimal, ratio: Fraction) -> bool:
    with localcontext(prec=80):
        return level.exp() >= Decimal(ratio.numerator) / Decimal(ratio.denominator)


# Draws


@pytest.mark.parametrize("count", [1, 2, 3, 5, 64, 1000, 16384, (1 << 32) - 1])
def test_draws_below_a_count_are_nearly_uniform_and_symmetric(count: int) -> None:
    values = range(count) if count < 20000 else [0, 1, 2, count // 2, count - 1]
    for value in values:
        first = -(-value * 2 * TOTAL // count) | 1
        after = -(-(value + 1) * 2 * TOTAL // count) | 1
        edge = np.array([first - 1, first, after - 2, max(first - 2, 0)], dtype=np.uint64)
        assert below(edge, count).tolist() == [value, value, value, max(value - 1, 0)]
        assert fewest(count) <= Fraction((after - first) // 2, TOTAL) <= most(count)
    drawn = words(1, 1000)
    assert (below(drawn, count) + below(~(drawn | np.uint64(1)) + np.uint64(1), count) == count - 1).all()


def test_draws_below_a_count_refuse_what_does_not_fit() -> None:
    for count in (0, -1, 1 << 32):
        with pytest.raises(ValueError, match="expected 1 <= count"):
            below(words(1, 3), count)


def test_subsets_are_uniform() -> None:
    """All 10 sets of 3 out of 5; chi-square with 9 degrees of freedom, false alarm 1e-9."""
    chosen = np.sort(subset(words(2, 60_000, 3), 5), axis=1)
    _, counts = np.unique(chosen @ np.array([25, 5, 1]), return_counts=True)
    assert len(counts) == 10
    assert ((counts - 6000) ** 2 / 6000).sum() < chi2.isf(1e-9, 9)
    assert (np.sort(subset(words(3, 50, 7), 7), axis=1) == np.arange(7)).all()


def test_a_lean_is_the_documented_count() -> None:
    most_ = float(1 << 61)
    for tilt in (-1.0, -0.3, 0.0, 0.3, 1.0):
        edge = (1 << 62) + int(tilt * most_)
        coins = np.array([2 * (edge - 1), 2 * edge], dtype=np.uint64)
        assert leans(coins, np.full(2, tilt), most_).tolist() == [True, False]
    assert leans(np.array([(1 << 64) - 1, 0], dtype=np.uint64), np.array([1.0, -1.0]), 2.0**62).tolist() == [
        True,
        False,
    ]


# Levels and moments, exactly


@given(levels)
def test_levels_are_kept_and_not_wasted(epsilon: Decimal) -> None:
    for made in (laplace(epsilon), duchi(epsilon), piecewise(epsilon), hybrid(epsilon)):
        assert made.level <= epsilon
        if epsilon <= 30:
            assert made.level >= epsilon * Decimal("0.999")


@pytest.mark.parametrize("epsilon", ["1e-9", "0.01", "1", "4", "12"])
def test_duchi_by_enumeration(epsilon: str) -> None:
    channel = duchi(Decimal(epsilon))
    tilts = [-1.0, -0.77, -1e-3, 0.0, 0.5, 1 / 3, 1.0]
    laws = [of_duchi(channel, t) for t in tilts]
    assert keeps(channel.level, enumerated_level(laws))
    assert channel.level <= Decimal(epsilon)
    for t, law in zip(tilts, laws, strict=True):
        mean, square = moments(law)
        assert abs(mean - Fraction(t)) <= Fraction(1, 1 << 52) + Fraction(1, channel.lean)
        assert float(square) == pytest.approx(channel.second_moment(np.array([t]))[0], rel=1e-12)
        assert float(square - mean**2) <= channel.worst(1.0) * (1 + 1e-12)


@settings(max_examples=20)
@given(levels, st.integers(1, 9))
def test_piecewise_by_enumeration(epsilon: Decimal, steps: int) -> None:
    channel = piecewise(epsilon, steps)
    tilts = [k / 8 for k in range(-8, 9)] + [place / steps for place in range(-steps, steps + 1)]
    laws = [of_piecewise(channel, t) for t in tilts]
    ratio = enumerated_level(laws)
    assert keeps(channel.level, ratio)
    assert channel.level <= epsilon
    assert not keeps(channel.level * Decimal("0.9999999"), ratio)
    assert [float(o) for o in laws[0]] == pytest.approx(channel.outputs.tolist(), rel=1e-14)
    variances = []
    for t, law in zip(tilts, laws, strict=True):
        mean, square = moments(law)
        assert abs(mean - Fraction(t)) <= Fraction(1, 1 << 50)
        assert float(square) == pytest.approx(channel.second_moment(np.array([t]))[0], rel=1e-9)
        variances.append(float(square - mean**2))
    assert max(variances) <= channel.worst(1.0) * (1 + 1e-9)


def test_piecewise_is_exactly_unbiased_where_places_are_doubles() -> None:
    channel = piecewise(Decimal(1), 8)
    for k in range(-64, 65):
        assert moments(of_piecewise(channel, k / 64))[0] == Fraction(k, 64)


def test_a_fine_grid_by_enumeration() -> None:
    channel = piecewise(Decimal(2), 512)
    tilts = (-1.0, -0.123, 0.7)
    laws = [of_piecewise(channel, t) for t in tilts]
    assert keeps(channel.level, enumerated_level(laws))
    for t, law in zip(tilts, laws, strict=True):
        mean, square = moments(law)
        assert abs(mean - Fraction(t)) <= Fraction(1, 1 << 50)
        assert float(square - mean**2) == pytest.approx(channel.second_moment(np.array([t]))[0] - t * t, rel=1e-9)


@settings(max_examples=10)
@given(st.decimals(min_value=Decimal("0.7"), max_value=20, allow_nan=False, places=6), st.integers(1, 6))
def test_hybrid_by_enumeration(epsilon: Decimal, steps: int) -> None:
    channel = Hybrid(piecewise(epsilon, steps), duchi(epsilon))
    tilts = [k / 8 for k in range(-8, 9)]
    laws = [of_hybrid(channel, t) for t in tilts]
    assert keeps(channel.level, enumerated_level(laws))
    assert channel.level <= epsilon
    for t, law in zip(tilts, laws, strict=True):
        mean, square = moments(law)
        assert abs(mean - Fraction(t)) <= Fraction(1, 1 << 49)
        assert float(square) == pytest.approx(channel.second_moment(np.array([t]))[0], rel=1e-9)
        assert float(square - mean**2) <= channel.worst(1.0) * (1 + 1e-9)


COARSE = DiscreteLaplace(2, TOTAL // 9, int(0.7 * 2**64))


@pytest.mark.parametrize(("channel", "epsilon"), [(COARSE, "3"), (discrete_laplace(Decimal(1)), "1")], ids=str)
def test_discrete_laplace_by_enumeration(channel: DiscreteLaplace, epsilon: str) -> None:
    """Level, mean and variance of the integers; outputs that end are reached from every number."""
    tilts = [-1.0, -0.77, 0.0, 1.0]
    laws = [of_discrete_laplace(channel, t) for t in tilts]
    ratio = enumerated_level(laws)
    assert keeps(channel.level, ratio)
    assert channel.level <= Decimal(epsilon)
    assert not keeps(channel.level * Decimal("0.9999"), ratio)
    assert [float(o) for o in laws[0]] == pytest.approx(channel.outputs.tolist(), rel=1e-14)
    assert 0 not in channel.outputs
    for t, law in zip(tilts, laws, strict=True):
        mean, square = moments(law)
        assert abs(mean - Fraction(t)) <= Fraction(1, 1 << 49)
        assert float(square) == pytest.approx(channel.second_moment(np.array([t]))[0], rel=1e-9)
        assert float(square - mean**2) <= channel.worst(1.0) * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", ["0.001", "0.07", "1", "7.3", "20"])
def test_discrete_laplace_varies_as_the_continuous_law_and_wastes_nothing(epsilon: str) -> None:
    level = Decimal(epsilon)
    channel = discrete_laplace(level)
    assert Decimal("0.99999") * level <= channel.level <= level
    assert channel.worst(1.0) == pytest.approx(laplace(level).worst(1.0), rel=1e-4)
    assert len(channel.counts) == 1 + next(
        j for j, count in enumerate(channel.counts) if count * channel.factor < 1 << 64
    )


def test_discrete_laplace_refuses_what_a_table_does_not_hold() -> None:
    for epsilon in ("1e-5", "21"):
        with pytest.raises(ValueError, match="a coordinate of discrete-laplace"):
            discrete_laplace(Decimal(epsilon))
    for parameters in ((0, 5, 5), (1, 0, 5), (1, 5, 1 << 64), (1, TOTAL // 2, 5)):
        with pytest.raises(ValueError, match="expected"):
            DiscreteLaplace(*parameters)


def test_discrete_laplace_follows_its_law() -> None:
    """Chi-square over all outputs, each expected 20 times or more; false alarm 1e-9 each."""
    count = 40_000
    for t in (-1.0, -0.41, 0.93):
        law = of_discrete_laplace(COARSE, t)
        drawn = COARSE.report(np.full(count, t), words(31, count, COARSE.words))
        place = np.searchsorted(COARSE.outputs, drawn)
        assert (COARSE.outputs[place] == drawn).all()
        expected = count * np.array([float(law[output]) for output in sorted(law)])
        seen = np.bincount(place, minlength=COARSE.count)
        assert expected.min() >= 20
        assert ((seen - expected) ** 2 / expected).sum() < chi2.isf(1e-9, COARSE.count - 1)


@pytest.mark.parametrize("scale", [1.0, 1.5, 10.0])
@pytest.mark.parametrize("epsilon", ["0.2", "0.7", "3", "9", "15", "30"])
def test_the_worst_number_is_found(epsilon: str, scale: float) -> None:
    """Against a fine grid, with few places, so that the rounding of places counts."""
    few = piecewise(Decimal(epsilon), 5)
    t = np.linspace(-1, 1, 20_001)
    others = duchi(Decimal(epsilon)), laplace(Decimal(epsilon)), COARSE
    for channel in (few, Hybrid(few, duchi(Decimal(epsilon))), *others):
        seen = (scale * channel.second_moment(t) - t * t).max()
        assert seen <= channel.worst(scale) * (1 + 1e-12)
        assert channel.worst(scale) == pytest.approx(seen, rel=1e-6)


# Formulas of the literature


def piecewise_variance(epsilon: float, t: float) -> float:
    """Wang et al. 2019, equation (8), for the continuous law."""
    h = math.exp(epsilon / 2)
    return t * t / (h - 1) + (h + 3) / (3 * (h - 1) ** 2)


def hybrid_variance(epsilon: float) -> float:
    """Wang et al. 2019, equation (10), above the switch."""
    h, e = math.exp(epsilon / 2), math.exp(epsilon)
    return (h + 3) / (3 * h * (h - 1)) + (e + 1) ** 2 / (h * (e - 1) ** 2)


@pytest.mark.parametrize("epsilon", ["1", "4"])
def test_oracle_variances(epsilon: str, heavy_oracle: Callable[[str], float]) -> None:
    """The formulas to 1e-9; the integers to 1e-3 on the default grid and to 1e-6 on a fine one."""
    level, e = Decimal(epsilon), float(epsilon)
    for text in ("0", "0.5", "1"):
        oracle, t = heavy_oracle(f"piecewise var eps={epsilon} x={text}"), np.array([float(text)])
        assert piecewise_variance(e, float(text)) == pytest.approx(oracle, rel=1e-9)
        assert (piecewise(level).second_moment(t) - t * t)[0] == pytest.approx(oracle, rel=1e-3)
        assert (piecewise(level, 1 << 22).second_moment(t) - t * t)[0] == pytest.approx(oracle, rel=1e-6)
    half = np.array([0.5])
    oracle = heavy_oracle(f"Duchi-1D var eps={epsilon} x=.5")
    assert (duchi(level).second_moment(half) - 0.25)[0] == pytest.approx(oracle, rel=1e-9)
    oracle = heavy_oracle(f"hybrid worst var eps={epsilon}")
    assert hybrid_variance(e) == pytest.approx(oracle, rel=1e-9)
    assert hybrid(level).worst(1.0) == pytest.approx(oracle, rel=1e-3)
    t = np.linspace(-1, 1, 1001)
    assert np.ptp(hybrid(level).second_moment(t) - t * t) < 1e-5


def test_oracle_hybrid_varies_alike_at_both_ends(heavy_oracle: Callable[[str], float]) -> None:
    oracle, t = heavy_oracle("hybrid x=1 equals x=0 eps=4"), np.array([0.0, 1.0])
    assert hybrid_variance(4.0) == pytest.approx(oracle, rel=1e-9)
    assert hybrid(Decimal(4)).second_moment(t) - t * t == pytest.approx([oracle, oracle], rel=1e-3)


@pytest.mark.parametrize("epsilon", ["1e-9", "0.01", "0.3", "1", "2.7", "4", "6", "8", "10", "15", "20"])
def test_the_grid_costs_next_to_nothing(epsilon: str) -> None:
    t = np.linspace(-1, 1, 21)
    formula = (
        [piecewise_variance(float(epsilon), own) for own in t]
        if float(epsilon) > 1e-6
        else 16 / 3 / float(epsilon) ** 2
    )
    digits = 5e-4 if float(epsilon) <= 8 else 1e-2
    assert piecewise(Decimal(epsilon)).second_moment(t) - t * t == pytest.approx(formula, rel=digits)


def test_oracle_hybrid_switches_where_duchi_stops_being_best(heavy_oracle: Callable[[str], float]) -> None:
    oracle = heavy_oracle("hybrid eps*")
    root = 405 * math.sqrt(241)
    closed = (-5 + 2 * math.cbrt(6353 - root) + 2 * math.cbrt(6353 + root)) / 27
    assert math.log(closed) == pytest.approx(oracle, rel=1e-9)
    for shift, kind in ((-1e-4, Duchi), (1e-4, Hybrid)):
        assert isinstance(hybrid(Decimal(repr(oracle + shift))), kind)


# Samplers


@pytest.mark.parametrize("t", [-1.0, -0.41, 0.0, 0.93, 1.0])
@pytest.mark.parametrize("epsilon", ["0.4", "3"])
def test_samplers_follow_their_laws(epsilon: str, t: float) -> None:
    """Chi-square over all outputs of a coarse grid; false alarm 1e-9 each."""
    level, count = Decimal(epsilon), 40_000
    coarse = piecewise(level, 4)
    for seed, (channel, law) in enumerate(
        (
            (duchi(level), of_duchi(duchi(level), t)),
            (coarse, of_piecewise(coarse, t)),
            (Hybrid(coarse, duchi(level)), of_hybrid(Hybrid(coarse, duchi(level)), t)),
        )
    ):
        drawn = channel.report(np.full(count, t), words(10 + seed, count, channel.words))
        outputs = np.array(sorted(map(float, law)))
        place = np.searchsorted(outputs, drawn - 1e-9)
        assert np.abs(outputs[place] - drawn).max() < 1e-9
        seen, expected = (
            np.bincount(place, minlength=len(outputs)),
            np.array([count * float(law[o]) for o in sorted(law)]),
        )
        known = expected > 0
        assert (seen[~known] == 0).all()
        assert ((seen - expected)[known] ** 2 / expected[known]).sum() < chi2.isf(1e-9, max(known.sum() - 1, 1))


def test_laplace_noise_follows_its_law() -> None:
    """Kolmogorov-Smirnov, false alarm 1e-9."""
    channel = laplace(Decimal(2))
    drawn = channel.report(np.full(50_000, 0.25), words(20, 50_000, 1))
    assert kstest(drawn - 0.25, laplace_law(scale=1.0).cdf).pvalue > 1e-9
    t = np.array([0.0, 0.5, 1.0])
    assert (channel.second_moment(t) - t * t).tolist() == [2.0, 2.0, 2.0]


def test_laplace_level_is_the_ratio_of_densities() -> None:
    for text in ("1e-9", "0.3", "1", "7"):
        channel = laplace(Decimal(text))
        density = laplace_law(scale=channel.scale).logpdf
        seen = max(density(y - 1) - density(y + 1) for y in np.linspace(-5, 5, 101))
        assert float(channel.level) == pytest.approx(seen, rel=1e-9)
        assert channel.level <= Decimal(text)


def test_integers_out_of_range_are_refused() -> None:
    for lean in (0, 1 << 62, (1 << 61) + 1):
        with pytest.raises(ValueError, match="expected 0 < lean"):
            Duchi(lean)
    for hit, window in ((0, 2), (TOTAL, 2), (1, 3), (1, 0)):
        with pytest.raises(ValueError, match="expected 0 < hit"):
            Piecewise(hit, window)
