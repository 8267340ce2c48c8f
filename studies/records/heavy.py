"""What tails of a clear run's records say of its estimate. Of other runs nothing: it depends on records."""

import numpy as np

from client.gradients import gradients
from client.sources.record_table import RecordTable
from protocol.coins import Floats
from protocol.trust import Trust
from studies.records.request import Request
from studies.tails import heavy, tail_index


def contributions(table: RecordTable, theta: Floats) -> Floats:
    """What is averaged, (records, d): values, or gradients at the estimate."""
    at = np.zeros(len(table.columns.names)) if table.columns.model == "mean" else theta
    return gradients(table.columns.model, table.held, at)


def tails(request: Request, table: RecordTable, theta: Floats) -> tuple[str, ...]:
    """Warnings, one a feature at most: no mean, or no variance."""
    if request.trust is not Trust.CLEAR:
        return ()
    what = "values" if table.columns.model == "mean" else "gradients"
    found = []
    for name, column in zip(table.columns.names, contributions(table, theta).T, strict=True):
        tail = tail_index(column)
        if tail is not None and (said := heavy(f"{name}: {tail} of {what}", tail)):
            private = f"; for a private estimate --tail below {tail.index - 1:.2f}" if tail.index > 1 else ""
            found.append(f"{said}{private}")
    return tuple(found)
