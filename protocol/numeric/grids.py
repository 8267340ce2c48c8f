"""Public grids for reports from a continuum: what is not on the grid is no report."""

import math

import numpy as np

from protocol.numeric.channel import Floats, Kept

BITS = 30  # below the unit of a report


def grid(unit: float) -> float:
    """The smallest power of two above unit / 2^30."""
    return math.ldexp(1.0, math.frexp(unit)[1] - BITS)


def to_grid(values: Floats, step: float) -> Floats:
    """The nearest multiples of a power of two."""
    rounded: Floats = np.rint(values / step) * step
    return rounded


def on_grid(values: Floats, step: float) -> Kept:
    """Which values are finite multiples of a power of two."""
    with np.errstate(over="ignore"):  # of numbers that no report has
        kept: Kept = np.isfinite(values) & (np.rint(values / step) * step == values)
    return kept
