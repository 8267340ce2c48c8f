"""PrivUnit, its Gaussian form, Duchi's ball and Gaussian noise: oracles, quadrature, laws of the samplers."""

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betainc, gammaln, ndtr
from scipy.stats import kstest

from protocol.gaussian import gaussian_delta
from protocol.numeric.channel import NumericChannel
from protocol.numeric.spheres import lengths, log_ratio

Make = Callable[..., NumericChannel]
CASES = [(10, "1"), (10, "4"), (100, "4"), (100, "8")]


def words(seed: int, rows: int, channel: NumericChannel) -> np.ndarray:
    return np.random.Generator(np.random.Philox(seed)).integers(0, 1 << 64, size=(rows, channel.words), dtype=np.uint64)


@pytest.mark.parametrize(("d", "epsilon"), CASES)
def test_oracle_caps(d: int, epsilon: str, make: Make, heavy_oracle: Callable[[str], float]) -> None:
    for name, text in (("priv-unit", "PrivUnit"), ("priv-unit-gaussian", "PrivUnitG")):
        channel: Any = make(name, d, epsilon)
        # The split is one of 2^20, which the MSE does not notice, but a factor that is not at its own best does.
        digits = 1e-9 if text == "PrivUnit" else 1e-7
        assert channel.m == pytest.approx(heavy_oracle(f"{text} m d={d} eps={epsilon}"), rel=digits)
        on_sphere = np.eye(d)[:1]
        assert channel.mse(on_sphere)[0] == pytest.approx(heavy_oracle(f"{text} mse d={d} eps={epsilon}"), rel=1e-9)
        assert float(channel.level) == pytest.approx(float(epsilon), rel=1e-9)
    assert heavy_oracle(f"PrivUnit eps check d={d} eps={epsilon}") == pytest.approx(float(epsilon), rel=1e-9)


@pytest.mark.parametrize(("d", "epsilon"), [(2, "1"), (3, "0.3"), (10, "4"), (30, "8")])
def test_a_cap_by_quadrature(d: int, epsilon: str, make: Make) -> None:
    """Mean and level of the law from the density of one coordinate of the sphere, c (1 - v^2)^((d - 3) / 2)."""
    channel: Any = make("priv-unit", d, epsilon)
    p, c = channel.hit / (1 << 63), math.exp(log_ratio(d))
    # v = sin(a): smooth also for d = 2, whose density has poles.
    density = lambda a: c * math.cos(a) ** (d - 2)  # noqa: E731
    low, high = -math.pi / 2, math.pi / 2
    angle = math.asin(height(d, channel.cap))
    q = quad(density, low, angle, epsabs=0, epsrel=1e-12)[0]
    assert 1 - q == pytest.approx(channel.cap, rel=1e-9)
    inner_, outer = (
        quad(lambda a: math.sin(a) * density(a), *ends, epsrel=1e-12)[0] for ends in ((angle, high), (low, angle))
    )
    assert channel.m == pytest.approx(p * inner_ / (1 - q) + (1 - p) * outer / q, rel=1e-9)
    assert float(channel.level) == pytest.approx(math.log(p / (1 - q) / ((1 - p) / q)), rel=1e-9)
    assert channel.level <= Decimal(epsilon)


