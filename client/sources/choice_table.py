"""Top choices of a holder's rankings, as a source of labels: which of the items of a row is the best one.

Public are the items of each row, in the order of their names.
"""

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from client.sources import ProblemUnknown
from client.sources.table import PrivateCounts, Table
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
        most = self.pairs.shape[1]
        sizes = None if (self.sizes == most).all() else self.sizes
        make = partial(Problem, bound=None, kind="choice", model="plackett-luce", choices=most, sizes=sizes)
        if self.features is None:
            return make(len(self.items), "items", sum_zero=True, design=self.pairs)
        phi = np.where((self.pairs >= 0)[:, :, None], self.features[self.pairs], 0.0)
        return make(self.features.shape[1], "values", sum_zero=False, design=phi)

    def private_counts(self) -> PrivateCounts:
        """Counts that depend on labels: for the holder's terminal only."""
        values, missing = self.values.reveal(), self.missing.reveal() == 1
        answers: dict[bytes, set[int]] = {}
        for row in np.flatnonzero(~missing).tolist():
            answers.setdefault(self.identities[row], set()).add(int(values[row]))
        return PrivateCounts(0, int(missing.sum()), sum(len(found) > 1 for found in answers.values()))

    def check(self, task: Task) -> None:
        """The task's design must hold exactly this file's items, by name, for all rows that may be sent."""
        super().check(task)
        held, sizes = self.rows_held[self.rows_held < task.n], task.problem.sizes
        own = self.sizes[: len(held)]
        if not np.array_equal(own, np.full(len(held), task.problem.choices) if sizes is None else sizes[held]):
            raise ProblemUnknown("expected exactly the sizes of this file's rows")
