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
MOST = 2.0**53  # units of a sum


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
    for j in range(tile.shape[0]):
        factor = point[j]
        for i in range(TILE):
            found[i] += tile[j, i] * factor


@compiled
def _fetch_part(rows: Floats, first: int, part: int) -> None:
    """Have a part of the tile at `first` brought near, one of as many as it has columns: more at once would queue."""
    for number in range(part * TILE, (part + 1) * TILE, SIDE):
        fetch(rows, first, number)


@compiled
def _add_clipped(
    tile: Floats, factors: Floats, centre: Floats, bound: float, scale: float, held: Floats, rows: Floats, after: int
) -> None:
    """held_ji += factor_i tile_ji - centre_j, moved to the bound where it is beyond, truncated; NaN counts as 0.

    The tile at `after` is fetched meanwhile.
    """
    wide()
    for j in range(tile.shape[0]):  # no slices: each would cost as much as a vector of numbers, for its references
        away = centre[j]
        _fetch_part(rows, after, j)
        for i in range(TILE):
            value = factors[i] * tile[j, i] - away
            value = value if value == value else 0.0
            value = value if value < bound else bound
            value = value if value > -bound else -bound
            held[j, i] += np.trunc(value * scale)


@compiled
def _add_inner(
    tile: Floats, factors: Floats, centre: Floats, bound: float, scale: float, held: Floats, rows: Floats, after: int
) -> None:
    """The same of what is within the bound; the rest counts as 0, NaN too."""
    wide()
    for j in range(tile.shape[0]):
        away = centre[j]
        _fetch_part(rows, after, j)
        for i in range(TILE):
            value = factors[i] * tile[j, i] - away
            value = value if abs(value) <= bound else 0.0
            held[j, i] += np.trunc(value * scale)


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
    bound is moved to it if it `clips`, else to 0. Sums are of doubles, exact below 2^53 units: then no processor has to
    make whole numbers one by one. Raises ValueError for a tile in part, and for so many rows that a sum may be larger.
    """
    wide()
    if rows.shape[0] % TILE > 0:
        raise ValueError("expected rows in whole tiles")
    if not rows.shape[0] // TILE * (bound * scale) <= MOST:
        raise ValueError("expected sums of less than 2^53 units")
    tile, factors, held = np.empty((total.size, TILE)), np.empty(TILE), np.zeros((total.size, TILE))
    for first in range(0, rows.shape[0], TILE):
        _columns(rows, first, tile)
        if point.size > 0:
            _products(tile, point, factors)
            for i in range(TILE):
                factors[i] -= numbers[first + i]
        else:
            for i in range(TILE):
                factors[i] = numbers[first + i]
        if clips:
            _add_clipped(tile, factors, centre, bound, scale, held, rows, first + TILE)
        else:
            _add_inner(tile, factors, centre, bound, scale, held, rows, first + TILE)
    for j in range(total.size):
        for i in range(TILE):
            total[j] += np.int64(held[j, i])
