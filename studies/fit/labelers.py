"""What several answers of one labeler mean for a ranking: notes for its reader, from public facts only."""

import math
from decimal import Decimal

import numpy as np

from client.sources.table import Table
from protocol.counting import counted
from protocol.decimals import canonical, decimal
from protocol.group_privacy import group_delta
from protocol.messages import Task
from protocol.privacy import Unit
from protocol.trust import Trust
from server.outcome import Outcome
from studies.fit.request import Request


def notes(request: Request, table: Table, task: Task, outcome: Outcome) -> tuple[str, ...]:
    """What counts of repeated rows, what a labeler's labels cost together, and what intervals leave out."""
    assert task.rows is not None
    counts = np.bincount(table.owners[task.rows.numbers()])
    most, median = int(counts.max()), float(np.median(counts[counts > 0]))
    found = [_repeated(request, table)]
    if most > 1:
        found.append(_together(request, most, median))
        if outcome.ci_low is not None:
            found.append(
                f"Intervals take all answers as independent; where the answers of one labeler (up to {most} here) hang "
                "together, they are too short."
            )
    return tuple(text for text in found if text)


def _repeated(request: Request, table: Table) -> str:
    """Which rows count where a labeler answered the same more than once."""
    if table.label_count == len(table.pairs):
        return ""
    which = "a claim counts the first row of each label, a clear fit every row"
    if request.trust is not Trust.CLEAR:
        which = "the first row of each label counts (a clear fit counts every row)"
    return (
        f"{counted(table.label_count, 'label')} in {len(table.pairs)} rows: {which}. If a labeler's rows about one "
        "pair answer different questions, name the columns that tell them apart: --question."
    )


def _together(request: Request, most: int, median: float) -> str:
    """What the claim for each label is for all labels of a labeler: m labels, m times epsilon."""
    if request.epsilon is None or request.unit is not Unit.LABEL:
        return ""
    typical, largest = (_level(request, decimal(count, "labels")) for count in (median, most))
    delta = "" if request.delta is None else " and more than m times delta"
    same = "" if median == most else f"{typical} at the median of {median:g} label{'' if median == 1 else 's'}, "
    return (
        f"A labeler with m labels spends m times epsilon{delta} together: {same}{largest} at the most, of {most} "
        "labels. To protect all labels of a labeler: --unit labeler --cap M."
    )


def _level(request: Request, labels: Decimal) -> str:
    """What neighbours that differ in so many labels are promised; half a label is a whole one."""
    assert request.epsilon is not None
    level = f"epsilon = {canonical(request.epsilon * labels)}"
    if request.delta is None:
        return level
    delta = group_delta(request.epsilon, request.delta, math.ceil(labels))
    return f"{level}, delta = {delta.normalize()}" + (" (no promise)" if delta >= 1 else "")
