"""Compiled loops over many reports, a row each: sums whose error is known, distances, and columns one by one.

A sum comes as a number, what its additions rounded off, and how much was lost of that in turn: mostly nothing.
`server.aggregators.arithmetic` rounds them to the exact sum, or sums again where they do not tell it.
"""

import numba
import numpy as np
from llvmlite import ir

from protocol.compiling import widening
from protocol.turning import SIDE, fetcher, turner
from server.kernels import Array, compiled
from server.kernels_vector import WIDTH, everywhere, line_of, write_line

wide = widening(numba.extending.intrinsic, numba.types.void)
turn, fetch = turner(numba, ir), fetcher(numba, ir)

COLUMNS = 1024  # of a tile whose sums stay in the nearest caches while all rows go by
POINTS, CHUNK = 64, 32  # of a tile of points, turned so that a coordinate's values lie side by side
AHEAD = 64  # numbers of a row that are fetched before they are needed


@compiled
def first_beyond(rows: Array, start: int, end: int, largest: float) -> int:
    """The first row with a value that is not within [-largest, largest], NaN among them; -1 where there is none.

    Of columns start, ..., end - 1.
    """
    wide()
    for i in range(rows.shape[0]):
        beyond, row = 0, rows[i, start:end]
        for j in range(row.size):
            beyond += not abs(row[j]) <= largest
        if beyond > 0:
            return i
    return -1


@compiled
def _added(total: float, value: float) -> tuple[float, float]:
    """Their sum, and what it rounds off. Source: Knuth 1997, section 4.2.2, Theorem B."""
    moved = total + value
    part = moved - total
    return moved, (total - (moved - part)) + (value - part)


@compiled
def _noted(total: float, error: float, size: float, value: float) -> tuple[float, float, float]:
    """total + error with a value more, and `size` with what this rounds off."""
    total, off = _added(total, value)
    error, rest = _added(error, off)
    return total, error, size + abs(rest)


@compiled
def add_rows(rows: Array, weights: Array, start: int, sums: Array, errors: Array, sizes: Array, largest: float) -> int:
    """sums + errors = sum_i weights_i rows_i but for what is `sizes` at most, but for rounding in these.

    Of columns start, start + 1, ..., as many as there are sums; weighted values are rounded one by one. Returns how
    often values, or one of four, were not within [-largest, largest], NaN among them.
    """
    wide()
    whole, beyond = rows.shape[0] // 4 * 4, 0
    for first in range(0, sums.size, COLUMNS):
        last = min(first + COLUMNS, sums.size)
        total, error, size = sums[first:last], errors[first:last], sizes[first:last]
        for i in range(0, whole, 4):
            a, b = rows[i, start + first : start + last], rows[i + 1, start + first : start + last]
            c, d = rows[i + 2, start + first : start + last], rows[i + 3, start + first : start + last]
            u, v, w, x = weights[i], weights[i + 1], weights[i + 2], weights[i + 3]
            for j in range(last - first):
                held = _noted(total[j], error[j], size[j], a[j] * u)
                held = _noted(held[0], held[1], held[2], b[j] * v)
                held = _noted(held[0], held[1], held[2], c[j] * w)
                total[j], error[j], size[j] = _noted(held[0], held[1], held[2], d[j] * x)
                upper, lower = (abs(a[j]) <= largest) & (abs(b[j]) <= largest), abs(c[j]) <= largest
                beyond += not upper & lower & (abs(d[j]) <= largest)
        for i in range(whole, rows.shape[0]):
            a, u = rows[i, start + first : start + last], weights[i]
            for j in range(last - first):
                total[j], error[j], size[j] = _noted(total[j], error[j], size[j], a[j] * u)
                beyond += not abs(a[j]) <= largest
    return beyond


