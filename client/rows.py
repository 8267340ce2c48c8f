"""Which rows a client answers for: held, asked for, within the cap of their labeler, not left out as public ties."""

import numpy as np
from numpy.typing import NDArray

from client.choice import TaskInvalid
from client.sources import Source
from protocol.messages import Task, Ties
from protocol.terms import TIE
from protocol.trust import Trust

Rows = NDArray[np.int64]


def answerable(task: Task, source: Source) -> Rows:
    """Rows to answer for, in order.

    A cap keeps the lowest rows of each labeler, whichever of them are asked for: so no sequence of tasks reaches
    further labels. Only `Ties.DROP` looks at labels, where the node's policy lets it: which rows are ties is public.
    """
    held = source.rows(task).numbers()
    facts = source.facts(held) if task.cap else None
    if facts is not None:
        held = held[within_cap(facts.labelers, task.cap)]
    rows = held if task.rows is None else np.intersect1d(held, task.rows.numbers(), assume_unique=True)
    if task.ties is Ties.DROP and len(rows) and not source.synthetic:
        rows = rows[source.labels(task, 0, rows).reveal() != TIE]
    return rows


def check_groups(task: Task, source: Source, rows: Rows) -> None:
    """Raise TaskInvalid unless the task's groups tell this client's labelers apart exactly as they are.

    The sensitivity to a labeler is computed from the groups: a labeler in two of them would be protected half.
    """
    if task.groups is None or task.trust is not Trust.CENTRAL:
        return
    facts = source.facts(rows)
    if facts is None:
        raise TaskInvalid("expected labels of a file where groups are asked for")
    pairs = np.unique(np.stack([facts.labelers, task.groups[rows].astype(np.int64)]), axis=1)
    if any(len(np.unique(side)) != pairs.shape[1] for side in pairs):
        raise TaskInvalid("expected one group for each labeler, and one labeler in each group")


def within_cap(owners: NDArray[np.int64], cap: int) -> NDArray[np.bool_]:
    """Whether a row is among the first `cap` of its owner's, in the order given.

    >>> within_cap(np.array([5, 7, 5, 5]), 2).tolist()
    [True, True, True, False]
    """
    order = np.argsort(owners, kind="stable")
    sorted_owners = owners[order]
    starts = np.flatnonzero(np.append(True, sorted_owners[1:] != sorted_owners[:-1])[: len(owners)])
    place = np.arange(len(owners)) - np.repeat(starts, np.diff(np.append(starts, len(owners))))
    kept = np.empty(len(owners), dtype=np.bool_)
    kept[order] = place < cap
    return kept
