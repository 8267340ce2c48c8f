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
    lines_of,
    new_tile,
    sum_of_logs,
)
from server.kernels_elementary import exp_nonpositive
from server.kernels_vector import line_of, where_rising, write_line


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
    halvings = halvings_of(flip)
    tile, z, slope, curvature = new_tile(u.size), np.empty(TILE), np.empty(TILE), np.empty(TILE)
    first = np.empty(TILE)
    for start in range(0, len(rows), TILE):
        count = fill_tile(rows, start, tile)
        sign = signs[start : start + count]
        fill_index(tile, u, count, z)
        likelihood_tile(z, sign, contrast, flip, observed, slope, curvature, first)
        value -= sum_of_logs(first, count, halvings)
        add_sums(tile, count, slope, gradient)
        add_moments(tile, count, curvature, information)
    return value


@compiled
def halvings_of(flip: float) -> int:
    """How often probabilities q >= flip may be multiplied in pairs: products of 2^k + k must not underflow."""
    if flip > 1e-8:
        return 5
    return 3 if flip > 1e-25 else 0


@compiled
def likelihood_tile(
    z: Array, sign: Array, contrast: float, flip: float, observed: bool, slope: Array, curvature: Array, first: Array
) -> None:
    """Of one tile's rows, (m,) signs: the first derivative in z, the expected or `observed` second one, q in `first`.

    All but sign (TILE,): lines of lanes are taken whole.
    """
    keep = flip + contrast
    for i in range(sign.size):
        first[i] = sign[i]
    for i in range(lines_of(sign.size)):
        side = line_of(first, i)
        toward = side * line_of(z, i)
        t = exp_nonpositive(-abs(toward))  # never 1 - sigma or 1 - q, which cancel
        s = 1.0 / (1.0 + t)
        large, small = keep + flip * t, flip + keep * t  # q (1 + t) when the report agrees with z, or not
        chosen = where_rising(toward, large, small)
        scaled, inverse = contrast * t * s, 1.0 / chosen
        write_line(slope, i, -side * (scaled * inverse))
        if observed:
            bend = where_rising(toward, keep - flip * t * t, keep * t * t - flip)
            write_line(curvature, i, (scaled * s * inverse) * (bend * inverse))
        else:
            write_line(curvature, i, (scaled / large) * (scaled / small))
        write_line(first, i, chosen * s)


@compiled
def chances(rows: Array, contrast: float, flip: float, u: Array) -> Array:
    """P(report = 1) = flip + contrast sigma(u . v_i) of every row, shape (n,)."""
    result = indices(rows, u)
    for i in range(result.size):
        t = exp_nonpositive(-abs(result[i]))
        result[i] = flip + contrast * ((1.0 if result[i] >= 0.0 else t) / (1.0 + t))
    return result
