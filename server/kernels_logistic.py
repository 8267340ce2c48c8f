"""Compiled passes of the logistic family: the cumulant A(u), its two derivatives, and one-pass gradient descent.

A(u) = (1/n) sum_i w_i log(2 cosh(z_i / 2)), z_i = u . x_i, is the label-free part of every loss that sees labels
through one sum. Rows come as v_i = w_i x_i with scales 1 / w_i, an empty array where all weights are one.
"""

import math

import numpy as np

from server.kernels import TILE, Array, add_moments, add_sums, average, compiled, fill_index, fold, sum_of_logs
from server.kernels_elementary import exp_nonpositive, log_one_plus
from server.kernels_solve import project_on_ball


@compiled
def cumulant(columns: Array, scales: Array, u: Array) -> tuple[float, Array, Array]:
    """A(u), its gradient (1/n) sum_i (sigma(z_i) - 1/2) v_i and its Hessian (1/n) sum_i sigma'(z_i) v_i v_i' / w_i.

    columns (p, n), scales (n,) or (0,), u (p,).
    Source: Chowdhury, Zhou, Natarajan 2024, equation (5), in the form derived in docs/ESTIMATORS.md.
    """
    p, n = columns.shape
    gradient, hessian, value = np.zeros(p), np.zeros((p, p)), 0.0
    z, slope, curvature = np.empty(TILE), np.empty(TILE), np.empty(TILE)
    first, second = np.empty(TILE), np.empty(TILE)
    for start in range(0, n, TILE):
        count = min(TILE, n - start)
        scale = scales[start : start + count]
        fill_index(columns, start, u, z[:count])
        for i in range(scale.size):
            z[i] *= scale[i]
        logistic_tile(z[:count], scale, slope, curvature, first, second)
        if scale.size == 0:
            value += sum_of_logs(first, count, 9)
        value += fold(second, count)
        add_sums(columns, start, slope[:count], first, gradient)
        add_moments(columns, start, curvature[:count], first, second, hessian)
    average(gradient, hessian, n)
    return value / n, gradient, hessian


@compiled
def logistic_tile(z: Array, scale: Array, slope: Array, curvature: Array, first: Array, second: Array) -> None:
    """Of one tile of rows: sigma(z) - 1/2, sigma'(z) / w, and the parts of w log(2 cosh(z / 2)).

    That is log(first) + second where `scale` is empty, else second alone.
    """
    for i in range(z.size):
        size = abs(z[i])
        t = exp_nonpositive(-size)
        s = 1.0 / (1.0 + t)
        slope[i] = math.copysign(0.5 * (1.0 - t) * s, z[i])
        curvature[i] = t * s * s
        first[i] = 1.0 + t
        second[i] = 0.5 * size
    for i in range(scale.size):
        curvature[i] *= scale[i]
        second[i] = (second[i] + log_one_plus(first[i] - 1.0)) / scale[i]


@compiled
def variances(columns: Array, scales: Array, u: Array) -> Array:
    """sigma'(z_i), the variance of a clear label at u; shape (n,)."""
    result = np.empty(columns.shape[1])
    fill_index(columns, 0, u, result)
    for i in range(scales.size):
        result[i] *= scales[i]
    for i in range(result.size):
        t = exp_nonpositive(-abs(result[i]))
        s = 1.0 / (1.0 + t)
        result[i] = t * s * s
    return result


@compiled
def residual(z: float, symbol: float, contrast: float, flip: float) -> float:
    """Un-normalised de-biased residual c sigma(z) - (symbol - flip): equation (10) per unit of v; symbol 0 or 1."""
    t = exp_nonpositive(-abs(z))
    sigma = (1.0 if z >= 0.0 else t) / (1.0 + t)
    return contrast * sigma - (symbol - flip)


@compiled
def descend_once(columns: Array, symbols: Array, contrast: float, flip: float, alpha: float, bound: float) -> Array:
    """Last iterate of one pass of projected gradient descent from 0, in row order.

    u <- Proj(u - eta_t g_t), g_t = residual(u . v_t, symbol_t) v_t, eta_t = 1 / (alpha contrast t).
    Source: Chowdhury, Zhou, Natarajan 2024, equation (10) and Algorithm 1.
    """
    p, n = columns.shape
    u = np.zeros(p)
    for t in range(n):
        rate = 1.0 / (alpha * contrast * (t + 1.0))
        z = 0.0
        for j in range(p):
            z += u[j] * columns[j, t]
        step = rate * residual(z, symbols[t], contrast, flip)
        for j in range(p):
            u[j] -= step * columns[j, t]
        project_on_ball(u, bound)
    return u
