"""Ties at the labeler: what becomes of a label without a winner before it is summed, sent or randomised."""

import numpy as np
from numpy.typing import NDArray

from client.choice import TaskInvalid
from client.draws import Draws
from protocol.messages import Task, Ties
from protocol.terms import TIE
from protocol.trust import Trust

Symbols = NDArray[np.uint8]
Rows = NDArray[np.int64]


def settled(task: Task, values: Symbols, draws: Draws, rows: Rows) -> Symbols:
    """Labels with their ties settled as a clear or central task says: by fair coins, or left as `TIE` for a half.

    A task that knows of no ties gets a fixed winner under a claim: the first of the pair, which is so by name.
    Raises TaskInvalid for ties in a clear task that knows of none: nothing is promised there, and a guess would be
    wrong in silence.
    """
    if task.ties is Ties.COIN:
        return np.where(values == TIE, draws.fair(rows), values)
    if task.ties is Ties.NONE and task.trust is Trust.CLEAR and (values == TIE).any():
        raise TaskInvalid("expected a clear task that says what becomes of ties")
    if task.ties is Ties.NONE:
        return np.where(values == TIE, np.uint8(0), values)
    return values


def wins(values: Symbols) -> NDArray[np.float64]:
    """y: 0, 1, or 1/2 for a tie."""
    y = values.astype(np.float64)
    y[values == TIE] = 0.5
    return y
