"""Laplace noise on one number, on a grid of outputs, as integers: what holders may add with secret coins.

The noise stands at one of 2 * steps + 1 places; a coin chooses between the two places about t, as in `piecewise`.
"""

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from protocol.channel import TOTAL, log_up
from protocol.numeric.channel import Floats, Words
from protocol.numeric.piecewise import largest
from protocol.numeric.sampling import below, coin, fewest, most, occurs
from protocol.numeric.scalar import Scalar

LEAST, MOST = Decimal("1e-4"), Decimal(20)  # levels at which the table is neither long nor at its end
FINE = 32  # steps a unit of the level: some 64 outputs a scale of the noise
_ONE = 1 << 64
_WIDE = Context(prec=80)


@dataclass(frozen=True)
class DiscreteLaplace(Scalar):
    """With probability p a place about t plus noise j + 1/2 or -(j + 1/2), else any output, nearly uniform.

    P(j + 1/2) = counts_j / 2^63, counts_0 = `first`, counts_(j+1) = floor(counts_j `factor` / 2^64) down to 0: about
    e^(-j epsilon / (2 steps)). Outputs are (i - (N - 1) / 2) cell, i < N, cell = 1 / (p steps), so that E report = t;
    none is 0. Every output can come from every place, so that noise may end.
    Variance: cell^2 (p (m^2 + f (1 - f) + E noise^2) + (1 - p) (N^2 - 1) / 12) - t^2, as of `Piecewise`: 8 / epsilon^2
    up to 1e-4 of it.

    Guarantee: the largest ratio of probabilities of an output, exactly what is executed, for every double t.
    Source: Ghosh, Roughgarden, Sundararajan 2009; the integers: derived, see docs/HEAVY_TAILS.md.
    """

    steps: int
    first: int
    factor: int
    words = 3
    live = True

    def __post_init__(self) -> None:
        if not (self.steps >= 1 and 0 < self.first < TOTAL and 0 < self.factor < _ONE):
            raise ValueError(f"expected steps >= 1, 0 < first < 2^63 and 0 < factor < 2^64, got {self}")
        if 2 * sum(self.counts) >= TOTAL:
            raise ValueError("expected some probability that is left for all outputs, got none")

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Of noise 1/2, 3/2, ..., all positive; they fall."""
        found, count = [], self.first
        while count:
            found.append(count)
            count = count * self.factor >> 64
        return tuple(found)

    @property
    def count(self) -> int:
        """N, the number of outputs."""
        return 2 * (self.steps + len(self.counts))

    @cached_property
    def chance(self) -> Fraction:
        """p."""
        return Fraction(2 * sum(self.counts), TOTAL)

    @cached_property
    def cell(self) -> Fraction:
        """The distance between outputs."""
        return 1 / (self.chance * self.steps)

    @cached_property
    def level(self) -> Decimal:
        """Over outputs (i + 1/2) cell: that of the nearest place to that of the farthest, rounded up."""
        every, n, m = self.counts + (0,) * (2 * self.steps), len(self.counts) + self.steps, self.steps
        rest = (1 - self.chance) * TOTAL
        lowest, highest = rest * fewest(2 * n), rest * most(2 * n)
        scale = lowest.denominator * highest.denominator  # integers from here on: the table is long
        low, high = int(lowest * scale), int(highest * scale)
        pairs = ((every[max(0, i - m)] * scale + high, every[i + m] * scale + low) for i in range(n))
        top, bottom = next(pairs)
        for above, beneath in pairs:
            if above * bottom > top * beneath:
                top, bottom = above, beneath
        return log_up(Fraction(top, bottom))

    @property
    def integers(self) -> tuple[int, ...]:
        """steps, first, factor: the table follows from them."""
        return self.steps, self.first, self.factor

    @cached_property
    def outputs(self) -> Floats:
        """The grid."""
        grid: Floats = np.arange(1 - self.count, self.count, 2) * np.float64(self.cell / 2)
        return grid

    @cached_property
    def thresholds(self) -> Words:
        """Cumulative counts of noise from the lowest on."""
        half = np.array(self.counts, dtype=np.uint64)
        return np.cumsum(np.concatenate([half[::-1], half]), dtype=np.uint64)

    def report(self, t: Floats, words: Words) -> Floats:
        """Word 0 decides for the noise, or for any output; word 1 its place, word 2 the output."""
        place = t * float(self.steps)
        low = np.floor(place)
        first = low.astype(np.int64) + self.steps + occurs(words[:, 1], place - low)
        noise = np.searchsorted(self.thresholds, coin(words[:, 0]), side="right")
        inside = noise < len(self.thresholds)
        reports: Floats = self.outputs[np.where(inside, first + noise * inside, below(words[:, 2], self.count))]
        return reports

    def second_moment(self, t: Floats) -> Floats:
        """The variance of `DiscreteLaplace`, plus t^2."""
        place = t * float(self.steps)
        part = place - np.floor(place)
        moments: Floats = float(self.cell) ** 2 * (
            float(self.chance) * (place * place + part * (1 - part)) + self.spread
        )
        return moments

    @cached_property
    def spread(self) -> float:
        """What does not depend on t, in cells: p E noise^2 + (1 - p) (N^2 - 1) / 12."""
        noise = sum(count * (2 * j + 1) ** 2 for j, count in enumerate(self.counts))
        return float(Fraction(noise, 2 * TOTAL) + (1 - self.chance) * (self.count**2 - 1) / 12)

    def worst(self, scale: float) -> float:
        """Near |t| = 1, as of `Piecewise`."""
        return float(self.cell) ** 2 * (largest(self.steps, float(self.chance), scale) + scale * self.spread)


@lru_cache(maxsize=64)
def discrete_laplace(epsilon: Decimal) -> DiscreteLaplace:
    """Discrete Laplace noise of scale 2 / epsilon, the smallest whose level is at most epsilon.

    Some 2^-24 is left for all outputs, or less than e^(-epsilon), so that it takes hardly any of the level.

    Guarantee: epsilon-local differential privacy of t; neighbours: replace t. Raises ValueError for an epsilon outside
    [1e-4, 20].
    """
    if not LEAST <= epsilon <= MOST:
        raise ValueError(f"expected {LEAST} <= epsilon <= {MOST} a coordinate of discrete-laplace, got {epsilon}")
    steps = max(1, math.ceil(FINE * epsilon))
    left = min(Fraction(1, 1 << 24), Fraction(_WIDE.exp(-epsilon)) / 1024)
    for slack in (40, 30, 20, 12):
        rate = epsilon * (1 - Decimal(2) ** -slack) / (2 * steps)
        factor = int(_ONE * _WIDE.exp(-rate)) + 1
        first = int(TOTAL * (1 - left) * (1 - Fraction(factor, _ONE)) / 2)
        found = DiscreteLaplace(steps, first, factor)
        if found.level <= epsilon:
            return found
    raise ValueError(f"expected a level that a table of 2^63 keeps, got {epsilon}")
