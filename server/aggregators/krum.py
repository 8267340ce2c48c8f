"""Krum: the report, or the mean of the reports, whose nearest neighbours are nearest."""

import numpy as np
from numpy.typing import NDArray

from server.aggregators.arithmetic import mean_rows, squared_distances
from server.aggregators.base import Array, Options, check_reports

Places = NDArray[np.intp]

_MOST_DISTANCES = 1 << 22  # in memory at a time
_UNIT = 2.0**-53
_TINY = 2.0**-1000  # more than all that a score loses where numbers are too small to be doubles


def krum(reports: Array, options: Options) -> Array:
    """The report with the least score, the lower index where scores are equal, shape (d,).

    A report's score is the sum of the squared distances to its n - f - 2 nearest others, f = options.faulty.
    Raises ValueError for reports that are not finite float64 of shape (n, d), and unless 2f + 2 < n.
    Source: Blanchard, El Mhamdi, Guerraoui, Stainer 2017, section 3.
    """
    best: Array = reports[_least(reports, options, 1)[0]] + 0.0
    return best


def multi_krum(reports: Array, options: Options) -> Array:
    """The mean of the n - f reports with the least scores of `krum`, lower indices first, shape (d,).

    Raises what `krum` does.
    Source: Blanchard, El Mhamdi, Guerraoui, Stainer 2017, section 5.
    """
    return mean_rows(reports[_least(reports, options, len(reports) - options.faulty)])


def breakdown(count: int, options: Options) -> float:
    """f / n, for the f < (n - 2) / 2 that it was told of."""
    _check_faulty(count, options)
    return options.faulty / count


def krum_scores(reports: Array, options: Options, some: Places | None = None) -> Array:
    """The scores of all reports, or of `some`, by plain loops, summed from the nearest on. Raises what `krum` does."""
    check_reports(reports)
    nearest, some = _check_faulty(len(reports), options), np.arange(len(reports)) if some is None else some
    scores, block = np.zeros(len(some)), max(1, _MOST_DISTANCES // len(reports))
    for start in range(0, len(some), block):
        rows = some[start : start + block]
        found = squared_distances(reports[rows], reports)
        found[np.arange(len(rows)), rows] = np.inf  # not its own neighbour
        found.sort(axis=1)
        for column in found[:, :nearest].T:
            scores[start : start + block] += column
    return scores


def _least(reports: Array, options: Options, size: int) -> Places:
    """The `size` reports with the least `krum_scores`, lower indices where scores are equal, in increasing order.

    Scores by matrix products tell most of them. Those that their errors leave in doubt are computed by plain loops, so
    that the choice does not depend on a machine's linear algebra.
    """
    check_reports(reports)
    least, most = _bounds(reports, _check_faulty(len(reports), options))
    sure = np.searchsorted(np.sort(least), most, side="right") <= size  # so many may have no larger score
    out = np.searchsorted(np.sort(most), least, side="left") >= size  # so many have a smaller one
    chosen, doubt = np.flatnonzero(sure), np.flatnonzero(~sure & ~out)
    if len(chosen) + len(doubt) > size:
        order = np.argsort(krum_scores(reports, options, doubt), kind="stable")
        doubt = doubt[order[: size - len(chosen)]]
    return np.sort(np.concatenate([chosen, doubt]))


def _bounds(reports: Array, nearest: int) -> tuple[Array, Array]:
    """Numbers between which each report's `krum_scores` lie, whatever the order of a machine's sums of products.

    ||x||^2 + ||y||^2 - 2 x.y is off by no more than (4d + 14) (||x||^2 + ||y||^2) 2^-53, plain loops included, to first
    order; twice that is taken. Source: Higham 2002, section 3.1.
    """
    count, dimension = reports.shape
    squares = np.einsum("ij,ij->i", reports, reports)
    slack = (8 * dimension + 64) * _UNIT
    least, most, block = np.empty(count), np.empty(count), max(1, _MOST_DISTANCES // count)
    for start in range(0, count, block):
        rows = np.arange(start, min(start + block, count))
        sums = squares[rows, None] + squares
        found = sums - 2.0 * (reports[rows[0] : rows[-1] + 1] @ reports.T)
        sums *= slack
        for ends, scores in ((np.maximum(found - sums, 0.0), least), (found + sums, most)):
            ends[np.arange(len(rows)), rows] = np.inf  # not its own neighbour
            ends.partition(nearest - 1, axis=1)
            scores[rows] = ends[:, :nearest].sum(axis=1)
    rounding = (2 * count + 8) * _UNIT
    return least * (1.0 - rounding) - _TINY, most * (1.0 + rounding) + _TINY


def _check_faulty(count: int, options: Options) -> int:
    if 2 * options.faulty + 2 >= count:
        raise ValueError(f"expected 2 faulty + 2 < {count} reports, got faulty = {options.faulty}")
    return count - options.faulty - 2
