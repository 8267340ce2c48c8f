"""Top choices of a holder's rankings, as a source of labels: which of the items of a row is the best one.

Public are the items of each row, in the order of their names.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from client.sources import ProblemUnknown
from client.sources.table import PrivateCounts, Table
from protocol.choice_features import of_choices
from protocol.messages import Task
from protocol.problem import Problem


@dataclass(frozen=True, eq=False)
class ChoiceTable(Table):
    """A `Table` whose rows hold up to K items instead of two: `pairs` is int32 (rows, K), -1 where a row has fewer.

    Its `values` are places in a row: y = k where the k-th of its items is ranked first. There are no ties.
    """

    @cached_property
    def sizes(self) -> NDArray[np.int32]:
        """How many items each row has, (rows,)."""
        return np.asarray((self.pairs >= 0).sum(axis=1), dtype=np.int32)

    @cached_property
    def problem(self) -> Problem:
        """What a server is told of the rows held: the items of each, or their features phi.

        Raises ValueError for features beyond all scales.
        """
        return of_choices(len(self.items), self.pairs, self.features)

    def private_counts(self) -> PrivateCounts:
        """Counts that depend on labels: for the holder's terminal only."""
        values, missing = self.values.reveal(), self.missing.reveal() == 1
        answers: dict[bytes, set[int]] = {}
        for row in np.flatnonzero(~missing).tolist():
            answers.setdefault(self.identities[row], set()).add(int(values[row]))
        return PrivateCounts(0, int(missing.sum()), sum(len(found) > 1 for found in answers.values()))

    def check(self, task: Task) -> None:
        """The task's design must hold exactly this file's items, by name, for all rows that may be sent."""
        asked, own = task.problem, self.problem
        if (asked.kind, asked.features, asked.dimension) != (own.kind, own.features, own.dimension):
            raise ProblemUnknown(f"expected choices of {own.dimension} dimensions with features by {own.features}")
        assert asked.design is not None and own.design is not None
        held = self.rows_held[self.rows_held < task.n]
        if task.n > len(asked.design):
            raise ProblemUnknown("expected all rows that are asked for in the design")
        sizes = np.full(len(held), asked.choices) if asked.sizes is None else asked.sizes[held]
        if not np.array_equal(self.sizes[: len(held)], sizes):
            raise ProblemUnknown("expected exactly the sizes of this file's rows")
        most = min(asked.choices, own.choices)  # other nodes may hold larger rows; beyond its size a row is empty
        if not np.array_equal(asked.design[held, :most], own.design[: len(held), :most]):
            raise ProblemUnknown("expected exactly the items of this file's rows")
