"""A public file's records, answered for as a simulation's: many repetitions of the same records with other coins."""

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from client.records import Records
from client.sources import Facts
from client.sources.record_table import RecordTable
from protocol.messages import Runs, Task


class PublicRecords:
    """The records of a file in every repetition. They are nobody's secret: coins are addressed, no budget is kept.

    Raises ValueError for a file that is not declared public.
    """

    synthetic = True
    public = True

    def __init__(self, table: RecordTable) -> None:
        if not table.public:
            raise ValueError("expected records declared public, got others: only their own node may answer for them")
        self._table = table

    def check(self, task: Task) -> None:
        """As the file's own table does."""
        self._table.check(task)

    def rows(self, task: Task) -> Runs:
        """All rows below n."""
        return self._table.rows(task)

    def facts(self, rows: NDArray[np.int64]) -> Facts | None:
        """Nobody pays."""
        return None

    def levels(self, task: Task, rows: NDArray[np.int64]) -> tuple[Sequence[Decimal], NDArray[np.int64]] | None:
        """No row asks for a level of its own."""
        return None

    def records(self, task: Task, repetition: int, rows: NDArray[np.int64]) -> Records:
        """The same records in every repetition."""
        return self._table.records(task, repetition, rows)
