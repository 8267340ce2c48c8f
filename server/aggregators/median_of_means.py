"""Median of means: the median, coordinate by coordinate, of the means of groups that are fixed before anyone looks."""

from server.aggregators.arithmetic import median_of_groups
from server.aggregators.base import (
    Array,
    Options,
    Sensitivity,
    by_coordinate,
    check_setting,
    check_shape,
)


def runs(count: int, groups: int) -> list[range]:
    """Rows 0, ..., n - 1 cut into m runs at floor(k n / m), k = 0, ..., m: sizes differ by at most 1.

    Raises ValueError for fewer than one group or more than rows.

    >>> runs(10, 4)
    [range(0, 2), range(2, 5), range(5, 7), range(7, 10)]
    """
    if not 1 <= groups <= count:
        raise ValueError(f"expected 1 to {count} groups of {count} reports, got {groups}")
    return [range(k * count // groups, (k + 1) * count // groups) for k in range(groups)]


def median_of_means(reports: Array, options: Options) -> Array:
    """median_k of the means of options.groups runs of reports, coordinate by coordinate, shape (d,).

    Groups follow the order of reports: where that order may depend on what is in them, the caller puts them into a
    public random order first.
    Raises ValueError for reports that are not finite float64 of shape (n, d), and for more groups than reports.
    Source: Tao, Wu, Cheng, Wang 2022, Algorithm 3, with the sum over the group; Minsker 2015.
    """
    check_shape(reports)
    return median_of_groups(reports, runs(len(reports), options.groups))


def sensitivity(count: int, dimension: int, threshold: float, options: Options) -> Sensitivity:
    """2 threshold / g a coordinate for an odd number m of groups, threshold / g for an even one, g = floor(n/m); tight.

    One report moves one mean by at most 2 threshold / g, and the mean of the middle two by half of that.
    Raises ValueError for a setting out of range.
    Source: Tao, Wu, Cheng, Wang 2022, Algorithm 3 for odd m; even m derived, see docs/HEAVY_TAILS.md.
    """
    check_setting(count, dimension, threshold)
    smallest = min(len(group) for group in runs(count, options.groups))
    bound = (2.0 * threshold if options.groups % 2 else threshold) / smallest
    return by_coordinate(bound, count, dimension)


def breakdown(count: int, options: Options) -> float:
    """(ceil(m / 2) - 1) / n: liars in fewer than half of m groups are outvoted, wherever they are."""
    runs(count, options.groups)
    return ((options.groups - 1) // 2) / count
