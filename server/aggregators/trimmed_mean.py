"""The trimmed mean: what is left of each coordinate without its t smallest and t largest values."""

from server.aggregators.arithmetic import middle_mean
from server.aggregators.base import Array, Options, Sensitivity, by_coordinate, check_setting, check_shape


def trimmed_mean(reports: Array, options: Options) -> Array:
    """(1 / (n - 2t)) sum of the sorted x_(t+1), ..., x_(n-t) of each coordinate, t = options.trim, shape (d,).

    Raises ValueError for reports that are not finite float64 of shape (n, d), and for 2t >= n.
    Source: Yin, Chen, Ramchandran, Bartlett 2018, Definition 2.
    """
    check_shape(reports)
    _kept(len(reports), options)
    return middle_mean(reports, options.trim)


def sensitivity(count: int, dimension: int, threshold: float, options: Options) -> Sensitivity:
    """2 threshold / (n - 2t) a coordinate, tight for every t < n/2.

    Raising one value lifts no sorted value above its successor, so the kept sum rises by at most x_(n-t+1) - x_(t+1),
    or by the value's own rise where t = 0.
    Raises ValueError for a setting out of range.
    Source: derived, see docs/HEAVY_TAILS.md.
    """
    check_setting(count, dimension, threshold)
    return by_coordinate(2.0 * threshold / _kept(count, options), count, dimension)


def breakdown(count: int, options: Options) -> float:
    """t / n."""
    _kept(count, options)
    return options.trim / count


def _kept(count: int, options: Options) -> int:
    if 2 * options.trim >= count:
        raise ValueError(f"expected trim < {count} / 2 of {count} reports, got {options.trim}")
    return count - 2 * options.trim
