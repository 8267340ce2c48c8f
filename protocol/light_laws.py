"""Families of laws all of whose moments are finite."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from protocol.coins import Floats, Words, normal, uniform
from protocol.law_moments import Family, Parameter, integral

SIZE = (1e-9, 1e9)
PLACE = (-1e9, 1e9)
_FARTHEST = 38.0  # the normal density is below 1e-313 there


class Light(Family):
    """A law with all moments."""

    @property
    def index(self) -> float:
        """Infinity."""
        return math.inf


@dataclass(frozen=True)
class Normal(Light):
    """The normal law with mean mu and standard deviation s."""

    parameters = (Parameter("mu", *PLACE, "0"), Parameter("s", *SIZE, "1"))
    mu: float
    s: float

    def size(self) -> float:
        """s."""
        return self.s

    def draw(self, drawn: Words) -> Floats:
        """mu + s times `protocol.coins:normal`."""
        return self.mu + self.s * normal(drawn[..., 0])

    def above(self, y: float) -> float:
        """Phi((mu - y) / s)."""
        return float(ndtr((self.mu - y) / self.s))

    def below(self, y: float) -> float:
        """Phi((y - mu) / s)."""
        return float(ndtr((y - self.mu) / self.s))

    def mean(self) -> float:
        """mu."""
        return self.mu

    def variance(self) -> float:
        """s^2."""
        return self.s**2

    def moment(self, q: float) -> float:
        """2^(q/2) s^q Gamma((1 + q) / 2) / sqrt(pi) where mu = 0."""
        if self.mu:
            return self.moment_about(0.0, q)
        return float((math.sqrt(2) * self.s) ** q * math.gamma((1 + q) / 2) / math.sqrt(math.pi))

    def moment_about(self, centre: float, q: float) -> float:
        """Quadrature over z = (y - mu) / s, split at the centre."""
        return over_scores(lambda z: self.mu - centre + self.s * z, q, (centre - self.mu) / self.s)

    def half(self, k: int, b: float) -> float:
        """As `inside`."""
        return self.inside(k, 0.0, b)

    def inside(self, k: int, low: float, high: float) -> float:
        """With P and z phi(z) between the ends: P; mu P - s [phi]; (mu^2 + s^2) P - 2 mu s [phi] - s^2 [z phi]."""
        start, stop = (low - self.mu) / self.s, (high - self.mu) / self.s
        chance = between(start, stop)
        if k == 0:
            return chance
        edge = density(stop) - density(start)
        if k == 1:
            return self.mu * chance - self.s * edge
        slope = stop * density(stop) - start * density(start)
        return (self.mu**2 + self.s**2) * chance - 2 * self.mu * self.s * edge - self.s**2 * slope


@dataclass(frozen=True)
class LogNormal(Light):
    """exp(mu + s Z), Z standard normal."""

    parameters = (Parameter("mu", -100.0, 100.0), Parameter("s", 1e-3, 10.0))
    mu: float
    s: float

    def size(self) -> float:
        """e^mu."""
        return math.exp(self.mu)

    def draw(self, drawn: Words) -> Floats:
        """exp(mu + s Z), Z of `protocol.coins:normal`."""
        return np.asarray(np.exp(self.mu + self.s * normal(drawn[..., 0])))

    def above(self, y: float) -> float:
        """Phi((mu - log y) / s)."""
        return float(ndtr(-self._score(y)))

    def below(self, y: float) -> float:
        """Phi((log y - mu) / s)."""
        return float(ndtr(self._score(y)))

    def mean(self) -> float:
        """e^(mu + s^2 / 2)."""
        return self.moment(1.0)

    def variance(self) -> float:
        """e^(2 mu + s^2) (e^(s^2) - 1)."""
        return math.exp(2 * self.mu + self.s**2) * math.expm1(self.s**2)

    def moment(self, q: float) -> float:
        """e^(q mu + q^2 s^2 / 2)."""
        return math.exp(q * self.mu + q * q * self.s**2 / 2)

    def moment_about(self, centre: float, q: float) -> float:
        """Quadrature over scores, split at the centre."""
        turn = self._score(centre) if centre > 0 else 0.0
        return over_scores(lambda z: math.exp(self.mu + self.s * z) - centre, q, turn, q * self.s)

    def inside(self, k: int, low: float, high: float) -> float:
        """e^(k mu + k^2 s^2 / 2) P(low <= e^(mu + k s^2 + s Z) <= high)."""
        moved = k * self.s
        return (self.moment(k) if k else 1.0) * between(self._score(low) - moved, self._score(high) - moved)

    def _score(self, y: float) -> float:
        return (math.log(y) - self.mu) / self.s if y > 0 else -math.inf


@dataclass(frozen=True)
class Uniform(Light):
    """The uniform law on [low, high]."""

    parameters = (Parameter("low", *PLACE), Parameter("high", *PLACE))
    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError(f"expected low < high, got {self.low} and {self.high}")

    def size(self) -> float:
        """high - low."""
        return self.high - self.low

    def draw(self, drawn: Words) -> Floats:
        """low + (high - low) U."""
        return self.low + (self.high - self.low) * uniform(drawn[..., 0])

    def above(self, y: float) -> float:
        """(high - y) / (high - low)."""
        return min(max((self.high - y) / (self.high - self.low), 0.0), 1.0)

    def below(self, y: float) -> float:
        """(y - low) / (high - low)."""
        return min(max((y - self.low) / (self.high - self.low), 0.0), 1.0)

    def mean(self) -> float:
        """(low + high) / 2."""
        return (self.low + self.high) / 2

    def variance(self) -> float:
        """(high - low)^2 / 12."""
        return (self.high - self.low) ** 2 / 12

    def moment(self, q: float) -> float:
        """About 0."""
        return self.moment_about(0.0, q)

    def moment_about(self, centre: float, q: float) -> float:
        """The difference of sign(y) |y|^(q + 1) / (q + 1) at the ends, y from the centre, over high - low."""
        ends = (self.low - centre, self.high - centre)
        low, high = (math.copysign(abs(end) ** (q + 1), end) for end in ends)
        return (high - low) / ((q + 1) * (self.high - self.low))

    def inside(self, k: int, low: float, high: float) -> float:
        """The difference of y^(k + 1) / (k + 1) over high - low."""
        start, stop = max(low, self.low), min(high, self.high)
        return (stop ** (k + 1) - start ** (k + 1)) / ((k + 1) * (self.high - self.low)) if start < stop else 0.0


@dataclass(frozen=True)
class Constant(Light):
    """One value, always."""

    parameters = (Parameter("value", *PLACE),)
    value: float

    def size(self) -> float:
        """1."""
        return 1.0

    def draw(self, drawn: Words) -> Floats:
        """The value, whatever the coin."""
        return np.full(drawn.shape[:-1], self.value)

    def above(self, y: float) -> float:
        """1 where the value is above y."""
        return float(self.value > y)

    def below(self, y: float) -> float:
        """1 where the value is below y."""
        return float(self.value < y)

    def mean(self) -> float:
        """The value."""
        return self.value

    def variance(self) -> float:
        """0."""
        return 0.0

    def moment(self, q: float) -> float:
        """|value|^q."""
        return float(abs(self.value) ** q)

    def moment_about(self, centre: float, q: float) -> float:
        """|value - centre|^q."""
        return float(abs(self.value - centre) ** q)

    def inside(self, k: int, low: float, high: float) -> float:
        """value^k where the value is within the ends."""
        return float(self.value**k) if low <= self.value <= high else 0.0


def density(z: float) -> float:
    """The standard normal density."""
    return math.exp(-z * z / 2) / math.sqrt(2 * math.pi)


def between(start: float, stop: float) -> float:
    """Phi(stop) - Phi(start), from the tail that both are nearer to."""
    if start > 0:
        return float(ndtr(-start) - ndtr(-stop))
    return float(ndtr(stop) - ndtr(start))


def over_scores(value: Callable[[float], float], q: float, turn: float, peak: float = 0.0) -> float:
    """E|value(Z)|^q, Z standard normal, split at `turn` and around 0 and `peak`, where the integrand is largest."""

    def integrand(z: float) -> float:
        size = abs(value(z))
        return math.exp(q * math.log(size) - z * z / 2) / math.sqrt(2 * math.pi) if size else 0.0

    low, high = -_FARTHEST, _FARTHEST + peak
    places = (low, -8.0, 0.0, 8.0, peak - 8, peak, peak + 8, turn, high)
    return integral(integrand, *(min(max(place, low), high) for place in places))
