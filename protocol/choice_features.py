"""Public features of sets of choices: what client and server both compute, row by row, with the same bits.

A row has K choices; its block is relative to the first: x_k = phi_k - phi_0, so x_0 = 0, and two choices are a pair of
`protocol.features`. Blocks are projected, weighted and truncated to the grid, in that order; absent choices are zero.
"""

import math
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocol.coins import Address, Floats, Stream, normal, words
from protocol.features import Rounded, project
from protocol.grid import truncate
from protocol.problem import DRAWN, Problem

Sizes = NDArray[np.int32]
_SAMPLE = 4096  # rows that a default is measured on, where features are drawn


def row_sizes(problem: Problem, start: int, stop: int) -> Sizes:
    """How many choices rows start, ..., stop - 1 have, shape (rows,); raises ValueError for rows that are not there."""
    if problem.sizes is None:
        return np.full(stop - start, problem.choices, dtype=np.int32)
    sizes = problem.sizes[start:stop]
    if len(sizes) != stop - start:
        raise ValueError(f"expected rows below {len(problem.sizes)}, got rows {start}..{stop - 1}")
    return sizes.astype(np.int32, copy=False)


def blocks(problem: Problem, address: Address, start: int, stop: int) -> Floats:
    """x_k = phi_k - phi_0 of rows start, ..., stop - 1; shape (rows, choices, dimension).

    Drawn features take K d words a row: phi_k standard normal ("gaussian"), or normalised to length one ("sphere").
    """
    k, d, count = problem.choices, problem.dimension, stop - start
    if problem.features in DRAWN:
        points = normal(words(address, start * k * d, count * k * d)).reshape(count, k, d)
        if problem.features == "sphere":
            length = np.zeros((count, k))
            for j in range(d):  # a plain loop: one order of addition on every machine
                length += points[:, :, j] ** 2
            points /= np.sqrt(length)[:, :, None]
        return points - points[:, :1]
    assert problem.design is not None
    chosen = problem.design[start:stop]
    if len(chosen) != count:
        raise ValueError(f"expected rows below {len(problem.design)}, got rows {start}..{stop - 1}")
    if problem.features == "values":
        x = chosen.astype(np.float64) - chosen[:, :1]
    else:
        x = np.zeros((count, k, d))
        row, place = np.arange(count)[:, None], np.arange(k)[None, :]
        x[row, place, np.maximum(chosen, 0)] += 1.0
        x[row, place, chosen[:, :1]] -= 1.0
    x[np.arange(k) >= row_sizes(problem, start, stop)[:, None]] = 0.0
    return x


def reduced_blocks(problem: Problem, seed: int, n: int, repetition: int, start: int, stop: int) -> Floats:
    """Blocks of Q^T x (or x) before weighting and truncation, shape (rows, choices, p)."""
    return reduce_blocks(problem, blocks(problem, Address(seed, Stream.PROBLEM, n, repetition), start, stop))


def reduce_blocks(problem: Problem, x: Floats) -> Floats:
    """Blocks in the coordinates that are estimated: Q^T x where theta sums to zero, else x."""
    if not problem.sum_zero:
        return x
    return project(x.reshape(-1, problem.dimension)).reshape(*x.shape[:2], problem.reduced_dimension)


def of_choices(items: int, sets: NDArray[np.int32], features: NDArray[np.float64] | None) -> Problem:
    """What a file of top choices asks: the score of each item, or the weights of their `features` (items, p).

    `sets` (n, K) are numbers of items, -1 where a row has fewer than K. Raises ValueError as `Problem` does.
    """
    counts = np.asarray((sets >= 0).sum(axis=1), dtype=np.int32)
    sizes, most = None if (counts == sets.shape[1]).all() else counts, sets.shape[1]
    make = partial(Problem, bound=None, kind="choice", model="plackett-luce", choices=most, sizes=sizes)
    if features is None:
        return make(items, "items", sum_zero=True, design=sets)
    phi = np.where((sets >= 0)[:, :, None], features[sets], 0.0)
    return make(features.shape[1], "values", sum_zero=False, design=phi)


def packed(problem: Problem) -> NDArray[np.float64] | NDArray[np.int32] | None:
    """A problem's design as one array, sizes included: absent choices are NaN, or -1. None where features are drawn."""
    if problem.design is None or problem.sizes is None or problem.features == "items":
        return problem.design
    array = problem.design.astype(np.float64)
    array[np.arange(problem.choices) >= problem.sizes[:, None]] = np.nan
    return array


def unpacked(array: NDArray[Any]) -> tuple[NDArray[Any], Sizes | None]:
    """The inverse of `packed`: the design and its sizes, None where all rows have all choices.

    Raises ValueError for an array without an axis of choices.
    """
    values = array.dtype.kind == "f"
    if array.ndim != (3 if values else 2):
        raise ValueError(f"expected choices of shape (n, K, dimension), or items (n, K), got {array.shape}")
    absent = np.isnan(array).all(axis=2) if values else array < 0
    sizes = (array.shape[1] - absent[:, ::-1].cumprod(axis=1).sum(axis=1)).astype(np.int32)
    gone = np.arange(array.shape[1]) >= sizes[:, None]
    design = np.where(gone[:, :, None], 0.0, array) if values else array
    return design, None if (sizes == array.shape[1]).all() else sizes


def spans(rows: Floats, sizes: Sizes) -> Floats:
    """max over j, k of ||x_j - x_k|| for each row of (rows, choices, p): how far a label moves a sum. Plain loops."""
    largest = np.zeros(len(rows))
    for j in range(rows.shape[1]):
        for k in range(j):
            total = np.zeros(len(rows))
            for axis in range(rows.shape[2]):
                total += (rows[:, j, axis] - rows[:, k, axis]) ** 2
            np.maximum(largest, np.where(j < sizes, total, 0.0), out=largest)
    return np.sqrt(largest)


def rounded_blocks(rows: Floats, sizes: Sizes, exponent: int, radius: float | None) -> Rounded:
    """Blocks v_k = trunc(w x_k) on a grid, with public weights w = min(1, radius / span); without a radius w = 1."""
    if radius is None:
        return Rounded(truncate(rows, exponent), None)
    with np.errstate(divide="ignore"):
        weights = np.minimum(1.0, radius / spans(rows, sizes))
    return Rounded(truncate(rows * weights[:, None, None], exponent), weights)


@lru_cache(maxsize=64)
def default_span(problem: Problem, n: int) -> float:
    """The default clipping radius: the root mean square span of a row, over the first n rows, or a fixed draw."""
    count = _SAMPLE if problem.features in DRAWN else n
    rows = reduce_blocks(problem, blocks(problem, Address(0, Stream.METRICS), 0, count))
    return math.sqrt(math.fsum(spans(rows, row_sizes(problem, 0, count)) ** 2) / count) or 1.0
