"""Labels of arrays in memory, as a source that a node can answer from."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from client.labels import Labels
from client.sources import Facts, ProblemUnknown
from protocol.messages import Runs, Task
from protocol.problem import Problem

DOMAIN = b"halftruth array label v1\n"


@dataclass(frozen=True, eq=False)
class ArrayLabels:
    """One label a row, each of a labeler of its own; `identities` name labels for a ledger.

    `public` says that the labels are no secret, so that coins may have addresses.
    """

    problem: Problem
    values: Labels = field(repr=False)
    identities: Sequence[bytes] = field(repr=False)
    public: bool
    synthetic = False

    def check(self, task: Task) -> None:
        """The task has to be about exactly these rows. Raises ProblemUnknown."""
        if task.problem.digest != self.problem.digest or task.n != len(self.values):
            raise ProblemUnknown("expected exactly the rows of this array")

    def rows(self, task: Task) -> Runs:
        """All rows."""
        return Runs.of(range(task.n))

    def facts(self, rows: NDArray[np.int64]) -> Facts | None:
        """Each label is somebody else's."""
        names = [self.identities[row] for row in rows.tolist()]
        return Facts(names, np.arange(len(rows)), [name.hex() for name in names])

    def levels(self, task: Task, rows: NDArray[np.int64]) -> None:
        """Nothing is drawn here."""

    def labels(self, task: Task, repetition: int, rows: NDArray[np.int64]) -> Labels:
        """Labels of these rows."""
        return Labels(self.values.reveal()[rows])


def identities(names: Sequence[object]) -> list[bytes]:
    """What a ledger calls labels of these names: SHA-256 of each, as text.

    >>> len(identities(["a", 7])[0])
    32

    Raises ValueError for a name that is there twice: two labels would be taken for one.
    """
    found = [hashlib.sha256(DOMAIN + str(name).encode()).digest() for name in names]
    if len(set(found)) < len(found):
        raise ValueError(f"expected {len(found)} different ids, one a label, got {len(set(found))}")
    return found
