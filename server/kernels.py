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

Array = NDArray[np.float64]

TILE = 256  # the buffers of one tile fit the first-level cache; 256 factors of at most 2 cannot overflow
_GAP = 8  # between columns of a tile, which would else be in each other's place in the cache

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
    """Room for the columns of a tile."""
    return np.empty((p, TILE + _GAP))


@compiled
def fill_tile(rows: Array, start: int, tile: Array) -> int:
    """Write the rows from `start` on as columns, and zeros up to a multiple of eight; how many rows a tile has of them.

    rows (n, p), tile of `new_tile`.
    """
    count = min(TILE, len(rows) - start)
    for i in range(count):
        for j in range(len(tile)):
            tile[j, i] = rows[start + i, j]
    for j in range(len(tile)):
        for i in range(count, (count + 7) // 8 * 8):
            tile[j, i] = 0.0
    return count


@compiled
def fill_index(tile: Array, u: Array, z: Array) -> None:
    """z_i = u . v_i for the rows of a tile, as many as z holds."""
    for i in range(z.size):
        z[i] = u[0] * tile[0, i]
    for j in range(1, u.size):
        factor = u[j]
        for i in range(z.size):
            z[i] += factor * tile[j, i]


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
def add_products(tile: Array, eighth: int, values: Array, scratch: Array, sums: Array) -> None:
    """sums_j += sum_i values_i v_ij over 8 `eighth` rows of a tile; the first three steps of a pairwise sum at once."""
    a, b, c, d = eighth, 2 * eighth, 3 * eighth, 4 * eighth
    e, f, g = 5 * eighth, 6 * eighth, 7 * eighth
    for j in range(sums.size):
        for i in range(eighth):
            scratch[i] = (
                (values[i] * tile[j, i] + values[i + d] * tile[j, i + d])
                + (values[i + b] * tile[j, i + b] + values[i + f] * tile[j, i + f])
            ) + (
                (values[i + a] * tile[j, i + a] + values[i + e] * tile[j, i + e])
                + (values[i + c] * tile[j, i + c] + values[i + g] * tile[j, i + g])
            )
        sums[j] += fold(scratch, eighth)


@compiled
def add_sums(tile: Array, count: int, values: Array, scratch: Array, sums: Array) -> None:
    """sums += sum_i values_i v_i over the first `count` rows of a tile; values (TILE,) are set to zero beyond."""
    eighth = (count + 7) // 8
    for i in range(count, 8 * eighth):
        values[i] = 0.0
    add_products(tile, eighth, values, scratch, sums)


@compiled
def add_moments(tile: Array, count: int, values: Array, left: Array, scratch: Array, moments: Array) -> None:
    """Lower triangle of moments += sum_i values_i v_i v_i' over the first `count` rows of a tile.

    values (TILE,) are set to zero beyond; left (TILE,) and scratch are overwritten.
    """
    eighth = (count + 7) // 8
    for i in range(count, 8 * eighth):
        values[i] = 0.0
    for j in range(len(moments)):
        for i in range(8 * eighth):
            left[i] = values[i] * tile[j, i]
        add_products(tile, eighth, left, scratch, moments[j, : j + 1])


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
    tile, held, left, scratch = new_tile(rows.shape[1]), np.empty(TILE), np.empty(TILE), np.empty(TILE)
    for start in range(0, len(rows), TILE):
        count = fill_tile(rows, start, tile)
        for i in range(count):
            held[i] = values[start + i]
        add_moments(tile, count, held, left, scratch, moments)


@compiled
def mean_moment(rows: Array, values: Array) -> Array:
    """(1/n) sum_i values_i v_i v_i', shape (p, p)."""
    n, p = rows.shape
    moments = np.zeros((p, p))
    add_moment(rows, values, moments)
    average(np.zeros(0), moments, n)
    return moments


@compiled
def mean_product(rows: Array, values: Array) -> Array:
    """(1/n) sum_i values_i v_i, shape (p,)."""
    n, p = rows.shape
    sums = np.zeros(p)
    tile, held, scratch = new_tile(p), np.empty(TILE), np.empty(TILE)
    for start in range(0, n, TILE):
        count = fill_tile(rows, start, tile)
        for i in range(count):
            held[i] = values[start + i]
        add_sums(tile, count, held, scratch, sums)
    average(sums, np.zeros((0, 0)), n)
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
