"""What a row contributes to a task, within its bound: its gradient, or how large that is."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from protocol.messages import Task
from protocol.record_terms import Bounded, bounded
from protocol.threshold_grid import ThresholdGrid
from protocol.trust import Trust

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
Statistic = Callable[[Task, Bounded, Floats, Rows], Floats]


def contributions(task: Task, how: Bounded, gradients: Floats, rows: Rows) -> Floats:
    """The bounded contributions of rows, (rows, `protocol.record_terms.width`), made of their gradients (rows, d)."""
    return STATISTICS[_name(task, how)](task, how, gradients, rows)


def sizes(gradients: Floats) -> Floats:
    """The largest |g_j| of each row: NaN counts as 0, infinity as beyond every threshold."""
    largest = np.zeros(len(gradients))
    for column in gradients.T:
        largest = np.maximum(largest, np.nan_to_num(np.abs(column), nan=0.0, posinf=np.inf))
    return largest


def _name(task: Task, how: Bounded) -> str:
    if ThresholdGrid.of(task.menu[0]) is not None:
        return "exceedances" if task.trust is Trust.CENTRAL else "bits"
    return "counted" if how.counted else "gradients"


def _gradients(task: Task, how: Bounded, gradients: Floats, rows: Rows) -> Floats:
    return bounded(gradients, how)


def _counted(task: Task, how: Bounded, gradients: Floats, rows: Rows) -> Floats:
    """The bounded gradient, and one coordinate more: `how.counted` where it was beyond its bound, else 0."""
    within = bounded(gradients, how)
    known = np.nan_to_num(gradients, nan=0.0, posinf=np.inf, neginf=-np.inf)
    beyond = np.zeros(len(rows), dtype=np.bool_)
    for before, after in zip(known.T, within.T, strict=True):
        beyond |= before != after
    return np.column_stack([within, np.where(beyond, how.counted, 0.0)])


def _exceedances(task: Task, how: Bounded, gradients: Floats, rows: Rows) -> Floats:
    """1 for each threshold that the largest |g_j| of a row exceeds, else 0: a replaced row moves each sum by 1."""
    above = sizes(gradients)[:, None] > _grid(task).thresholds
    return above.astype(np.float64)


def _bits(task: Task, how: Bounded, gradients: Floats, rows: Rows) -> Floats:
    """1 where the largest |g_j| of a row is within one threshold, else -1; the row's number says which."""
    thresholds = _grid(task).thresholds
    above = sizes(gradients) > thresholds[rows % len(thresholds)]
    return np.where(above, -1.0, 1.0)[:, None]


def _grid(task: Task) -> ThresholdGrid:
    grid = ThresholdGrid.of(task.menu[0])
    assert grid is not None
    return grid


STATISTICS: dict[str, Statistic] = {
    "gradients": _gradients,
    "counted": _counted,
    "exceedances": _exceedances,
    "bits": _bits,
}
