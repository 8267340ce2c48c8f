"""Sessions side by side: tasks of the distributed model about the same rows share one, and every stage one exchange."""

from collections.abc import Callable, Iterable, Sequence

from protocol.messages import Task
from protocol.secure.messages import Stage
from server.evidence import Heard
from server.secure.stages import Session

Ask = Callable[[list[bytes]], Iterable[bytes]]


def securely(tasks: Sequence[Task], ask: Ask) -> dict[Task, Heard]:
    """The opened sums of tasks of the distributed model: `Collected.residues`, modulo M, and `sums` of them next to 0.

    A session opens the sums of all tasks about the same rows, once; five exchanges, whatever the number of sessions.
    Where too few members stay nothing is opened, and `Collected.rejected` says why.

    Guarantee: whatever the server does, it learns of those rows what a sum over at least `honest` of them tells, with
    their noise; unit: the task's; see docs/SECURE.md for what is assumed. Raises what `ask` raises, and ValueError for
    a task that no session can be about.
    """
    groups = dict[bytes, list[Task]]()
    for task in tasks:
        groups.setdefault(_rows(task), []).append(task)
    sessions = [Session.of(group) for group in groups.values()]
    for stage in Stage:
        asked = [raw for session in sessions for raw in session.questions(stage)]
        replies = list(ask(asked)) if asked else []
        for session in sessions:
            session.take(stage, replies)
    return {heard.task: heard for session in sessions for heard in session.heard()}


def _rows(task: Task) -> bytes:
    return b"" if task.rows is None else repr(task.rows.runs).encode()
