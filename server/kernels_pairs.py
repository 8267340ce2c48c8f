"""Compiled passes over comparisons of two items: a row touches two scores, however many items there are.

x_i = e_second - e_first, so gradients and second derivatives are accumulated by item, (d,) and (d, d), in the order of
the rows, and projected afterwards. Rows may have weights w_i, in powers as the caller needs.
"""

import numpy as np
from numpy.typing import NDArray

from server.kernels import TILE, Array, compiled, fold, sum_of_logs
from server.kernels_logistic import logistic_tile
from server.kernels_randomized import halvings_of, likelihood_tile

Pairs = NDArray[np.int32]


@compiled
def pair_cumulant(pairs: Pairs, scales: Array, theta: Array) -> tuple[float, Array, Array]:
    """`server.kernels_logistic.cumulant` of z_i = theta_second - theta_first, with derivatives by item.

    pairs (n, 2), scales 1 / w_i (n,) or (0,), theta (d,); result: value, (d,), (d, d).
    """
    d, n = theta.size, len(pairs)
    gradient, low, moments, value = np.zeros(d), np.zeros(d), np.zeros((d, d)), 0.0
    z, slope, curvature = np.empty(TILE), np.empty(TILE), np.empty(TILE)
    first, second = np.empty(TILE), np.empty(TILE)
    for start in range(0, n, TILE):
        count = min(TILE, n - start)
        scale = scales[start : start + count]
        value = cumulant_tile(pairs, start, count, scale, theta, z, slope, curvature, first, second, value)
        add_by_item(pairs, start, count, slope, gradient, low)
        add_pair_moments(pairs, start, curvature[:count], moments)
    return value / n, (gradient + low) / n, moments / n


@compiled
def cumulant_tile(
    pairs: Pairs,
    start: int,
    count: int,
    scale: Array,
    theta: Array,
    z: Array,
    slope: Array,
    curvature: Array,
    first: Array,
    second: Array,
    value: float,
) -> float:
    """Of `count` rows from `start` on: the derivatives of each, and `value` with their parts added."""
    fill_differences(pairs, start, theta, z[:count])
    logistic_tile(z, count, scale, slope, curvature, first, second)
    if scale.size == 0:
        value += sum_of_logs(first, count, 9)
    value += fold(second, count)
    for i in range(scale.size):
        slope[i] /= scale[i]
        curvature[i] /= scale[i] * scale[i]
    return value


@compiled
def pair_likelihood(
    pairs: Pairs, signs: Array, contrast: float, flip: float, observed: bool, theta: Array
) -> tuple[float, Array, Array]:
    """`server.kernels_randomized.likelihood` of z_i = theta_second - theta_first, with derivatives by item."""
    d, n = theta.size, len(pairs)
    halvings = halvings_of(flip)
    gradient, low, moments, value = np.zeros(d), np.zeros(d), np.zeros((d, d)), 0.0
    z, slope, curvature, first = np.empty(TILE), np.empty(TILE), np.empty(TILE), np.empty(TILE)
    for start in range(0, n, TILE):
        count = min(TILE, n - start)
        fill_differences(pairs, start, theta, z[:count])
        likelihood_tile(z, signs[start : start + count], contrast, flip, observed, slope, curvature, first)
        value -= sum_of_logs(first, count, halvings)
        add_by_item(pairs, start, count, slope, gradient, low)
        add_pair_moments(pairs, start, curvature[:count], moments)
    return value / n, (gradient + low) / n, moments / n


@compiled
def pair_differences(pairs: Pairs, theta: Array) -> Array:
    """theta_second - theta_first of every row, shape (n,)."""
    z = np.empty(len(pairs))
    fill_differences(pairs, 0, theta, z)
    return z


@compiled
def add_pair_moments(pairs: Pairs, start: int, values: Array, moments: Array) -> None:
    """moments += sum_i values_i x_i x_i' over the rows from `start` on, as many as `values` holds."""
    for i in range(values.size):
        a, b, value = pairs[start + i, 0], pairs[start + i, 1], values[i]
        moments[a, a] += value
        moments[b, b] += value
        moments[a, b] -= value
        moments[b, a] -= value


@compiled
def fill_differences(pairs: Pairs, start: int, theta: Array, z: Array) -> None:
    """theta_second - theta_first of the rows from `start` on, as many as z holds."""
    for i in range(z.size):
        z[i] = theta[pairs[start + i, 1]] - theta[pairs[start + i, 0]]


@compiled
def add_by_item(pairs: Pairs, start: int, count: int, slope: Array, sums: Array, low: Array) -> None:
    """sums + low += sum_i slope_i x_i; `low` keeps what rounding takes, for an item may be in every row."""
    for i in range(count):
        for side in range(2):
            item = pairs[start + i, side]
            term = slope[i] if side == 1 else -slope[i]
            before = sums[item]
            after = before + term
            low[item] += (before - after) + term if abs(before) >= abs(term) else (term - after) + before
            sums[item] = after
