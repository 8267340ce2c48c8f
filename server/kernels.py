"""Compiled sums over public feature columns.

Every pass walks the rows in tiles of a fixed length and sums each tile pairwise, so a sum depends on the data alone,
never on threads or vector width. Arrays of features are (p, n), one feature a line: so one loop serves every p, and
the compiler can take several rows at once.
"""

import math

import numba
import numpy as np
from numpy.typing import NDArray

from protocol.compiling import compiler

Array = NDArray[np.float64]

TILE = 512  # the buffers of one tile fit the first-level cache; 512 factors of at most 2 cannot overflow

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
def fill_index(columns: Array, start: int, u: Array, z: Array) -> None:
    """z_i = u . v_i for the rows from `start` on, as many as z holds."""
    end = start + z.shape[0]
    first = columns[0, start:end]
    for i in range(z.shape[0]):
        z[i] = u[0] * first[i]
    for j in range(1, columns.shape[0]):
        column = columns[j, start:end]
        factor = u[j]
        for i in range(z.shape[0]):
            z[i] += factor * column[i]


@compiled
def add_sums(columns: Array, start: int, values: Array, scratch: Array, sums: Array) -> None:
    """sums += sum_i values_i v_i over the rows from `start` on, as many as `values` holds."""
    count = values.shape[0]
    for j in range(columns.shape[0]):
        column = columns[j, start : start + count]
        for i in range(count):
            scratch[i] = values[i] * column[i]
        sums[j] += fold(scratch, count)


@compiled
def add_moments(columns: Array, start: int, values: Array, left: Array, scratch: Array, moments: Array) -> None:
    """Lower triangle of moments += sum_i values_i v_i v_i' over the rows from `start` on."""
    count = values.shape[0]
    half = count // 2
    for j in range(columns.shape[0]):
        column = columns[j, start : start + count]
        for i in range(count):
            left[i] = values[i] * column[i]
        for k in range(j + 1):
            other = columns[k, start : start + count]
            for i in range(half):  # the first step of the pairwise sum, joined with the product
                scratch[i] = left[i] * other[i] + left[i + half] * other[i + half]
            total = fold(scratch, half) if half > 0 else 0.0
            if count % 2 == 1:
                total += left[count - 1] * other[count - 1]
            moments[j, k] += total


@compiled
def average(sums: Array, moments: Array, count: int) -> None:
    """Divide both by `count` and fill the upper triangle of `moments`."""
    for j in range(sums.shape[0]):
        sums[j] /= count
        for k in range(j + 1):
            moments[j, k] /= count
            moments[k, j] = moments[j, k]


@compiled
def mean_moment(columns: Array, values: Array) -> Array:
    """(1/n) sum_i values_i v_i v_i', shape (p, p)."""
    p, n = columns.shape
    moments = np.zeros((p, p))
    left = np.empty(TILE)
    scratch = np.empty(TILE)
    for start in range(0, n, TILE):
        end = min(start + TILE, n)
        add_moments(columns, start, values[start:end], left, scratch, moments)
    average(np.zeros(p), moments, n)
    return moments
