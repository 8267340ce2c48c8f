"""What a first study of pairs compiles, shared out over two processes: a process compiles on one core alone."""

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np

from server.kernels import largest, mean_moment
from server.kernels_lanes import descend_lanes
from server.kernels_logistic import cumulant, variances
from server.kernels_randomized import likelihood
from server.kernels_solve import ball_step, dot, is_definite, leverage

SHARES = 2


def shares() -> tuple[Sequence[tuple[Any, tuple[Any, ...]]], ...]:
    """Kernels with arguments of the types that estimators call them with: two halves of the compiler's time.

    What the second calls of the first's comes last in it: then the first has kept that.
    """
    vector, matrix, rows, reports = np.zeros(1), np.zeros((1, 1)), np.zeros((1, 1)), np.zeros((1, 1), np.uint8)
    rows.flags.writeable = False  # as public features are
    first = (
        (cumulant, (rows, vector, vector, True)),
        (largest, (rows, vector)),
        (mean_moment, (rows, vector)),
        (variances, (rows, vector, vector)),
    )
    second = (
        (ball_step, (matrix, vector, vector, 0.0)),
        (leverage, (matrix, 0.0, vector)),
        (is_definite, (matrix, 0.0)),
        (dot, (vector, vector)),
        (descend_lanes, (rows, reports, matrix, 0.0, 0.0, matrix)),
        (likelihood, (rows, vector, 0.0, 0.0, True, vector)),
    )
    return first, second


def compile_share(number: int) -> None:
    """Compile the kernels of one share, 0 or 1, and keep them on disk; nothing is called."""
    for kernel, arguments in shares()[number]:
        kernel.compile(tuple(map(numba.typeof, arguments)))
