"""Compiled one-pass gradient descent with a constant vector in every gradient."""

from server.kernels import Array, compiled
from server.kernels_descent import residual
from server.kernels_solve import project_on_ball


@compiled
def descend_perturbed(columns: Array, symbols: Array, shift: Array, alpha: float, bound: float, u: Array) -> None:
    """u <- Proj(u - ((sigma(u . v_t) - y_t) v_t + shift) / (alpha t)) over all rows in order; u is overwritten.

    columns (p, n), symbols (n,) of 0 and 1, shift (p,), u (p,).
    """
    for i in range(symbols.size):
        z = 0.0
        for j in range(u.size):
            z += u[j] * columns[j, i]
        rate = 1.0 / (alpha * (i + 1.0))
        step = residual(z, symbols[i], 1.0, 0.0)
        for j in range(u.size):
            u[j] -= rate * (step * columns[j, i] + shift[j])
        project_on_ball(u, bound)
