"""Krum: the report, or the mean of the reports, whose nearest neighbours are nearest."""

import numpy as np
from numpy.typing import NDArray

from server.aggregators.base import Array, Options, check_reports, mean_rows, squared_distances

_MOST_DISTANCES = 1 << 22  # in memory at a time


def krum(reports: Array, options: Options) -> Array:
    """The report with the least score, the lower index where scores are equal, shape (d,).

    A report's score is the sum of the squared distances to its n - f - 2 nearest others, f = options.faulty.
    Raises ValueError for reports that are not finite float64 of shape (n, d), and unless 2f + 2 < n.
    Source: Blanchard, El Mhamdi, Guerraoui, Stainer 2017, section 3.
    """
    best: Array = reports[_order(reports, options)[0]] + 0.0
    return best


def multi_krum(reports: Array, options: Options) -> Array:
    """The mean of the n - f reports with the least scores of `krum`, lower indices first, shape (d,).

    Raises what `krum` does.
    Source: Blanchard, El Mhamdi, Guerraoui, Stainer 2017, section 5.
    """
    return mean_rows(reports[_order(reports, options)[: len(reports) - options.faulty]])


def breakdown(count: int, options: Options) -> float:
    """f / n, for the f < (n - 2) / 2 that it was told of."""
    _check_faulty(count, options)
    return options.faulty / count


def krum_scores(reports: Array, options: Options) -> Array:
    """Every report's score, shape (n,), summed from the nearest on. Raises what `krum` does."""
    check_reports(reports)
    count, scores = len(reports), np.zeros(len(reports))
    nearest = _check_faulty(count, options)
    block = max(1, _MOST_DISTANCES // count)
    for start in range(0, count, block):
        rows = np.arange(start, min(start + block, count))
        found = squared_distances(reports[rows], reports)
        found[np.arange(len(rows)), rows] = np.inf  # not its own neighbour
        found.sort(axis=1)
        for column in found[:, :nearest].T:
            scores[rows] += column
    return scores


def _order(reports: Array, options: Options) -> NDArray[np.intp]:
    return np.argsort(krum_scores(reports, options), kind="stable")


def _check_faulty(count: int, options: Options) -> int:
    if 2 * options.faulty + 2 >= count:
        raise ValueError(f"expected 2 faulty + 2 < {count} reports, got faulty = {options.faulty}")
    return count - options.faulty - 2
