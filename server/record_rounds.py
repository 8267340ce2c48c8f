"""The round loop about records: all algorithms of a cell go forward side by side, one exchange a round."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal

from protocol.arms import Arm
from protocol.codec import encode_task
from protocol.messages import Coins, Task
from protocol.privacy import Guarantee, Unit
from protocol.record_arms import is_pure
from protocol.record_terms import ADDED
from protocol.study import Cell, Study
from protocol.trust import Trust
from protocol.warned import code_of, warn
from server.algorithms import ALGORITHMS
from server.algorithms.steps import Found, Room, Steps
from server.evidence import Heard, Server, check_curator
from server.listening import Ask, Check, complete, listen, nobody
from server.outcome import ON_THE_BALL, Outcome, asked_rows, few_rows, trivial, warnings
from server.task_checks import check_task
from server.tasks import of_curator

Level = tuple[Decimal | None, Decimal | None]


def play_records(study: Study, cell: Cell, ask: Ask, server: Server, check: Check = complete) -> Iterator[Outcome]:
    """One cell of a study about records. Tasks that several algorithms ask in a round are asked once.

    Raises RoundFailed where `check` does not accept what came, and StudyError for an algorithm that cannot start.
    """
    plain = [arm for arm in study.arms if arm.trust is None]
    runs = _begin(study, cell, server)
    while waiting := [run for run in runs if run.found is None]:
        sent = {raw: task for run in waiting for raw, task in run.asked}
        answers = dict(zip(sent, listen(list(sent.values()), ask, check).values(), strict=True))
        for run in waiting:
            run.go_on([answers[raw] for raw, _ in run.asked])
    for repetition in range(cell.first_repetition, cell.first_repetition + cell.repetitions):
        yield from (trivial(arm, cell.n, repetition, study.problem) for arm in plain)
        for run in runs:
            yield from run.outcomes(repetition)


def opening(study: Study, cell: Cell, server: Server) -> list[Task]:
    """What a cell asks first, whatever answers are. Raises StudyError where nothing can start, or is worth asking."""
    tasks = [task for run in _begin(study, cell, server) for _, task in run.asked]
    for task in tasks:
        check_task(task)
    return tasks


def levels(study: Study, arm: Arm) -> list[Level]:
    """The levels at which an arm is played: none where nobody is asked, no claim in clear, pure ones without delta."""
    if arm.trust is None:
        return []
    if arm.trust is Trust.CLEAR:
        return [(None, None)]
    if is_pure(arm):
        return [(epsilon, None) for epsilon in study.grid.epsilon]
    return [(epsilon, delta) for epsilon in study.grid.epsilon for delta in study.grid.delta]


def _begin(study: Study, cell: Cell, server: Server) -> "list[_Run]":
    return [_Run.begin(study, cell, server, arm, level) for arm in study.arms for level in levels(study, arm)]


@dataclass(eq=False)
class _Run:
    """An algorithm at one level: what it asks now, what was noted of answers so far, and what it found."""

    room: Room
    steps: Steps
    asked: list[tuple[bytes, Task]]
    found: Found | None = None
    coins: Coins | None = None
    notes: dict[str, None] = field(default_factory=dict)
    missing: int = 0

    @classmethod
    def begin(cls, study: Study, cell: Cell, server: Server, arm: Arm, level: Level) -> "_Run":
        assert study.records is not None
        unit = Unit.HOLDER if study.records.per_holder != 1 else Unit.RECORD
        if arm.get("neighbours") == "add-remove":
            unit = ADDED[unit]
        room = Room(study, cell, server, arm, *level, unit)
        steps = ALGORITHMS[arm.estimator](room)
        run = cls(room, steps, [])
        run._ask(next(steps))
        return run

    def go_on(self, heard: list[Heard]) -> None:
        """Give the algorithm what was heard; note what a reader has to know of it.

        Raises RoundFailed where nobody answered any of its tasks, and ValueError for exact sums of real records before
        a simulated curator.
        """
        if not any(len(each.collected.rows) for each in heard):
            raise nobody(heard[0].task, heard[0].collected)
        for each in heard:
            check_curator(self.room.server.curator, each)
            own = each.collected.coins
            if own is not None:
                self.coins = own if self.coins is None else max(self.coins, own)
            self.missing += asked_rows(each.task) - len(each.collected.rows)
            self.notes |= dict.fromkeys(note for note in warnings(each) if code_of(note) != "rows-missing")
        try:
            self._ask(self.steps.send(heard))
        except StopIteration as stopped:
            self.found = stopped.value

    def _ask(self, tasks: list[Task]) -> None:
        server = self.room.server
        named = [of_curator(task, server.curator_name, server.attempt) for task in tasks]
        self.asked = [(encode_task(task), task) for task in named]

    def outcomes(self, repetition: int) -> Iterator[Outcome]:
        """The outcome of a repetition; a pure claim is repeated for every delta of the grid."""
        room, found = self.room, self.found
        assert found is not None
        index = repetition - room.cell.first_repetition
        claim = None if room.epsilon is None else Guarantee(room.epsilon, room.delta or Decimal(0), room.unit)
        told = self.missing and room.unit not in ADDED.values()  # there, who is missing is what a claim hides
        missed = (warn("rows-missing", f"{self.missing} answers missing over all rounds"),) if told else ()
        border = (ON_THE_BALL,) if found.boundary[index] else ()
        pure = room.epsilon is not None and room.delta is None
        for delta in room.study.grid.delta if pure and room.study.grid.delta else (room.delta,):
            yield Outcome(
                arm=room.arm,
                n=room.n,
                repetition=repetition,
                epsilon=room.epsilon,
                delta=delta,
                theta=found.theta[index],
                ci_low=None,
                ci_high=None,
                hit_boundary=bool(found.boundary[index]),
                claim=claim,
                computed_epsilon=None,
                coins=None if self.coins is None else self.coins.label,
                warnings=(*found.warnings, *border, *few_rows(room.study.problem, room.n), *self.notes, *missed),
            )
