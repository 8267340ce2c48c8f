"""The geometric median: the point with the least sum of distances to all reports."""

import math

import numpy as np

from server.aggregators.arithmetic import distances, median_rows, weighted_sums
from server.aggregators.base import Array, Options, check_shape, minority

_MOST_STEPS = 1000
_TOLERANCE = 1e-10  # of the median distance: where steps end
_NEAREST = 1e-8  # of the median distance: a report that is nearer counts as that far


def geometric_median(reports: Array, options: Options) -> Array:
    """argmin_v sum_i ||x_i - v|| by Weiszfeld's iteration from the coordinate median, shape (d,).

    v <- sum_i w_i x_i / sum_i w_i, w_i = 1 / max(||x_i - v||, 1e-8 s), s the median distance to the start, until a step
    is shorter than 1e-10 s, or 1000 steps. Where s = 0, half of the reports are the start, and it is a minimiser.
    Raises ValueError for reports that are not finite float64 of shape (n, d).
    Source: Weiszfeld 1937; Pillutla, Kakade, Harchaoui 2022, Algorithm 1, for the smoothing.
    """
    check_shape(reports)
    point = median_rows(reports)
    scale = float(np.median(distances(reports, point)))
    if scale == 0.0:
        return point
    for _ in range(_MOST_STEPS):
        weights = scale / np.maximum(distances(reports, point), _NEAREST * scale)
        total = math.fsum(weights.tolist())
        moved = weighted_sums(reports, weights) / total
        step, point = float(distances(moved[None, :], point)[0]), moved
        if step <= _TOLERANCE * scale:
            break
    return point + 0.0


def breakdown(count: int, options: Options) -> float:
    """floor((n - 1) / 2) / n."""
    return minority(count)
