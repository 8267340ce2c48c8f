"""Compiled pass of the likelihood of randomised labels: value, gradient, expected and observed information."""

import numpy as np

from server.kernels import TILE, Array, add_moments, add_sums, average, compiled, fill_index, sum_of_logs
from server.kernels_elementary import exp_nonpositive


@compiled
def likelihood(
    columns: Array, signs: Array, contrast: float, flip: float, observed: bool, u: Array
) -> tuple[float, Array, Array]:
    """Negative mean log-likelihood of reports, its gradient, and its expected or `observed` second derivative.

    With q = flip + contrast sigma(sign z) the probability of what was reported:
    value -(1/n) sum log q; expected (1/n) sum contrast^2 sigma'^2 / (q (1 - q)) v v';
    observed per row contrast sigma' / q^2 (keep sigma^2 - flip (1 - sigma)^2) v v', sigma at sign z.
    columns (p, n), signs (n,) of -1 and 1, u (p,).
    Source: Chowdhury, Zhou, Natarajan 2024, equation (3).
    """
    p, n = columns.shape
    halvings = 3 if flip > 1e-25 else 0  # products of eleven factors q >= flip must not underflow
    gradient, information, value = np.zeros(p), np.zeros((p, p)), 0.0
    z, slope, curvature = np.empty(TILE), np.empty(TILE), np.empty(TILE)
    first, second = np.empty(TILE), np.empty(TILE)
    for start in range(0, n, TILE):
        count = min(TILE, n - start)
        sign = signs[start : start + count]
        fill_index(columns, start, u, z[:count])
        likelihood_tile(z[:count], sign, contrast, flip, observed, slope, curvature, first)
        value -= sum_of_logs(first, count, halvings)
        add_sums(columns, start, slope[:count], first, gradient)
        add_moments(columns, start, curvature[:count], first, second, information)
    average(gradient, information, n)
    return value / n, gradient, information


@compiled
def likelihood_tile(
    z: Array, sign: Array, contrast: float, flip: float, observed: bool, slope: Array, curvature: Array, first: Array
) -> None:
    """Of one tile of rows: the first derivative in z, the expected or `observed` second one, and q in `first`."""
    keep = flip + contrast
    for i in range(z.size):
        toward = sign[i] * z[i]
        t = exp_nonpositive(-abs(toward))  # never 1 - sigma or 1 - q, which cancel
        s = 1.0 / (1.0 + t)
        large, small = keep + flip * t, flip + keep * t  # q (1 + t) when the report agrees with z, or not
        agrees = toward >= 0.0
        chosen = large if agrees else small
        scaled = contrast * t * s
        slope[i] = -sign[i] * (scaled / chosen)
        if observed:
            bend = (keep - flip * t * t) if agrees else (keep * t * t - flip)
            curvature[i] = (scaled * s / chosen) * (bend / chosen)
        else:
            curvature[i] = (scaled / large) * (scaled / small)
        first[i] = chosen * s
