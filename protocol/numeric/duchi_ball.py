"""Duchi, Jordan and Wainwright's randomiser of a Euclidean ball. For simulations: its law is continuous."""

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy.special import gammaln

from protocol.channel import TOTAL, log_up
from protocol.numeric.channel import Floats, Kept, NumericChannel, Words
from protocol.numeric.sampling import coin, growth, leans
from protocol.numeric.spheres import directions, inner, lengths, of_norm, random_directions
from protocol.numeric.terms import Parameters, read


@dataclass(frozen=True)
class DuchiBall(NumericChannel):
    """A uniform direction of the half-sphere about u with probability hit / 2^63, else of the other, times `size`.

    u = x / |x| or its opposite, +, with probability (1 + |x| / bound) / 2; the first axis for x = 0.
    size = bound / (2 hit / 2^63 - 1) sqrt(pi) Gamma((d + 1) / 2) / Gamma(d / 2). MSE: size^2 - |x|^2.

    Guarantee: log(hit / (2^63 - hit)), the logarithm of the largest ratio of densities. Source: Duchi, Jordan,
    Wainwright 2018, section 4.2.3.
    """

    hit: int
    norm = "l2"

    @cached_property
    def level(self) -> Decimal:
        """Of the law, rounded up."""
        return log_up(Fraction(self.hit, TOTAL - self.hit))

    @property
    def integers(self) -> tuple[int, ...]:
        """hit."""
        return (self.hit,)

    @property
    def words(self) -> int:
        """One for u, one for the side, one a coordinate."""
        return self.dimension + 2

    @cached_property
    def size(self) -> float:
        """The norm of every report."""
        d, contrast = self.dimension, Fraction(2 * self.hit - TOTAL, TOTAL)
        return self.bound / float(contrast) * math.exp(math.log(math.pi) / 2 + gammaln((d + 1) / 2) - gammaln(d / 2))

    def report(self, values: Floats, words: Words) -> Floats:
        """size times a direction, turned to the side that the coins say."""
        forward = leans(words[:, 0], np.minimum(lengths(values) / self.bound, 1.0), 2.0**62)
        near = coin(words[:, 1]) < np.uint64(self.hit)
        drawn = random_directions(words[:, 2:])
        turned = (inner(drawn, directions(values)) > 0) != (near == forward)
        reports: Floats = drawn * np.where(turned, -self.size, self.size)[:, None]
        return reports

    def mse(self, values: Floats) -> Floats:
        """size^2 - |x|^2."""
        return self.worst_mse - inner(values, values)

    @property
    def worst_mse(self) -> float:
        """At the centre."""
        return self.size**2

    def legal(self, reports: Floats) -> Kept:
        """Of norm `size`, to 1e-9 of it."""
        return of_norm(reports, self.size)


def duchi_ball(parameters: Parameters) -> DuchiBall:
    """The largest hit whose level is at most epsilon; parameters epsilon, threshold (a Euclidean norm), dimension."""
    terms = read("duchi-ball", parameters)
    e = growth(terms.epsilon)
    return DuchiBall(terms, max(min(int(TOTAL * e / (1 + e)), TOTAL - 1), TOTAL // 2 + 1))
