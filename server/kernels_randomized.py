"""Compiled pass of the likelihood of randomised labels: value, gradient, expected and observed information."""

import numpy as np

from server.kernels import (
    TILE,
    Array,
    add_moments,
    add_sums,
    average,
    compiled,
    fill_index,
    fill_tile,
    indices,
    new_tile,
    sum_of_logs,
)
from server.kernels_elementary import exp_nonpositive


@compiled
def likelihood(
    rows: Array, signs: Array, contrast: float, flip: float, observed: bool, u: Array
) -> tuple[float, Array, Array]:
    """Negative mean log-likelihood of reports, its gradient, and its expected or `observed` second derivative.

    With q = flip + contrast sigma(sign z) the probability of what was reported:
    value -(1/n) sum log q; expected (1/n) sum contrast^2 sigma'^2 / (q (1 - q)) v v';
    observed per row contrast sigma' / q^2 (keep sigma^2 - flip (1 - sigma)^2) v v', sigma at sign z.
    rows (n, p), signs (n,) of -1 and 1, u (p,).
    Source: Chowdhury, Zhou, Natarajan 2024, equation (3).
    """
    n, p = rows.shape
    gradient, information = np.zeros(p), np.zeros((p, p))
    value = add_likelihood(rows, signs, contrast, flip, observed, u, 0.0, gradient, information)
    average(gradient, information, n)
    return value / n, gradient, information


@compiled
def add_likelihood(
    rows: Array,
    signs: Array,
    contrast: float,
    flip: float,
    observed: bool,
    u: Array,
    value: float,
    gradient: Array,
    information: Array,
) -> float:
    """Add the sums over some rows, of second derivatives the lower triangle; the new sum of values comes back.

    Rows that come in parts of whole tiles, one after the other, give the bits of all at once.
    """
    halvings = 3 if flip > 1e-25 else 0  # products of eleven factors q >= flip must not underflow
    tile, z, slope, curvature = new_tile(u.size), np.empty(TILE), np.empty(TILE), np.empty(TILE)
    first, second = np.empty(TILE), np.empty(TILE)
    for start in range(0, len(rows), TILE):
        count = fill_tile(rows, start, tile)
        sign = signs[start : start + count]
        fill_index(tile, u, z[:count])
        likelihood_tile(z[:count], sign, contrast, flip, observed, slope, curvature, first)
        value -= sum_of_logs(first, count, halvings)
        add_sums(tile, count, slope, first, gradient)
        add_moments(tile, count, curvature, first, second, information)
    return value


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


@compiled
def chances(rows: Array, contrast: float, flip: float, u: Array) -> Array:
    """P(report = 1) = flip + contrast sigma(u . v_i) of every row, shape (n,)."""
    result = indices(rows, u)
    for i in range(result.size):
        t = exp_nonpositive(-abs(result[i]))
        result[i] = flip + contrast * ((1.0 if result[i] >= 0.0 else t) / (1.0 + t))
    return result
