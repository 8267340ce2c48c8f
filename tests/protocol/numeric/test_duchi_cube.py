"""The cube: its law enumerated corner by corner, and the printed form for even dimensions caught."""

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from protocol.numeric import numeric_channel
from protocol.numeric.channel import NumericChannel
from protocol.numeric.duchi_cube import DuchiCube, half_cube
from protocol.numeric.sampling import HALF

Corner = tuple[int, ...]
Law = dict[Corner, Fraction]
Make = Callable[..., NumericChannel]
TOTAL = 1 << 63


def corners(d: int) -> list[Corner]:
    return list(product((-1, 1), repeat=d))


def given_corner(channel: DuchiCube, v: Corner) -> Law:
    """P(t | V), from what the sampler does: hit, then the first of `draws` uniform corners that is no tie."""
    d, p = channel.dimension, Fraction(channel.hit, TOTAL)
    sums = {t: sum(a * b for a, b in zip(t, v, strict=True)) for t in corners(d)}
    ties = sum(s == 0 for s in sums.values())
    left = Fraction(ties, 1 << d) ** channel.integers[1]
    near = {t: (1 - left) / ((1 << d) - ties) * 2 if s > 0 else left / ties if s == 0 else 0 for t, s in sums.items()}
    return {t: p * near[t] + (1 - p) / (1 << d) for t in corners(d)}


def printed_even(e: Fraction, v: Corner) -> Law:
    """The form with ties in both half-cubes, uniform on the near one with probability e / (e + 1)."""
    sums = {t: sum(a * b for a, b in zip(t, v, strict=True)) for t in corners(len(v))}
    near, far = sum(s >= 0 for s in sums.values()), sum(s <= 0 for s in sums.values())
    return {
        t: (e / near if s >= 0 else 0) / (e + 1) + (Fraction(1, far) if s <= 0 else 0) / (e + 1)
        for t, s in sums.items()
    }


def given_value(law: Callable[[Corner], Law], x: list[Fraction]) -> Law:
    """P(t | x): V_j = 1 with probability (1 + x_j) / 2, independent."""
    found = dict.fromkeys(corners(len(x)), Fraction(0))
    for v in corners(len(x)):
        weight = math.prod(((1 + a * b) / 2 for a, b in zip(x, v, strict=True)), start=Fraction(1))
        for t, chance in law(v).items() if weight else ():
            found[t] += weight * chance
    return found


def check_level(law: Callable[[Corner], Law], d: int, epsilon: Decimal) -> None:
    """No ratio of P(t | x) exceeds e^epsilon: corners x suffice, since others are mixtures of them."""
    laws = [law(v) for v in corners(d)]
    worst = max(max(one[t] for one in laws) / min(one[t] for one in laws) for t in corners(d))
    with localcontext(prec=80):
        assert Decimal(worst.numerator) / Decimal(worst.denominator) <= epsilon.exp()


def cube(make: Make, d: int, epsilon: str, threshold: str = "1") -> DuchiCube:
    channel = make("duchi-cube", d, epsilon, threshold)
    assert isinstance(channel, DuchiCube)
    return channel


