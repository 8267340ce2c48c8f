"""Which rows of a problem ask the same question: public, from features alone. Only within these does shuffling hide."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from protocol.messages import Task
from protocol.problem import DRAWN, Problem

OWN_FEATURES = (
    "expected questions that several labelers answer each, got features drawn for every row: they say whose a report "
    "is, so shuffling hides nobody; give [problem] questions = Q, or ask with trust local, distributed or central"
)


@lru_cache(maxsize=16)
def questions(problem: Problem, n: int) -> NDArray[np.int64]:
    """The number of the question of rows 0, ..., n - 1, shape (n,): equal features to the last bit, by first row.

    Of choices, the same choices in the same places. Raises ValueError where features are drawn for each row.
    """
    if problem.features in DRAWN or problem.design is None:
        raise ValueError(OWN_FEATURES)
    rows = np.ascontiguousarray(problem.design[:n]).reshape(n, -1)
    if problem.sizes is not None:
        rows = np.column_stack([rows.astype(np.float64), problem.sizes[:n].astype(np.float64)])
    held = np.ascontiguousarray(rows)
    named = held.view(np.dtype((np.void, held.itemsize * held.shape[1])))[:, 0]
    _, first, place = np.unique(named, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    found: NDArray[np.int64] = rank[place]
    found.flags.writeable = False
    return found


def asked_questions(task: Task) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows that a task asks for, and the question of each, both (rows,). Raises ValueError as `questions`."""
    numbers = questions(task.problem, task.n)
    rows = np.arange(task.n, dtype=np.int64) if task.rows is None else task.rows.numbers()
    return rows, numbers[rows]


def smallest_group(task: Task) -> int:
    """How many rows of a task ask its rarest question. Raises ValueError as `questions`."""
    counts = np.bincount(asked_questions(task)[1])
    return int(counts[counts > 0].min())
