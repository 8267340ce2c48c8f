"""Asking: tasks go to everyone, and what comes back is checked; whatever carries the bytes."""

from collections.abc import Callable, Iterable, Sequence

from protocol.codec import encode_task, identity
from protocol.counting import counted
from protocol.messages import Code, Task
from protocol.trust import Trust
from server.collect import Collected, Mail, collect
from server.evidence import Heard
from server.outcome import asked_rows
from server.secure.session import securely
from server.task_checks import check_task

# Carries tasks to every client and brings back replies; of bytes, and of one message a client for a whole cell.
Ask = Callable[[list[bytes]], Iterable[bytes]]
# Whether what a round brought will do, of all its tasks, given why other replies could not be read; raises RoundFailed.
Check = Callable[[Sequence[Heard], Sequence[str]], None]
MOST_NAMED = 5


class RoundFailed(RuntimeError):
    """Not every row was answered for: says which codes and rejects came back."""


def complete(heard: Sequence[Heard], unread: Sequence[str]) -> None:
    """Raise RoundFailed unless every row asked for is there, and nothing was refused, rejected or unreadable."""
    if unread:
        raise RoundFailed(f"expected replies to tasks, got {len(unread)} that are none: {'; '.join(unread[:3])}")
    for each in heard:
        _check_complete(each.task, each.collected)


def _check_complete(task: Task, collected: Collected) -> None:
    asked = asked_rows(task)
    # Of a task about some rows, nodes without any of them refuse: nothing is missing where all rows are there.
    elsewhere = task.rows is not None and set(collected.refusals) <= {Code.TASK_INVALID}
    if (not collected.refusals or elsewhere) and not collected.rejected and len(collected.rows) == asked:
        return
    raise RoundFailed(
        f"expected {asked} rows for {_named(task)}, got {len(collected.rows)}; {_instead(collected)}"
        f"{_advice(collected)}"
    )


def _named(task: Task) -> str:
    return f"the {task.trust.label} task at n = {task.n}, epsilon = {task.epsilon}"


def _instead(collected: Collected) -> str:
    """Codes and rejects that came back."""
    codes = ", ".join(refused(collected)) or "none"
    rejected = "; ".join(collected.rejected[:3]) or "none"
    return f"refusals: {codes}; rejected: {len(collected.rejected)} ({rejected})"


def refused(collected: Collected) -> list[str]:
    """Each code that came back, how often, and from whom: `INTERNAL x 1 (node 101)`."""
    return [
        f"{code.name} x {count}{_whose(sorted(collected.refusing.get(code, ())))}"
        for code, count in sorted(collected.refusals.items())
    ]


def _whose(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f" ({', '.join(names[:MOST_NAMED])}{more})" if names else ""


def _advice(collected: Collected) -> str:
    """What to do where budgets are spent."""
    if Code.BUDGET_EXHAUSTED not in collected.refusals:
        return ""
    return (
        ". Labels have not enough budget left: ask again at a level that they have answered, or let holders raise the "
        "caps of their policies"
    )


def quorum(heard: Sequence[Heard], unread: Sequence[str], least: int = 1) -> None:
    """Go on with the rows that were answered for, where at least `least` nodes have a report that counts.

    A node is of the quorum by a report to any of the round's tasks, once its content has been accepted: neither a
    refusal nor what is rejected makes one. Raises RoundFailed.

    A curator's sum of labels has to be complete, since its noise is set by all rows that were asked for. A sum of
    records does not: how far one of them moves it is set by the task's threshold, whoever else answers, and what is
    made of it is divided by the number of those who did. Of a round of several tasks about records some may be without
    an answer: `server.record_rounds` insists on one.
    """
    for task, collected in ((each.task, each.collected) for each in heard):
        if task.problem.kind == "records":
            continue
        if not len(collected.rows) or (task.trust is Trust.CENTRAL and len(collected.rows) < asked_rows(task)):
            _check_complete(task, collected)
    came = {name for each in heard for name in each.collected.senders}
    if least > 1 and len(came) < least:
        raise RoundFailed(
            f"expected reports that count of at least {counted(least, 'node')} (quorum), got those of {len(came)}"
        )


def nobody(task: Task, collected: Collected) -> RoundFailed:
    """What is wrong with a round in which nobody answered a task about records."""
    return RoundFailed(
        f"expected somebody to answer round {task.round} of {_named(task)}, got nobody: {asked_rows(task)} rows were "
        f"asked for; {_instead(collected)}{_advice(collected)}"
    )


def listen(tasks: list[Task], ask: Ask, check: Check = complete) -> dict[Task, Heard]:
    """Ask everyone, and check what comes back; raises StudyError, before, for a task that is not worth asking.

    Tasks of the distributed model are asked after the others, in sessions: see `server.secure.session`.
    """
    for task in tasks:
        check_task(task)
    plain = [task for task in tasks if task.trust is not Trust.DISTRIBUTED]
    raws = [encode_task(task) for task in plain]
    ids = [identity(raw) for raw in raws]
    mail = Mail.open(ask(raws) if raws else [], ids)
    answers = {task: Heard(task, name, collect(task, name, mail)) for task, name in zip(plain, ids, strict=True)}
    answers |= securely([task for task in tasks if task.trust is Trust.DISTRIBUTED], ask)
    check([answers[task] for task in tasks], mail.unread)
    return {task: answers[task] for task in tasks}  # in the order in which they are asked
