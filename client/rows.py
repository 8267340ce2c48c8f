"""Which rows a client answers for: held, asked for, within the cap of their labeler, not left out as public ties."""

from dataclasses import replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from client.choice import TaskInvalid
from client.sources import Facts, Holdings, RecordSource, Source
from protocol.messages import Task, Ties
from protocol.privacy import Unit
from protocol.study import MOST
from protocol.terms import TIE
from protocol.trust import Trust

Rows = NDArray[np.int64]


def answerable(task: Task, source: Source | RecordSource) -> Rows:
    """Rows to answer for, in order.

    A cap chooses among all labels of a labeler, whichever of them are asked for: so no sequence of tasks with one cap
    reaches further labels. Only `Ties.DROP` looks at labels, where the node's policy says that ties are public.
    """
    held = source.rows(task).numbers()
    if task.cap and not source.synthetic:
        held = np.intersect1d(held, _counting(task, source), assume_unique=True)
    rows = held if task.rows is None else held[task.rows.have(held)]
    if task.ties is Ties.DROP and len(rows) and not source.synthetic:
        rows = rows[cast(Source, source).labels(task, 0, rows).reveal() != TIE]
    return rows


def check_groups(task: Task, source: Holdings, rows: Rows) -> None:
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


def group_size(task: Task, facts: Facts | None, rows: Rows) -> int:
    """How many of the task's unit an exact sum over these rows is about: rows, or those whose labels they are."""
    return len(rows) if task.unit is not Unit.LABELER or facts is None else len(np.unique(facts.labelers))


def _counting(task: Task, source: Holdings) -> Rows:
    """Rows of labels within the cap of their labeler, out of all rows held, also beyond the task's n."""
    held = source.rows(replace(task, n=MOST)).numbers()
    facts = source.facts(held)
    return held if facts is None else held[within_cap(facts, task.cap)]


def within_cap(facts: Facts, cap: int) -> NDArray[np.bool_]:
    """Whether a row's label is among the `cap` of its labeler whose identities come first.

    Identities are hashes: the choice is public, the same for any order of the file, and favours no item.
    """
    names = np.frombuffer(b"".join(facts.identities), dtype=">u8").reshape(len(facts.identities), -1)[:, 0]
    order = np.lexsort((names, facts.labelers))
    owners = facts.labelers[order]
    starts = np.flatnonzero(np.append(True, owners[1:] != owners[:-1])[: len(owners)])
    place = np.arange(len(owners)) - np.repeat(starts, np.diff(np.append(starts, len(owners))))
    kept = np.empty(len(owners), dtype=np.bool_)
    kept[order] = place < cap
    return kept
