"""Sums over many rows as sums over blocks of them, which threads share: the same bits for any number of threads."""

from collections.abc import Callable

import numpy as np

from protocol.threads import spread
from server.kernels import TILE, Array, add_product, average

BLOCK = 512 * TILE  # rows: whole tiles, so that a block has the bits of its parts one after the other

# (rows, gradient, moments) -> their value: adds to a gradient and to the lower triangle of moments
AddRows = Callable[[slice, Array, Array], float]
# (value, gradient, moments) -> the new value: adds a part's own
AddPart = Callable[[float, Array, Array], float]


class RowSums:
    """Sums of a value, a gradient (p,) and moments (side, side) over rows: of blocks by themselves, then of blocks."""

    def __init__(self, p: int, side: int) -> None:
        self.value, self.gradient, self.moments = 0.0, np.zeros(p), np.zeros((side, side))

    def add(self, other: "RowSums") -> None:
        """Add those of the next block."""
        self.value += other.value
        self.gradient += other.gradient
        self.moments += other.moments

    def mean(self, count: int) -> tuple[float, Array, Array]:
        """All divided by `count`, in place, and the upper triangle of moments filled."""
        average(self.gradient, self.moments, count)
        return self.value / count, self.gradient, self.moments


class PartSums:
    """`RowSums` over rows that come in parts, in their order: a part is whole tiles, but the last, and in one block."""

    def __init__(self, p: int, side: int) -> None:
        self._sizes = p, side
        self._total, self._block, self._rows, self._count = RowSums(p, side), RowSums(p, side), 0, 0

    def add(self, count: int, add: AddPart) -> None:
        """Add a part of `count` rows."""
        self._block.value = add(self._block.value, self._block.gradient, self._block.moments)
        self._count += count
        self._rows += count
        if self._rows >= BLOCK:
            self._total.add(self._block)
            self._block, self._rows = RowSums(*self._sizes), 0

    def mean(self) -> tuple[float, Array, Array]:
        """What was added, divided by the number of rows."""
        if self._rows:
            self._total.add(self._block)
        return self._total.mean(self._count)


def blocks(count: int) -> list[slice]:
    """`BLOCK` rows each, but the last."""
    return [slice(start, min(start + BLOCK, count)) for start in range(0, count, BLOCK)]


def sums_over_rows(count: int, p: int, side: int, add: AddRows) -> RowSums:
    """Of `count` rows in memory, several blocks at once."""

    def block(rows: slice) -> RowSums:
        found = RowSums(p, side)
        found.value = add(rows, found.gradient, found.moments)
        return found

    total = RowSums(p, side)
    for found in spread(block, blocks(count)):
        total.add(found)
    return total


def product_over_rows(rows: Array, values: Array) -> Array:
    """sum_i values_i v_i of rows (n, p), shape (p,): exact where all sums are on a grid; of few rows as numpy does it.

    Of many, numpy's threads would wait for more work, and take a core from the passes that follow.
    """
    if len(rows) <= BLOCK:
        few: Array = values @ rows
        return few
    held = np.ascontiguousarray(rows)

    def add(part: slice, sums: Array, _: Array) -> float:
        add_product(held[part], values[part], sums)
        return 0.0

    return sums_over_rows(len(rows), rows.shape[1], 0, add).gradient
