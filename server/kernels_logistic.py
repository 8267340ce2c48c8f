"""Compiled passes of the logistic family: the cumulant A(u) and its two derivatives.

A(u) = (1/n) sum_i w_i log(2 cosh(z_i / 2)), z_i = u . x_i, is the label-free part of every loss that sees labels
through one sum. Rows come as v_i = w_i x_i with scales 1 / w_i, an empty array where all weights are one.
"""

import math

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
    fold,
    indices,
    lines_of,
    new_tile,
    sum_of_logs,
)
from server.kernels_elementary import exp_nonpositive, log_one_plus
from server.kernels_vector import line_of, write_line


@compiled
def cumulant(rows: Array, scales: Array, u: Array, curved: bool) -> tuple[float, Array, Array]:
    """A(u), its gradient (1/n) sum_i (sigma(z_i) - 1/2) v_i and its Hessian (1/n) sum_i sigma'(z_i) v_i v_i' / w_i.

    rows (n, p), scales (n,) or (0,), u (p,). Where it is not to be `curved`, the Hessian is left out: (0, 0).
    Source: Chowdhury, Zhou, Natarajan 2024, equation (5), in the form derived in docs/ESTIMATORS.md.
    """
    n, p = rows.shape
    side = p if curved else 0
    gradient, hessian = np.zeros(p), np.zeros((side, side))
    value = add_cumulant(rows, scales, u, 0.0, gradient, hessian)
    average(gradient, hessian, n)
    return value / n, gradient, hessian


@compiled
def add_cumulant(rows: Array, scales: Array, u: Array, value: float, gradient: Array, hessian: Array) -> float:
    """Add the sums over some rows, of the Hessian the lower triangle or nothing; the new sum of values comes back.

    Rows that come in parts of whole tiles, one after the other, give the bits of all at once.
    """
    tile, z, slope, curvature = new_tile(u.size), np.empty(TILE), np.empty(TILE), np.empty(TILE)
    first, second = np.empty(TILE), np.empty(TILE)
    for start in range(0, len(rows), TILE):
        count = fill_tile(rows, start, tile)
        scale = scales[start : start + count]
        fill_index(tile, u, count, z)
        for i in range(scale.size):
            z[i] *= scale[i]
        logistic_tile(z, count, scale, slope, curvature, first, second)
        if scale.size == 0:
            value += sum_of_logs(first, count, 9)
        value += fold(second, count)
        add_sums(tile, count, slope, gradient)
        if hessian.size:
            add_moments(tile, count, curvature, hessian)
    return value


@compiled
def logistic_tile(
    z: Array, count: int, scale: Array, slope: Array, curvature: Array, first: Array, second: Array
) -> None:
    """Of `count` rows of a tile: sigma(z) - 1/2, sigma'(z) / w, and the parts of w log(2 cosh(z / 2)).

    That is log(first) + second where `scale` is empty, else second alone. All but scale (TILE,): lines of lanes are
    taken whole.
    """
    for i in range(lines_of(count)):
        index = line_of(z, i)
        size = abs(index)
        t = exp_nonpositive(-size)
        s = 1.0 / (1.0 + t)
        write_line(slope, i, math.copysign(0.5 * (1.0 - t) * s, index))
        write_line(curvature, i, t * s * s)
        write_line(first, i, 1.0 + t)
        write_line(second, i, 0.5 * size)
    for i in range(scale.size):
        curvature[i] *= scale[i]
        second[i] = (second[i] + log_one_plus(first[i] - 1.0)) / scale[i]


@compiled
def variances(rows: Array, scales: Array, u: Array) -> Array:
    """sigma'(z_i), the variance of a clear label at u; shape (n,)."""
    result = indices(rows, u)
    for i in range(scales.size):
        result[i] *= scales[i]
    for i in range(result.size):
        t = exp_nonpositive(-abs(result[i]))
        s = 1.0 / (1.0 + t)
        result[i] = t * s * s
    return result
