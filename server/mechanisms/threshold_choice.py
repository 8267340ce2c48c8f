"""A threshold for heavy-tailed values whose law nobody knows: what an exponential mechanism over a grid aims at.

Thresholds are 2^(j/2), j = first, ..., last. The best leaves a certain number of records above it, which noise decides.
"""

import math
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from protocol.coins import Floats
from server.mechanisms.gaussian import epsilon_float

FIRST, LAST = -10, 50
DECAY = Decimal("0.693147")  # log 2 up to its sixth digit: weights of B^-2 on the grid, without which the largest win
EXCEEDING = 0.7  # sqrt(a - 1) where |x| > B has probability proportional to B^-a, a near 3/2


def threshold_grid(first: int = FIRST, last: int = LAST) -> Floats:
    """2^(j/2) for j = first, ..., last, exact to a rounding. Raises ValueError for an empty or absurd range."""
    if not -1000 <= first <= last <= 1000:
        raise ValueError(f"expected -1000 <= first <= last <= 1000, got {first} and {last}")
    return np.array([math.ldexp(math.sqrt(2) if j % 2 else 1.0, j // 2) for j in range(first, last + 1)])


def counts_above(values: Floats, thresholds: Floats) -> NDArray[np.int64]:
    """How many |x| exceed each threshold, strictly; one record changes each count by at most 1.

    Raises ValueError for values that are not finite: map them to 0 first.
    """
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError(f"expected a vector of finite values, got shape {values.shape}")
    ordered = np.sort(np.abs(values))
    return (len(ordered) - np.searchsorted(ordered, thresholds, side="right")).astype(np.int64)


def usual_target(noise_multiplier: float, level: Decimal, failure: float = 0.1) -> float:
    """1.4 m + 2 log(1/failure) / level: how many records should exceed the threshold of a clipped mean.

    Its noise is 2 m per unit of threshold over n; bias P(|X| > B) = (2 m / n)^2 B at the optimum, so 0.7 times 2 m
    records exceed it. The rest keeps the choice above that. Raises ValueError for what is not positive.
    Source: derived, see docs/HEAVY_TAILS.md.
    """
    if not (0 < noise_multiplier < math.inf and 0 < failure < 1):
        raise ValueError(f"expected noise_multiplier > 0 and 0 < failure < 1, got {noise_multiplier} and {failure}")
    return 2 * EXCEEDING * noise_multiplier - 2 * math.log(failure) / epsilon_float(level)
