"""What is left of shuffled reports: how many gave each answer to a question. Rows get these answers back in one order.

Rows of a question have the same features, so every estimate from rows and answers is one from the counts.
"""

import math
from collections import Counter
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from protocol.messages import Task
from protocol.questions import questions

Rows = NDArray[np.int64]
Symbols = NDArray[np.uint8]
GOLDEN = (math.sqrt(5) - 1) / 2


def anonymous(task: Task, rows: Rows, symbols: Symbols) -> Symbols:
    """Symbols (repetitions, rows) with nothing of whose they were: a function of the counts at each question alone.

    Within a question the sorted answers go to its rows in steps of the golden section, so that any stretch of rows has
    about the same share of each answer. Raises ValueError where features say whose a report is.
    """
    asked = questions(task.problem, task.n)[rows]
    places = _places(asked)
    found = np.empty_like(symbols)
    for own, made in zip(symbols, found, strict=True):
        made[places] = own[np.lexsort((own, asked))]
    return found


def fitting_rows(task: Task, rows: Rows, counts: Counter[int]) -> Rows:
    """The first rows of each question, as many as reports came about it, of `rows`, increasing.

    Raises ValueError for more reports than a question has rows.
    """
    asked = questions(task.problem, task.n)[rows]
    order = np.argsort(asked, kind="stable")
    there, first, sizes = np.unique(asked[order], return_index=True, return_counts=True)
    wanted = np.array([counts[number] for number in there.tolist()], dtype=np.int64)
    if (wanted > sizes).any() or set(counts) - set(there.tolist()):
        raise ValueError("more reports about a question than labelers were asked it")
    place = np.arange(len(order)) - np.repeat(first, sizes)
    return np.sort(rows[order[place < np.repeat(wanted, sizes)]])


def _places(asked: Rows) -> Rows:
    """Where the t-th of all answers, sorted by question and answer, goes."""
    order = np.argsort(asked, kind="stable")
    _, first, sizes = np.unique(asked[order], return_index=True, return_counts=True)
    steps = np.array([_step(size) for size in sizes.tolist()], dtype=np.int64)
    inside = np.arange(len(order)) - np.repeat(first, sizes)
    found: Rows = order[np.repeat(first, sizes) + inside * np.repeat(steps, sizes) % np.repeat(sizes, sizes)]
    return found


@lru_cache(maxsize=1 << 12)
def _step(size: int) -> int:
    """The number nearest below the golden section of a size that has no factor in common with it."""
    step = max(1, round(GOLDEN * size))
    while math.gcd(step, size) > 1:
        step -= 1
    return step
