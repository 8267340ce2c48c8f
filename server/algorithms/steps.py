"""What an algorithm of rounds is to the loop that plays it, and what it may use."""

import hashlib
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocol.arms import Arm
from protocol.decimals import decimal
from protocol.messages import Mechanism, Runs, Task
from protocol.noise.rotation import restored, signs_of
from protocol.privacy import Unit
from protocol.record_terms import ADDED, L2, ROWS, TRUNCATE, Bounded, squared_sensitivity, sum_exponent, width
from protocol.strict import StudyError
from protocol.study import Cell, Study
from protocol.trust import Trust
from server.choice_record import Choice, ChoiceRequest, SimulatedChoice
from server.curator import Curator
from server.evidence import Heard, Server
from server.listening import nobody
from server.outcome import asked_rows
from server.release_record import ReleaseRequest, in_real_units
from server.task_shares import counted_on, records_in_shares

Floats = NDArray[np.float64]
SUMMED = (Trust.CENTRAL, Trust.DISTRIBUTED)  # where a row is a part of a sum


@dataclass(frozen=True, eq=False)
class Found:
    """What an algorithm ends with, for a block of repetitions.

    `theta` (repetitions, d); `boundary`: whether each lies on the boundary of the ball; `warnings` of the whole block.
    """

    theta: Floats
    boundary: NDArray[np.bool_]
    warnings: tuple[str, ...] = ()


# An algorithm: yields the tasks of a round, gets what was heard of each, and returns what it found.
Steps = Generator[list[Task], list[Heard], Found]


