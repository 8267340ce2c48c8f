"""Compiled loops over many reports, a row each: sums whose error is known, and squared distances.

A sum comes as a number, what its additions rounded off, and how much that was in all: `server.aggregators.base` rounds
them to the exact sum, or sums again where they do not tell it.
"""

import numpy as np

from server.kernels import Array, compiled

COLUMNS = 512  # of a tile whose sums stay in the first-level cache while all rows go by
POINTS, CHUNK = 64, 32  # of a tile of points, turned so that a coordinate's values lie side by side


@compiled
def first_beyond(rows: Array, largest: float) -> int:
    """The first row with a value that is not within [-largest, largest], NaN among them; -1 where there is none."""
    for i in range(rows.shape[0]):
        beyond = 0
        for j in range(rows.shape[1]):
            beyond += not abs(rows[i, j]) <= largest
        if beyond > 0:
            return i
    return -1


@compiled
def add_rows(rows: Array, weights: Array, sums: Array, errors: Array, sizes: Array) -> None:
    """sums + errors = sum_i weights_i rows_i but for what rounds in errors, which sum to `sizes` in size; all (d,).

    Weighted values are rounded one by one. Source: Knuth 1997, section 4.2.2, Theorem B, for the error of a sum.
    """
    for start in range(0, rows.shape[1], COLUMNS):
        end = min(start + COLUMNS, rows.shape[1])
        total, error, size = sums[start:end], errors[start:end], sizes[start:end]
        for i in range(rows.shape[0]):
            row, weight = rows[i, start:end], weights[i]
            for j in range(end - start):
                value = row[j] * weight
                moved = total[j] + value
                part = moved - total[j]
                off = (total[j] - (moved - part)) + (value - part)
                total[j] = moved
                error[j] += off
                size[j] += abs(off)


@compiled
def add_squares(rows: Array, points: Array, found: Array) -> None:
    """found[i, j] += ||rows_i - points_j||^2, coordinate after coordinate: a pair's bits depend on the pair alone."""
    turned = np.empty((CHUNK, POINTS))
    for first in range(0, points.shape[0], POINTS):
        count = min(POINTS, points.shape[0] - first)
        for start in range(0, points.shape[1], CHUNK):
            width = min(CHUNK, points.shape[1] - start)
            for j in range(count):
                for k in range(width):
                    turned[k, j] = points[first + j, start + k]
            for i in range(rows.shape[0]):
                total = found[i, first : first + count]
                for k in range(width):
                    value, other = rows[i, start + k], turned[k]
                    for j in range(count):
                        gap = value - other[j]
                        total[j] += gap * gap
