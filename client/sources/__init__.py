"""Where labels come from: one file a source. What a source knows of its rows stays under `client/`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from client.labels import Labels
from client.records import Records
from protocol.messages import Runs, Task


class ProblemUnknown(Exception):
    """The task's problem is not the one of this source's rows."""


@dataclass(frozen=True, eq=False)
class Facts:
    """Whose labels some rows are: for the ledger, never for a report. All of shape (rows,).

    `identities`: 32 bytes naming the label, different from each other, the same for a pair in either order; `labelers`:
    indices into `names`.
    """

    identities: Sequence[bytes] = field(repr=False)
    labelers: NDArray[np.int64] = field(repr=False)
    names: Sequence[str] = field(repr=False)

    def at(self, places: NDArray[np.intp]) -> "Facts":
        """The facts of some of the rows, by position."""
        return Facts([self.identities[place] for place in places.tolist()], self.labelers[places], self.names)


class Holdings(Protocol):
    """What is needed to answer for global rows, whatever they hold."""

    @property
    def synthetic(self) -> bool:
        """Labels are drawn, so they protect nobody and are remembered by nobody."""

    @property
    def public(self) -> bool:
        """The user declared that the labels are no secret."""

    def check(self, task: Task) -> None:
        """Raises ProblemUnknown where the task's public problem is not exactly the one of the rows held here."""

    def rows(self, task: Task) -> Runs:
        """Rows below task.n that are held here and may be sent: under a claim one row for each label."""

    def facts(self, rows: NDArray[np.int64]) -> Facts | None:
        """Whose labels these rows are; None for synthetic ones."""

    def levels(self, task: Task, rows: NDArray[np.int64]) -> tuple[Sequence[Decimal], NDArray[np.int64]] | None:
        """Levels that drawn labelers ask for where a task offers several, and which one is a row's; None: any."""


class Source(Holdings, Protocol):
    """Labels of global rows."""

    def labels(self, task: Task, repetition: int, rows: NDArray[np.int64]) -> Labels:
        """Raw labels of rows held here, in the orientation of the public problem."""


class RecordSource(Holdings, Protocol):
    """Records of global rows; a row is a record, or a holder with all that it has."""

    def records(self, task: Task, repetition: int, rows: NDArray[np.int64]) -> Records:
        """Raw records of rows held here."""
