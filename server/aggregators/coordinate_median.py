"""The median of each coordinate: half of the reports may be anything, but one report can move it by the whole range."""

from server.aggregators.arithmetic import median_rows
from server.aggregators.base import Array, Options, Sensitivity, by_coordinate, check_setting, check_shape, minority


def coordinate_median(reports: Array, options: Options) -> Array:
    """median_i x_ij for every coordinate j, shape (d,); of an even number of reports the mean of the middle two.

    Raises ValueError for reports that are not finite float64 of shape (n, d).
    Source: Yin, Chen, Ramchandran, Bartlett 2018, Definition 1.
    """
    check_shape(reports)
    return median_rows(reports)


def sensitivity(count: int, dimension: int, threshold: float, options: Options) -> Sensitivity:
    """2 threshold a coordinate for n odd and threshold for n even, tight: it does not shrink as n grows.

    Raises ValueError for a setting out of range.
    Source: derived, see docs/HEAVY_TAILS.md.
    """
    check_setting(count, dimension, threshold)
    return by_coordinate(2.0 * threshold if count % 2 else threshold, count, dimension)


def breakdown(count: int, options: Options) -> float:
    """floor((n - 1) / 2) / n."""
    return minority(count)
