"""What a law of integer noise is: symmetric, log-concave, one parameter, shares of which add up to it."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
DEVIATIONS = 16  # standard deviations, and `LEAST_REACH` more, that tables of probabilities go to
LEAST_REACH = 64
SMALLEST_VARIANCE, LARGEST_VARIANCE = 1, 1 << 29  # of a total, in grid units: beyond, tables take seconds

_HUGE = 10**300  # what is more is no number of a message


@dataclass(frozen=True)
class Law:
    """A symmetric log-concave law of integers, by its variance.

    `shape`(variance) has P(K = k) for k = 0, 1, ..., `reach`, up to one factor. `ratios`(variance) has P(k + 1) / P(k)
    for k = 0, 1, ... as fractions of whole numbers, (numerator, denominator): exact, or within 2^-200 of it.
    `possible`(variance, rows) rounds a total variance up to one that so many rows can share.
    `gap`(rows, share): sums of shares have probabilities within e^-gap and e^gap of the law of their variance; 0 where
    the law is closed under sums.
    """

    name: str
    shape: Callable[[float], Floats]
    ratios: Callable[[Fraction], Iterable[tuple[int, int]]]
    possible: Callable[[Fraction, int], Fraction]
    gap: Callable[[int, Fraction], float]


def reach(variance: float) -> int:
    """The last k of a table of P(K = k)."""
    return math.ceil(DEVIATIONS * math.sqrt(variance)) + LEAST_REACH


def check_variance(variance: float | Fraction) -> None:
    """Raise ValueError for a variance of a whole sum that no table is made for."""
    if not SMALLEST_VARIANCE <= variance <= LARGEST_VARIANCE:
        raise ValueError(
            f"expected a variance in {SMALLEST_VARIANCE}..2^{LARGEST_VARIANCE.bit_length() - 1} grid units squared, "
            f"got {float(min(variance, _HUGE)):.6g}: use a {'coarser' if variance > 1 else 'finer'} grid"
        )


def closed(rows: int, share: Fraction) -> float:
    """The gap of a law whose sums are of the law: none."""
    return 0.0


def whole(variance: Fraction, rows: int) -> Fraction:
    """The next whole number: any part of the variance can be a share."""
    return Fraction(math.ceil(variance))
