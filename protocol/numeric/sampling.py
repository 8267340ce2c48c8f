"""Draws from words that reproduce a law of integers exactly."""

from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from protocol.numeric.channel import Floats, Kept, Words

Indices = NDArray[np.int64]
HALF = 1 << 62
_LOW, _SHIFT = np.uint64(0xFFFFFFFF), np.uint64(32)
_WIDE = Context(prec=80)


def growth(epsilon: Decimal) -> Fraction:
    """A lower bound of e^epsilon; constant beyond 100, where the integers of a law are at their end anyway."""
    return Fraction(_WIDE.next_minus(_WIDE.exp(min(epsilon, Decimal(100)))))


def coin(words: Words) -> Words:
    """The top 63 bits: uniform on 0, ..., 2^63 - 1."""
    return words >> np.uint64(1)


def occurs(words: Words, chance: Floats) -> Kept:
    """True with probability floor(2^63 chance) / 2^63, for chances in [0, 1]."""
    return coin(words) < (chance * 2.0**63).astype(np.uint64)


def leans(words: Words, tilts: Floats, most: float) -> Kept:
    """True with probability (2^62 + trunc(tilt * most)) / 2^63: odd in the tilt, for |tilt| <= 1 and most <= 2^62."""
    counts = (tilts * most).astype(np.int64) + HALF
    return coin(words) < counts.astype(np.uint64)


def below(words: Words, count: int) -> Indices:
    """floor((w | 1) count / 2^64) for each word w: symmetric on 0, ..., count - 1, so its mean is (count - 1) / 2.

    Each value has floor or ceil(2^63 / count) of the 2^63 odd numbers: see `fewest` and `most`. Symmetric, since
    2^64 - (w | 1) leads to count - 1 less the value. Raises ValueError unless 1 <= count < 2^32.

    >>> below(np.array([0, 2**63, 2**64 - 1], dtype=np.uint64), 5).tolist()
    [0, 2, 4]
    """
    if not 1 <= count < 1 << 32:
        raise ValueError(f"expected 1 <= count < 2^32, got {count}")
    odd, many = words | np.uint64(1), np.uint64(count)
    found = ((odd >> _SHIFT) * many + ((odd & _LOW) * many >> _SHIFT)) >> _SHIFT
    return found.astype(np.int64)


def fewest(count: int) -> Fraction:
    """The smallest probability of a value of `below`."""
    return Fraction((1 << 63) // count, 1 << 63)


def most(count: int) -> Fraction:
    """The largest probability of a value of `below`."""
    return Fraction(-(-(1 << 63) // count), 1 << 63)


def subset(words: Words, count: int) -> Indices:
    """The first steps of a shuffle of 0, ..., count - 1 in each row, one word a step: (rows, k) -> (rows, k).

    Step j takes one of the count - j that are left, by `below`, in rising order of their numbers.
    """
    picked = np.empty(words.shape, dtype=np.int64)
    for step in range(words.shape[1]):
        place = below(words[:, step], count - step)
        for before in np.sort(picked[:, :step], axis=1).T:  # past those that are gone, from the lowest on
            place += place >= before
        picked[:, step] = place
    return picked
