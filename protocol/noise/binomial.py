"""Binomial noise: fair bits less half of their number, which is even. Sums of it are of the law."""

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from protocol.noise.law import Floats, Law, closed, reach


def bits(variance: Fraction) -> int:
    """How many fair bits have a variance; raises ValueError unless it is a whole even number."""
    count = 4 * variance
    if count.denominator != 1 or count.numerator % 2 or count < 2:
        raise ValueError(f"expected a variance of a whole even number of fair bits, a quarter each, got {variance}")
    return int(count)


def shape(variance: float) -> Floats:
    """C(N, N/2 + k) over C(N, N/2), N = 4 v bits, for k = 0, ..., at most N/2 - 1; the reach is that of other laws."""
    half = math.ceil(2 * variance)
    k = np.arange(min(reach(variance), half - 1), dtype=np.float64)
    values: Floats = np.exp(np.concatenate([[0.0], np.cumsum(np.log((half - k) / (half + k + 1)))]))
    return values


def ratios(variance: Fraction) -> Iterator[tuple[int, int]]:
    """P(k + 1) / P(k) = (N/2 - k) / (N/2 + k + 1)."""
    half = bits(variance) // 2
    return ((half - k, half + k + 1) for k in range(half + 1))


def possible(variance: Fraction, rows: int) -> Fraction:
    """An even number of bits for each row."""
    return Fraction(math.ceil(2 * variance / rows) * rows, 2)


LAW = Law("binomial", shape, ratios, possible, closed)
