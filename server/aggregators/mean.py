"""The mean: the most accurate where everybody is honest and nothing is heavy, and at the mercy of one report."""

from server.aggregators.arithmetic import mean_rows
from server.aggregators.base import Array, Options, Sensitivity, by_coordinate, check_reports, check_setting


def mean(reports: Array, options: Options) -> Array:
    """(1/n) sum_i x_i, shape (d,).

    Raises ValueError for reports that are not finite float64 of shape (n, d).
    """
    check_reports(reports)
    return mean_rows(reports)


def sensitivity(count: int, dimension: int, threshold: float, options: Options) -> Sensitivity:
    """2 threshold / n a coordinate, tight.

    Raises ValueError for a setting out of range.
    Source: derived, see docs/HEAVY_TAILS.md.
    """
    check_setting(count, dimension, threshold)
    return by_coordinate(2.0 * threshold / count, count, dimension)


def breakdown(count: int, options: Options) -> float:
    """0: one report moves the mean anywhere. Within [-threshold, threshold], f of n move it by 2 threshold f / n."""
    return 0.0
