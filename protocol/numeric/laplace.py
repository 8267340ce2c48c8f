"""Laplace noise on one number. For simulations: its law is continuous."""

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

import numpy as np

from protocol.coins import uniform
from protocol.numeric.channel import Floats, Words
from protocol.numeric.scalar import Scalar

_UP = Context(prec=40, rounding=ROUND_CEILING)


@dataclass(frozen=True)
class Laplace(Scalar):
    """t plus Laplace noise of the given scale; variance 2 scale^2.

    Guarantee: 2 / scale, the logarithm of the largest ratio of densities. Source: Dwork, McSherry, Nissim, Smith 2006.
    """

    scale: float
    words = 1
    live = False

    @property
    def level(self) -> Decimal:
        """2 / scale, rounded up."""
        exact = 2 / Fraction(self.scale)
        return _UP.divide(Decimal(exact.numerator), Decimal(exact.denominator))

    @property
    def reach(self) -> float:
        """1 + scale log(2^52): uniform numbers are at least 2^-53."""
        return 1 + self.scale * 52 * math.log(2) * (1 + 2.0**-40)

    def report(self, t: Floats, words: Words) -> Floats:
        """t + noise, by the inverse of its distribution function."""
        u = uniform(words[:, 0])
        noise = np.where(u < 0.5, np.log(2 * u), -np.log(2 * (1 - u)))
        reports: Floats = t + self.scale * noise
        return reports

    def second_moment(self, t: Floats) -> Floats:
        """t^2 + 2 scale^2."""
        return t * t + 2 * self.scale**2

    def worst(self, scale: float) -> float:
        """At |t| = 1."""
        return scale * (1 + 2 * self.scale**2) - 1


def laplace(epsilon: Decimal) -> Laplace:
    """Laplace noise of scale 2 / epsilon, rounded up; variance 8 / epsilon^2.

    >>> laplace(Decimal(2)).scale, laplace(Decimal(1)).worst(1.0)
    (1.0, 8.0)
    """
    exact = 2 / Fraction(epsilon)
    scale = float(exact)
    return Laplace(scale if Fraction(scale) >= exact else math.nextafter(scale, math.inf))
