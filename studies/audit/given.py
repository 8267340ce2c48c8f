"""Labels, records and coins that an audit gives a client, in place of its own."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from client.draws import ESCALATION_BITS, Places
from client.labels import Labels
from client.records import Records
from client.sources import Facts
from protocol.coins import Words
from protocol.messages import Coins, Runs, Task

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
_ESCALATION = np.uint64((1 << ESCALATION_BITS) - 1)


@dataclass(frozen=True)
class _Given:
    """Rows 0, 1, ... of nobody: what a source has to say of them."""

    synthetic: ClassVar[bool] = True
    public: ClassVar[bool] = False

    def check(self, task: Task) -> None:
        """Any problem will do."""

    def rows(self, task: Task) -> Runs:
        """All rows."""
        return Runs.of(range(task.n))

    def facts(self, rows: Rows) -> Facts | None:
        """Nobody's."""
        return None

    def levels(self, task: Task, rows: Rows) -> None:
        """Any level."""


@dataclass(frozen=True)
class GivenLabels(_Given):
    """A source of these labels, one a row."""

    values: tuple[int, ...]

    def labels(self, task: Task, repetition: int, rows: Rows) -> Labels:
        """The labels of rows."""
        return Labels(np.array(self.values, dtype=np.uint8)[rows])


@dataclass(frozen=True)
class GivenRecords(_Given):
    """A source of these records, one a row: features (rows, d), and responses (rows,) where the model has some."""

    features: Floats
    responses: Floats | None = None

    def records(self, task: Task, repetition: int, rows: Rows) -> Records:
        """The records of rows."""
        own = None if self.responses is None else self.responses[rows][:, None]
        return Records(np.ascontiguousarray(self.features[rows])[:, None, :], own)


@dataclass(frozen=True, eq=False)
class GivenDraws:
    """Coins of rows 0, 1, ...: `words` (rows, k), of which the first one's top 63 bits are a row's coin."""

    words: Words
    coins: ClassVar[Coins] = Coins.ADDRESSED

    def lanes(self, rows: Places) -> NDArray[np.uint16]:
        """The top 16 bits."""
        return (self._first(rows) >> np.uint64(48)).astype(np.uint16)

    def escalations(self, rows: Rows) -> Words:
        """The next 47."""
        return self._first(rows) >> np.uint64(1) & _ESCALATION

    def fair(self, rows: Rows) -> NDArray[np.uint8]:
        """The last bit: no part of the coin."""
        return (self._first(rows) & np.uint64(1)).astype(np.uint8)

    def steps(self, rows: Rows, count: int) -> Words:
        """The words after the first."""
        found: Words = self.words[np.asarray(rows), 1 : 1 + count].T
        return found

    def vectors(self, rows: Rows, count: int) -> Words:
        """All words."""
        found: Words = self.words[np.asarray(rows), :count]
        return found

    def roundings(self, rows: Rows, count: int) -> Words:
        """None: nothing that is given here is rounded."""
        raise TypeError("expected no rounding of given numbers")

    def _first(self, rows: Places) -> Words:
        found: Words = self.words[np.asarray(rows), 0]
        return found
