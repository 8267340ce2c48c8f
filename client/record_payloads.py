"""What an answer about records holds: exact sums of bounded gradients, values of rows, or randomised values of rows."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from client.account import Fresh, Symbols
from client.choice import Choice
from client.draws import Draws
from client.gradients import gradients
from client.sources import RecordSource
from client.statistics import contributions
from client.vector_randomizer import randomize_vectors
from protocol.grid import truncate
from protocol.messages import Kind, Payload, Task
from protocol.record_terms import LARGEST, ROWS
from protocol.threshold_grid import ThresholdGrid
from protocol.trust import Trust

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class AskedRecords:
    """A task about records, what this client chose of it, and the rows to answer for; `draws` gives coins."""

    task: Task
    choice: Choice
    rows: NDArray[np.int64]
    source: RecordSource = field(repr=False)
    draws: Callable[[int], Draws] = field(repr=False)

    def at(self, places: Fresh) -> Self:
        """The same about some of the rows, by position."""
        return self if isinstance(places, slice) else replace(self, rows=self.rows[places])

    def payload(self, _: Symbols) -> Payload:
        """What is sent: values of each row, randomised under a local claim, or their exact sum.

        Guarantee: under a local claim that of `client.vector_randomizer.randomize_vectors`; unit: a row's, one record
        or one holder; neighbours: replace it. Exact sums and clear values are for those whom the policy trusts.
        """
        task, how = self.task, self.choice.bounded
        first = task.first_repetition
        each = [self._gradients(repetition) for repetition in range(first, first + task.repetitions)]
        if how is None:
            return Payload(Kind.ROWS, np.stack([np.clip(np.nan_to_num(values), -LARGEST, LARGEST) for values in each]))
        each = [contributions(task, how, values, self.rows) for values in each]
        if task.trust is Trust.LOCAL:
            assert self.choice.numeric is not None
            sent = [
                randomize_vectors(values, self.choice.numeric, self.draws(first + index), self.rows)
                for index, values in enumerate(each)
            ]
            return Payload(Kind.ROWS, np.stack(sent))
        if how.kind == ROWS:
            return Payload(Kind.ROWS, np.stack(each))
        assert task.exponent is not None
        if ThresholdGrid.of(self.choice.mechanism) is None:  # counts are on the grid
            each = [truncate(values, task.exponent) for values in each]
        sums = [values.sum(axis=0) + 0.0 for values in each]  # exact, in any order
        counts = np.array([len(self.rows)], dtype=np.uint64)
        return Payload(Kind.EXACT_SUMS, np.stack(sums)[:, None], counts=counts)

    def randomized(self, fresh: Fresh) -> Symbols:
        """Never: what is said of a record depends on theta, so that no symbol of it is kept."""
        raise TypeError("expected no symbols of records")

    def _gradients(self, repetition: int) -> Floats:
        task = self.task
        point = np.zeros(task.problem.dimension)
        if task.theta is not None:
            point = task.theta[repetition - task.first_repetition]
        found = gradients(task.problem.model, self.source.records(task, repetition, self.rows), point)
        if task.centre is not None:
            found = found - task.centre[repetition - task.first_repetition]
        return found if task.coordinates is None else found[:, task.coordinates.numbers()]
