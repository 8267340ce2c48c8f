"""Reports in or out of a cap about the value's direction: what PrivUnit and its Gaussian form share."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np
from scipy.special import expit

from protocol.channel import TOTAL, log_up
from protocol.coins import normal, uniform
from protocol.numeric.channel import Floats, NumericChannel, Words
from protocol.numeric.sampling import coin, growth, leans
from protocol.numeric.spheres import directions, inner, lengths
from protocol.numeric.terms import NumericTerms

SPLITS = 1 << 20  # of epsilon; the best one is flat, so this costs 1e-12 of the MSE


@dataclass(frozen=True)
class Cap(NumericChannel):
    """A random vector V, in the cap {V's part along u is in its upper tail of probability `cap`} with probability p.

    p = hit / 2^63 > cap; out of the cap otherwise. u = x / |x| or its opposite, +, with probability
    (1 + |x| / bound) / 2; the first axis for x = 0. Report: bound V / m, with E V = m u. MSE:
    bound^2 E|V|^2 / m^2 - |x|^2.

    Guarantee: log(p / (1 - p)) + log((1 - cap) / cap), the logarithm of the largest ratio of densities, rounded up.
    """

    hit: int
    cap: float
    norm = "l2"

    @classmethod
    @abstractmethod
    def slope(cls, dimension: int, cap: float) -> float:
        """m per unit of (p - cap) / (cap (1 - cap))."""

    @classmethod
    @abstractmethod
    def square(cls, dimension: int, cap: float, p: float) -> float:
        """E|V|^2."""

    @abstractmethod
    def vectors(self, u: Floats, tails: Floats, across: Floats) -> Floats:
        """V given u, the tail probability of its part along u, and normal numbers; all but `tails` are (rows, d).

        `across` is orthogonal to u already.
        """

    @classmethod
    def of(cls, terms: NumericTerms) -> Self:
        """The largest level at most epsilon, split between the cap and its coin so that the worst MSE is smallest."""
        from scipy.optimize import minimize_scalar  # slow to import, in every message's process

        epsilon, d = float(terms.epsilon), terms.dimension

        def cost(level: float) -> float:
            cap, p = float(expit(-level)), float(expit(epsilon - level))
            contrast = -math.expm1(-epsilon) * p / cap  # (p - cap) / (cap (1 - cap)), without cancellation
            return math.log(cls.square(d, cap, p)) / 2 - math.log(cls.slope(d, cap) * contrast)

        most = min(epsilon, 500.0)
        best = minimize_scalar(cost, bounds=(0.0, most), method="bounded", options={"xatol": 1e-9 * min(most, 1.0)})
        # A coarse split, then exact arithmetic: last bits of a machine's optimiser and exponential do not matter.
        split = terms.epsilon * round(float(best.x) / epsilon * SPLITS) / SPLITS
        cap = float(1 / (1 + growth(split)))
        odds = growth(terms.epsilon) * Fraction(cap) / (1 - Fraction(cap))
        return cls(terms, min(int(TOTAL * odds / (1 + odds)), TOTAL - 1), cap)

    @cached_property
    def level(self) -> Decimal:
        """Of the law, rounded up."""
        cap = Fraction(self.cap)
        return log_up(Fraction(self.hit, TOTAL - self.hit) * (1 - cap) / cap)

    @property
    def integers(self) -> tuple[int, ...]:
        """hit."""
        return (self.hit,)

    @property
    def words(self) -> int:
        """One for u, two for the part along u, one a coordinate."""
        return self.dimension + 3

    @cached_property
    def m(self) -> float:
        """The factor by which V is shorter than u on average."""
        p, cap = Fraction(self.hit, TOTAL), Fraction(self.cap)
        return self.slope(self.dimension, self.cap) * float((p - cap) / (cap * (1 - cap)))

    def report(self, values: Floats, words: Words) -> Floats:
        """bound V / m."""
        forward = leans(words[:, 0], np.minimum(lengths(values) / self.bound, 1.0), 2.0**62)
        u = directions(values) * np.where(forward, 1.0, -1.0)[:, None]
        inside, part = coin(words[:, 1]) < np.uint64(self.hit), uniform(words[:, 2])
        tails = np.where(inside, self.cap * part, np.minimum(self.cap + (1 - self.cap) * part, 1 - 2.0**-53))
        across = normal(words[:, 3:])
        for _ in range(2):  # the second time takes away what rounding left
            across = across - inner(across, u)[:, None] * u
        reports: Floats = self.vectors(u, tails, across) * (self.bound / self.m)
        return reports

    def mse(self, values: Floats) -> Floats:
        """bound^2 E|V|^2 / m^2 - |x|^2."""
        return self.worst_mse - inner(values, values)

    @cached_property
    def worst_mse(self) -> float:
        """At the centre."""
        return self.square(self.dimension, self.cap, self.hit / TOTAL) * (self.bound / self.m) ** 2
