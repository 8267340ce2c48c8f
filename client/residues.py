"""What a member of a secure sum adds to it before its masks: its rows' sum with their shares of the noise, modulo M."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from client.choice import TaskInvalid
from client.draws import Draws
from protocol.grid import to_integers
from protocol.messages import Coins, Mechanism, Task
from protocol.noise.accounting import Shares
from protocol.noise.claims import any_terms
from protocol.noise.table import table
from protocol.trust import Trust

Residues: TypeAlias = NDArray[np.uint64]
Rows: TypeAlias = NDArray[np.int64]


def residues(
    task: Task, mechanism: Mechanism, rows: Rows, sums: NDArray[np.float64], draws: Callable[[int], Draws]
) -> Residues:
    """sum_i y_i q_i + noise mod M over these rows, M the task's modulus; of top choices sum_i q_{i, y_i}.

    Of records sum_i q_i, q_i a `client.rounding:rounded` contribution.

    `sums` (repetitions, p) are exact, on the task's grid: q_i = v_i / 2^exponent are whole numbers. The noise has the
    variance of one row's share for each row. Shape (repetitions, p). Not to be sent as it is: by itself it hides a
    label behind the noise of these rows alone.

    Guarantee: that of `protocol.noise.claims:any_terms` for the sum of all members' residues, checked here again.
    Raises TaskInvalid for a task whose claim its noise does not keep, and for another trust model.
    """
    if task.trust is not Trust.DISTRIBUTED or task.exponent is None:
        raise TaskInvalid("expected a task for sums under masks")
    try:
        terms = any_terms(task, mechanism)
    except ValueError as error:
        raise TaskInvalid(str(error)) from None
    found = np.empty((task.repetitions, terms.shares.dimension), dtype=np.uint64)
    for index, own in enumerate(sums):
        noise = noise_of(terms.shares, rows, draws(task.first_repetition + index))
        found[index] = (to_integers(own, task.exponent) + noise).astype(np.uint64) & np.uint64(terms.modulus - 1)
    return found


def noise_of(shares: Shares, rows: Rows, draws: Draws) -> NDArray[np.int64]:
    """The noise that these rows add, shape (p,): one draw for all of them, or one a row at addresses of its own.

    Guarantee: fresh coins of the system's make 128 bits a coordinate, and the draw is within
    `protocol.noise.accounting:DRAWN` of its law in total variation. Addressed ones protect nobody: the same rows have
    the same noise whoever answers for them, and the same coins whatever the level.
    """
    if draws.coins is Coins.OS:
        words = draws.vectors(rows[:1], 2 * shares.dimension).reshape(shares.dimension, 2)
        return table(shares.law, shares.share * len(rows)).draw(words)
    drawn = table(shares.law, shares.share).quantiles(draws.vectors(rows, shares.dimension))
    total: NDArray[np.int64] = drawn.sum(axis=0)
    return total
