"""Exact sums of what records contribute, by blocks of rows that stay in a cache; compiled where there are many."""

from collections.abc import Callable
from types import ModuleType

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from client.compiled import loaded, pays
from client.gradients import gradients
from client.records import Records
from client.statistics import contributions
from protocol.grid import truncate
from protocol.messages import Task
from protocol.record_terms import CLIP, LINF, Bounded
from protocol.threads import spread
from protocol.threshold_grid import ThresholdGrid

Floats = NDArray[np.float64]

NONE = np.empty(0)  # no point: factors are there already
BLOCK = 2048  # rows
PART = 1 << 16  # rows of a thread at a time, whole tiles of the kernel
ALONE = 1 << 24  # numbers from which on compiled loops pay for the compiler's import too: most of a second


def gradient_sums(
    task: Task, how: Bounded, records: Records, point: Floats, centre: Floats | None, rows: NDArray[np.int64]
) -> Floats:
    """The sum over rows of `client.statistics.contributions`, made of their gradients, on the task's grid.

    Shape (width,). Sums on the grid are exact, so neither blocks nor compiled loops change a bit.
    """
    counts = ThresholdGrid.of(task.menu[0]) is not None  # which are on the grid
    total, start = np.zeros(1), 0
    if not counts and how.norm == LINF and not how.counted:
        total, start = _compiled_sums(task, how, records, point, centre)
    for first in range(start, len(rows), BLOCK):
        part = records.part(first, first + BLOCK)
        found = gradients(task.problem.model, part, point, centre)
        values = contributions(task, how, found, rows[first : first + BLOCK])
        if not counts:
            assert task.exponent is not None
            values = truncate(values, task.exponent)
        total = total + values.sum(axis=0)
    return total + 0.0  # no negative zero


def _compiled_sums(
    task: Task, how: Bounded, records: Records, point: Floats, centre: Floats | None
) -> tuple[Floats, int]:
    """The sum over the first rows, and how many they are: all but a few, or none."""
    features, responses, _ = records.reveal()
    most, fast = features.shape[1], _kernels(features.size)
    mean = task.problem.model == "mean"  # point - x: -1 times x, less a centre of its own
    if fast is None or most != 1 or not features.flags.c_contiguous or (mean and centre is not None):
        return np.zeros(1), 0
    count = len(features) // fast.TILE * fast.TILE
    x, y, at = features[:count, 0], responses if responses is None else responses[:count, 0], np.array(point)
    away = -at if mean else np.zeros(len(at)) if centre is None else np.array(centre)
    assert task.exponent is not None
    terms = away, how.threshold, how.shape == CLIP, 2.0**-task.exponent

    def total(first: int) -> NDArray[np.int64]:
        found, rows = np.zeros(len(at), dtype=np.int64), slice(first, first + PART)
        factors = FACTORS[task.problem.model](fast, x[rows], None if y is None else y[rows], at)
        fast.add_gradients(x[rows], *factors, *terms, found)
        return found

    sums = sum(spread(total, range(0, count, PART)), start=np.zeros(len(at), dtype=np.int64))  # whole numbers
    return sums.astype(np.float64) * 2.0**task.exponent, count


def _mean(fast: ModuleType, x: Floats, y: Floats | None, point: Floats) -> tuple[Floats, Floats]:
    return np.full(len(x), -1.0), NONE


def _linear(fast: ModuleType, x: Floats, y: Floats | None, point: Floats) -> tuple[Floats, Floats]:
    return np.ascontiguousarray(y), point  # the kernel makes the products, and reads x once


def _logistic(fast: ModuleType, x: Floats, y: Floats | None, point: Floats) -> tuple[Floats, Floats]:
    assert y is not None
    found = np.empty(len(x))
    fast.all_products(x, point, found)
    return expit(found, out=found) - y, NONE


FACTORS: dict[str, Callable[[ModuleType, Floats, Floats | None, Floats], tuple[Floats, Floats]]] = {
    "mean": _mean,
    "linear": _linear,
    "logistic": _logistic,
}


def _kernels(numbers: int) -> ModuleType | None:
    """`client.kernels_gradients` for so many numbers, or None where numpy is to do it."""
    return loaded("client.kernels_gradients") if pays(numbers, ALONE) else None
