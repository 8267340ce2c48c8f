"""What an answer about records holds: sums of bounded gradients, exact or to be masked, or values of rows."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from client.account import Fresh, Symbols
from client.choice import Choice
from client.draws import Draws
from client.gradient_sums import gradient_sums
from client.gradients import gradients
from client.records import Records
from client.residues import residues
from client.rounding import rounded_sum
from client.sources import RecordSource
from client.statistics import contributions
from client.vector_randomizer import randomize_vectors
from protocol.messages import Kind, Payload, Task
from protocol.noise.record_terms import terms_of_records
from protocol.noise.rotation import rotated, signs_of
from protocol.record_terms import LARGEST, ROWS
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
        """What is sent: values of each row, randomised under a local claim, their exact sum, or residues to be masked.

        Guarantee: under a local claim that of `client.vector_randomizer.randomize_vectors`; unit: a row's, one record
        or one holder; neighbours: replace it. Exact sums and clear values are for those whom the policy trusts.
        """
        task, how = self.task, self.choice.bounded
        block = self._block
        if task.trust is Trust.DISTRIBUTED:
            return self.unmasked()
        if task.trust is Trust.CENTRAL and how is not None and how.kind != ROWS:
            sums = [gradient_sums(task, how, *self._records(index), self.rows) for index in block]
            return Payload(Kind.EXACT_SUMS, np.stack(sums)[:, None], counts=np.array([len(self.rows)], dtype=np.uint64))
        each = [self._gradients(repetition) for repetition in block]
        if how is None:
            return Payload(Kind.ROWS, np.stack([np.clip(np.nan_to_num(values), -LARGEST, LARGEST) for values in each]))
        each = [contributions(task, how, values, self.rows) for values in each]
        if task.trust is Trust.LOCAL:
            assert self.choice.numeric is not None
            each = [
                randomize_vectors(values, self.choice.numeric, self.draws(repetition), self.rows)
                for repetition, values in zip(block, each, strict=True)
            ]
        return Payload(Kind.ROWS, np.stack(each))

    def unmasked(self) -> Payload:
        """The rows' rounded sum with their shares of noise, modulo M: nothing to send, but under a session's masks."""
        task, mechanism = self.task, self.choice.mechanism
        terms = terms_of_records(task, mechanism)
        sums = np.empty((task.repetitions, terms.shares.dimension))
        for index, repetition in enumerate(self._block):
            records, point, centre = self._records(repetition)
            turned = signs_of(task, repetition) if terms.how.rotate else None

            def values(
                rows: NDArray[np.int64],
                places: slice,
                of: tuple[Records, Floats, Floats | None] = (records, point, centre),
                turned: Floats | None = turned,
            ) -> Floats:
                found = gradients(task.problem.model, of[0].part(places.start, places.stop), *of[1:])
                within = contributions(task, terms.how, found, rows)
                return within if turned is None else rotated(within, turned)

            sums[index] = rounded_sum(values, terms, self.rows, self.draws(repetition))
        return Payload(Kind.RESIDUES, residues(task, mechanism, self.rows, sums, self.draws))

    def randomized(self, fresh: Fresh) -> Symbols:
        """Never: what is said of a record depends on theta, so that no symbol of it is kept."""
        raise TypeError("expected no symbols of records")

    @property
    def _block(self) -> range:
        return range(self.task.first_repetition, self.task.first_repetition + self.task.repetitions)

    def _records(self, repetition: int) -> tuple[Records, Floats, Floats | None]:
        """Records of a repetition, the point at which gradients are taken, and the centre that is taken off them."""
        task, index = self.task, repetition - self.task.first_repetition
        point = np.zeros(task.problem.dimension) if task.theta is None else task.theta[index]
        centre = None if task.centre is None else task.centre[index]
        return self.source.records(task, repetition, self.rows), point, centre

    def _gradients(self, repetition: int) -> Floats:
        records, point, centre = self._records(repetition)
        found = gradients(self.task.problem.model, records, point, centre)
        return found if self.task.coordinates is None else found[:, self.task.coordinates.numbers()]
