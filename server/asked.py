"""Which rows a task asks for, and whether those of a report are among them."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from protocol.messages import Runs, Task


class Asked:
    """The rows that a task asks for; a million numbers, or flags, are made where they are looked at."""

    def __init__(self, task: Task) -> None:
        self._n, self._runs = task.n, task.rows or Runs.of(range(task.n))

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """All of them, in order."""
        return self._runs.numbers()

    @cached_property
    def _flags(self) -> NDArray[np.bool_]:
        flags = np.zeros(self._n, dtype=bool)
        flags[self.rows] = True
        return flags

    def check(self, rows: NDArray[np.int64]) -> None:
        """Raise ValueError for increasing rows that are not among them."""
        if rows[-1] >= self._n or not self._flags[rows].all():
            raise ValueError("rows that were not asked for")

    def named(self, runs: Runs | None) -> NDArray[np.int64]:
        """The rows of a report that says which they are, or all. Raises ValueError for others."""
        if runs is None:
            return self.rows
        if runs.count > self._runs.count:  # before a few bytes make billions of numbers
            raise ValueError(f"{runs.count} rows where {self._runs.count} were asked for")
        rows = runs.numbers()
        self.check(rows)
        return rows
