"""Compiled sums over public features.

Every pass walks the rows in tiles of a fixed length and sums each tile pairwise, so a sum depends on the data alone,
never on threads or vector width. Features are rows (n, p), as they come; a tile of them is written as columns into a
buffer that fits the first-level cache: so one loop serves every p, and the compiler can take several rows at once.
"""

import math

import numba
import numpy as np
from numpy.typing import NDArray

from protocol.compiling import compiler
from server.kernels_vector import WIDTH, everywhere, line_of, multiply_add, total, turn_square, write_line

Array = NDArray[np.float64]

TILE = 256  # the buffers of one tile fit the first-level cache; 256 factors of at most 2 cannot overflow
COLUMN = (
    TILE // WIDTH + 1
)  # lines of lanes that a column takes: a gap, or columns were in each other's place in the cache

compiled = compiler(numba.njit)


@compiled
def fold(values: Array, count: int) -> float:
    """Pairwise sum of values[:count], which is overwritten."""
    while count > 1:
        half = count // 2
        for i in range(half):
            values[i] += values[i + half]
        if count % 2 == 1:
            values[0] += values[count - 1]
        count = half
    return float(values[0])


@compiled
def sum_of_logs(values: Array, count: int, halvings: int) -> float:
    """Sum of log(values[:count]) by logarithms of products of about 2^halvings factors; values is overwritten.

    The caller sees to it that 2^halvings + halvings factors neither overflow nor underflow.
    """
    for _ in range(halvings):
        if count == 1:
            break
        half = count // 2
        for i in range(half):
            values[i] *= values[i + half]
        if count % 2 == 1:
            values[0] *= values[count - 1]
        count = half
    total = 0.0
    for i in range(count):
        total += math.log(values[i])
    return total


