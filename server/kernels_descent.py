"""Compiled one-pass gradient descent on de-biased residuals; a pass may come in parts."""

import math

from server.kernels import Array, compiled
from server.kernels_elementary import logistic
from server.kernels_solve import project_on_ball


@compiled
def residual(z: float, symbol: float, contrast: float, flip: float) -> float:
    """Un-normalised de-biased residual c sigma(z) - (symbol - flip): equation (10) per unit of v; symbol 0 or 1.

    Of one row's arm, or of arms as lanes.
    """
    return contrast * logistic(z) - (symbol - flip)


@compiled
def move(
    columns: Array, row: int, symbol: float, contrast: float, flip: float, rate: float, bound: float, u: Array
) -> None:
    """u <- Proj(u - rate residual(u . v) v) for one row."""
    z = 0.0
    for j in range(u.size):
        z += u[j] * columns[j, row]
    step = rate * residual(z, symbol, contrast, flip)
    for j in range(u.size):
        u[j] -= step * columns[j, row]
    project_on_ball(u, bound)


@compiled
def descend(
    columns: Array, symbols: Array, contrast: float, flip: float, alpha: float, bound: float, done: float, u: Array
) -> None:
    """Go on from the iterate u after `done` rows, in row order, with steps 1 / (alpha contrast t); u is overwritten.

    After rows of other channels `done` is what they are worth: the sum of contrast_i^2 / contrast^2.
    columns (p, m), symbols (m,) of 0 and 1, u (p,).
    Source: Chowdhury, Zhou, Natarajan 2024, equation (10) and Algorithm 1.
    """
    for i in range(symbols.size):
        rate = 1.0 / (alpha * contrast * (done + i + 1.0))
        move(columns, i, symbols[i], contrast, flip, rate, bound, u)


@compiled
def descend_and_add(
    columns: Array,
    symbols: Array,
    contrast: float,
    flip: float,
    scale: float,
    bound: float,
    done: float,
    skip: float,
    u: Array,
    total: Array,
) -> None:
    """The same with steps scale / (contrast t^(3/5)); `total` gains every iterate after the first `skip`.

    Source: Polyak, Juditsky 1992: averages of iterates whose steps shrink more slowly than 1 / t.
    """
    for i in range(symbols.size):
        t = done + i + 1
        root = fifth_root(float(t))
        move(columns, i, symbols[i], contrast, flip, scale / (contrast * (root * root * root)), bound, u)
        if t > skip:
            for j in range(u.size):
                total[j] += u[j]


@compiled
def fifth_root(t: float) -> float:
    """t^(1/5) for t >= 1, by Newton's method from above: IEEE arithmetic alone, so no maths library has a say."""
    root = math.sqrt(math.sqrt(t))
    while True:
        square = root * root
        better = (4.0 * root + t / (square * square)) / 5.0
        if not better < root:
            return root
        root = better
