"""Compiled descent of a published notebook: steps of one length, and noise in every step."""

from server.kernels import Array, compiled
from server.kernels_descent import residual
from server.kernels_solve import project_on_ball


@compiled
def descend_noisily(
    columns: Array, symbols: Array, contrast: float, flip: float, bound: float, noise: Array, u: Array
) -> None:
    """u <- Proj(u - residual(u . v_i) v_i - noise_i) for all rows in their order; u is overwritten.

    columns (p, m), symbols (m,) of 0 and 1, noise (m, p), u (p,).
    """
    for i in range(symbols.size):
        z = 0.0
        for j in range(u.size):
            z += u[j] * columns[j, i]
        step = residual(z, symbols[i], contrast, flip)
        for j in range(u.size):
            u[j] -= step * columns[j, i] + noise[i, j]
        project_on_ball(u, bound)
