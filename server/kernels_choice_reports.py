"""Compiled pass of the likelihood of randomised top choices: value, gradient, expected and observed information."""

import math

import numpy as np
from numpy.typing import NDArray

from server.kernels import Array, average, compiled
from server.kernels_choice import ROWS, Sizes, add_outer, centre, softmax

Marks = NDArray[np.uint8]
ONE_CHOICE, TWO_SIDES, SETS = 0, 1, 2  # which reports there are: K single ones, two about a pair, or sets
EXPECTED, OBSERVED, ACTUAL = 0, 1, 2  # which second derivative


@compiled
def choice_likelihood(
    blocks: Array, sizes: Sizes, marks: Marks, law: Array, reports: int, wanted: int, u: Array
) -> tuple[float, Array, Array]:
    """Negative mean log-likelihood of reports, its gradient, and its expected or observed second derivative.

    q = base + slope m, m = sum_k g_k p_k, g_k = marks_k / 2, (base, slope) = law[size]: what was reported has
    probability q up to a factor that does not depend on u. With x_k = v_k - sum_j p_j v_j, d = sum_k g_k p_k x_k:
    gradient -slope d / q; `OBSERVED` slope^2 d d' / q^2 - (slope / q) sum_k p_k (g_k - m) x_k x_k'.
    `EXPECTED`, over all reports of a row: sum_k slope^2 p_k^2 / q_k x_k x_k' (`ONE_CHOICE`, q_k = base + slope p_k) or
    slope^2 (1/q + 1/q') d d' (`TWO_SIDES`, q' of the other side). `ACTUAL`: slope^2 d d' / q^2 of what was reported,
    the same in expectation, for `SETS` too, which are too many to sum over.
    Source: derived, see docs/CHOICES.md.
    """
    n, most, p = blocks.shape
    value, gradient, information = 0.0, np.zeros(p), np.zeros((p, p))
    chance, mean, centred, d = np.empty(most), np.empty(p), np.empty((most, p)), np.empty(p)
    for start in range(0, n, ROWS):
        part, slopes, curvature = 0.0, np.zeros(p), np.zeros((p, p))
        for i in range(start, min(start + ROWS, n)):
            size, base, slope = sizes[i], law[sizes[i], 0], law[sizes[i], 1]
            softmax(blocks[i], size, u, 1.0, chance, mean)
            centre(blocks[i], size, mean, centred)
            hit, miss = _towards(marks[i], size, chance, centred, d)
            q = base + slope * hit
            part -= math.log(q)
            for j in range(p):
                slopes[j] -= slope / q * d[j]
            if wanted == EXPECTED and reports == ONE_CHOICE:
                for k in range(size):
                    steep = slope * chance[k]
                    add_outer(centred[k], steep * steep / (base + steep), curvature)
            elif wanted == EXPECTED and reports == TWO_SIDES:
                add_outer(d, slope * slope / q + slope * slope / (base + slope * miss), curvature)
            else:
                add_outer(d, slope / q * (slope / q), curvature)
            if wanted == OBSERVED:
                for k in range(size):
                    add_outer(centred[k], -slope / q * chance[k] * (0.5 * marks[i, k] - hit), curvature)
        value += part
        gradient += slopes
        information += curvature
    average(gradient, information, n)
    return value / n, gradient, information


@compiled
def _towards(marks: Marks, size: int, chance: Array, centred: Array, d: Array) -> tuple[float, float]:
    """Write d = sum_k g_k p_k x_k; returns m = sum_k g_k p_k and sum_k (1 - g_k) p_k, neither as a difference."""
    hit, miss = 0.0, 0.0
    d[:] = 0.0
    for k in range(size):
        share = 0.5 * marks[k] * chance[k]
        hit += share
        miss += 0.5 * (2 - marks[k]) * chance[k]
        for j in range(d.size):
            d[j] += share * centred[k, j]
    return hit, miss
