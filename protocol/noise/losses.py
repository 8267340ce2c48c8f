"""The exact privacy loss of integer noise for one vector that it hides: convolved on a grid, rounded to be safe."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.signal import fftconvolve

from protocol.noise.law import Floats

STEP = 1e-5  # of a grid of losses; each coordinate's losses are rounded up by as much at most
_NEGLIGIBLE = 1e-40
_ROUNDING = 1e-13  # of sums of FFTs of probabilities, in all


def exact_delta(shape: Floats, shift: int, epsilon: float) -> float:
    """delta at epsilon of one coordinate with noise of this `shape` moved by `shift`: sum_k (P(k) - e^epsilon Q(k))+.

    What is beyond the table is left out: a lower bound, exact but for that. Source: Dwork, Roth 2014, Section 3.5.
    """
    p, q = _pair(shape, shift)
    return math.fsum(np.maximum(0.0, p - math.exp(epsilon) * q).tolist())


def convolved_delta(shape: Floats, shifts: Sequence[int], epsilon: float, step: float = STEP) -> float:
    """delta at epsilon of independent coordinates moved by `shifts`, at least and by a few `step` too large.

    E (1 - e^(eps - L))+, L the sum of the coordinates' losses log P(k) / Q(k), each rounded up to the grid. What is
    beyond a table has an infinite loss.

    Guarantee: (epsilon, result) for neighbours whose vectors differ by exactly `shifts`, by law symmetric.
    Source: Koskela, Jälkö, Honkela 2020; grid rounded upwards.
    """
    held, low, lost = np.ones(1), 0, 0.0
    for shift in shifts:
        if not shift:
            continue
        p, q = _pair(shape, shift)
        known = (q > 0) & (p > _NEGLIGIBLE)
        lost += 1.0 - math.fsum(p[known].tolist())
        places = np.ceil(np.log(p[known] / q[known]) / step - 1e-9).astype(np.int64)
        first = int(places.min())
        held = fftconvolve(held, np.bincount(places - first, weights=p[known]))
        low += first
    losses = step * (low + np.arange(len(held)))
    above = losses > epsilon
    found = math.fsum((np.maximum(held[above], 0.0) * -np.expm1(epsilon - losses[above])).tolist())
    return min(1.0, found + max(lost, 0.0) + (_ROUNDING if len(shifts) > 1 else 0.0))


def _pair(shape: Floats, shift: int) -> tuple[Floats, Floats]:
    """P(K = k) and P(K + shift = k) at all k of either table."""
    if shift == 0 or abs(shift) >= len(shape):
        raise ValueError(f"expected a shift of 1..{len(shape) - 1} grid units, got {shift}")
    both = np.concatenate([shape[:0:-1], shape])
    both /= both.sum()
    pad = np.zeros(abs(shift))
    return np.concatenate([both, pad]), np.concatenate([pad, both])