@compiled
def new_tile(p: int) -> Array:
    """Room for the columns of a tile, in fours: those beyond p are zero."""
    return np.zeros(((p + 3) // 4 * 4, COLUMN * WIDTH))


@compiled
def fill_tile(rows: Array, start: int, tile: Array) -> int:
    """Write the rows from `start` on as columns, and zeros up to whole lines; how many rows a tile has of them.

    rows (n, p), tile of `new_tile`.
    """
    count, p = min(TILE, len(rows) - start), rows.shape[1]
    squared = count // 4 * 4 if p >= 4 else 0  # rows that are turned four by four; squares may overlap
    for i in range(0, squared, 4):
        for j in range(0, p, 4):
            turn_square(rows, start + i, min(j, p - 4), tile, i)
    for i in range(squared, count):
        for j in range(p):
            tile[j, i] = rows[start + i, j]
    for j in range(p):
        for i in range(count, lines_of(count) * WIDTH):
            tile[j, i] = 0.0
    return count


@compiled
def lines_of(count: int) -> int:
    """How many lines of lanes hold so many numbers."""
    return (count + WIDTH - 1) // WIDTH


@compiled
def fill_index(tile: Array, u: Array, count: int, z: Array) -> None:
    """z_i = u . v_i for the first `count` rows of a tile; z (TILE,) is zero beyond, as far as whole lines go."""
    for i in range(lines_of(count)):
        index = u[0] * line_of(tile, i)
        for j in range(1, u.size):
            index = multiply_add(u[j], line_of(tile, j * COLUMN + i), index)
        write_line(z, i, index)


@compiled
def indices(rows: Array, u: Array) -> Array:
    """u . v_i of every row, shape (n,)."""
    z = np.empty(len(rows))
    for i in range(z.size):
        total = u[0] * rows[i, 0]
        for j in range(1, u.size):
            total += u[j] * rows[i, j]
        z[i] = total
    return z


@compiled
def add_sums(tile: Array, count: int, values: Array, sums: Array) -> None:
    """sums += sum_i values_i v_i over the first `count` rows of a tile; values (TILE,) are set to zero beyond."""
    _end_line(values, count)
    for k in range(0, sums.size, 4):
        at = k * COLUMN
        a, b, c, d = everywhere(0.0), everywhere(0.0), everywhere(0.0), everywhere(0.0)
        for i in range(lines_of(count)):
            factor = line_of(values, i)
            a = multiply_add(factor, line_of(tile, at + i), a)
            b = multiply_add(factor, line_of(tile, at + COLUMN + i), b)
            c = multiply_add(factor, line_of(tile, at + 2 * COLUMN + i), c)
            d = multiply_add(factor, line_of(tile, at + 3 * COLUMN + i), d)
        _add_four(sums[k:], total(a), total(b), total(c), total(d))


@compiled
def add_moments(tile: Array, count: int, values: Array, moments: Array) -> None:
    """Lower triangle of moments += sum_i values_i v_i v_i' over the first `count` rows of a tile.

    values (TILE,) are set to zero beyond.
    """
    _end_line(values, count)
    for j in range(0, len(moments), 2):
        for k in range(0, j + 2, 4):
            _add_block(tile, lines_of(count), values, j, k, moments)


@compiled
def _end_line(values: Array, count: int) -> None:
    for i in range(count, lines_of(count) * WIDTH):
        values[i] = 0.0


@compiled
def _add_block(tile: Array, count: int, values: Array, j: int, k: int, moments: Array) -> None:
    """Of two rows and four columns of the moments, over `count` lines: their sums stay in registers."""
    row, at = j * COLUMN, k * COLUMN
    a, b, c, d = everywhere(0.0), everywhere(0.0), everywhere(0.0), everywhere(0.0)
    e, f, g, h = everywhere(0.0), everywhere(0.0), everywhere(0.0), everywhere(0.0)
    for i in range(count):
        factor = line_of(values, i)
        upper, lower = factor * line_of(tile, row + i), factor * line_of(tile, row + COLUMN + i)
        column = line_of(tile, at + i)
        a, e = multiply_add(upper, column, a), multiply_add(lower, column, e)
        column = line_of(tile, at + COLUMN + i)
        b, f = multiply_add(upper, column, b), multiply_add(lower, column, f)
        column = line_of(tile, at + 2 * COLUMN + i)
        c, g = multiply_add(upper, column, c), multiply_add(lower, column, g)
        column = line_of(tile, at + 3 * COLUMN + i)
        d, h = multiply_add(upper, column, d), multiply_add(lower, column, h)
    _add_in_triangle(moments, j, k, total(a), total(b), total(c), total(d))
    _add_in_triangle(moments, j + 1, k, total(e), total(f), total(g), total(h))


@compiled
def _add_in_triangle(moments: Array, j: int, k: int, a: float, b: float, c: float, d: float) -> None:
    """Add to four entries of row j from k on, as far as they are below the diagonal or on it."""
    if j < len(moments):
        moments[j, k] += a
        if k + 1 <= j:
            moments[j, k + 1] += b
        if k + 2 <= j:
            moments[j, k + 2] += c
        if k + 3 <= j:
            moments[j, k + 3] += d


@compiled
def _add_four(sums: Array, a: float, b: float, c: float, d: float) -> None:
    """Add to the first four, or as many as there are."""
    if sums.size > 0:
        sums[0] += a
    if sums.size > 1:
        sums[1] += b
    if sums.size > 2:
        sums[2] += c
    if sums.size > 3:
        sums[3] += d


@compiled
def average(sums: Array, moments: Array, count: int) -> None:
    """Divide both by `count` and fill the upper triangle of `moments`, which may be empty."""
    for j in range(sums.size):
        sums[j] /= count
    for j in range(len(moments)):
        for k in range(j + 1):
            moments[j, k] /= count
            moments[k, j] = moments[j, k]


@compiled
def add_moment(rows: Array, values: Array, moments: Array) -> None:
    """Lower triangle of moments += sum_i values_i v_i v_i'; rows in parts of whole tiles give the bits of all at once.

    rows (n, p), values (n,), moments (p, p).
    """
    tile, held = new_tile(rows.shape[1]), np.empty(TILE)
    for start in range(0, len(rows), TILE):
        count = fill_tile(rows, start, tile)
        for i in range(count):
            held[i] = values[start + i]
        add_moments(tile, count, held, moments)


@compiled
def mean_moment(rows: Array, values: Array) -> Array:
    """(1/n) sum_i values_i v_i v_i', shape (p, p)."""
    n, p = rows.shape
    moments = np.zeros((p, p))
    add_moment(rows, values, moments)
    average(np.zeros(0), moments, n)
    return moments


@compiled
def add_product(rows: Array, values: Array, sums: Array) -> None:
    """sums += sum_i values_i v_i; rows (n, p), values (n,), sums (p,)."""
    tile, held = new_tile(rows.shape[1]), np.empty(TILE)
    for start in range(0, len(rows), TILE):
        count = fill_tile(rows, start, tile)
        for i in range(count):
            held[i] = values[start + i]
        add_sums(tile, count, held, sums)


@compiled
def mean_product(rows: Array, values: Array) -> Array:
    """(1/n) sum_i values_i v_i, shape (p,)."""
    sums = np.zeros(rows.shape[1])
    add_product(rows, values, sums)
    average(sums, np.zeros((0, 0)), len(rows))
    return sums


@compiled
def largest(rows: Array, scales: Array) -> Array:
    """max_i |v_ij| times the row's scale, where there are scales: shape (p,)."""
    found = np.zeros(rows.shape[1])
    for i in range(len(rows)):
        for j in range(found.size):
            size = abs(rows[i, j]) * scales[i] if scales.size else abs(rows[i, j])
            if size > found[j]:
                found[j] = size
    return found
