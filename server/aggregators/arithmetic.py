"""The arithmetic that aggregators share: sums that are exactly rounded, middles of columns, distances.

Sums are as by `math.fsum`, so that a result does not depend on the order of reports where the mathematics does not, nor
on a machine's linear algebra; coordinates, or rows, are dealt with apart, on as many cores as a process may use.
"""

import math
from collections.abc import Callable

import numpy as np

from protocol.threads import spread
from protocol.turning import SIDE
from server.aggregators.base import LARGEST, Array, check_reports
from server.kernels_reports import (
    add_along,
    add_rows,
    add_squared_lengths,
    add_squares,
    first_beyond,
    sort_few,
    take_columns,
)
from server.kernels_vector import WIDTH

_MOST = 1 << 16  # numbers that are dealt with at a time, so that they stay in a second-level cache
_SUMMED = 1024  # columns at least whose sums are added up while all rows go by
_PARTS = 16  # of that size, that a thread deals with in the same memory
_FEW = 64  # numbers up to which columns are sorted side by side


def mean_rows(rows: Array) -> Array:
    """The mean of rows, each coordinate's sum exactly rounded; shape (d,)."""
    return weighted_sums(rows, np.ones(len(rows))) / len(rows) + 0.0  # no negative zero


def weighted_sums(rows: Array, weights: Array) -> Array:
    """sum_i w_i x_i, of products that are rounded one by one and whose sum is exactly rounded; shape (d,)."""
    held = np.ascontiguousarray(rows)
    return _by_columns(
        held, max(_SUMMED, _MOST // len(rows)), lambda first, last: _weighted(held, weights, first, last)
    )


def median_of_groups(rows: Array, groups: list[range]) -> Array:
    """The median of the means of groups of rows, each coordinate for itself; shape (d,).

    Values are looked at on the way, and only once: raises what `check_reports` does.
    """
    held, ones = np.ascontiguousarray(rows), np.ones(max(map(len, groups)))
    counts = np.array([[len(group)] for group in groups])

    def medians(first: int, last: int) -> Array:
        parts, width = np.zeros((3, len(groups), last - first)), last - first
        for place, group in enumerate(groups):
            sums, errors, sizes = parts[:, place]
            if add_rows(held[group.start : group.stop], ones, first, sums, errors, sizes, LARGEST) > 0:
                check_reports(rows)

        def terms(j: int) -> list[float]:
            group = groups[j // width]
            return held[group.start : group.stop, first + j % width].tolist()  # type: ignore[no-any-return]

        means = _rounded(parts.reshape(3, -1), terms).reshape(-1, width) / counts + 0.0
        if len(groups) > _FEW:
            return _median(np.ascontiguousarray(means.T))
        sort_few(means)
        return np.asarray((means[(len(groups) - 1) // 2] + means[len(groups) // 2]) / 2.0 + 0.0)

    return _by_columns(held, max(_SUMMED, _MOST // len(rows)), medians)


def middle_mean(rows: Array, trim: int) -> Array:
    """The mean of each coordinate's values without its `trim` least and `trim` largest, of 2 trim < n; shape (d,).

    Values are looked at on the way: raises what `check_reports` does.
    """
    count, end = len(rows), len(rows) - trim

    def means(columns: Array) -> Array:
        parts = np.zeros((3, len(columns)))
        if trim > 0:  # to part twice is less than to sort, and sums have no order
            columns[:, :count].partition(end, axis=1)
            columns[:, :end].partition(trim, axis=1)
        add_along(columns, trim, end, *parts)
        sums = _rounded(parts, lambda j: columns[j, trim:end].tolist())
        return np.asarray(sums / (end - trim) + 0.0)

    return _by_taken(np.ascontiguousarray(rows), means)


def median_rows(rows: Array) -> Array:
    """The median of each coordinate, of an even number the mean of the middle two; shape (d,).

    Values are looked at on the way: raises what `check_reports` does.
    """
    return _by_taken(np.ascontiguousarray(rows), lambda columns: _median(columns[:, : len(rows)]))


def squared_distances(rows: Array, points: Array) -> Array:
    """||x_i - p_j||^2 by a plain loop over coordinates, shape (rows, points): a pair's bits depend on itself only."""
    total = np.zeros((len(rows), len(points)))
    add_squares(np.ascontiguousarray(rows), np.ascontiguousarray(points), total)
    return total


def distances(rows: Array, point: Array) -> Array:
    """||x_i - p||, shape (rows,)."""
    held, total, size = np.ascontiguousarray(rows), np.zeros(len(rows)), max(1, _MOST // rows.shape[1] // WIDTH) * WIDTH

    def add(first: int) -> None:
        add_squared_lengths(held[first : first + size], point, total[first : first + size])

    spread(add, range(0, len(rows), size))
    found: Array = np.sqrt(total)
    return found


def _by_columns(rows: Array, most: int, found: Callable[[int, int], Array]) -> Array:
    """found(first, last) of all columns, some at a time; shape (d,)."""
    width = rows.shape[1]
    parts = spread(lambda first: found(first, min(first + most, width)), range(0, width, most))
    return np.concatenate(parts)


def _by_taken(rows: Array, found: Callable[[Array], Array]) -> Array:
    """found(columns) of all columns, some at a time, each at the start of a line of its own, which is longer."""
    lanes = (len(rows) // WIDTH + 1) | 1  # an odd number, or columns were in each other's place in the cache
    size = max(1, _MOST // len(rows) // SIDE) * SIDE

    def some(first: int, last: int) -> Array:
        values, room = np.empty(last - first), np.empty((min(size, last - first), lanes * WIDTH))
        for start in range(first, last, size):
            columns = room[: last - start]
            take_columns(rows, start, columns)
            if first_beyond(columns, 0, len(rows), LARGEST) >= 0:
                check_reports(rows)
            values[start - first : start - first + size] = found(columns)
        return values

    return _by_columns(rows, _PARTS * size, some)


def _median(columns: Array) -> Array:
    """The median of each line, whose numbers lose their order."""
    middle, even = columns.shape[1] // 2, columns.shape[1] % 2 == 0
    columns.partition(middle, axis=1)
    found = columns[:, middle]
    return (columns[:, :middle].max(axis=1) + found) / 2.0 + 0.0 if even else found + 0.0


def _weighted(rows: Array, weights: Array, first: int, last: int) -> Array:
    parts = np.zeros((3, last - first))
    add_rows(rows, weights, first, parts[0], parts[1], parts[2], LARGEST)  # all are within it already
    return _rounded(parts, lambda j: (rows[:, first + j] * weights).tolist())


def _rounded(parts: Array, terms: Callable[[int], list[float]]) -> Array:
    """Sums, exactly rounded, out of sums, errors, and sizes of what is lost of these.

    A size is off by less than half. Where it leaves a doubt about the double next to a sum, `math.fsum` sums again.
    """
    sums, errors, sizes = parts
    doubt = 2.0 * sizes + (sizes > 0.0) * np.abs(errors) * 2.0**-51  # which the next line does not round away
    found: Array = sums + (errors - doubt)
    for j in np.flatnonzero(~(found == sums + (errors + doubt))).tolist():
        found[j] = math.fsum(terms(j))
    return found
