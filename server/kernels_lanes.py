"""Compiled one-pass descent of sixteen arms at once: they share the look at a row, each in a lane of its own."""

import math

import numpy as np
from numpy.typing import NDArray

from server.kernels import Array, compiled
from server.kernels_descent import residual
from server.kernels_vector import any_above, everywhere, line_of, write_line

_NEAR = 1.0 - 1e-12  # shorter than this share of the bound, squared, no rounding of a length is beyond it


@compiled
def descend_lanes(
    rows: Array, doubled: NDArray[np.uint8], channels: Array, bound: float, done: float, u: Array
) -> None:
    """`server.kernels_descent.descend` of every lane, to the bit: a lane has its own reports, channel and alpha.

    rows (m, p), doubled (m, WIDTH): twice the reports, 1 for a tie; channels (3, WIDTH): contrast, flip, and
    alpha contrast; u (p, WIDTH), overwritten.
    Source: Chowdhury, Zhou, Natarajan 2024, equation (10) and Algorithm 1.
    """
    p = len(u)
    near = bound * bound * _NEAR
    contrasts, flips, scales = line_of(channels, 0), line_of(channels, 1), line_of(channels, 2)
    for i in range(len(rows)):
        z = everywhere(0.0)
        for j in range(p):
            z = z + line_of(u, j) * rows[i, j]
        rates = 1.0 / (scales * (done + i + 1.0))
        steps = rates * residual(z, 0.5 * line_of(doubled, i), contrasts, flips)
        square = everywhere(0.0)
        for j in range(p):
            moved = line_of(u, j) - steps * rows[i, j]
            write_line(u, j, moved)
            square = square + moved * moved
        if any_above(square, near):
            shrink = min(bound / math.sqrt(square), 1.0)  # 1 within the ball
            for j in range(p):
                write_line(u, j, line_of(u, j) * shrink)