def height(d: int, cap: float) -> float:
    """gamma >= 0 with P(V_1 >= gamma) = cap, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if betainc((d - 1) / 2, 0.5, 1 - middle**2) / 2 > cap else (low, middle)
    return low


@pytest.mark.parametrize(("d", "epsilon"), [(1, "1"), (3, "0.3"), (10, "4"), (30, "8")])
def test_a_gaussian_cap_by_quadrature(d: int, epsilon: str, make: Make) -> None:
    channel: Any = make("priv-unit-gaussian", d, epsilon)
    p, root = channel.hit / (1 << 63), math.sqrt(d)
    density = lambda v: root * math.exp(-d * v * v / 2) / math.sqrt(2 * math.pi)  # noqa: E731
    low, high = -12 / root, 12 / root
    edge = bisect(lambda v: ndtr(-v * root) - channel.cap, 0.0, high)

    def mean(power: int) -> float:
        ends = ((edge, high, p / channel.cap), (low, edge, (1 - p) / (1 - channel.cap)))
        return float(
            sum(w * quad(lambda v: v**power * density(v), a, b, epsabs=1e-13, epsrel=1e-12)[0] for a, b, w in ends)
        )

    assert mean(0) == pytest.approx(1, rel=1e-9)
    assert channel.m == pytest.approx(mean(1), rel=1e-9)
    assert channel.worst_mse == pytest.approx((mean(2) + (d - 1) / d) / mean(1) ** 2, rel=1e-9)


def bisect(function: Callable[[float], float], low: float, high: float) -> float:
    """The root of a falling function."""
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) > 0 else (low, middle)
    return low


@pytest.mark.parametrize("name", ["priv-unit", "priv-unit-gaussian"])
@pytest.mark.parametrize(("d", "epsilon"), [(2, "0.5"), (10, "3"), (50, "6")])
def test_the_split_is_the_best(name: str, d: int, epsilon: str, make: Make) -> None:
    channel: Any = make(name, d, epsilon)
    kind, e = type(channel), float(epsilon)
    for level in np.linspace(0, e, 41):
        cap, p = 1 / (1 + math.exp(level)), 1 / (1 + math.exp(level - e))
        m = kind.slope(d, cap) * (p - cap) / (cap * (1 - cap))
        assert kind.square(d, cap, p) / m**2 >= channel.worst_mse * (1 - 1e-9)


@pytest.mark.parametrize("d", [2, 3, 20])
def test_parts_along_the_value_follow_the_law(d: int, make: Make) -> None:
    """Kolmogorov-Smirnov on the part along u, sign undone, on the sphere; false alarm 1e-9 each."""
    value, rows = np.full((40_000, d), 2 / math.sqrt(d)), 40_000
    for name in ("priv-unit", "priv-unit-gaussian"):
        channel: Any = make(name, d, "2", "2")
        drawn = channel.report(value, words(d, rows, channel)) * channel.m / 2
        along, p = drawn @ value[0] / 2, channel.hit / (1 << 63)

        def law(v: np.ndarray, name: str = name, cap: float = channel.cap, p: float = p) -> np.ndarray:
            if name == "priv-unit":
                upper = np.where(
                    v > 0, betainc((d - 1) / 2, 0.5, 1 - v * v) / 2, 1 - betainc((d - 1) / 2, 0.5, 1 - v * v) / 2
                )
            else:
                upper = ndtr(-v * math.sqrt(d))
            return 1 - np.where(upper < cap, p * upper / cap, p + (1 - p) * (upper - cap) / (1 - cap))

        assert kstest(along, law).pvalue > 1e-9


def test_oracle_ball(make: Make, heavy_oracle: Callable[[str], float]) -> None:
    channel: Any = make("duchi-ball", 10, "1")
    assert channel.size == pytest.approx(heavy_oracle("Duchi l2 B d=10 eps=1"), rel=1e-9)
    assert channel.worst_mse == pytest.approx(channel.size**2)
    for d in (1, 2, 3, 50):
        ball: Any = make("duchi-ball", d, "0.7", "3")
        gamma = math.sqrt(math.pi) * math.exp(gammaln((d + 1) / 2) - gammaln(d / 2))
        assert ball.size == pytest.approx(3 / math.tanh(0.35) * gamma, rel=1e-9)


@pytest.mark.parametrize(("d", "epsilon"), [(2, "0.3"), (3, "5"), (20, "1")])
def test_the_balls_level_is_the_ratio_of_densities(d: int, epsilon: str, make: Make) -> None:
    """Shares of the half-sphere about the value: 6.2 standard deviations, false alarm 6e-10; then the exact shares."""
    channel: Any = make("duchi-ball", d, epsilon)
    p, rows, value = channel.hit / (1 << 63), 40_000, np.eye(d)[:1]
    near = (channel.report(np.repeat(value, rows, axis=0), words(d, rows, channel))[:, 0] > 0).mean()
    assert abs(near - p) <= 6.2 * math.sqrt(p * (1 - p) / rows)
    assert float(channel.level) == pytest.approx(math.log(p / (1 - p)), rel=1e-9)  # of opposite values
    assert Decimal("0.999999") * Decimal(epsilon) < channel.level <= Decimal(epsilon)


def test_oracle_gaussian(make: Make, heavy_oracle: Callable[[str], float]) -> None:
    channel: Any = make("gaussian", 1, "1")
    assert channel.stddev == pytest.approx(heavy_oracle("local Gaussian sigma on [-1,1], eps=1"), rel=1e-9)
    assert gaussian_delta(1.0, 2 / channel.stddev) <= 1e-5
    drawn = channel.report(np.full((50_000, 1), 0.5), words(1, 50_000, channel))
    assert kstest((drawn[:, 0] - 0.5) / channel.stddev, ndtr).pvalue > 1e-9  # false alarm 1e-9


def test_lengths_neither_overflow_nor_vanish() -> None:
    rows = np.array([[3e200, 4e200], [3e-200, 4e-200], [0.0, 0.0]])
    assert lengths(rows) == pytest.approx([5e200, 5e-200, 0.0], rel=1e-15)


def test_one_dimension_has_no_sphere(make: Make) -> None:
    with pytest.raises(ValueError, match="use piecewise"):
        make("priv-unit", 1, "1")
