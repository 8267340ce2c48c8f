"""What every family of laws shares: moments, tails and truncated moments, by quadrature where no closed form is known.

A quadrature is accurate to `ACCURACY`, relative, by its own estimate, or raises ArithmeticError.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from protocol.coins import Floats, Words

ACCURACY = 1e-9
_LOG_LARGEST = 600.0  # e^600 is a double, with room for a factor
_LOG_FARTHEST = 340.0  # the square of e^340 is a double
_STEPS = (-16.0, -4.0, -1.0, 1.0, 4.0, 16.0)  # in units of the size: where the bulk of a law bends
_LOG_STEPS = (2.0, 6.0, 12.0, 20.0)  # in log t: where a power tail bends


@dataclass(frozen=True)
class Parameter:
    """A parameter of a family: its name, the numbers it may be, and the text of its default where it has one."""

    name: str
    least: float
    most: float
    default: str | None = None


class Family(ABC):
    """The law of a random number Y, `words` coins a value; `ends` are the finite ends of its support."""

    parameters: ClassVar[tuple[Parameter, ...]]
    words: ClassVar[int] = 1

    @property
    def ends(self) -> tuple[float, ...]:
        """Finite ends of the support."""
        return ()

    @property
    @abstractmethod
    def index(self) -> float:
        """E|Y|^q is finite exactly for q < index."""

    @abstractmethod
    def size(self) -> float:
        """How far Y typically is from the end of its support, or from 0: about a median."""

    @abstractmethod
    def draw(self, drawn: Words) -> Floats:
        """One value for each row of words, (..., words) -> (...)."""

    @abstractmethod
    def above(self, y: float) -> float:
        """P(Y > y)."""

    @abstractmethod
    def below(self, y: float) -> float:
        """P(Y < y)."""

    @abstractmethod
    def mean(self) -> float:
        """E Y, for index > 1."""

    @abstractmethod
    def moment(self, q: float) -> float:
        """E|Y|^q in closed form, for 0 < q < index."""

    def variance(self) -> float:
        """Var Y, for index > 2."""
        return self.moment(2.0) - self.mean() ** 2

    def moment_about(self, centre: float, q: float) -> float:
        """E|Y - centre|^q for 0 < q < index; here: int q t^(q-1) P(|Y - centre| > t) dt, for a finite index.

        Up to `top` in r = t^q, on to `last` in log t, and from there in w = (t / last)^-beta, beta = min(index - q, 1),
        where the integrand has a limit at w = 0 however close q is to the index.
        """
        starts = self.ends or (0.0,)
        places = [abs(start + step * self.size() - centre) for start in starts for step in (*_STEPS, 0.0)]
        top = max(*places, 2 * abs(centre))
        last, beta = top * math.exp(_LOG_STEPS[-1]), min(self.index - q, 1.0)
        farthest = math.exp(min(_LOG_LARGEST / (q + beta), _LOG_FARTHEST))

        def beyond(t: float) -> float:
            return self.above(centre + t) + self.below(centre - t)

        def middle(s: float) -> float:
            return q * float((top * math.exp(s)) ** q) * beyond(top * math.exp(s))

        def far(w: float) -> float:
            t = min(last * math.exp(min(-math.log(w) / beta, _LOG_FARTHEST)), max(farthest, last))
            return q / beta * float(last**q) * float((t / last) ** (q + beta)) * beyond(t)

        near = pieces(lambda r: beyond(r ** (1 / q)), 0.0, *(place**q for place in places), top**q)
        return checked(near, pieces(middle, 0.0, *_LOG_STEPS, known=near[0]), pieces(far, 0.0, 1.0, known=near[0]))

    def inside(self, k: int, low: float, high: float) -> float:
        """E[Y^k; low <= Y <= high] for k = 0, 1, 2; here: from `half`, for laws that are not negative."""
        return self.half(k, max(high, 0.0)) - self.half(k, max(low, 0.0))

    def half(self, k: int, b: float) -> float:
        """E[Y^k; 0 < Y <= b] for k = 0, 1, 2; here: int_0^b k y^(k-1) P(Y > y) dy - b^k P(Y > b)."""
        if k == 0 or b == 0:
            return self.above(0.0) - self.above(b) if k == 0 else 0.0
        turn = min(b, self.size())
        near = pieces(lambda y: k * y ** (k - 1) * self.above(y), 0.0, turn)
        far = pieces(lambda s: k * math.exp(k * s) * self.above(math.exp(s)), math.log(turn), math.log(b))
        return checked(near, far) - b**k * self.above(b)


class Symmetric(Family):
    """A law that is symmetric about 0."""

    def below(self, y: float) -> float:
        """P(Y > -y)."""
        return self.above(-y)

    def mean(self) -> float:
        """0."""
        return 0.0

    def inside(self, k: int, low: float, high: float) -> float:
        """E[Y^k; low <= Y <= high], exactly 0 for odd k where low = -high."""
        if k % 2 and low == -high:
            return 0.0
        return self._up_to(k, high) - self._up_to(k, low)

    def _up_to(self, k: int, y: float) -> float:
        return self.half(k, y) if y >= 0 else -((-1) ** k) * self.half(k, -y)


def integral(function: Callable[[float], float], *points: float) -> float:
    """The integral from the least to the largest of `points`, split at all of them; raises as `checked`."""
    return checked(pieces(function, *points))


def pieces(function: Callable[[float], float], *points: float, known: float = 0.0) -> tuple[float, float]:
    """An integral from the least to the largest of `points`, split at all of them, and how far it may be off.

    What does not matter beside `known` and the parts before it is not made more accurate.
    """
    from scipy.integrate import quad  # slow to import, in every message's process

    total = doubt = 0.0
    for start, stop in pairwise(sorted(set(points))):
        # With full_output a part that is not accurate says so in its error, not in a warning.
        small = ACCURACY / 100 * abs(known + total)
        value, error = quad(function, start, stop, epsabs=small, epsrel=ACCURACY / 10, limit=400, full_output=1)[:2]
        total, doubt = total + value, doubt + error
    return total, doubt


def checked(*parts: tuple[float, float]) -> float:
    """The sum of integrals; raises ArithmeticError where it may be off by more than `ACCURACY`, relative."""
    total, doubt = (math.fsum(column) for column in zip(*parts, strict=True))
    if not doubt <= ACCURACY * abs(total):
        raise ArithmeticError(f"expected an integral accurate to {ACCURACY}, got {total} with an error up to {doubt}")
    return total


def power_integral(low: float, high: float, p: float) -> float:
    """int_low^high t^(p-1) dt for 0 < low <= high, without cancellation near p = 0.

    >>> power_integral(1.0, 4.0, 0.5), power_integral(1.0, math.e, 0.0)
    (2.0, 1.0)
    """
    size = math.log(high / low)
    return float(low**p * (math.expm1(p * size) / p if p else size))
