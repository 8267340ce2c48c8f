"""Second moments of features and fixed draws of fresh rows, in one order of addition on every machine."""

import numpy as np
from numpy.typing import NDArray

from protocol.choice_features import blocks, row_sizes
from protocol.coins import Address, Floats, Stream
from protocol.features import differences, project
from protocol.problem import DRAWN, Problem

BLOCK = 4096
ORACLE_ROWS = 1 << 17


def gram(rows: Floats, weights: Floats | None = None) -> Floats:
    """(1/n) sum_i w_i x_i x_i^T for rows of shape (n, p), over fixed blocks and without BLAS; shape (p, p)."""
    n, p = rows.shape
    total = np.zeros((p, p))
    for start in range(0, n, BLOCK):
        block = np.ascontiguousarray(rows[start : start + BLOCK].T)
        left = block if weights is None else block * weights[start : start + BLOCK]
        for j in range(p):
            total[j, j:] += (left[j] * block[j:]).sum(axis=1)
    below = np.tril_indices(p, -1)
    total[below] = total.T[below]
    total /= n
    return total


def dot(rows: Floats, theta: Floats) -> Floats:
    """rows . theta by a plain loop over coordinates; shape (n,)."""
    z = np.zeros(len(rows))
    for column, factor in zip(rows.T, theta, strict=True):
        z += column * factor
    return z


def fresh(problem: Problem, seed: int, count: int, repetition: int = 0) -> Floats:
    """`count` fresh differences x that no estimate has seen, shape (count, dimension): stream METRICS.

    Features of a file have no law to draw from: then all its rows are used, or `count` evenly spaced ones of more.
    """
    if problem.features in DRAWN:
        return differences(problem, Address(seed, Stream.METRICS, 0, repetition), 0, count)
    assert problem.design is not None
    size = len(problem.design)
    x = differences(problem, Address(seed, Stream.METRICS), 0, size)
    return x if size <= count else x[np.arange(count) * size // count]


def fresh_blocks(problem: Problem, seed: int, count: int, repetition: int = 0) -> tuple[Floats, NDArray[np.int32]]:
    """`count` fresh sets of choices, relative to their first: (rows, choices, dimension), and sizes (rows,).

    Of a file all rows are used, or `count` evenly spaced ones of more.
    """
    address = Address(seed, Stream.METRICS, 0, repetition)
    if problem.design is None:
        return blocks(problem, address, 0, count), row_sizes(problem, 0, count)
    size = len(problem.design)
    chosen = np.arange(size) if size <= count else np.arange(count) * size // count
    return blocks(problem, address, 0, size)[chosen], row_sizes(problem, 0, size)[chosen]


def reduce(problem: Problem, x: Floats) -> Floats:
    """Rows in the coordinates that are estimated: Q^T x where theta sums to zero, else x."""
    return project(x) if problem.sum_zero else x
