"""Tasks whose noise comes in shares: from a radius and a share of honest rows to a grid and a variance."""

from dataclasses import replace
from decimal import Decimal

from protocol.messages import Mechanism, Task
from protocol.noise.terms import asked
from protocol.strict import StudyError


def in_shares(task: Task, mechanism: Mechanism) -> Task:
    """The task with its noise: `honest` is a share of its rows until then, and a number of them afterwards.

    Guarantee: the task's (epsilon, delta) where so many rows answer and tell nobody their noise: see
    `protocol.noise.terms:terms_of`. Raises StudyError for a claim that the law cannot keep.
    """
    honest, radius = mechanism.get("honest"), mechanism.get("radius")
    assert honest is not None and radius is not None and task.epsilon is not None and task.delta is not None
    count = task.n if task.rows is None else task.rows.count
    level, rows = (task.epsilon, task.delta), max(1, int(honest * Decimal(count)))
    try:
        found = asked(task.problem, count, mechanism.name, level, radius, rows, task.map is not None)
    except ValueError as error:
        raise StudyError(f"distributed task at n = {task.n}: {error}") from None
    return replace(task, menu=(found.mechanism,), exponent=found.exponent, modulus=found.modulus)
