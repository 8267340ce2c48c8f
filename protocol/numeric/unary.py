"""A vote for the largest coordinate and its sign, by optimised unary encoding: coins compared with integers."""

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
    """The vote is sign(x_j) at the largest |x_j|, the lowest j among equals, 0 elsewhere; reports are unbiased for it.

    Of 2 d symbols, a coordinate with a sign each, the vote has the bit 1 with probability 1/2, any other with q =
    `other` / 2^63. Coordinate j reports (bit of + less bit of -) / (1/2 - q). A zero counts as positive. The threshold
    bounds what is compared, and scales nothing. Without a sign, votes on gradients (theta . x - y) x would say which
    feature is large and nothing of theta.

    Guarantee: log((2^63 - other) / other), exactly what is executed; neighbours: replace the row.
    Source: Wang, Blocki, Li, Jha 2017, optimised unary encoding; signs: derived, see docs/HEAVY_TAILS.md.
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
        """Of the integers, rounded up: two votes differ in two bits."""
        return log_up(Fraction(ONE - self.other, self.other))

    @property
    def words(self) -> int:
        """Two a coordinate: for bits of + first."""
        return 2 * self.dimension

    @cached_property
    def outputs(self) -> Floats:
        """What a coordinate reports, rising."""
        size = float(1 / (Fraction(1, 2) - Fraction(self.other, ONE)))
        return np.array([-size, 0.0, size])

    def votes(self, values: Floats) -> Floats:
        """1 or -1 at the largest |x_j|, 0 elsewhere: (rows, d) -> (rows, d)."""
        rows, place, chosen = np.arange(len(values)), np.abs(values).argmax(axis=1), np.zeros(values.shape)
        chosen[rows, place] = np.where(values[rows, place] < 0, -1.0, 1.0)
        return chosen

    def report(self, values: Floats, words: Words) -> Floats:
        """One coin a bit."""
        vote, coins = self.votes(values), coin(words)
        bits = [
            part < np.where(vote == sign, np.uint64(HALF), np.uint64(self.other))
            for part, sign in ((coins[:, : self.dimension], 1.0), (coins[:, self.dimension :], -1.0))
        ]
        reports: Floats = self.outputs[1 + bits[0].astype(np.int64) - bits[1]]
        return reports

    def mse(self, values: Floats) -> Floats:
        """Of the vote: (1/4 + (2 d - 1) q (1 - q)) / (1/2 - q)^2, whatever the row."""
        return np.full(len(values), self.worst_mse)

    @cached_property
    def worst_mse(self) -> float:
        """The same for every row."""
        q = Fraction(self.other, ONE)
        return float((Fraction(1, 4) + (2 * self.dimension - 1) * q * (1 - q)) / (Fraction(1, 2) - q) ** 2)

    def legal(self, reports: Floats) -> Kept:
        """Rows of these numbers."""
        kept: Kept = every(np.isin(reports, self.outputs))
        return kept


def unary(parameters: Parameters) -> Unary:
    """The least `other` whose level is at most epsilon: q = 1 / (e^epsilon + 1), or just above.

    Guarantee: epsilon-local differential privacy of a row; neighbours: replace the row. Raises ValueError as `read`.
    """
    terms: NumericTerms = read("unary", parameters)
    exact = ONE / (growth(terms.epsilon) + 1)
    return Unary(terms, int(-(-exact // 1)))
