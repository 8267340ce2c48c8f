"""A vote for the largest coordinate, by optimised unary encoding: one coin a coordinate, compared with integers."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property

import numpy as np

from protocol.channel import log_up
from protocol.numeric.channel import Floats, Kept, NumericChannel, Words, every
from protocol.numeric.sampling import HALF, coin, growth
from protocol.numeric.terms import NumericTerms, Parameters, read

ONE = 2 * HALF


@dataclass(frozen=True)
class Unary(NumericChannel):
    """The vote is the unit vector of the largest |x_j|, the lowest index among equals; reports are unbiased for it.

    Coordinate j reports (b_j - q) / (1/2 - q) with P(b_j = 1) = 1/2 at the vote and q = `other` / 2^63 elsewhere. The
    threshold bounds what is compared, and scales nothing.

    Guarantee: log((2^63 - other) / other), exactly what is executed; neighbours: replace the row.
    Source: Wang, Blocki, Li, Jha 2017, optimised unary encoding.
    """

    other: int
    live = True

    def __post_init__(self) -> None:
        if not 0 < self.other < HALF:
            raise ValueError(f"expected 0 < other < 2^62, got {self.other}")

    @property
    def integers(self) -> tuple[int, ...]:
        """Those of both probabilities."""
        return (HALF, self.other)

    @cached_property
    def level(self) -> Decimal:
        """Of the integers, rounded up: two votes differ in two coordinates."""
        return log_up(Fraction(ONE - self.other, self.other))

    @property
    def words(self) -> int:
        """One a coordinate."""
        return self.dimension

    @cached_property
    def outputs(self) -> Floats:
        """What a coordinate reports for 0 and for 1."""
        q = Fraction(self.other, ONE)
        gap = Fraction(1, 2) - q
        return np.array([float(-q / gap), float((1 - q) / gap)])

    def votes(self, values: Floats) -> Floats:
        """Unit vectors of the largest |x_j|: (rows, d) -> (rows, d)."""
        chosen = np.zeros(values.shape)
        chosen[np.arange(len(values)), np.abs(values).argmax(axis=1)] = 1.0
        return chosen

    def report(self, values: Floats, words: Words) -> Floats:
        """One coin a coordinate."""
        limit = np.where(self.votes(values) == 1.0, np.uint64(HALF), np.uint64(self.other))
        reports: Floats = np.where(coin(words) < limit, self.outputs[1], self.outputs[0])
        return reports

    def mse(self, values: Floats) -> Floats:
        """Of the vote: (1/4 + (d - 1) q (1 - q)) / (1/2 - q)^2, whatever the row."""
        return np.full(len(values), self.worst_mse)

    @cached_property
    def worst_mse(self) -> float:
        """The same for every row."""
        q = Fraction(self.other, ONE)
        return float((Fraction(1, 4) + (self.dimension - 1) * q * (1 - q)) / (Fraction(1, 2) - q) ** 2)

    def legal(self, reports: Floats) -> Kept:
        """Rows of the two numbers."""
        kept: Kept = every(np.isin(reports, self.outputs))
        return kept


def unary(parameters: Parameters) -> Unary:
    """The least `other` whose level is at most epsilon: q = 1 / (e^epsilon + 1), or just above.

    Guarantee: epsilon-local differential privacy of a row; neighbours: replace the row. Raises ValueError as `read`.
    """
    terms: NumericTerms = read("unary", parameters)
    exact = ONE / (growth(terms.epsilon) + 1)
    return Unary(terms, int(-(-exact // 1)))
