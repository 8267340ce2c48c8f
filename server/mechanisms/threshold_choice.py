"""A threshold for heavy-tailed values whose law nobody knows: the exponential mechanism over a public grid.

Thresholds are 2^(j/2), j = first, ..., last. The best leaves a certain number of records above it, which noise decides.
"""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from protocol.coins import Floats, Words
from server.mechanisms.exact_selection import exponential_choice
from server.mechanisms.gaussian import epsilon_float
from server.mechanisms.selection_noise import gumbel

FIRST, LAST = -10, 50
DECAY = Fraction(693147, 1_000_000)  # log 2 up to its sixth digit: weights of B^-2 on the grid
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


def choice_costs(counts: NDArray[np.int64], target: float, level: Decimal, decay: Fraction = DECAY) -> list[Fraction]:
    """level |count_j - target| / 2 + decay j, exactly: choose j with probability proportional to exp of minus this.

    Without `decay` all thresholds beyond the largest record tie, and the largest of the grid are likely: the mean error
    is then hundreds of times larger, while the median looks well. Raises ValueError for decay < 0.
    Source: derived, see docs/HEAVY_TAILS.md.
    """
    if decay < 0 or not math.isfinite(target):
        raise ValueError(f"expected decay >= 0 and a finite target, got {decay} and {target}")
    epsilon_float(level)
    half, aim = Fraction(level) / 2, Fraction(target)
    return [half * abs(int(count) - aim) + decay * place for place, count in enumerate(counts)]


def choose_threshold(thresholds: Floats, costs: list[Fraction], randbits: Callable[[int], int]) -> float:
    """One threshold by `exponential_choice`, exactly: for real coins.

    Guarantee: the level of `choice_costs`, and level^2 / 8-zCDP; unit: one record; neighbours: replace one record.
    Raises ValueError for another number of costs. Source: McSherry, Talwar 2007.
    """
    _same(thresholds, costs)
    return float(thresholds[exponential_choice(costs, randbits)])


def simulate_threshold(thresholds: Floats, costs: list[Fraction], words: Words) -> float:
    """The same by the largest -cost + Gumbel noise, a word a threshold; ties go to the lowest. Simulation only."""
    _same(thresholds, costs)
    if words.shape != thresholds.shape:
        raise ValueError(f"expected a word a threshold, got {words.shape} for {thresholds.shape}")
    least = min(costs)
    scores = gumbel(words) - np.array([float(cost - least) for cost in costs])
    return float(thresholds[int(np.argmax(scores))])


def _same(thresholds: Floats, costs: list[Fraction]) -> None:
    if len(costs) != len(thresholds):
        raise ValueError(f"expected a cost a threshold, got {len(costs)} for {len(thresholds)}")
