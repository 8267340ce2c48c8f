"""Duchi, Jordan and Wainwright's randomiser of one number: plus or minus k, as integers."""

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property

import numpy as np

from protocol.channel import log_up
from protocol.numeric.channel import Floats, Words
from protocol.numeric.sampling import HALF, growth, leans
from protocol.numeric.scalar import Scalar


@dataclass(frozen=True)
class Duchi(Scalar):
    """k or -k, k = 2^62 / lean: P(k | t) = (2^62 + trunc(t lean)) / 2^63; variance k^2 - t^2.

    `lean` < 2^62 is a double, so that no rounding of t lean exceeds it. Bias: at most 2^-52 + 1 / lean.

    Guarantee: log((2^62 + lean) / (2^62 - lean)), exactly what is executed. Source: Duchi, Jordan, Wainwright 2018.
    """

    lean: int
    words = 1
    live = True

    def __post_init__(self) -> None:
        if not 0 < self.lean < HALF or int(float(self.lean)) != self.lean:
            raise ValueError(f"expected 0 < lean < 2^62, a double, got {self.lean}")

    @property
    def size(self) -> float:
        """k."""
        return float(Fraction(HALF, self.lean))

    @cached_property
    def level(self) -> Decimal:
        """Of the integers, rounded up."""
        return log_up(Fraction(HALF + self.lean, HALF - self.lean))

    @property
    def integers(self) -> tuple[int, ...]:
        """The lean."""
        return (self.lean,)

    @cached_property
    def outputs(self) -> Floats:
        """-k and k."""
        return np.array([-self.size, self.size])

    def report(self, t: Floats, words: Words) -> Floats:
        """k where the coin says so, else -k."""
        return np.where(leans(words[:, 0], t, float(self.lean)), self.size, -self.size)

    def second_moment(self, t: Floats) -> Floats:
        """k^2, whatever t."""
        return np.full(t.shape, self.size**2)

    def worst(self, scale: float) -> float:
        """At t = 0."""
        return scale * self.size**2


def duchi(epsilon: Decimal) -> Duchi:
    """The largest lean whose level is at most epsilon: k = (e^epsilon + 1) / (e^epsilon - 1), or just above.

    Guarantee: epsilon-local differential privacy of t; neighbours: replace t.

    >>> round(duchi(Decimal(1)).size, 9)
    2.163953414
    """
    e = growth(epsilon)
    exact = HALF * (e - 1) / (e + 1)
    lean = float(exact)
    while Fraction(lean) > exact or lean >= HALF:
        lean = math.nextafter(lean, 0)
    return Duchi(int(lean))
