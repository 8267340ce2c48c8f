"""Compiled sums of bounded gradients of many records: the same bits as numpy's way, which `client.gradient_sums` has.

Whole numbers add up in any order. All arithmetic before that is of one row, in the order of numpy's loops. A tile of
rows is turned into columns, so that each loop takes several rows at once, and the next tile is fetched meanwhile.
"""

import numba
import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from protocol.compiling import compiler, widening
from protocol.turning import SIDE, fetcher, turner

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

compiled, wide = compiler(numba.njit), widening(numba.extending.intrinsic, numba.types.void)
turn, fetch = turner(numba, ir), fetcher(numba, ir)

TILE = 64  # rows: it and the next one fit in a first-level cache


@compiled
def _columns(rows: Floats, first: int, tile: Floats) -> None:
    """tile[j, i] = rows[first + i, j]."""
    wide()
    width = len(tile)
    for i in range(0, TILE, SIDE):
        for j in range(0, width - SIDE + 1, SIDE):
            turn(rows, first + i, j, tile, j, i)
        if width % SIDE and width > SIDE:  # the last ones, some of them again
            turn(rows, first + i, width - SIDE, tile, width - SIDE, i)
    if width < SIDE:
        for i in range(TILE):
            for j in range(width):
                tile[j, i] = rows[first + i, j]


@compiled
def _products(tile: Floats, point: Floats, found: Floats) -> None:
    """found_i = row i of the tile . point, coordinate after coordinate."""
    wide()
    for i in range(TILE):
        found[i] = 0.0
    for j in range(len(tile)):
        column, factor = tile[j], point[j]
        for i in range(TILE):
            found[i] += column[i] * factor


@compiled
def _bounded_sum(column: Floats, factors: Floats, centre: float, bound: float, beyond: float, scale: float) -> np.int64:
    """The sum over a tile of factor_i column_i - centre, bounded and truncated."""
    wide()
    total = np.int64(0)
    for i in range(TILE):
        value = factors[i] * column[i] - centre
        value = value if value == value else 0.0  # NaN counts as 0
        value = beyond if value > bound else value
        value = -beyond if value < -bound else value
        total += np.int64(value * scale)
    return total


@compiled
def all_products(rows: Floats, point: Floats, found: Floats) -> None:
    """found_i = rows_i . point, of whole tiles. Raises ValueError."""
    if rows.shape[0] % TILE > 0:
        raise ValueError("expected rows in whole tiles")
    tile = np.empty((rows.shape[1], TILE))
    for first in range(0, rows.shape[0], TILE):
        _columns(rows, first, tile)
        _products(tile, point, found[first : first + TILE])


@compiled
def add_gradients(
    rows: Floats,
    numbers: Floats,
    point: Floats,
    centre: Floats,
    bound: float,
    clips: bool,
    scale: float,
    total: Integers,
) -> None:
    """total_j += sum_i factor_i rows_ij - centre_j, each within the bound, truncated to whole units of 1 / scale.

    factor_i = rows_i . point - numbers_i, or numbers_i where the point is empty; of whole tiles. What is beyond the
    bound is moved to it if it `clips`, else to 0. Raises ValueError for a tile in part.
    """
    wide()
    if rows.shape[0] % TILE > 0:
        raise ValueError("expected rows in whole tiles")
    tile, factors, beyond = np.empty((total.size, TILE)), np.empty(TILE), bound if clips else 0.0
    for first in range(0, rows.shape[0], TILE):
        _columns(rows, first, tile)
        if point.size > 0:
            _products(tile, point, factors)
            for i in range(TILE):
                factors[i] -= numbers[first + i]
        else:
            for i in range(TILE):
                factors[i] = numbers[first + i]
        for j in range(total.size):
            for number in range(j * TILE, (j + 1) * TILE, SIDE):  # of the tile's, all in all
                fetch(rows, first + TILE, number)
            total[j] += _bounded_sum(tile[j], factors, centre[j], bound, beyond, scale)
