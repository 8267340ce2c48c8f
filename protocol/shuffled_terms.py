"""The terms of a shuffled task, derived alike by client and server: the level of a report, and what the group keeps."""

from decimal import ROUND_FLOOR, Context, Decimal

import numpy as np

from protocol.messages import Mechanism, Task
from protocol.problem import Problem
from protocol.questions import smallest_group
from protocol.shuffling import LEAST_GROUP, keeps, local_level
from protocol.trust import Trust

PARAMETERS = frozenset({"epsilon", "delta", "group", "local"})
ALL = Decimal(1)
_WHOLE = Context(prec=40, rounding=ROUND_FLOOR)


def outcomes_of(problem: Problem) -> tuple[int, ...]:
    """How many answers the questions of a problem have, each number once."""
    if problem.kind == "pairwise":
        return (2,)
    return (problem.choices,) if problem.sizes is None else tuple(np.unique(problem.sizes).tolist())


def report_mechanism(task: Task, mechanism: Mechanism) -> Mechanism:
    """What one label goes through by itself: in a shuffled task the same mechanism at its `local` level.

    Raises ValueError for a shuffled mechanism without one.
    """
    if task.trust is not Trust.SHUFFLED:
        return mechanism
    local = mechanism.get("local")
    if local is None:
        raise ValueError(f"expected the level of one report, local, for {mechanism.name}, got none")
    return Mechanism.of(mechanism.name, epsilon=local)


def shuffled_mechanism(task: Task, name: str, honest: Decimal = ALL) -> Mechanism:
    """Randomised response of a task, at the largest level with which its worst group keeps the task's claim.

    group: `honest` times the size of the smallest group, rounded down, is how many of its reports are trusted to be
    random; local: `protocol.shuffling:local_level` of it, the least one over the numbers of answers that occur.

    Guarantee: (epsilon, delta) of the task; unit: one label; neighbours: replace one label; where at least `group` of
    the reports to every question are randomised by honest clients, and nobody learns whose a report is.
    Raises ValueError for a group too small, and where features say whose a report is.
    """
    assert task.epsilon is not None and task.delta is not None
    smallest = smallest_group(task)
    group = int(_WHOLE.multiply(honest, Decimal(smallest)).to_integral_value(rounding=ROUND_FLOOR))
    if group < LEAST_GROUP:
        raise ValueError(
            f"expected at least {LEAST_GROUP} honest labelers for every question, got {group} for the rarest, which "
            f"{smallest} answer: nothing is amplified; ask fewer questions of more labelers"
        )
    levels = [local_level(task.epsilon, task.delta, group, outcomes) for outcomes in outcomes_of(task.problem)]
    return Mechanism.of(name, epsilon=task.epsilon, delta=task.delta, group=Decimal(group), local=min(levels))


def check_shuffled(task: Task, mechanism: Mechanism) -> None:
    """Raise ValueError unless the claim of a shuffled task holds by what is in it: what a client checks by itself.

    Its group has to be one that every question has, and reports at its level have to keep the task's claim in it.
    """
    if {name for name, _ in mechanism.parameters} != PARAMETERS:
        raise ValueError(f"expected the parameters {sorted(PARAMETERS)} of a shuffled mechanism")
    epsilon, delta, group, local = (mechanism.get(name) for name in ("epsilon", "delta", "group", "local"))
    if epsilon is None or epsilon != task.epsilon or delta is None or delta != task.delta:
        raise ValueError("expected the epsilon and the delta of the task")
    if group is None or group != group.to_integral_value() or not LEAST_GROUP <= group <= smallest_group(task):
        raise ValueError(f"expected a group of {LEAST_GROUP} labelers or more, and not more than any question has")
    if local is None or local < epsilon:
        raise ValueError("expected a level of one report that is not below epsilon")
    if not all(keeps(local, int(group), epsilon, delta, outcomes) for outcomes in outcomes_of(task.problem)):
        raise ValueError("expected a level of one report with which the group keeps the claim")
