"""The round loop, free of any runtime: what is asked, and what is done with the answers, in this order."""

from collections.abc import Iterator
from dataclasses import fields
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np

from protocol.arms import Arm
from protocol.problem import Problem
from protocol.study import Cell, Study
from server.estimators.base import Options
from server.evidence import Server, joined
from server.kinds import Asked, kind_of
from server.listening import Ask, Check, complete, listen
from server.outcome import Outcome, outcomes, trivial
from server.record_rounds import play_records
from server.tasks import offers


def play(study: Study, cell: Cell, ask: Ask, server: Server, check: Check = complete) -> Iterator[Outcome]:
    """One cell of a study: ask everyone once, then estimate each repetition with every arm.

    `ask` carries all tasks' bytes to every client and brings back their replies' bytes: all that differs between
    runtimes. Raises RoundFailed where `check` does not accept what came: `complete` insists on every row.
    """
    if study.problem.kind == "records":
        yield from play_records(study, cell, ask, server, check)
        return
    name, kind = server.curator_name, kind_of(study.problem)
    offered = [offer.of_curator(name, server.attempt) for offer in offers(study, cell)]
    answers = listen([task for offer in offered for task in offer.asked], ask, check)
    for repetition in range(cell.first_repetition, cell.first_repetition + cell.repetitions):
        designs, asked = kind.designs(server, study.problem, cell.n, repetition), list[Asked]()
        for offer in offered:
            if offer.task is None:
                yield from (trivial(arm, cell.n, repetition, study.problem) for arm in offer.arms)
                continue
            heard = joined(offer.task, [answers[task] for task in offer.asked])
            seen = kind.seen(server, heard, designs)
            asked += [Asked(arm, heard, seen, options(study.problem, arm)) for arm in offer.arms]
        for one, estimate in zip(asked, kind.estimates(asked), strict=True):
            yield from outcomes(study, one.arm, repetition, one.heard, estimate)


def options(problem: Problem, arm: Arm) -> Options:
    """An arm's options as estimators take them."""
    return _options(np.inf if problem.bound is None else float(problem.bound), arm)


@lru_cache
def _options(bound: float, arm: Arm) -> Options:
    values: dict[str, Any] = {key: float(value) if isinstance(value, Decimal) else value for key, value in arm.options}
    known = {field.name: values[field.name] for field in fields(Options) if field.name in values}
    return Options(bound, **known)
