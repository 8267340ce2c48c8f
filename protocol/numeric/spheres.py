"""Rows as directions and lengths, by loops over coordinates: a row's bits do not depend on its neighbours."""

import math

import numpy as np
from scipy.special import gammaln

from protocol.coins import normal
from protocol.numeric.channel import Floats, Kept, Words, every

SLACK = 2.0**-40  # a row clipped in doubles may be longer than its bound by a few roundings
CLOSE = 1e-9  # relative: how near the norm of a report is to the law's


def inner(left: Floats, right: Floats) -> Floats:
    """The inner product of each row of two arrays (rows, d)."""
    total = np.zeros(len(left))
    for own, other in zip(left.T, right.T, strict=True):
        total += own * other
    return total


def lengths(rows: Floats) -> Floats:
    """The Euclidean norm of each row, without overflow."""
    largest = np.zeros(len(rows))
    for column in rows.T:
        largest = np.maximum(largest, np.abs(column))
    scale = np.where(largest > 0, largest, 1.0)[:, None]
    found: Floats = np.sqrt(inner(rows / scale, rows / scale)) * scale[:, 0]
    return found


def directions(rows: Floats) -> Floats:
    """Each row over its norm; the first axis for a row of zeros."""
    size = lengths(rows)
    found = rows / np.where(size > 0, size, 1.0)[:, None]
    found[size == 0, 0] = 1.0
    return found


def random_directions(words: Words) -> Floats:
    """Uniform on the sphere, a normal number a word: (rows, d) -> (rows, d)."""
    return directions(normal(words))


def of_norm(reports: Floats, size: float) -> Kept:
    """Which rows have the norm `size`, to 1e-9 of it; NaN and inf do not."""
    finite = every(np.isfinite(reports))
    held = np.where(finite[:, None], reports, 0.0)
    with np.errstate(over="ignore"):  # of numbers that no report has
        kept: Kept = finite & (np.abs(lengths(held) / size - 1) <= CLOSE)
    return kept


def log_ratio(dimension: int) -> float:
    """log of Gamma(d / 2) / (sqrt(pi) Gamma((d - 1) / 2)), the density of one coordinate of the sphere at 0; d >= 2."""
    return float(gammaln(dimension / 2) - gammaln((dimension - 1) / 2)) - math.log(math.pi) / 2
