"""What an answer about top choices holds: randomised choices, sets or sides of a pair, clear labels, or exact sums."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from client.account import Fresh, Symbols
from client.choice import TaskInvalid, check_grid
from client.choice_randomizer import randomize_choices
from client.payloads import Asked
from protocol.choice_features import row_sizes
from protocol.choice_law import PAIR, SUBSET, ChoiceLaw
from protocol.choice_pairs import public_pairs
from protocol.messages import Kind, Payload
from protocol.trust import Trust


@dataclass(frozen=True, eq=False)
class AskedChoices(Asked):
    """A task about top choices, what this client chose of it, and the rows to answer for.

    The choices of a row stand in the normal order already: a holder's file is read with them sorted by name, and a task
    has to have them so.
    """

    def randomized(self, fresh: Fresh) -> Symbols:
        """New symbols of the rows at the positions `fresh`: (repetitions, fresh rows), sets as numbers.

        Guarantee: that of `client.choice_randomizer.randomize_choices`; unit: one label; neighbours: replace one label.
        """
        law, chosen = self._law, self.rows[fresh]
        symbols: Symbols = np.empty((self.task.repetitions, len(chosen)), dtype=law.symbol_type)
        if not len(chosen):
            return symbols
        sizes = self._sizes(chosen)
        for index, repetition in enumerate(self._block()):
            values = self._valid(repetition, chosen, sizes)
            pairs = public_pairs(self.task, repetition, chosen, sizes) if law.name == PAIR else None
            symbols[index] = randomize_choices(values, law, sizes, pairs, self.draws(repetition), chosen)
        return symbols

    def payload(self, symbols: Symbols) -> Payload:
        """What is sent: `symbols` (sets as bits), clear labels, or exact sums.

        Raises TaskInvalid for a coarse grid, and for rows without a choice in a clear task: nothing is promised there,
        and a guess would be wrong in silence.
        """
        most = self.task.problem.choices
        if self.task.trust is Trust.CENTRAL:
            return self._exact_sums()
        if self.task.trust is Trust.DISTRIBUTED:
            return self.unmasked()
        if self.task.trust is Trust.CLEAR:
            labels = np.stack([self.source.labels(self.task, at, self.rows).reveal() for at in self._block()])
            if (labels >= self._sizes(self.rows)).any():
                raise TaskInvalid("expected a clear task about rows that have a top choice")
            return Payload(Kind.SYMBOLS, labels, outcomes=most)
        if self._law.name == SUBSET:
            places = np.arange(most, dtype=np.uint64)
            bits = (symbols.astype(np.uint64)[:, :, None] >> places & np.uint64(1)).astype(np.uint8)
            return Payload(Kind.SYMBOLS, bits, outcomes=2)
        return Payload(Kind.SYMBOLS, symbols.astype(np.uint8), outcomes=self._law.outcomes)

    @property
    def _law(self) -> ChoiceLaw:
        assert isinstance(self.choice.channel, ChoiceLaw)
        return self.choice.channel

    def _sizes(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        first = int(rows[0])
        return row_sizes(self.task.problem, first, int(rows[-1]) + 1)[rows - first]

    def _valid(self, repetition: int, rows: NDArray[np.int64], sizes: NDArray[np.int32]) -> NDArray[np.uint8]:
        """Labels under a claim: a missing choice has a fixed value, the first of its row by name."""
        values = self.source.labels(self.task, repetition, rows).reveal()
        return np.where(values < sizes, values, 0).astype(np.uint8)

    def _exact_sums(self) -> Payload:
        """S = sum of v_{i, y_i} over rows, one group: (repetitions, 1, p). Exact, so any order may sum it."""
        task, rows = self.task, self.rows
        power = check_grid(task, self.choice.radius)
        start, stop = int(rows[0]), int(rows[-1]) + 1
        sums = np.empty((task.repetitions, 1, task.problem.reduced_dimension))
        for index, repetition in enumerate(self._block()):
            place = (task.problem, task.n, repetition, start, stop)
            blocks = self.features.rounded(*place, power, self.choice.radius).rows
            values = self._valid(repetition, rows, self._sizes(rows))
            sums[index, 0] = blocks[rows - start, values].sum(axis=0) + 0.0  # no negative zero
        return Payload(Kind.EXACT_SUMS, sums, counts=np.array([len(rows)], dtype=np.uint64))
