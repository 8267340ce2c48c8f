"""Compiled passes over sets of choices: the cumulant of the top choice, its derivatives, moments, and descent.

Blocks are (n, K, p): row i has v_0, ..., v_{K_i - 1} in `sizes`, weights in `scales` as 1 / w_i (empty: all one), and
z_k = u . v_k / w. Every row adds to the sums of its tile in order, every tile to the whole: no BLAS, no threads.
"""

import math

import numpy as np
from numpy.typing import NDArray

from server.kernels import Array, average, compiled
from server.kernels_elementary import exp_nonpositive
from server.kernels_solve import project_on_ball

Sizes = NDArray[np.int32]
ROWS = 128  # of one tile


@compiled
def softmax(block: Array, size: int, u: Array, scale: float, chance: Array, mean: Array) -> float:
    """Write p_k = exp(z_k) / sum exp(z_j) and sum_k p_k v_k of one row; returns log sum exp(z_j)."""
    p = u.size
    top = -np.inf
    for k in range(size):
        z = 0.0
        for j in range(p):
            z += u[j] * block[k, j]
        chance[k] = z * scale
        top = max(top, chance[k])
    total = 0.0
    for k in range(size):
        chance[k] = exp_nonpositive(chance[k] - top)
        total += chance[k]
    for j in range(p):
        mean[j] = 0.0
    for k in range(size):
        chance[k] /= total
        for j in range(p):
            mean[j] += chance[k] * block[k, j]
    return top + math.log(total)


@compiled
def centre(block: Array, size: int, mean: Array, centred: Array) -> None:
    """Write v_k - mean for the choices of one row."""
    for k in range(size):
        for j in range(mean.size):
            centred[k, j] = block[k, j] - mean[j]


@compiled
def add_outer(x: Array, weight: float, moments: Array) -> None:
    """Lower triangle of moments += weight x x'."""
    for j in range(x.size):
        left = weight * x[j]
        for k in range(j + 1):
            moments[j, k] += left * x[k]


@compiled
def choice_cumulant(blocks: Array, sizes: Sizes, scales: Array, u: Array) -> tuple[float, Array, Array]:
    """A(u) = (1/n) sum_i w_i log sum_k exp(z_ik), its gradient and its Hessian.

    Gradient (1/n) sum_i sum_k p_ik v_ik; Hessian (1/n) sum_i Cov_{p_i}(v) / w_i.
    Source: Chowdhury, Zhou, Natarajan 2024, equation (11), in the form derived in docs/ESTIMATORS.md.
    """
    n, most, p = blocks.shape
    value, gradient, hessian = 0.0, np.zeros(p), np.zeros((p, p))
    chance, mean, centred = np.empty(most), np.empty(p), np.empty((most, p))
    for start in range(0, n, ROWS):
        part, slope, curvature = 0.0, np.zeros(p), np.zeros((p, p))
        for i in range(start, min(start + ROWS, n)):
            scale = scales[i] if scales.size else 1.0
            part += softmax(blocks[i], sizes[i], u, scale, chance, mean) / scale
            centre(blocks[i], sizes[i], mean, centred)
            for j in range(p):
                slope[j] += mean[j]
            for k in range(sizes[i]):
                add_outer(centred[k], chance[k] * scale, curvature)
        value += part
        gradient += slope
        hessian += curvature
    average(gradient, hessian, n)
    return value / n, gradient, hessian


@compiled
def choice_spread(blocks: Array, sizes: Sizes, scales: Array, spread: Array, u: Array) -> Array:
    """n times the variance of the mean de-biased feature: (1/n) sum_i sum_k (a + b p_k) x_k x_k' + c X X'.

    x_k = v_k - sum_j p_j v_j, X = sum_k x_k, (a, b, c) = spread[size] for a row of that many choices; shape (p, p).
    Source: derived, see docs/CHOICES.md.
    """
    n, most, p = blocks.shape
    moments = np.zeros((p, p))
    chance, mean, centred, total = np.empty(most), np.empty(p), np.empty((most, p)), np.empty(p)
    for start in range(0, n, ROWS):
        part = np.zeros((p, p))
        for i in range(start, min(start + ROWS, n)):
            a, b, c = spread[sizes[i]]
            softmax(blocks[i], sizes[i], u, scales[i] if scales.size else 1.0, chance, mean)
            centre(blocks[i], sizes[i], mean, centred)
            total[:] = 0.0
            for k in range(sizes[i]):
                add_outer(centred[k], a + b * chance[k], part)
                for j in range(p):
                    total[j] += centred[k, j]
            if c != 0.0:
                add_outer(total, c, part)
        moments += part
    average(np.zeros(p), moments, n)
    return moments


@compiled
def mean_feature(blocks: Array, sizes: Sizes, shares: Array) -> Array:
    """(1/n) sum_i sum_k shares_ik v_ik, shape (p,); shares (n, K)."""
    n, _, p = blocks.shape
    sums = np.zeros(p)
    for start in range(0, n, ROWS):
        part = np.zeros(p)
        for i in range(start, min(start + ROWS, n)):
            for k in range(sizes[i]):
                for j in range(p):
                    part[j] += shares[i, k] * blocks[i, k, j]
        sums += part
    for j in range(p):
        sums[j] /= n
    return sums


@compiled
def descend_choices(blocks: Array, sizes: Sizes, shares: Array, alpha: float, bound: float) -> Array:
    """Last iterate of one pass of projected gradient descent from 0, in row order.

    u <- Proj(u - (sum_k p_k v_k - sum_k shares_k v_k) / (alpha t)), p at u; shares (n, K) are de-biased labels.
    Source: Chowdhury, Zhou, Natarajan 2024, Algorithm 1 for equation (12); de-biased as derived in docs/CHOICES.md.
    """
    n, most, p = blocks.shape
    u, chance, mean = np.zeros(p), np.empty(most), np.empty(p)
    for i in range(n):
        rate = 1.0 / (alpha * (i + 1.0))
        softmax(blocks[i], sizes[i], u, 1.0, chance, mean)
        for k in range(sizes[i]):
            for j in range(p):
                mean[j] -= shares[i, k] * blocks[i, k, j]
        for j in range(p):
            u[j] -= rate * mean[j]
        project_on_ball(u, bound)
    return u
