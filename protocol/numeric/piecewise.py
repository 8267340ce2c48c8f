"""Wang et al.'s piecewise randomiser of one number, on a grid of outputs, as integers.

The window of likely outputs stands at one of 2 * steps + 1 places; a coin chooses between the two places about t. A
mixture of laws is no less private than the laws are, so this costs no privacy, and it makes the mean exact.
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property

import numpy as np

from protocol.channel import TOTAL, log_up
from protocol.numeric.channel import Floats, Words
from protocol.numeric.sampling import below, coin, fewest, growth, most, occurs
from protocol.numeric.scalar import Scalar

FEWEST_STEPS, MOST_STEPS = 1 << 12, 1 << 17
WINDOW = 64  # half of the outputs that a window has at least, while the steps suffice


@dataclass(frozen=True)
class Piecewise(Scalar):
    """With probability p = hit / 2^63 an output of a window about t, else any output, each nearly uniform.

    Outputs are (j - (N - 1) / 2) cell, j < N = 2 steps + window; the window at place s, |s| <= steps, has `window` of
    them about s cell; cell = 1 / (p steps), so that E report = p E(s) cell = t. `window` is even, so no output is 0.
    Variance: cell^2 (p (m^2 + f (1 - f) + (window^2 - 1) / 12) + (1 - p) (N^2 - 1) / 12) - t^2, with m = t steps and
    f = m - floor(m). Bias: at most 2^-50.

    Guarantee: log(1 + p most(window) / ((1 - p) fewest(N))), exactly what is executed, for every double t.
    Source: Wang et al. 2019, Algorithm 2; the integers: derived, see docs/HEAVY_TAILS.md.
    """

    hit: int
    window: int
    steps: int = FEWEST_STEPS
    words = 3
    live = True

    def __post_init__(self) -> None:
        if not (0 < self.hit < TOTAL and self.window >= 2 and self.window % 2 == 0 and self.steps >= 1):
            raise ValueError(f"expected 0 < hit < 2^63 and an even window >= 2, got {self}")

    @property
    def count(self) -> int:
        """N, the number of outputs."""
        return 2 * self.steps + self.window

    @property
    def chance(self) -> Fraction:
        """p."""
        return Fraction(self.hit, TOTAL)

    @property
    def cell(self) -> Fraction:
        """The distance between outputs."""
        return 1 / (self.chance * self.steps)

    @cached_property
    def level(self) -> Decimal:
        """Of the integers, roundings of uniform draws included, rounded up."""
        p = self.chance
        return log_up(1 + p * most(self.window) / ((1 - p) * fewest(self.count)))

    @property
    def integers(self) -> tuple[int, ...]:
        """hit, window, steps."""
        return self.hit, self.window, self.steps

    @cached_property
    def outputs(self) -> Floats:
        """The grid."""
        grid: Floats = np.arange(1 - self.count, self.count, 2) * np.float64(self.cell / 2)
        return grid

    def report(self, t: Floats, words: Words) -> Floats:
        """Word 0 decides for the window, word 1 its place, word 2 the output."""
        place = t * float(self.steps)
        low = np.floor(place)
        first = low.astype(np.int64) + self.steps + occurs(words[:, 1], place - low)
        inside = coin(words[:, 0]) < np.uint64(self.hit)
        chosen = np.where(inside, first + below(words[:, 2], self.window), below(words[:, 2], self.count))
        reports: Floats = self.outputs[chosen]
        return reports

    def second_moment(self, t: Floats) -> Floats:
        """The variance of `Piecewise`, plus t^2."""
        place = t * float(self.steps)
        part = place - np.floor(place)
        p = float(self.chance)
        moved = p * (place * place + part * (1 - part))
        moments: Floats = float(self.cell) ** 2 * (moved + self.spread)
        return moments

    @cached_property
    def spread(self) -> float:
        """What does not depend on t, in cells: p (window^2 - 1) / 12 + (1 - p) (N^2 - 1) / 12."""
        p = self.chance
        return float((p * (self.window**2 - 1) + (1 - p) * (self.count**2 - 1)) / 12)

    def worst(self, scale: float) -> float:
        """Near |t| = 1: `largest` of scale second_moment - t^2."""
        return float(self.cell) ** 2 * (largest(self.steps, float(self.chance), scale) + scale * self.spread)


def largest(steps: int, p: float, scale: float) -> float:
    """max over |m| <= steps of scale p (m^2 + f (1 - f)) - (p m)^2, f = m - floor(m), for scale >= p.

    With m = n + f it is p ((scale - p) n^2 + (2 n (scale - p) + scale) f - p f^2): it rises with n >= 0.
    """
    n = steps - 1
    slope = 2 * n * (scale - p) + scale
    f = min(1.0, slope / (2 * p))
    return p * ((scale - p) * n * n + slope * f - p * f * f)


def piecewise(epsilon: Decimal, steps: int | None = None) -> Piecewise:
    """The window e^(-epsilon / 2) as long as the range of places, and the largest hit of level at most epsilon.

    p = (h - 1) / h with h = e^(epsilon / 2), or just below; outputs reach C = (h + 1) / (h - 1), or just above. The
    variance is that of the continuous law up to 5e-4 of it for epsilon <= 8, 1e-2 for epsilon <= 20.

    Guarantee: epsilon-local differential privacy of t; neighbours: replace t.
    """
    h = growth(epsilon / 2)
    if steps is None:
        steps = FEWEST_STEPS
        while steps < WINDOW * h and steps < MOST_STEPS:
            steps *= 2
    window = 2 * max(1, round(steps / h))
    odds = (growth(epsilon) - 1) * fewest(2 * steps + window) / most(window)
    return Piecewise(min(int(TOTAL * odds / (1 + odds)), TOTAL - 1), window, steps)
