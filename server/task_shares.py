"""Tasks whose noise comes in shares: from a radius and a share of honest rows to a grid and a variance."""

import math
from dataclasses import replace
from decimal import Decimal

from protocol.arms import USUAL_HONEST, USUAL_SURVIVORS, Arm
from protocol.messages import Mechanism, Runs, Task
from protocol.noise.record_terms import asked_of_records
from protocol.noise.terms import Counted, asked
from protocol.record_terms import Bounded
from protocol.strict import StudyError
from protocol.trust import Trust


def counted_on(arm: Arm) -> dict[str, Decimal]:
    """Shares of the rows of a task, of an arm with noise in shares: `least` that have to stay, and `honest` ones
    among them, who tell nobody their noise.
    """
    least, honest = arm.get("survivors"), arm.get("honest")
    staying = least if isinstance(least, Decimal) else USUAL_SURVIVORS
    return {"least": staying, "honest": honest if isinstance(honest, Decimal) else USUAL_HONEST * staying}


def in_shares(task: Task, mechanism: Mechanism) -> Task:
    """The task with its noise: `honest` and `least` are shares of its rows until then, and numbers of them afterwards.

    Guarantee: the task's (epsilon, delta) where so many rows answer and tell nobody their noise: see
    `protocol.noise.terms:terms_of`. Raises StudyError for a claim that the law cannot keep.
    """
    radius = mechanism.get("radius")
    assert radius is not None
    _, counted = _counted(task, mechanism)
    try:
        found = asked(task, mechanism.name, radius, counted)
    except ValueError as error:
        raise StudyError(f"distributed task at n = {task.n}: {error}") from None
    return replace(task, menu=(found.mechanism,), exponent=found.exponent, modulus=found.modulus)


def about(task: Task, arm: Arm, rows: Runs) -> Task:
    """The task of an arm about some of its rows only, with its noise sized for these: how many there are is known here.

    What changes rows, ties or the unit goes before. Guarantee: that of `in_shares`, of other trust models the task's.
    Raises StudyError for a claim that the law cannot keep.
    """
    own = replace(task, rows=rows)
    if task.trust is not Trust.DISTRIBUTED:
        return own
    (mechanism,) = task.menu
    return in_shares(own, Mechanism.of(mechanism.name, **dict(mechanism.parameters) | counted_on(arm)))


def records_in_shares(task: Task, how: Bounded) -> Task:
    """The same for a task about records, bounded so, of which its mechanism says all but the noise.

    Guarantee: the task's (epsilon, delta) over all rounds that share it: see
    `protocol.noise.record_terms:terms_of_records`. Raises StudyError for a claim that the law cannot keep.
    """
    (mechanism,) = task.menu
    if task.epsilon is None or task.delta is None:
        raise StudyError(f"distributed task at n = {task.n}: expected epsilon and delta")
    count, counted = _counted(task, mechanism)
    try:
        found = asked_of_records(
            how, task.problem.dimension, count, mechanism.name, (task.epsilon, task.delta), counted
        )
    except ValueError as error:
        raise StudyError(f"distributed task at n = {task.n}: {error}") from None
    parameters = dict(mechanism.parameters) | dict(found.mechanism.parameters)
    return replace(
        task, menu=(Mechanism.of(mechanism.name, **parameters),), exponent=found.exponent, modulus=found.modulus
    )


def _counted(task: Task, mechanism: Mechanism) -> tuple[int, Counted]:
    """How many rows are asked, and numbers of those that are counted on, of shares of them."""
    honest, least = mechanism.get("honest"), mechanism.get("least")
    assert honest is not None and least is not None
    count = task.n if task.rows is None else task.rows.count
    return count, Counted(max(1, math.floor(honest * count)), math.ceil(least * count))