@dataclass(frozen=True, eq=False)
class Room:
    """One arm of one cell at one level, as an algorithm sees it; `unit` is what a row is.

    `rows`: those still to be asked, None for all. `moment`: what is assumed of contributions, None for what the study
    says.
    """

    study: Study
    cell: Cell
    server: Server
    arm: Arm
    epsilon: Decimal | None
    delta: Decimal | None
    unit: Unit
    rows: range | None = None
    moment: float | None = None

    @property
    def n(self) -> int:
        """Rows of the cell."""
        return self.cell.n

    @property
    def dimension(self) -> int:
        """Coordinates of theta."""
        return self.study.problem.dimension

    @property
    def start(self) -> Floats:
        """theta = 0 for each repetition of the block."""
        return np.zeros((self.cell.repetitions, self.dimension))

    def number(self, option: str, usual: float) -> float:
        """An option that is a number, or its usual value."""
        value = self.arm.get(option)
        return float(value) if isinstance(value, Decimal) else usual

    def whole(self, option: str, usual: int) -> int:
        """An option that is a whole number, or its usual value."""
        return int(self.number(option, usual))

    def word(self, option: str, usual: str) -> str:
        """An option that is a word, or its usual value."""
        value = self.arm.get(option)
        return value if isinstance(value, str) else usual

    def task(
        self,
        how: Bounded | None = None,
        *,
        theta: Floats | None = None,
        round: int = 0,
        rows: range | None = None,
        only: Runs | None = None,
        epsilon: Decimal | None = None,
        **more: Decimal,
    ) -> Task:
        """A task for some of the rows, and for `only` some coordinates; `epsilon` for one at a part of the arm's level.

        `more` are parameters of the mechanism.
        """
        level = self.epsilon if epsilon is None else epsilon
        trust = self.arm.trust
        assert trust is not None
        rows = self.rows if rows is None else rows
        task = Task(
            study=self.study.fingerprint,
            trust=trust,
            unit=self.unit,
            problem=self.study.problem,
            menu=(self._mechanism(how, level, more),),
            n=self.n,
            epsilon=level,
            delta=self.delta,
            first_repetition=self.cell.first_repetition,
            repetitions=self.cell.repetitions,
            round=round,
            rows=None if rows is None or len(rows) == self.n else Runs.of(rows),
            theta=None if theta is None else np.ascontiguousarray(theta),
            coordinates=only,
        )
        if trust is Trust.DISTRIBUTED and how is not None:
            return records_in_shares(task, how)
        if trust is not Trust.CENTRAL or how is None or how.kind == ROWS:
            return task
        return replace(task, exponent=sum_exponent(task, how))

    def _mechanism(self, how: Bounded | None, level: Decimal | None, more: dict[str, Decimal]) -> Mechanism:
        if how is None or level is None:
            return Mechanism("none")
        parameters = {"epsilon": level, "threshold": decimal(how.threshold, "threshold"), **more}
        if self.delta is not None:
            parameters["delta"] = self.delta
        if how.rounds > 1:
            parameters["rounds"] = Decimal(how.rounds)
        if self.arm.trust is Trust.DISTRIBUTED:
            parameters |= counted_on(self.arm)
        if self.arm.trust in SUMMED:
            parameters |= {"l2": Decimal(1)} if how.norm == L2 else {}
            parameters |= {"rows": Decimal(1)} if how.kind == ROWS else {}
            parameters |= {"rotate": Decimal(1)} if how.rotate else {}
        parameters |= {"truncate": Decimal(1)} if how.shape == TRUNCATE else {}
        return Mechanism.of(self.arm.mechanism, **parameters)

    def counts(self, heard: Heard) -> bool:
        """Whether an answer can be made use of: somebody's, or nobody's where a claim hides whether there is a row."""
        return len(heard.collected.rows) > 0 or self.unit in ADDED.values()

    def means(self, heard: Heard) -> Floats:
        """Mean contributions of those who answered, as the trust model lets them be known: (repetitions, d).

        Noisy in the central model: the committed sum divided by how many are in it; in the distributed model the opened
        one, which has its noise from those who answered, turned back where rows were rotated. Of randomised or clear
        values otherwise, in one order of addition. Raises RoundFailed where nobody `counts`.
        """
        if not self.counts(heard):
            raise nobody(heard.task, heard.collected)
        if heard.task.trust is Trust.DISTRIBUTED:
            return _opened(heard) / len(heard.collected.rows)
        if heard.task.trust is Trust.CENTRAL:
            return np.stack([self._mean(heard, index) for index in range(self.cell.repetitions)])
        assert heard.collected.values is not None
        return np.stack([mean_of_rows(values) for values in heard.collected.values])

    def released(
        self, asked: Sequence[Heard], index: int, exact: list[int], power: int, count: int
    ) -> tuple[Floats, int]:
        """Integers that all of these tasks make of a repetition plus noise, in units of 2^power, and a divisor.

        They are committed once, with `count`: after a crash both are those of who answered before it. One row moves
        them by no more than it moves the sum of a task on that grid.

        Guarantee: (epsilon, delta) over the rounds of the tasks' claim; unit: what a row is; neighbours: the unit's.
        Raises StudyError without a curator or a delta.
        """
        task = asked[0].task
        curator, how = self._curator(), Bounded.of(task.menu[0])
        if task.epsilon is None or task.delta is None:
            raise StudyError(f"{self.arm.name}: expected a delta for noisy sums of records")
        request = ReleaseRequest(
            task=name_of(asked),
            repetition=task.first_repetition + index,
            accepted=tuple(report for each in asked for report in each.collected.accepted),
            count=count,
            exponent=power,
            sensitivity_squared=squared_sensitivity(how, power, self.dimension, task.unit),
            mechanism=task.menu[0].name,
            epsilon=task.epsilon,
            delta=task.delta,
            unit=task.unit,
            cap=0,
            rounds=how.rounds,
        )
        release = curator.release(task, request, exact)
        return in_real_units(release), release.request.count

    def chosen(
        self, heard: Heard, index: int, scores: list[int], power: int, moved: int, mechanism: str, **more: Any
    ) -> Choice | SimulatedChoice:
        """Places among scores in units of 2^power that the task makes of a repetition, committed once.

        `more`: what a `ChoiceRequest` has beside. Guarantee: as `released`, where one row moves scores by `moved`.
        """
        task, collected = heard.task, heard.collected
        assert task.epsilon is not None
        request = ChoiceRequest(
            task=heard.task_id,
            repetition=task.first_repetition + index,
            accepted=tuple(collected.accepted),
            count=len(collected.rows),
            exponent=power,
            moved=moved,
            width=len(scores),
            mechanism=mechanism,
            epsilon=task.epsilon,
            delta=task.delta,
            unit=task.unit,
            rounds=Bounded.of(task.menu[0]).rounds,
            **more,
        )
        return self._curator().choose(task, request, scores)

    def _curator(self) -> Curator:
        if self.server.curator is None:
            raise StudyError(f"{self.arm.name}: expected a curator")
        return self.server.curator

    def _mean(self, heard: Heard, index: int) -> Floats:
        """The mean of a repetition by its noisy sum."""
        task, collected = heard.task, heard.collected
        assert task.exponent is not None
        sums = np.zeros(width(task)) if collected.sums is None else collected.sums[index]
        exact = [int(value) for value in np.ldexp(sums, -task.exponent)]
        total, count = self.released([heard], index, exact, task.exponent, len(collected.rows))
        # The divisor does not tell how many there are where that is what a claim hides.
        return total / (asked_rows(task) if task.unit in ADDED.values() else count)


def _opened(heard: Heard) -> Floats:
    """The opened sums of a task, (repetitions, d), in the coordinates of theta."""
    task, sums = heard.task, heard.collected.sums
    assert sums is not None
    if not Bounded.of(task.menu[0]).rotate:
        return sums
    signs = [signs_of(task, task.first_repetition + index) for index in range(len(sums))]
    return np.stack([restored(sums[[index]], own, task.problem.dimension)[0] for index, own in enumerate(signs)])


def name_of(asked: Sequence[Heard]) -> bytes:
    """What names a release that is made of all of these tasks: the id of one, or a hash of the ids of several."""
    ids = [each.task_id for each in asked]
    return ids[0] if len(ids) == 1 else hashlib.sha256(b"".join(ids)).digest()


def mean_of_rows(values: Floats, block: int = 4096) -> Floats:
    """The mean over rows, shape (d,), by fixed blocks in order: the same bits on every machine."""
    total = np.zeros(values.shape[1])
    for start in range(0, len(values), block):
        total += np.ascontiguousarray(values[start : start + block].T).sum(axis=1)
    return total / len(values)
