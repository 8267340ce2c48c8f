"""Integer noise compared with Gaussian noise: how much of a Gaussian shift a shift by one is.

Let K be symmetric and log-concave with P(K <= k) = F(k), and z(k) = Phi^-1(F(k)). The best tests between K and K + q
reject above some j: their errors are 1 - F(j) and F(j - q), which a Gaussian shift by z(j) - z(j - q) <= q m has as
well, m = max_k z(k) - z(k-1). Between these points the trade-off is a chord, and chords of a convex curve lie above it.
So K + q hides q at least as well as N(q m, 1) does, and independent coordinates hide a vector q as well as
N(||q||_2 m, 1).
"""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from protocol.noise.law import Floats

SLACK = 2.0**-25  # relative: what is rounded in a table of 2^18 probabilities is far below
_LEAST_ENTRIES = 2
_WIDE = 0.05  # the difference of two quantiles is as good as exact
_ROOT = 1.0 / np.sqrt(2 * np.pi)


class Increment(NamedTuple):
    """`largest` is m of a law that differs from the one asked about by `beyond` in total variation."""

    largest: float
    beyond: float


def increment(shape: Floats, within: float) -> Increment:
    """m of the law with P(K = k) proportional to `shape`[|k|], cut at the first k with at most `within` beyond.

    The law is followed up to there, and continued by a geometric tail: that is log-concave again, heavier, and its
    increments fall, since Phi(-z) / phi(z) does. An increment d from a to b is at most P(K = k) / M, M at most the mean
    of phi over [a, b]: phi((a + b) / 2) + min(0, phi'') d^2 / 24.
    Raises ValueError for a table that is none, or ends before the tail is that light.
    Source: derived, see docs/PRIVACY.md.
    """
    if shape.ndim != 1 or len(shape) < _LEAST_ENTRIES or not np.isfinite(shape).all() or (np.diff(shape) > 0).any():
        raise ValueError("expected a table of probabilities that fall")
    held, tail = _cut(shape, within)
    above = tail + np.append(np.cumsum(held[:0:-1])[::-1], 0.0)  # P(K > k)
    z = -ndtri(above)
    a, b, chance = z[:-1], z[1:], held[1:]
    middle, width = 0.5 * (a + b), b - a
    least = np.minimum(0.0, np.minimum(_second(a), _second(b)))  # phi'' rises, then falls: an end is the least
    with np.errstate(divide="ignore"):
        between = np.where(width > _WIDE, width, chance / (_density(middle) + least * width**2 / 24))
    outside = 2.0 * (tail + float(held[-1]))
    return Increment(float(max(2.0 * z[0], between.max())) * (1 + SLACK), outside * (1 + 2.0 * outside + SLACK))


def _cut(shape: Floats, within: float) -> tuple[Floats, float]:
    """Probabilities of 0, ..., T + 1, the last one that of the tail's first, and the mass of what is beyond T + 1."""
    shape = shape[shape > 0.0]  # far out some underflow
    ratio = shape[1:] / shape[:-1]
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        tails = shape[1:] * ratio / (1.0 - ratio)  # beyond k, of a geometric tail from k on
    total = 2.0 * shape.sum() - shape[0]
    light = np.flatnonzero(2.0 * tails <= within * total)
    if not len(light):
        raise ValueError(f"expected a table with at most {within:.3g} of the law beyond it: noise is too small")
    last = int(light[0]) + 1
    first = shape[last] * ratio[last - 1]
    held = np.append(shape[: last + 1], first)
    beyond = tails[last - 1]
    mass = 2.0 * shape[: last + 1].sum() - shape[0] + 2.0 * beyond
    return held / mass, float((beyond - first) / mass)


def _density(z: Floats) -> Floats:
    values: Floats = _ROOT * np.exp(-0.5 * z * z)
    return values


def _second(z: Floats) -> Floats:
    return (z * z - 1.0) * _density(z)
