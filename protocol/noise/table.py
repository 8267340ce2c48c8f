"""Drawing integer noise from bits: a table of its distribution function in whole numbers, and where bits fall in it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from protocol.noise import LAWS
from protocol.noise.law import reach

Words = NDArray[np.uint64]
Integers = NDArray[np.int64]
_BITS, _FINE = 128, 320  # of a draw, and of what weights are worked out in
_HALF = 64
_MOST = 1 << 22  # entries, some GB: whoever asks says how large noise is; up to 2^26 a draw is within 2^-100 of its law


@dataclass(frozen=True, eq=False)
class Table:
    """P(K <= k) in units of 2^-128 for k = -R, ..., R - 1, as the upper and lower 64 bits of each; P(K <= R) is 1.

    A draw from 128 fair bits differs from the law by at most `error` in total variation: a unit for each k, and as much
    again for the rounding of ratios and for what is beyond R.
    """

    high: Words = field(repr=False)
    low: Words = field(repr=False)

    @property
    def reach(self) -> int:
        """R."""
        return len(self.high) // 2

    @property
    def error(self) -> float:
        """A bound on the total variation between draws of 128 bits and the law."""
        return 2.0 * (len(self.high) + 1) * 2.0**-_BITS

    def draw(self, words: Words) -> Integers:
        """Integers from pairs of words (..., 2), the first one of more weight; shape (...)."""
        upper, lower = words[..., 0], words[..., 1]
        found = np.searchsorted(self.high, upper, side="left")
        last = np.searchsorted(self.high, upper, side="right")
        for place in zip(*np.nonzero(last > found), strict=True):  # once in 2^64 draws for each k
            held = self.low[found[place] : last[place]]
            found[place] += int(np.searchsorted(held, lower[place], side="right"))
        values: Integers = found.astype(np.int64) - self.reach
        return values

    def quantiles(self, words: Words) -> Integers:
        """Integers from one word each, for simulation: 2^-64 for each k away from the law."""
        values: Integers = np.searchsorted(self.high, words, side="right").astype(np.int64) - self.reach
        return values


@lru_cache(maxsize=64)
def table(law: str, variance: Fraction) -> Table:
    """The table of a law, by name, at a variance above 0. Raises ValueError for one that the law cannot have."""
    if not (variance > 0 and reach(float(variance)) < _MOST // 2):
        raise ValueError(f"expected a moderate variance > 0 to draw from, got {variance}")
    side = list(_weights(law, variance))
    weights = [*side[:0:-1], *side]
    total, below, bounds = sum(weights), 0, []
    for weight in weights[:-1]:
        below += weight
        bounds.append((below << _BITS) // total)
    mask = (1 << _HALF) - 1
    high = np.fromiter((bound >> _HALF for bound in bounds), np.uint64, len(bounds))
    return Table(high, np.fromiter((bound & mask for bound in bounds), np.uint64, len(bounds)))


def _weights(law: str, variance: Fraction) -> Iterator[int]:
    """P(K = k) over P(K = 0), in units of 2^-320, for k = 0, ..., `reach`: 2^-180 of the law is beyond."""
    weight, most = 1 << _FINE, reach(float(variance))
    for k, (numerator, denominator) in enumerate(LAWS[law].ratios(variance)):
        yield weight
        weight = weight * numerator // denominator
        if k == most or not weight:
            return
