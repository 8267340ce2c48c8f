"""Peeling: the s largest coordinates one by one, each under fresh noise, then a noisy value of each. Simulation only.

lambda bounds how far each coordinate moves between neighbours; scales are those of lambda = 1, to be multiplied by it.
"""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np

from protocol.coins import Floats, Words
from server.mechanisms.discrete_gaussian import root_up, up
from server.mechanisms.gaussian import delta_float, epsilon_float
from server.mechanisms.selection_noise import Cost, Selected, check, exponential, laplace
from server.mechanisms.zcdp import rho_of

ROOM = 1 + 2.0**-40  # above every rounding error, so that what is asked for is kept after rounding


def peel(vector: Floats, sparsity: int, scale: float, words: Words) -> Selected:
    """s times the largest |w_j| + Lap(scale) among those that are left, then w_j + Lap(scale) of those chosen.

    words: uint64, (s + 1, d), row i for round i and the last for values. Ties go to the lowest index.
    Scale 0: no noise.

    Guarantee: `peeling_cost` at scale / lambda, over real numbers: simulation only. Unit and neighbours are those of
    lambda. Raises TypeError and ValueError as `check`. Source: Tao, Wu, Cheng, Wang 2022, Algorithm 4.
    """
    return _peeled(vector, sparsity, scale, words, laplace)


def peel_and_flip(vector: Floats, sparsity: int, scale: float, words: Words) -> Selected:
    """The same with exponential noise in selections, which is permute-and-flip: on average each choice is
    no worse than that of an exponential mechanism of the same level.

    Guarantee: as `peel`. Source: McKenna, Sheldon 2020; Ding, Kifer, Sayed, Steinke, Wang, Zhang 2021.
    """
    return _peeled(vector, sparsity, scale, words, exponential)


def peeling_cost(sparsity: int, scale: float) -> Cost:
    """With a = 1 / scale: 2 a a selection, a a value, so 3 s a in all, and rho = 5 s a^2 / 2.

    2 a for scores can move in opposite directions; with Laplace noise it is reached. A pure level e is e^2/2-zCDP.

    Guarantee: both, for whatever moves each coordinate by at most 1. Raises ValueError for what is not positive.
    Source: derived, see docs/HEAVY_TAILS.md; Bun, Steinke 2016, Proposition 1.4.
    """
    if not (sparsity >= 1 and math.isfinite(scale) and scale > 0):
        raise ValueError(f"expected sparsity >= 1 and scale > 0, got {sparsity} and {scale}")
    return Cost(up(Fraction(5 * sparsity, 2) / Fraction(scale) ** 2), up(3 * sparsity / Fraction(scale)))


def paper_scale(epsilon: Decimal, delta: Decimal, sparsity: int) -> float:
    """4 sqrt(2 s log(1/delta)) / epsilon. Source: Tao, Wu, Cheng, Wang 2022, Algorithm 4."""
    return 4 * math.sqrt(2 * sparsity * -math.log(delta_float(delta))) / epsilon_float(epsilon) * ROOM


def cai_scale(epsilon: Decimal, delta: Decimal, sparsity: int) -> float:
    """2 sqrt(3 s log(1/delta)) / epsilon. Source: Cai, Wang, Zhang 2021."""
    return 2 * math.sqrt(3 * sparsity * -math.log(delta_float(delta))) / epsilon_float(epsilon) * ROOM


def zcdp_scale(epsilon: Decimal, delta: Decimal, sparsity: int) -> float:
    """sqrt(5 s / (2 rho)), rho of (epsilon, delta). Source: derived, see docs/HEAVY_TAILS.md."""
    return root_up(Fraction(5 * sparsity, 2) / Fraction(rho_of(epsilon, delta))) * ROOM


def pure_scale(epsilon: Decimal, delta: Decimal, sparsity: int) -> float:
    """3 s / epsilon, whatever delta is. Source: derived, see docs/HEAVY_TAILS.md."""
    delta_float(delta)
    return 3 * sparsity / epsilon_float(epsilon) * ROOM


def step_change(threshold: float, step: float, batch: int) -> float:
    """lambda = 2 B step / m, rounded up: how far a record moves a coordinate of a step on m gradients within [-B, B].

    Guarantee: for replacing one record of the batch, the iterate before it fixed. Raises ValueError for what is not
    positive. Source: Tao, Wu, Cheng, Wang 2022, Algorithm 5.
    """
    if not (0 < threshold < math.inf and 0 < step < math.inf and batch >= 1):
        raise ValueError(f"expected threshold, step > 0 and batch >= 1, got {threshold}, {step} and {batch}")
    return up(2 * Fraction(threshold) * Fraction(step) / batch)


def _peeled(vector: Floats, sparsity: int, scale: float, words: Words, noise: Callable[[Words], Floats]) -> Selected:
    check(vector, sparsity, scale, words, sparsity + 1)
    size, support = np.abs(vector), np.zeros(sparsity, dtype=np.int64)
    left = np.ones(len(vector), dtype=bool)
    for place in range(sparsity):
        scores = size + scale * noise(words[place])
        support[place] = np.argmax(np.where(left, scores, -np.inf))
        left[support[place]] = False
    return Selected(support, vector[support] + scale * laplace(words[sparsity])[support])
