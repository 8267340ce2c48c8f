"""Compiled sums of the values in the middle of each column: of all but the least and the largest.

A few passes over a tile of columns narrow down by counting where the two cuts are; only values near a cut are ordered.
"""

import numpy as np
from numpy.typing import NDArray

from server.kernels import Array, compiled
from server.kernels_reports import add_values

TILE = 1 << 16  # numbers of a tile, which stays in the second-level cache
MOST_COLUMNS, LEAST_COLUMNS = 64, 8
HALVINGS = 5
SAMPLE = 2**HALVINGS - 1  # rows between whose values cuts are looked for
LEAST_SAMPLED = 4 * SAMPLE  # fewer rows are all near a cut
FEW = 12  # values that are sorted one by one
MOST_ROUNDS = 100  # of a selection: orders by chance take some 15 for 1,000 values, made-up ones may take 1,000


@compiled
def add_middle(rows: Array, trim: int, sums: Array, errors: Array, sizes: Array) -> None:
    """`server.kernels_reports.add_rows` without each column's `trim` least and `trim` largest values.

    A size is NaN where ordering takes too long: somebody may have made the values up.
    """
    count, dimension = rows.shape
    most = min(MOST_COLUMNS, max(LEAST_COLUMNS, TILE // count))
    room, near, held = np.empty(count * most), np.empty((2, most, count)), np.empty((2, most), np.int64)
    for start in range(0, dimension, most):
        end = min(start + most, dimension)
        tile = room[: count * (end - start)].reshape(count, end - start)
        for i in range(count):
            tile[i] = rows[i, start:end]
        low, high, under = cuts(tile, trim)
        add_between(tile, high[0], low[1], sums[start:end], errors[start:end], sizes[start:end])
        collect(tile, low, high, near, held)
        for j in range(end - start):
            place, last = start + j, count - trim - 1 - under[1, j]
            values, first = near[0, j, : held[0, j]], trim - under[0, j]
            done = select(values, 0, first) and last < held[1 if high[0, j] <= low[1, j] else 0, j]
            if high[0, j] > low[1, j]:  # both cuts are in one interval
                done = done and (last == first or select(values, first + 1, last))
                add_values(values[first : last + 1], place, sums, errors, sizes)
            else:
                add_values(values[first:], place, sums, errors, sizes)
                values = near[1, j, : held[1, j]]
                done = done and select(values, 0, last)
                add_values(values[: last + 1], place, sums, errors, sizes)
            if not done:
                sizes[place] = np.nan


@compiled
def cuts(tile: Array, trim: int) -> tuple[Array, Array, NDArray[np.int64]]:
    """For the least and the largest value kept, low < value <= high, and how many are at most low; each (2, columns).

    Ends are neighbours in a sorted sample. Two intervals that are one say so: high[0] > low[1].
    """
    count, width = tile.shape
    low, high = np.full((2, width), -np.inf), np.full((2, width), np.inf)
    under, found = np.zeros((2, width), np.int64), np.empty((2, width), np.int64)
    if count < LEAST_SAMPLED:
        return low, high, under
    sample, pivots = sampled(tile), np.empty((2, width))
    first, last = np.zeros((2, width), np.int64), np.full((2, width), SAMPLE)
    for _ in range(HALVINGS):
        for cut in range(2):
            for j in range(width):
                pivots[cut, j] = sample[(first[cut, j] + last[cut, j]) // 2, j]
        count_up_to(tile, pivots, found)
        for cut in range(2):
            rank = trim if cut == 0 else count - trim - 1
            for j in range(width):
                middle = (first[cut, j] + last[cut, j]) // 2
                if found[cut, j] <= rank:
                    first[cut, j], low[cut, j], under[cut, j] = middle + 1, pivots[cut, j], found[cut, j]
                else:
                    last[cut, j], high[cut, j] = middle, pivots[cut, j]
    return low, high, under


@compiled
def sampled(tile: Array) -> Array:
    """Every so-many-th row of a tile, (SAMPLE, columns), each column sorted."""
    sample = np.empty((SAMPLE, tile.shape[1]))
    for i in range(SAMPLE):
        sample[i] = tile[i * (tile.shape[0] // SAMPLE)]
    for i in range(1, SAMPLE):  # by exchanges of neighbours, all columns at once
        for k in range(i, 0, -1):
            for j in range(tile.shape[1]):
                small, large = min(sample[k - 1, j], sample[k, j]), max(sample[k - 1, j], sample[k, j])
                sample[k - 1, j], sample[k, j] = small, large
    return sample


@compiled
def count_up_to(tile: Array, pivots: Array, found: NDArray[np.int64]) -> None:
    """How many values of each column are at most each of its two pivots, (2, columns)."""
    found[:] = 0
    one, other, few, many = pivots[0], pivots[1], found[0], found[1]
    for i in range(tile.shape[0]):
        row = tile[i]
        for j in range(tile.shape[1]):
            few[j] += row[j] <= one[j]
            many[j] += row[j] <= other[j]


@compiled
def collect(tile: Array, low: Array, high: Array, near: Array, held: NDArray[np.int64]) -> None:
    """Values of each column in its two intervals, in the order of rows, into near[cut, column, :held]."""
    held[:] = 0
    for i in range(tile.shape[0]):
        for j in range(tile.shape[1]):
            value = tile[i, j]
            if low[0, j] < value <= high[0, j]:
                near[0, j, held[0, j]] = value
                held[0, j] += 1
            elif low[1, j] < value <= high[1, j]:
                near[1, j, held[1, j]] = value
                held[1, j] += 1


@compiled
def add_between(tile: Array, above: Array, most: Array, sums: Array, errors: Array, sizes: Array) -> None:
    """`server.kernels_reports.add_rows` of the values with above < value <= most."""
    for i in range(tile.shape[0]):
        row = tile[i]
        for j in range(row.size):
            value = row[j] if (row[j] > above[j]) & (row[j] <= most[j]) else 0.0
            moved = sums[j] + value
            part = moved - sums[j]
            off = (sums[j] - (moved - part)) + (value - part)
            sums[j] = moved
            errors[j] += off
            sizes[j] += abs(off)


@compiled
def select(values: Array, low: int, k: int) -> bool:
    """Order values[low:] until values[k] has its place: nothing larger before it, nothing smaller behind.

    False where that takes too long.
    """
    high = values.size
    for _ in range(MOST_ROUNDS):
        if high - low <= FEW:
            sort_few(values, low, high)
            return True
        a, b, c = values[low], values[(low + high) // 2], values[high - 1]
        pivot = max(min(a, b), min(max(a, b), c))
        end = gather(values, low, high, pivot, False)
        if end == low:  # the pivot is the least
            end = gather(values, low, high, pivot, True)
            if k < end:
                return True
        if k < end:
            high = end
        else:
            low = end
    return False


@compiled
def gather(values: Array, low: int, high: int, pivot: float, equal: bool) -> int:
    """Move values[low:high] below the pivot, or equal to it as well, to the front; where they end."""
    end = low
    for i in range(low, high):
        value = values[i]
        values[i] = values[end]
        values[end] = value
        end += (value < pivot) | (equal & (value == pivot))
    return end


@compiled
def sort_few(values: Array, low: int, high: int) -> None:
    """Sort values[low:high] one by one."""
    for i in range(low + 1, high):
        value = values[i]
        j = i
        while j > low and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value
