"""From a cell of a study to its tasks: arms with one mechanism and parameters share a task and its release."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from protocol.arms import CENTRAL, Arm
from protocol.decimals import decimal
from protocol.features import default_radius, row_bound
from protocol.grid import exponent
from protocol.messages import Mechanism, Task, Ties
from protocol.privacy import Unit
from protocol.problem import DRAWN, Problem
from protocol.strict import StudyError
from protocol.study import Cell, Study
from protocol.terms import label_epsilon, row_exponent
from protocol.trust import Trust
from server.mechanisms import CENTRAL as NOISE

Level = tuple[Decimal | None, Decimal | None]


@dataclass(frozen=True, eq=False)
class Offer:
    """A task (None: nobody is asked) and the arms that its reports serve."""

    task: Task | None
    arms: tuple[Arm, ...]


def offers(study: Study, cell: Cell) -> Iterator[Offer]:
    """All tasks of a cell in a fixed order: what needs no claim first, then by epsilon and delta.

    Raises StudyError for a claim that no curator can keep.
    """
    plain = tuple(arm for arm in study.arms if arm.trust is None)
    if plain:
        yield Offer(None, plain)
    shared: dict[tuple[Trust, Mechanism, Level], list[Arm]] = {}
    for arm in study.arms:
        for level in _levels(study, arm):
            assert arm.trust is not None
            shared.setdefault((arm.trust, _mechanism(study, cell, arm, level), level), []).append(arm)
    for trust, mechanism, level in sorted(shared, key=lambda key: (key[2][0] or 0, key[2][1] or 0, key[0])):
        arms = tuple(shared[trust, mechanism, level])
        yield Offer(_task(study, cell, trust, mechanism, level), arms)


def with_ties(task: Task, ties: Ties) -> Task:
    """The task with another rule for ties. Half wins need sums on a grid twice as fine as that of rows."""
    if task.exponent is None:
        return replace(task, ties=ties)
    return replace(task, ties=ties, exponent=row_exponent(task) - (ties is Ties.HALF))


def for_labelers(task: Task, cap: int, groups: NDArray[np.int32]) -> Task:
    """The task with its claim for labelers, of whom `cap` labels count; `groups` (n,) says whose a row is.

    A randomised label gets its share of the claim. Groups travel where the server needs them: with exact sums.
    """
    asked = replace(task, unit=Unit.LABELER, cap=cap, groups=groups if task.trust is Trust.CENTRAL else None)
    level = label_epsilon(asked)
    assert level is not None
    menu = tuple(Mechanism.of(item.name, **(dict(item.parameters) | {"epsilon": level})) for item in task.menu)
    return replace(asked, menu=menu)


def _levels(study: Study, arm: Arm) -> list[Level]:
    if arm.trust is None:
        return []
    if arm.trust is Trust.CLEAR:
        return [(None, None)]
    if arm.trust is Trust.LOCAL:  # pure: delta of the grid does not enter the task
        return [(epsilon, None) for epsilon in study.grid.epsilon]
    return [(epsilon, delta) for epsilon in study.grid.epsilon for delta in study.grid.delta]


def _mechanism(study: Study, cell: Cell, arm: Arm, level: Level) -> Mechanism:
    epsilon, delta = level
    if epsilon is None:
        return Mechanism("none")
    parameters = {"epsilon": epsilon}
    if delta is not None:
        parameters["delta"] = delta
    if CENTRAL.get(arm.mechanism):
        radius = arm.get("radius")
        parameters["radius"] = (
            radius if isinstance(radius, Decimal) else decimal(default_radius(study.problem, cell.n), "radius")
        )
    if arm.get("norm") == "unprojected":
        parameters["unprojected"] = Decimal(1)
    return Mechanism.of(arm.mechanism, **parameters)


def _task(study: Study, cell: Cell, trust: Trust, mechanism: Mechanism, level: Level) -> Task:
    radius = mechanism.get("radius")
    grid = None
    if trust is Trust.CENTRAL:
        _check_claim(mechanism)
        grid = exponent(cell.n, row_bound(study.problem, None if radius is None else float(radius)))
    task = Task(
        study=study.fingerprint,
        trust=trust,
        unit=Unit.LABEL,
        problem=study.problem,
        menu=(mechanism,),
        n=cell.n,
        epsilon=level[0],
        delta=level[1],
        first_repetition=cell.first_repetition,
        repetitions=cell.repetitions,
        exponent=grid,
    )
    return with_ties(task, _ties(study.problem, trust))


def _ties(problem: Problem, trust: Trust) -> Ties:
    """Labels about given pairs may come from files, with ties: half a win each in clear, a coin under a claim."""
    if problem.features in DRAWN:
        return Ties.NONE
    return Ties.HALF if trust is Trust.CLEAR else Ties.COIN


def _check_claim(mechanism: Mechanism) -> None:
    """Raise StudyError for a claim that the curator cannot keep, before labels pay for it."""
    epsilon, delta = mechanism.get("epsilon"), mechanism.get("delta")
    assert epsilon is not None and delta is not None
    try:
        NOISE[mechanism.name].noise_multiplier(epsilon, delta)
    except ValueError as error:
        raise StudyError(f"{mechanism.name}: {error}") from None
