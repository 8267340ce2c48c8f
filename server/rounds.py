"""The round loop, free of any runtime: what is asked, and what is done with the answers, in this order."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from decimal import Decimal
from typing import Any

import numpy as np

from protocol.arms import Arm
from protocol.codec import encode_task, identity
from protocol.messages import Code, Task
from protocol.problem import Problem
from protocol.study import Cell, Study
from protocol.trust import Trust
from server.collect import Collected, Mail, collect
from server.estimators.base import Options
from server.evidence import Heard, Server, joined
from server.kinds import kind_of
from server.outcome import Outcome, asked_rows, outcomes, trivial
from server.task_checks import check_task
from server.tasks import offers

# Carries tasks to every client and brings back replies; of bytes, and of one message a client for a whole cell.
Ask = Callable[[list[bytes]], list[bytes]]
# Whether what was collected for a task will do, given why other replies could not be read; raises RoundFailed.
Check = Callable[[Task, Collected, Sequence[str]], None]


class RoundFailed(RuntimeError):
    """Not every row was answered for: says which codes and rejects came back."""


def complete(task: Task, collected: Collected, unread: Sequence[str]) -> None:
    """Raise RoundFailed unless every row asked for is there, and nothing was refused, rejected or unreadable."""
    if unread:
        raise RoundFailed(f"expected replies to tasks, got {len(unread)} that are none: {'; '.join(unread[:3])}")
    asked = asked_rows(task)
    # Of a task about some rows, nodes without any of them refuse: nothing is missing where all rows are there.
    elsewhere = task.rows is not None and set(collected.refusals) <= {Code.TASK_INVALID}
    if (not collected.refusals or elsewhere) and not collected.rejected and len(collected.rows) == asked:
        return
    codes = ", ".join(f"{code.name} x {count}" for code, count in sorted(collected.refusals.items())) or "none"
    rejected = "; ".join(collected.rejected[:3]) or "none"
    raise RoundFailed(
        f"expected {asked} rows for the {task.trust.label} task at n = {task.n}, epsilon = {task.epsilon}, "
        f"got {len(collected.rows)}; refusals: {codes}; rejected: {len(collected.rejected)} ({rejected})"
        f"{_advice(collected)}"
    )


def _advice(collected: Collected) -> str:
    """What to do where budgets are spent."""
    if Code.BUDGET_EXHAUSTED not in collected.refusals:
        return ""
    return (
        ". Labels have not enough budget left: ask again at a level that they have answered, or let holders raise the "
        "caps of their policies"
    )


def quorum(task: Task, collected: Collected, unread: Sequence[str]) -> None:
    """Go on with the rows that were answered for; raise RoundFailed where there are none.

    A curator's sum has to be complete: its noise is set by all rows that were asked for.
    """
    if task.trust is Trust.CENTRAL or not len(collected.rows):
        complete(task, collected, ())


def play(study: Study, cell: Cell, ask: Ask, server: Server, check: Check = complete) -> Iterator[Outcome]:
    """One cell of a study: ask everyone once, then estimate each repetition with every arm.

    `ask` carries all tasks' bytes to every client and brings back their replies' bytes: all that differs between
    runtimes. Raises RoundFailed where `check` does not accept what came: `complete` insists on every row.
    """
    offered, kind = [offer.of_curator(server.curator_name) for offer in offers(study, cell)], kind_of(study.problem)
    answers = listen([task for offer in offered for task in offer.asked], ask, check)
    for repetition in range(cell.first_repetition, cell.first_repetition + cell.repetitions):
        designs = kind.designs(server, study.problem, cell.n, repetition)
        for offer in offered:
            if offer.task is None:
                yield from (trivial(arm, cell.n, repetition, study.problem) for arm in offer.arms)
                continue
            heard = joined(offer.task, [answers[task] for task in offer.asked])
            seen = kind.seen(server, heard, designs)
            for arm in offer.arms:
                estimate = kind.estimators[arm.estimator](seen, options(study.problem, arm))
                yield from outcomes(study, arm, repetition, heard, estimate)


def listen(tasks: list[Task], ask: Ask, check: Check = complete) -> dict[Task, Heard]:
    """Ask everyone, and check what comes back; raises StudyError, before, for a task that is not worth asking."""
    for task in tasks:
        check_task(task)
    raws = [encode_task(task) for task in tasks]
    ids = [identity(raw) for raw in raws]
    mail = Mail.open(ask(raws) if raws else [], ids)
    answers = {task: Heard(task, name, collect(task, name, mail)) for task, name in zip(tasks, ids, strict=True)}
    for heard in answers.values():
        check(heard.task, heard.collected, mail.unread)
    return answers


def options(problem: Problem, arm: Arm) -> Options:
    """An arm's options as estimators take them."""
    values: dict[str, Any] = {key: float(value) if isinstance(value, Decimal) else value for key, value in arm.options}
    known = {field.name: values[field.name] for field in fields(Options) if field.name in values}
    return Options(bound=np.inf if problem.bound is None else float(problem.bound), **known)
