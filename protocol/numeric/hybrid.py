"""Wang et al.'s hybrid of the piecewise and of Duchi's randomiser: its variance does not depend on the number."""

from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

import numpy as np

from protocol.numeric.channel import Floats, Words
from protocol.numeric.duchi import Duchi, duchi
from protocol.numeric.piecewise import Piecewise, largest, piecewise
from protocol.numeric.sampling import coin
from protocol.numeric.scalar import Scalar


@dataclass(frozen=True)
class Hybrid(Scalar):
    """With probability p = wide.hit / 2^63 the report of `wide`, else that of `narrow`.

    p = 1 - e^(-epsilon / 2) is that of the window, too: with it all terms in t^2 of the variance cancel.

    Guarantee: the larger level of the two: a public coin chooses between them. Source: Wang et al. 2019, section III-C.
    """

    wide: Piecewise
    narrow: Duchi
    words = 4
    live = True

    @cached_property
    def level(self) -> Decimal:
        """The larger one."""
        return max(self.wide.level, self.narrow.level)

    @property
    def integers(self) -> tuple[int, ...]:
        """Those of both."""
        return self.wide.integers + self.narrow.integers

    @cached_property
    def outputs(self) -> Floats:
        """Those of both."""
        return np.union1d(self.wide.outputs, self.narrow.outputs)

    def report(self, t: Floats, words: Words) -> Floats:
        """Word 0 decides between the two, the others are theirs."""
        wide = coin(words[:, 0]) < np.uint64(self.wide.hit)
        return np.where(wide, self.wide.report(t, words[:, 1:]), self.narrow.report(t, words[:, 1:]))

    def second_moment(self, t: Floats) -> Floats:
        """The mixture of both."""
        p = float(self.wide.chance)
        return p * self.wide.second_moment(t) + (1 - p) * self.narrow.second_moment(t)

    def worst(self, scale: float) -> float:
        """Near |t| = 1; where scale is 1, all t are as good up to the grid."""
        p = float(self.wide.chance)
        cells = largest(self.wide.steps, p, scale * p) + scale * p * self.wide.spread
        return float(self.wide.cell) ** 2 * cells + scale * (1 - p) * self.narrow.size**2


def hybrid(epsilon: Decimal) -> Duchi | Hybrid:
    """The hybrid, or Duchi's alone where that has the smaller worst variance: for epsilon below 0.6093...

    Guarantee: epsilon-local differential privacy of t; neighbours: replace t.
    """
    alone = duchi(epsilon)
    both = Hybrid(piecewise(epsilon), alone)
    return alone if alone.worst(1.0) <= both.worst(1.0) else both
