"""What an answer holds: randomised symbols, clear labels, or exact sums of some rows."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from client.account import Fresh
from client.account import Symbols as Reports
from client.choice import Choice, TaskInvalid, check_grid
from client.draws import Draws
from client.randomizer import as_range, randomize
from client.residues import residues
from client.sources import Source
from client.ties import settled, wins
from protocol.channel import DiscreteChannel
from protocol.features import group_weights, weighted
from protocol.messages import Kind, Payload, Task, Ties
from protocol.shaping import mapped
from protocol.store import FeatureStore
from protocol.terms import TIE
from protocol.trust import RANDOMIZED, Trust

Symbols = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Asked:
    """A task, what this client chose of it, and the rows to answer for; `draws` gives the coins of a repetition."""

    task: Task
    choice: Choice
    rows: NDArray[np.int64]
    source: Source = field(repr=False)
    features: FeatureStore = field(repr=False)
    draws: Callable[[int], Draws] = field(repr=False)

    def at(self, places: Fresh) -> Self:
        """The same about some of the rows, by position."""
        return self if isinstance(places, slice) else replace(self, rows=self.rows[places])

    def randomized(self, fresh: Fresh) -> Reports:
        """New symbols of the rows at the positions `fresh`: (repetitions, fresh rows).

        Guarantee: that of `client.randomizer.randomize` for the channel chosen; unit: one label; neighbours: replace
        one label.
        """
        assert isinstance(self.choice.channel, DiscreteChannel)
        chosen = self.rows[fresh]
        places = as_range(chosen)
        symbols = []
        for repetition in self._block():
            values = self.source.labels(self.task, repetition, chosen).reveal()
            if self.task.ties is Ties.NONE:  # a claim and no row for ties: a fixed winner
                values = values * (values != TIE)
            symbols.append(randomize(values, self.choice.channel, self.draws(repetition), places))
        return symbols[0][None] if len(symbols) == 1 else np.stack(symbols)

    def payload(self, symbols: Reports) -> Payload:
        """What is sent: `symbols`, clear labels, exact sums, or under masks residues.

        Raises TaskInvalid for a grid on which sums would round, and for ties that a clear task knows nothing of.
        """
        if self.task.trust in RANDOMIZED:
            assert isinstance(self.choice.channel, DiscreteChannel)
            return Payload(Kind.SYMBOLS, symbols.astype(np.uint8, copy=False), outcomes=self.choice.channel.outcomes)
        if self.task.trust is Trust.CENTRAL:
            return self._exact_sums()
        if self.task.trust is Trust.DISTRIBUTED:
            return self.unmasked()
        if self.task.trust is not Trust.CLEAR:
            raise TaskInvalid(f"expected a trust model of today, got {self.task.trust}")
        labels = [self._settled(repetition) for repetition in self._block()]
        return Payload(Kind.SYMBOLS, np.stack(labels), outcomes=3 if self.task.ties is Ties.HALF else 2)

    def _block(self) -> range:
        return range(self.task.first_repetition, self.task.first_repetition + self.task.repetitions)

    def _settled(self, repetition: int) -> Symbols:
        """Labels of a clear or central task, ties as it says."""
        values = self.source.labels(self.task, repetition, self.rows).reveal()
        return settled(self.task, values, self.draws(repetition), self.rows)

    def unmasked(self) -> Payload:
        """The rows' sum with their shares of the noise, modulo M: nothing to send, but under a session's masks."""
        sums = self._exact_sums().values[:, 0].astype(np.float64, copy=False)
        return Payload(Kind.RESIDUES, residues(self.task, self.choice.mechanism, self.rows, sums, self.draws))

    def _exact_sums(self) -> Payload:
        """S' = sum of y_i v_i over rows, one group: (repetitions, 1, p). Exact, so a matrix product may sum it."""
        task, rows, radius = self.task, self.rows, self.choice.radius
        power = check_grid(task, radius)
        start, stop = int(rows[0]), int(rows[-1]) + 1
        sums = np.empty((task.repetitions, 1, task.problem.reduced_dimension))
        for index, repetition in enumerate(self._block()):
            place = (task.problem, task.n, repetition, start, stop)
            if task.groups is not None and radius is not None:
                own = self.features.reduced(*place)[rows - start]
                own = own if task.map is None else mapped(own, task.map)
                v = weighted(own, power, group_weights(own, task.groups[rows], radius)).rows
            else:
                held = self.features.rounded(*place, power, radius, task.map).rows
                v = held if len(held) == len(rows) else held[rows - start]
            y = wins(self._settled(repetition))
            sums[index, 0] = y @ v + 0.0  # no negative zero
        return Payload(Kind.EXACT_SUMS, sums, counts=np.array([len(rows)], dtype=np.uint64))
