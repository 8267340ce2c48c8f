"""Compiled one-pass descent of several arms at once: they share the look at a row, each in a lane of its own."""

import math

import numpy as np
from numpy.typing import NDArray

from server.kernels import Array, compiled
from server.kernels_elementary import exp_nonpositive

_NEAR = 1.0 - 1e-12  # shorter than this share of the bound, squared, no rounding of a length is beyond it


@compiled
def descend_lanes(
    rows: Array,
    symbols: NDArray[np.uint8],
    contrasts: Array,
    flips: Array,
    alphas: Array,
    bound: float,
    done: float,
    u: Array,
) -> None:
    """`server.kernels_descent.descend` of every lane, to the bit: lane l has its own reports, channel and alpha.

    rows (m, p), symbols (m, L) of 0 and 1, contrasts, flips and alphas (L,), u (p, L), overwritten.
    Source: Chowdhury, Zhou, Natarajan 2024, equation (10) and Algorithm 1.
    """
    p, lanes = u.shape
    step, square, scale = np.empty(lanes), np.empty(lanes), alphas * contrasts
    near = bound * bound * _NEAR
    for i in range(len(rows)):
        for lane in range(lanes):
            step[lane] = 0.0
        for j in range(p):
            x = rows[i, j]
            for lane in range(lanes):
                step[lane] += u[j, lane] * x
        for lane in range(lanes):
            z = step[lane]
            t = exp_nonpositive(-abs(z))
            sigma = (1.0 if z >= 0.0 else t) / (1.0 + t)
            rate = 1.0 / (scale[lane] * (done + i + 1.0))
            step[lane] = rate * (contrasts[lane] * sigma - (symbols[i, lane] - flips[lane]))
            square[lane] = 0.0
        for j in range(p):
            x = rows[i, j]
            for lane in range(lanes):
                moved = u[j, lane] - step[lane] * x
                u[j, lane] = moved
                square[lane] += moved * moved
        beyond = 0
        for lane in range(lanes):
            beyond += square[lane] > near
        if beyond:
            _project(square, bound, u)


@compiled
def _project(square: Array, bound: float, u: Array) -> None:
    """`server.kernels_solve.project_on_ball` of every lane, whose squared length is there already."""
    for lane in range(square.size):
        length = math.sqrt(square[lane])
        if length > bound:
            for j in range(len(u)):
                u[j, lane] *= bound / length
