"""Shuffled reports of a small group: the exact law of how many gave each answer, for every label of the others."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from functools import partial
from itertools import combinations_with_replacement

import numpy as np

from protocol.arms import Arm
from protocol.channel import DiscreteChannel
from protocol.choice_law import choice_law
from protocol.messages import Task
from protocol.problem import Problem
from protocol.study import Cell, Grid, Study
from protocol.terms import law
from protocol.trust import Trust
from server.tasks import offers
from studies.audit.exact import Axis, Law, enumerated
from studies.audit.labels import UNIT, coin_cuts, report_of
from studies.audit.subject import Claim, Subject

DELTA = Decimal("0.01")
GROUPS = {"randomized-response": (12, 2), "k-randomized-response": (6, 3)}  # labelers, answers
_RUN = "counts of {} reports, each by client.randomizer on all classes of coins"


def of_group(name: str, epsilon: Decimal) -> Subject:
    """A group that answers one question, at the level that a server offers for it.

    A report's law is that of the border, run on every class of coins; the counts' law is made of these in integers. An
    input is one label and those of the others, of which the order says nothing; neighbours differ in the one label.
    """
    group, answers = GROUPS[name]
    table = _table(_task(name, epsilon, group, answers), answers)
    others = list(combinations_with_replacement(range(answers), group - 1))
    inputs = {f"{value} among {_told(rest)}": (value, rest) for rest in others for value in range(answers)}
    pairs = tuple(
        (f"{one} among {_told(rest)}", f"{other} among {_told(rest)}")
        for rest in others
        for other in range(answers)
        for one in range(other)
    )

    def laws() -> Mapping[str, Law]:
        axis = Axis.cut(coin_cuts(table))
        single = [enumerated(partial(report_of, table, value), [[axis]]) for value in range(answers)]
        known: dict[tuple[int, ...], Law] = {}
        for rest in others:
            known[rest] = _counts(single, rest)
        return {name: _named(_with(known[rest], single[value])) for name, (value, rest) in inputs.items()}

    return Subject(f"shuffled/{name}", Claim(epsilon, DELTA, UNIT), inputs, pairs, _RUN.format(group), laws=laws)


def _task(name: str, epsilon: Decimal, group: int, answers: int) -> Task:
    """What a server asks such a group."""
    x = np.ones((group, 1)) if answers == 2 else np.tile(np.arange(float(answers))[:, None], (group, 1, 1))
    kind = {} if answers == 2 else {"kind": "choice", "model": "plackett-luce", "choices": answers}
    problem = Problem(1, "values", False, None, design=x, **kind)  # type: ignore[arg-type]
    arm = Arm(Trust.SHUFFLED, name, "debiased")
    (offer,) = offers(Study("audit", 0, 1, problem, Grid((group,), (epsilon,), (DELTA,)), (arm,)), Cell(group, 0, 1))
    assert offer.task is not None
    return replace(offer.task)


def _table(task: Task, answers: int) -> DiscreteChannel:
    asked = task.menu[0]
    if answers > 2:
        return choice_law(task, asked).table(answers)
    two = law(task, asked).table[:2]  # without the row of ties, which lies between these
    return DiscreteChannel(two)


def _counts(single: list[Law], rest: tuple[int, ...]) -> Law:
    found: Law = {(): 1}
    for value in rest:
        found = _with(found, single[value])
    return found


def _with(law: Law, one: Law) -> Law:
    """The law of sorted reports with one more."""
    found: dict[object, int] = defaultdict(int)
    for held, weight in law.items():
        assert isinstance(held, tuple)
        for symbol, share in one.items():
            found[tuple(sorted((*held, symbol)))] += weight * share
    return dict(found)


def _named(law: Law) -> Law:
    """Counts in place of sorted reports."""
    return {_told(tuple(held[0] for held in reports)): weight for reports, weight in law.items()}  # type: ignore[attr-defined]


def _told(rest: tuple[int, ...]) -> str:
    """How many of the others have each label."""
    return " ".join(f"{rest.count(value)}x{value}" for value in sorted(set(rest)))