@compiled
def take_columns(rows: Array, start: int, columns: Array) -> None:
    """columns[j, i] = rows[i, start + j], as many columns as there is room for; each has room for all rows."""
    wide()
    count, width = rows.shape[0], columns.shape[0]
    if count < SIDE or width < SIDE:
        for i in range(count):
            for j in range(width):
                columns[j, i] = rows[i, start + j]
        return
    for first in range(0, count, SIDE):
        i = min(first, count - SIDE)  # the last ones again, where they are fewer than eight
        for left in range(0, width, SIDE):
            j = min(left, width - SIDE)
            for k in range(SIDE, 2 * SIDE):
                fetch(rows, i + k, start + j)
            turn(rows, i, start + j, columns, j, i)


@compiled
def add_along(columns: Array, first: int, last: int, sums: Array, errors: Array, sizes: Array) -> None:
    """`add_rows` of numbers first, ..., last - 1 of each column, all of weight 1: sums over a column, not over rows.

    columns (d, whole lines of lanes); what is beside these numbers is overwritten.
    """
    lines, each = columns.reshape(-1, WIDTH), columns.shape[1] // WIDTH
    begin, end = first // WIDTH, (last + WIDTH - 1) // WIDTH
    held = np.empty((3, WIDTH))
    for j in range(columns.shape[0]):
        for i in range(begin * WIDTH, first):
            columns[j, i] = 0.0
        for i in range(last, end * WIDTH):
            columns[j, i] = 0.0
        total, error, size = everywhere(0.0), everywhere(0.0), everywhere(0.0)
        for k in range(j * each + begin, j * each + end):
            total, error, size = _noted(total, error, size, line_of(lines, k))
        write_line(held, 0, total)
        write_line(held, 1, error)
        write_line(held, 2, size)
        sums[j] = errors[j] = sizes[j] = 0.0
        for k in range(2 * WIDTH):  # of sums and of errors
            sums[j], errors[j], sizes[j] = _noted(sums[j], errors[j], sizes[j], held[k // WIDTH, k % WIDTH])
        for k in range(WIDTH):
            sizes[j] += held[2, k]


@compiled
def sort_few(lines: Array) -> None:
    """Sort each column of a few lines, by comparing neighbours: all columns side by side."""
    wide()
    count = lines.shape[0]
    for step in range(count):
        for i in range(step % 2, count - 1, 2):
            upper, lower = lines[i], lines[i + 1]
            for j in range(lines.shape[1]):
                a, b = upper[j], lower[j]
                upper[j] = a if a < b else b
                lower[j] = b if a < b else a


@compiled
def add_squared_lengths(rows: Array, point: Array, found: Array) -> None:
    """found_i += ||rows_i - point||^2, coordinate after coordinate, as `add_squares`; sixteen rows side by side."""
    wide()
    whole, width = rows.shape[0] // WIDTH * WIDTH, point.size // SIDE * SIDE
    tile, sums = np.empty((SIDE, WIDTH)), np.empty((1, WIDTH))
    for i in range(0, whole, WIDTH):
        total = everywhere(0.0)
        for j in range(0, width, SIDE):
            for k in range(WIDTH):
                fetch(rows, i + k, j + AHEAD)
            turn(rows, i, j, tile, 0, 0)
            turn(rows, i + SIDE, j, tile, 0, SIDE)
            for k in range(SIDE):
                gap = point[j + k] - line_of(tile, k)
                total = total + gap * gap
        write_line(sums, 0, total)
        for k in range(WIDTH):
            found[i + k] += _rest(rows[i + k], point, width, sums[0, k])
    for i in range(whole, rows.shape[0]):
        found[i] += _rest(rows[i], point, 0, 0.0)


@compiled
def _rest(row: Array, point: Array, start: int, total: float) -> float:
    for j in range(start, point.size):
        gap = point[j] - row[j]
        total += gap * gap
    return total


@compiled
def add_squares(rows: Array, points: Array, found: Array) -> None:
    """found[i, j] += ||rows_i - points_j||^2, coordinate after coordinate: a pair's bits depend on the pair alone."""
    wide()
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
