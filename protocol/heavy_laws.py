"""Families of laws with power tails: E|Y|^q is finite only below an index.

Samplers are inverse distribution functions of `protocol.coins:uniform`, so no value lies beyond the quantile 2^-53.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, stdtr, stdtrit

from protocol.coins import Floats, Words, uniform
from protocol.law_moments import Family, Parameter, Symmetric, power_integral
from protocol.light_laws import SIZE, Normal
from protocol.stable_tail import stable_tail

_INDEX = (0.125, 100.0)


@dataclass(frozen=True)
class Pareto(Family):
    """P(Y > y) = (x_m / y)^a for y >= x_m."""

    parameters = (Parameter("a", *_INDEX), Parameter("x_m", *SIZE, "1"))
    a: float
    x_m: float

    @property
    def ends(self) -> tuple[float, ...]:
        """x_m."""
        return (self.x_m,)

    @property
    def index(self) -> float:
        """a."""
        return self.a

    def size(self) -> float:
        """(2^(1/a) - 1) x_m."""
        return self.x_m * math.expm1(math.log(2) / self.a)

    def draw(self, drawn: Words) -> Floats:
        """x_m U^(-1/a)."""
        return np.asarray(self.x_m * np.exp(-np.log(uniform(drawn[..., 0])) / self.a))

    def above(self, y: float) -> float:
        """(x_m / y)^a."""
        return float((self.x_m / y) ** self.a) if y > self.x_m else 1.0

    def below(self, y: float) -> float:
        """1 - (x_m / y)^a."""
        return -math.expm1(self.a * math.log(self.x_m / y)) if y > self.x_m else 0.0

    def mean(self) -> float:
        """a x_m / (a - 1)."""
        return self.a * self.x_m / (self.a - 1)

    def variance(self) -> float:
        """a x_m^2 / ((a - 1)^2 (a - 2))."""
        return self.a * self.x_m**2 / ((self.a - 1) ** 2 * (self.a - 2))

    def moment(self, q: float) -> float:
        """a x_m^q / (a - q)."""
        return float(self.a * self.x_m**q / (self.a - q))

    def inside(self, k: int, low: float, high: float) -> float:
        """a x_m^a int y^(k - a - 1) dy."""
        start = max(low, self.x_m)
        if high <= start:
            return 0.0
        return self.a * self.x_m**k * power_integral(start / self.x_m, high / self.x_m, k - self.a)


@dataclass(frozen=True)
class Lomax(Family):
    """P(Y > y) = (1 + y / scale)^-a for y >= 0: a Pareto law on [scale, inf), moved to start at 0."""

    parameters = (Parameter("a", *_INDEX), Parameter("scale", *SIZE, "1"))
    a: float
    scale: float

    @property
    def ends(self) -> tuple[float, ...]:
        """0."""
        return (0.0,)

    @property
    def index(self) -> float:
        """a."""
        return self.a

    def size(self) -> float:
        """(2^(1/a) - 1) scale."""
        return self.scale * math.expm1(math.log(2) / self.a)

    def draw(self, drawn: Words) -> Floats:
        """scale (U^(-1/a) - 1)."""
        return np.asarray(self.scale * np.expm1(-np.log(uniform(drawn[..., 0])) / self.a))

    def above(self, y: float) -> float:
        """(1 + y / scale)^-a."""
        return math.exp(-self.a * math.log1p(max(y, 0.0) / self.scale))

    def below(self, y: float) -> float:
        """1 - (1 + y / scale)^-a."""
        return -math.expm1(-self.a * math.log1p(max(y, 0.0) / self.scale))

    def mean(self) -> float:
        """scale / (a - 1)."""
        return self.scale / (self.a - 1)

    def variance(self) -> float:
        """a scale^2 / ((a - 1)^2 (a - 2))."""
        return self.a * self.scale**2 / ((self.a - 1) ** 2 * (self.a - 2))

    def moment(self, q: float) -> float:
        """scale^q Gamma(a - q) Gamma(1 + q) / Gamma(a)."""
        size = gammaln(self.a - q) + gammaln(1 + q) - gammaln(self.a)
        return float(self.scale**q * math.exp(size))

    def inside(self, k: int, low: float, high: float) -> float:
        """E[(P - scale)^k; low <= P - scale <= high] of the Pareto law P, expanded."""
        moved = Pareto(self.a, self.scale)
        terms = (
            math.comb(k, i) * (-self.scale) ** (k - i) * moved.inside(i, low + self.scale, high + self.scale)
            for i in range(k + 1)
        )
        return math.fsum(terms)


@dataclass(frozen=True)
class StudentT(Symmetric):
    """Student's law with nu degrees of freedom."""

    parameters = (Parameter("nu", *_INDEX),)
    nu: float

    @property
    def index(self) -> float:
        """nu."""
        return self.nu

    def size(self) -> float:
        """1."""
        return 1.0

    def draw(self, drawn: Words) -> Floats:
        """The quantile of the smaller of U and 1 - U by `scipy.special.stdtrit`, with its sign: exactly odd in U."""
        u = uniform(drawn[..., 0])
        size = -stdtrit(self.nu, np.minimum(u, 1.0 - u))
        return np.asarray(np.where(u < 0.5, -size, size))

    def above(self, y: float) -> float:
        """The distribution function at -y."""
        return float(stdtr(self.nu, -y))

    def variance(self) -> float:
        """nu / (nu - 2)."""
        return self.nu / (self.nu - 2)

    def moment(self, q: float) -> float:
        """nu^(q/2) Gamma((q + 1) / 2) Gamma((nu - q) / 2) / (sqrt(pi) Gamma(nu / 2))."""
        size = gammaln((q + 1) / 2) + gammaln((self.nu - q) / 2) - gammaln(self.nu / 2)
        return float(self.nu ** (q / 2) * math.exp(size) / math.sqrt(math.pi))

    def half(self, k: int, b: float) -> float:
        """For k = 1: f(0) nu / 2 int_1^(1 + b^2 / nu) t^(-(nu + 1) / 2) dt, f the density."""
        if k != 1:
            return super().half(k, b)
        density = math.exp(gammaln((self.nu + 1) / 2) - gammaln(self.nu / 2)) / math.sqrt(self.nu * math.pi)
        return density * self.nu / 2 * power_integral(1.0, 1 + b * b / self.nu, (1 - self.nu) / 2)


