"""Compiled sums of bounded gradients of many records: the same bits as numpy's way, which `client.gradient_sums` has.

Whole numbers add up in any order. All arithmetic before that is of one row, in the order of numpy's loops.
"""

import numba
import numpy as np
from numpy.typing import NDArray

from protocol.compiling import compiler

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

compiled = compiler(numba.njit)

SIDE_BY_SIDE = 8  # rows whose sums over coordinates go forward together: each of them is a chain of additions


@compiled
def products(rows: Floats, first: int, point: Floats, found: Floats) -> None:
    """found_k = rows_(first + k) . point for eight rows, coordinate after coordinate."""
    a = b = c = d = e = f = g = h = 0.0
    for j in range(point.size):
        factor = point[j]
        a += rows[first, j] * factor
        b += rows[first + 1, j] * factor
        c += rows[first + 2, j] * factor
        d += rows[first + 3, j] * factor
        e += rows[first + 4, j] * factor
        f += rows[first + 5, j] * factor
        g += rows[first + 6, j] * factor
        h += rows[first + 7, j] * factor
    found[0], found[1], found[2], found[3], found[4], found[5], found[6], found[7] = a, b, c, d, e, f, g, h


@compiled
def all_products(rows: Floats, point: Floats, found: Floats) -> None:
    """found_i = rows_i . point, of a multiple of eight rows."""
    for first in range(0, rows.shape[0], SIDE_BY_SIDE):
        products(rows, first, point, found[first : first + SIDE_BY_SIDE])


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

    factor_i = rows_i . point - numbers_i, or numbers_i where the point is empty; of a multiple of eight rows. What is
    beyond the bound is moved to it if it `clips`, else to 0.
    """
    factors, sums = np.empty(SIDE_BY_SIDE), np.zeros(total.size, np.int64)
    beyond = bound if clips else 0.0
    for first in range(0, rows.shape[0], SIDE_BY_SIDE):
        if point.size > 0:
            products(rows, first, point, factors)
            for k in range(SIDE_BY_SIDE):
                factors[k] -= numbers[first + k]
        else:
            factors[:] = numbers[first : first + SIDE_BY_SIDE]
        for k in range(SIDE_BY_SIDE):
            i, factor = first + k, factors[k]
            for j in range(total.size):
                value = factor * rows[i, j] - centre[j]
                value = value if value == value else 0.0  # NaN counts as 0
                value = beyond if value > bound else value
                value = -beyond if value < -bound else value
                sums[j] += np.int64(value * scale)
    total += sums
