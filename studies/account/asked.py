"""What the arms of a study ask of one row, read off the tasks that the study itself makes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property

import numpy as np

from protocol.arms import Arm
from protocol.codec import decode_task
from protocol.coins import Floats
from protocol.messages import Task
from protocol.privacy import Guarantee
from protocol.secure.codec import decode_ask
from protocol.secure.messages import Stage, of_session
from protocol.study import Cell, Grid, Study
from protocol.trust import Trust
from server.record_rounds import levels
from server.rounds import play
from server.tasks import offers
from studies.account.figures import Figures, figures
from studies.account.releases import Release, release
from studies.in_process import InProcess, in_process


@dataclass(frozen=True)
class Claim:
    """An arm at one level: its `guarantee`, how many tasks it `asked`, and what a row that answers most is part of.

    `delta`: at which figures are told, one of the study's grid where the claim is pure; None where there is none.
    """

    arm: Arm
    guarantee: Guarantee
    delta: Decimal | None
    asked: int
    releases: tuple[Release, ...] = field(repr=False)

    @cached_property
    def figures(self) -> Figures:
        """The level of all releases of the row together, by each way of counting."""
        return figures(self.releases, self.delta)


def claims(study: Study, theta: Floats) -> Iterator[Claim]:
    """All claims of a study in the order of its arms; none of arms that ask nobody, or for clear answers.

    Raises StudyError for a claim that no curator can keep.
    """
    asked = _of_labels if study.records is None else _of_records
    for arm in study.arms:
        if arm.trust in (Trust.LOCAL, Trust.CENTRAL, Trust.DISTRIBUTED, Trust.SHUFFLED):
            for guarantee, tasks in asked(replace(study, arms=(arm,), repetitions=1), theta):
                rows = max(_rows(tasks), key=lambda part: sum(one.level for one in part))
                deltas = (guarantee.delta,) if guarantee.delta else study.grid.delta or (None,)
                for delta in deltas:  # a pure claim is told at every delta of the grid
                    yield Claim(arm, guarantee, delta, len(tasks), tuple(rows))


def _of_labels(study: Study, theta: Floats) -> Iterator[tuple[Guarantee, list[Task]]]:
    """The tasks of an arm about labels, which no answer changes."""
    for offer in offers(study, Cell(min(study.grid.n), 0, 1)):
        task = offer.task
        assert task is not None and task.epsilon is not None
        yield Guarantee(task.epsilon, task.delta or Decimal(0), task.unit), list(offer.asked)


def _of_records(study: Study, theta: Floats) -> Iterator[tuple[Guarantee, list[Task]]]:
    """The tasks of an arm about records, whose later ones follow from answers: those of synthetic holders."""
    cell = Cell(min(study.grid.n), 0, 1)
    for epsilon, delta in levels(study, study.arms[0]):
        assert epsilon is not None
        grid = Grid((cell.n,), (epsilon,), study.grid.delta if delta is None else (delta,))
        room = in_process(replace(study, grid=grid), theta, clients=1)
        tasks: list[Task] = []

        def ask(raws: list[bytes], tasks: list[Task] = tasks, room: InProcess = room) -> list[bytes]:
            tasks.extend(decode_task(raw) for asked in raws for raw in _tasks_in(asked))
            return room.ask(raws)

        list(play(replace(study, grid=grid), cell, ask, room.server))
        yield Guarantee(epsilon, delta or Decimal(0), tasks[0].unit), tasks


def _tasks_in(asked: bytes) -> Sequence[bytes]:
    """The tasks that a message asks first: of a session those that it begins with."""
    if not of_session(asked):
        return [asked]
    ask = decode_ask(asked)
    return ask.tasks if ask.stage is Stage.KEYS else ()


def _rows(tasks: Sequence[Task]) -> Iterator[list[Release]]:
    """The releases that each kind of row is part of: rows that the same tasks ask are of one kind."""
    kinds, inside = np.zeros(tasks[0].n, dtype=np.int64), []
    for task in tasks:
        asked = np.full(task.n, task.rows is None)
        if task.rows is not None:
            asked[task.rows.numbers()] = True
        inside.append(asked)
        kinds = np.unique(2 * kinds + asked, return_inverse=True)[1]
    releases = [release(task) for task in tasks]
    for first in np.unique(kinds, return_index=True)[1]:
        yield [one for one, asked in zip(releases, inside, strict=True) if asked[first]]
