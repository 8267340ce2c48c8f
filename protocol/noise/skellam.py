"""Skellam noise: the difference of two Poisson numbers of one mean. Sums of it are of the law, with variances added."""

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from scipy.special import ive

from protocol.noise.law import Floats, Law, closed, reach, whole

_DIGITS = 256  # bits of a ratio of Bessel functions


def shape(variance: float) -> Floats:
    """P(K = k) = e^-v I_k(v) for k = 0, ..., `reach`, v the variance; shape (reach + 1,)."""
    return np.asarray(ive(np.arange(reach(variance) + 1), variance), dtype=np.float64)


def ratios(variance: Fraction) -> Iterator[tuple[int, int]]:
    """P(k + 1) / P(k) = I_{k+1}(v) / I_k(v), which is 1 / (2 (k + 1) / v + ratio of k + 1).

    Downwards from far beyond the reach, where the ratio starts at 0: an error shrinks by the square of each ratio.
    """
    last = 2 * reach(float(variance)) + 128
    one, num, den = 1 << _DIGITS, variance.numerator, variance.denominator
    held = [0] * (last + 1)
    for k in range(last - 1, -1, -1):
        held[k] = one * one // ((2 * (k + 1) * den * one) // num + held[k + 1])
    return ((ratio, one) for ratio in held)


def divergence(order: float, sensitivity_l1: float, sensitivity_l2: float, variance: float) -> float:
    """Renyi divergence of an order a of sums with Skellam noise of a `variance` mu, at most.

    a D2^2 / (2 mu) + min(((2 a - 1) D2^2 + 6 D1) / (4 mu^2), 3 D1 / (2 mu)); noise of holders is closed under sums,
    so that mu is that of all honest ones together. Of whole numbers D1 <= min(sqrt(d) D2, D2^2).

    Guarantee: (a, this)-RDP; unit: a holder; neighbours: those that sensitivities are of.
    Raises ValueError unless a > 1 and all else is positive. Source: Agarwal, Kairouz, Liu 2021.
    """
    if not min(sensitivity_l1, sensitivity_l2, variance) > 0 or not 1 < order < math.inf:
        raise ValueError("expected a finite order > 1, and sensitivities and a variance > 0")
    square = sensitivity_l2**2
    far = ((2 * order - 1) * square + 6 * sensitivity_l1) / (4 * variance**2)
    return order * square / (2 * variance) + min(far, 3 * sensitivity_l1 / (2 * variance))


LAW = Law("skellam", shape, ratios, whole, closed)
