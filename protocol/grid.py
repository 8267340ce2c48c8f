"""Exact sums: values on a public power-of-two grid add without rounding, so their order is free.

The exponent is ceil(log2(n * bound)) - 52: every sum of n values of size at most `bound` is an integer below 2^53 in
units of 2^exponent, hence exact in float64 whatever the split over clients.
"""

from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@lru_cache(maxsize=256, typed=True)
def exponent(n: int, bound: float) -> int:
    """The grid's exponent for n values of absolute size at most `bound`, computed exactly.

    Raises ValueError for n < 1 or a bound that is not positive and finite.

    >>> exponent(1000, 4.0), exponent(1024, 4.0), exponent(1025, 4.0)
    (-40, -40, -39)
    """
    if n < 1:
        raise ValueError(f"expected n >= 1, got {n}")
    if not (np.isfinite(bound) and bound > 0):
        raise ValueError(f"expected a bound > 0 and finite, got {bound}")
    size = Fraction(bound) * n
    power = size.numerator.bit_length() - size.denominator.bit_length() - 1
    while Fraction(2) ** power < size:
        power += 1
    if not -900 <= power <= 900:
        raise ValueError(f"expected 2^-900 <= n * bound <= 2^900, got {n} * {bound}: rescale the features")
    return power - 52


def truncate(values: Floats, power: int) -> Floats:
    """Round towards zero to multiples of 2^power: sizes never grow, so a bound stays a bound."""
    scaled: Floats = np.multiply(values, 2.0**-power)
    np.trunc(scaled, out=scaled)  # in place: fresh pages cost more than the arithmetic
    scaled *= 2.0**power
    return scaled


def to_integers(values: Floats, power: int) -> NDArray[np.int64]:
    """Values in units of 2^power; raises ValueError where a value is off the grid, not finite, or above 2^53 units."""
    if not np.isfinite(values).all():
        raise ValueError("expected finite values on the grid, got NaN or inf")
    with np.errstate(over="ignore"):  # infinity is above 2^53 as well
        scaled = values * 2.0**-power
    if (np.abs(scaled) > 2.0**53).any() or (scaled != np.trunc(scaled)).any():
        raise ValueError(f"expected multiples of 2^{power} of at most 2^53 units, got values off the grid")
    return scaled.astype(np.int64)
