"""Other ways to a threshold: the tail fitted to a noisy histogram, a running quantile, and bits that holders randomise.

Everything here only processes what is already private.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from protocol.coins import Floats
from server.mechanisms.threshold_choice import EXCEEDING

_MARGIN = 0.05  # of the tail index, kept so that the moment exists
_LEAST_TAIL = 0.05
_CLEAR = 5  # standard deviations of noise that a count has to exceed
_FEWEST = 3  # bins a line is fitted to


@dataclass(frozen=True)
class FittedTail:
    """P(|X| > B) = `constant` B^-`index` beyond the body.

    E|X|^(1 + tail) is about `moment`, for a law with this tail throughout.
    """

    index: float
    constant: float
    tail: float
    moment: float

    def threshold(self, exceeding: float) -> float:
        """Where a share of `exceeding` lies above: (c / exceeding)^(1/a). Raises ValueError for one outside (0, 1)."""
        if not 0 < exceeding < 1:
            raise ValueError(f"expected 0 < exceeding < 1, got {exceeding}")
        return float((self.constant / exceeding) ** (1 / self.index))


def fit_tail(histogram: Floats, thresholds: Floats, n: int, level: float) -> FittedTail | None:
    """The line through log counts above thresholds where at most n/4 are, and more than five times the noise.

    histogram: records between neighbouring thresholds, the last bin open, each plus Laplace noise of scale 2 / level.
    Least squares, weights are counts. tail = index - 1.05 within [0.05, 1]; moment = a c^((1+v)/a) / (a - 1 - v), a the
    index, c the line's constant. None where fewer than three bins are left: a light tail, or too few records.
    Source: derived, see docs/HEAVY_TAILS.md.
    """
    above = np.cumsum(histogram[::-1])[::-1]
    noise = 2 * math.sqrt(2) / level * np.sqrt(np.arange(len(histogram), 0, -1))
    used = (above > _CLEAR * noise) & (above <= n / 4)
    if int(used.sum()) < _FEWEST:
        return None
    x, y, weight = np.log(thresholds[used]), np.log(above[used] / n), above[used]
    x0, y0 = float((weight * x).sum() / weight.sum()), float((weight * y).sum() / weight.sum())
    index = -float((weight * (x - x0) * (y - y0)).sum() / (weight * (x - x0) ** 2).sum())
    if not index > 0:
        return None  # noise alone
    constant = math.exp(y0 + index * x0)
    tail = min(1.0, max(_LEAST_TAIL, index - 1 - _MARGIN))
    room = max(index - 1 - tail, _MARGIN)
    a = 1 + tail + room
    return FittedTail(index, constant, tail, a / room * constant ** ((1 + tail) / a))


def adaptive_step(threshold: float, fraction_below: float, quantile: float, rate: float) -> float:
    """B exp(-rate (b - q)): up where fewer than q are below it, down where more are; `fraction_below` is noisy already.

    Raises ValueError for what is not finite, or a quantile outside (0, 1).
    Source: Andrew, Thakkar, McMahan, Ramaswamy 2021.
    """
    if not (0 < threshold < math.inf and 0 < rate < math.inf and math.isfinite(fraction_below) and 0 < quantile < 1):
        raise ValueError(f"expected finite numbers, got {threshold}, {fraction_below}, {quantile}, {rate}")
    return threshold * math.exp(-rate * (fraction_below - quantile))


def debiased_fractions(ones: NDArray[np.int64], reports: NDArray[np.int64], kept: float) -> Floats:
    """(share of ones - (1 - p)) / (2 p - 1): how many are below each threshold, from bits that are kept with p.

    Unbiased; beyond [0, 1] by chance. ones, reports: one number a threshold, reports positive. Raises ValueError.
    Source: Warner 1965.
    """
    if not (0.5 < kept < 1 and ones.shape == reports.shape and bool(((ones >= 0) & (ones <= reports)).all())):
        raise ValueError(f"expected 1/2 < kept < 1 and no more ones than reports, got {kept}, {ones} of {reports}")
    if not (reports > 0).all():
        raise ValueError(f"expected reports on every threshold, got {reports}")
    fractions: Floats = (ones / reports - (1 - kept)) / (2 * kept - 1)
    return fractions


def local_target(worst_variance: float, n: int) -> float:
    """0.7 sqrt(w / n): the share of records that should exceed the threshold, for a local mean of n records.

    Noise per unit of threshold is sqrt(w / n) there. Source: derived, see docs/HEAVY_TAILS.md.
    """
    if not (0 < worst_variance < math.inf and n >= 1):
        raise ValueError(f"expected worst_variance > 0 and n >= 1, got {worst_variance} and {n}")
    return min(0.5, EXCEEDING * math.sqrt(worst_variance / n))


def local_choice(fractions: Floats, reports: NDArray[np.int64], thresholds: Floats, exceeding: float) -> float:
    """The least threshold with at least 1 - exceeding of the records below, after making fractions increase.

    The last one where there is none. Raises ValueError for shapes that differ.
    Source: derived, see docs/HEAVY_TAILS.md; Barlow et al. 1972 for the monotone fit.
    """
    if not fractions.shape == reports.shape == thresholds.shape:
        raise ValueError(f"expected one shape, got {fractions.shape}, {reports.shape} and {thresholds.shape}")
    from scipy.optimize import isotonic_regression  # slow to import, in every worker

    increasing = isotonic_regression(fractions, weights=reports.astype(np.float64)).x
    enough = np.flatnonzero(increasing >= 1 - exceeding)
    return float(thresholds[enough[0] if len(enough) else -1])