@pytest.mark.parametrize("epsilon", ["0.001", "1", "5"])
@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 6])
def test_level_and_mean_by_enumeration(d: int, epsilon: str, make: Make) -> None:
    channel = cube(make, d, epsilon)
    check_level(lambda v: given_corner(channel, v), d, Decimal(epsilon))
    check_level(lambda v: given_corner(channel, v), d, channel.level)
    assert Decimal(epsilon) * Decimal("0.999999") < channel.level <= Decimal(epsilon)
    x = [Fraction(k - d // 2, d) for k in range(d)]
    law = given_value(lambda v: given_corner(channel, v), x)
    assert sum(law.values()) == 1
    for j, own in enumerate(x):
        mean = sum(t[j] * chance for t, chance in law.items()) * Fraction(channel.size)
        assert float(abs(mean - own)) < 1e-15
    seen = channel.mse(np.array([[float(own) for own in x]]))[0]
    assert seen == pytest.approx(d * channel.size**2 - float(sum(own * own for own in x)), rel=1e-12)


def test_the_printed_form_for_even_dimensions_is_caught(heavy_oracle: Callable[[str], float]) -> None:
    """It is unbiased, so only the level tells: log(e^epsilon + 1)."""
    e = Fraction(math.e)
    check_level(lambda v: printed_even(e, v), 3, Decimal("1.000000001"))
    for d in (2, 4, 6):
        with pytest.raises(AssertionError):
            check_level(lambda v: printed_even(e, v), d, Decimal("1.3"))
        check_level(lambda v: printed_even(e, v), d, Decimal("1.3132616876"))
    laws = [printed_even(e, v) for v in corners(4)]
    worst = max(max(law[t] for law in laws) / min(law[t] for law in laws) for t in corners(4))
    oracle = heavy_oracle("Duchi l_inf (printed) d=4 eps=1 TRUE eps")
    assert math.log(worst) == pytest.approx(oracle, rel=1e-9)


def test_oracle_sizes(make: Make, heavy_oracle: Callable[[str], float]) -> None:
    for d, name in (
        (5, "Duchi l_inf B d=5 eps=1"),
        (4, "Wang-2019 fixed l_inf B d=4 eps=1"),
        (10, "Wang fixed l_inf B d=10"),
    ):
        assert cube(make, d, "1").size == pytest.approx(heavy_oracle(name), rel=1e-9)
    level = float(cube(make, 4, "1").level)
    assert level == pytest.approx(heavy_oracle("Wang-2019 fixed d=4 eps=1 true eps"), rel=1e-9)


@settings(max_examples=30)
@given(
    st.integers(1, 200),
    st.decimals(min_value=Decimal("1e-9"), max_value=30, allow_nan=False, places=9).filter(lambda e: e > 0),
)
def test_sizes_follow_the_formula_in_any_dimension(d: int, epsilon: Decimal) -> None:
    """(2^d + N (e^epsilon - 1)) / (S (e^epsilon - 1)), and one draw more in 2^40 at most is lost to ties."""
    channel: Any = numeric_channel("duchi-cube", {"epsilon": epsilon, "threshold": Decimal(2), "dimension": Decimal(d)})
    counts = half_cube(d)
    ratio = math.comb(d - 1, (d - 1) // 2 if d % 2 else d // 2) / (1 << d)
    near = (1 - (0 if d % 2 else math.comb(d, d // 2) / (1 << d))) / 2
    formula = 2 * (1 / math.expm1(epsilon) + near) / ratio
    assert channel.size == pytest.approx(formula, rel=1e-8)
    assert channel.level <= epsilon
    assert counts.left <= Fraction(1, 1 << 40)


def coins(seed: int, rows: int, channel: DuchiCube) -> np.ndarray:
    return np.random.Generator(np.random.Philox(seed)).integers(0, 1 << 64, size=(rows, channel.words), dtype=np.uint64)


@pytest.mark.parametrize("d", [2, 3, 4])
def test_sampler_follows_its_law(d: int, make: Make) -> None:
    """Chi-square over corners; false alarm 1e-9."""
    channel, rows = cube(make, d, "1.5", "3"), 60_000
    x = np.linspace(-1, 0.6, d)
    law = given_value(lambda v: given_corner(channel, v), [Fraction(own) for own in x])
    drawn = channel.report(np.tile(3 * x, (rows, 1)), coins(d, rows, channel))
    assert channel.legal(drawn).all()
    place = (drawn > 0) @ (1 << np.arange(d)[::-1])
    expected = rows * np.array([float(law[t]) for t in corners(d)])
    assert ((np.bincount(place, minlength=1 << d) - expected) ** 2 / expected).sum() < chi2.isf(1e-9, (1 << d) - 1)


@pytest.mark.parametrize("d", [2, 8, 63, 64, 65, 130])
def test_each_step_of_the_sampler(d: int, make: Make) -> None:
    """V from its coins, the side from its coin, the first corner that is no tie, turned; else the first corner."""
    channel, rows = cube(make, d, "2"), 300
    rng, drawn = np.random.Generator(np.random.Philox(d)), coins(d, rows, channel)
    x = rng.uniform(-1, 1, size=(rows, d))
    reports = channel.report(x, drawn)
    for value, word, report in zip(x, drawn.tolist(), reports, strict=True):
        v = [1 if word[j] >> 1 < HALF + int(own * 2.0**62) else -1 for j, own in enumerate(value)]
        chunks = [word[d + 1 + k : d + 1 + k + channel.chunks] for k in range(0, len(word) - d - 1, channel.chunks)]
        drawn_signs = [[1 if chunk[j // 64] >> j % 64 & 1 else -1 for j in range(d)] for chunk in chunks]
        signs = drawn_signs[0]
        if word[d] >> 1 < channel.hit:
            signs = next((one for one in drawn_signs if sum(one)), signs)
            signs = [-s for s in signs] if sum(signs) < 0 else signs
        assert report.tolist() == [a * b * channel.size for a, b in zip(v, signs, strict=True)]


def test_ties_to_the_last_draw_are_sent(make: Make) -> None:
    channel = cube(make, 2, "2")
    word = np.full((1, channel.words), 0b01, dtype=np.uint64)  # all coins low: V = (1, 1), near; all corners tie
    assert channel.report(np.ones((1, 2)), word).tolist() == [[channel.size, -channel.size]]
    assert channel.legal(channel.report(np.ones((1, 2)), word)).all()


def test_too_many_dimensions_are_refused(make: Make) -> None:
    with pytest.raises(ValueError, match="expected dimension <= 4096"):
        make("duchi-cube", 4097, "1")