@dataclass(frozen=True)
class Stable(Symmetric):
    """The symmetric alpha-stable law, E e^(itY) = exp(-|scale t|^alpha); at alpha = 2 a normal law."""

    parameters = (Parameter("alpha", 0.125, 2.0), Parameter("scale", *SIZE, "1"))
    words = 2
    alpha: float
    scale: float

    @property
    def index(self) -> float:
        """alpha, or infinity at alpha = 2."""
        return self.alpha if self.alpha < 2 else math.inf

    def size(self) -> float:
        """scale."""
        return self.scale

    def draw(self, drawn: Words) -> Floats:
        """sin(alpha V) / cos(V)^(1/alpha) (cos((1 - alpha) V) / W)^((1 - alpha)/alpha), V = pi (U - 1/2), W = -log U'.

        cos V = sin(pi min(U, 1 - U)), which keeps its digits where V is near pi/2.
        Source: Chambers, Mallows, Stuck 1976.
        """
        u = uniform(drawn[..., 0])
        angle, alpha = math.pi * (u - 0.5), self.alpha
        cosine = np.sin(math.pi * np.minimum(u, 1.0 - u))
        rate = np.log(np.cos((1 - alpha) * angle)) - np.log(-np.log(uniform(drawn[..., 1])))
        size = np.exp((1 - alpha) / alpha * rate - np.log(cosine) / alpha)
        return np.asarray(self.scale * np.sin(alpha * angle) * size)

    def above(self, y: float) -> float:
        """`stable_tail`."""
        beyond = stable_tail(self.alpha, abs(y) / self.scale)
        return beyond if y >= 0 else 1.0 - beyond

    def variance(self) -> float:
        """2 scale^2, at alpha = 2."""
        return 2 * self.scale**2

    def moment(self, q: float) -> float:
        """(2 scale)^q Gamma((1 + q) / 2) Gamma(1 - q / alpha) / (sqrt(pi) Gamma(1 - q / 2)) for alpha < 2."""
        if self.alpha == 2:
            return self._normal().moment(q)
        size = gammaln((1 + q) / 2) + gammaln(1 - q / self.alpha) - gammaln(1 - q / 2)
        return float((2 * self.scale) ** q * math.exp(size) / math.sqrt(math.pi))

    def moment_about(self, centre: float, q: float) -> float:
        """That of a normal law at alpha = 2."""
        return self._normal().moment_about(centre, q) if self.alpha == 2 else super().moment_about(centre, q)

    def half(self, k: int, b: float) -> float:
        """That of a normal law at alpha = 2."""
        return self._normal().half(k, b) if self.alpha == 2 else super().half(k, b)

    def _normal(self) -> Normal:
        return Normal(0.0, math.sqrt(2) * self.scale)


@dataclass(frozen=True)
class Burr(Family):
    """P(Y > y) = (1 + y^c)^-k for y >= 0: Burr's law XII."""

    parameters = (Parameter("c", 0.5, 64.0), Parameter("k", 0.25, 64.0))
    c: float
    k: float

    @property
    def ends(self) -> tuple[float, ...]:
        """0."""
        return (0.0,)

    @property
    def index(self) -> float:
        """c k."""
        return self.c * self.k

    def size(self) -> float:
        """(2^(1/k) - 1)^(1/c)."""
        return float(math.expm1(math.log(2) / self.k) ** (1 / self.c))

    def draw(self, drawn: Words) -> Floats:
        """(U^(-1/k) - 1)^(1/c)."""
        powers = np.expm1(-np.log(uniform(drawn[..., 0])) / self.k)
        return np.asarray(np.exp(np.log(powers) / self.c))

    def above(self, y: float) -> float:
        """(1 + y^c)^-k."""
        return math.exp(-self._log(y)) if y > 0 else 1.0

    def below(self, y: float) -> float:
        """1 - (1 + y^c)^-k."""
        return -math.expm1(-self._log(y)) if y > 0 else 0.0

    def mean(self) -> float:
        """k B(k - 1/c, 1 + 1/c)."""
        return self.moment(1.0)

    def moment(self, q: float) -> float:
        """k B(k - q/c, 1 + q/c), B the beta function."""
        size = gammaln(self.k - q / self.c) + gammaln(1 + q / self.c) - gammaln(self.k + 1)
        return float(self.k * math.exp(size))

    def _log(self, y: float) -> float:
        return self.k * float(np.logaddexp(0.0, self.c * math.log(y)))
