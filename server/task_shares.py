"""Tasks whose noise comes in shares: from a radius and a share of honest rows to a grid and a variance."""

import math
from dataclasses import replace
from decimal import Decimal

from protocol.arms import USUAL_HONEST, USUAL_SURVIVORS, Arm
from protocol.messages import Mechanism, Task
from protocol.noise.terms import Counted, asked
from protocol.strict import StudyError


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
    honest, least, radius = (mechanism.get(name) for name in ("honest", "least", "radius"))
    assert honest is not None and least is not None and radius is not None
    assert task.epsilon is not None and task.delta is not None
    count, level = task.n if task.rows is None else task.rows.count, (task.epsilon, task.delta)
    counted = Counted(max(1, math.floor(honest * count)), math.ceil(least * count))
    try:
        found = asked(task.problem, count, mechanism.name, level, radius, counted, task.map is not None)
    except ValueError as error:
        raise StudyError(f"distributed task at n = {task.n}: {error}") from None
    return replace(task, menu=(found.mechanism,), exponent=found.exponent, modulus=found.modulus)
