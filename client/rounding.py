"""Sums of bounded contributions in whole numbers, each of which is rounded to the grid up or down at random."""

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from client.draws import Draws
from protocol.noise.record_terms import RecordTerms

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Rows = NDArray[np.int64]
BLOCK = 2048  # rows
_SHORTER = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # grid units: the length of a row at its bound grows by about one half
_FRACTION, _DROPPED = 2.0**-53, np.uint64(11)


def rounded(values: Floats, terms: RecordTerms, words: NDArray[np.uint64]) -> Integers:
    """Contributions (rows, d), which are within their bound, as whole numbers of grid units within it.

    |q| is the next number below |x| / unit, or with a chance of the fraction that is left the next one above: without a
    bias. Where a coordinate would go beyond `terms.largest` it is that. Where a row's squared length would go beyond
    `terms.longest`, the row is shortened by as little out of `_SHORTER` units as does, before it is rounded by the same
    coins; where none does it counts as 0. Coins: `words` (rows, d).

    Guarantee: |q_j| <= `largest`, and |q|^2 <= `longest` where there is one, in whole numbers and whatever the coins.
    """
    units, part = np.ldexp(np.abs(values), -terms.power), (words >> _DROPPED).astype(np.float64) * _FRACTION
    found = _whole(units, part, terms.largest)
    if terms.longest is not None:
        length = math.sqrt(terms.longest)
        for shorter in (*_SHORTER, length):
            long = _squares(found) > terms.longest
            if not long.any():
                break
            factor = max(0.0, 1.0 - shorter / length)
            found[long] = _whole(units[long] * factor, part[long], terms.largest)
    signed: Integers = np.where(values < 0, -found, found)
    return signed


def _whole(units: Floats, part: Floats, largest: int) -> Integers:
    below = np.floor(units)
    found: Integers = np.minimum(below + (part < units - below), largest).astype(np.int64)
    return found


def _squares(values: Integers) -> Integers:
    squares: Integers = (values * values).sum(axis=1)
    return squares


def rounded_sum(values: Callable[[Rows, slice], Floats], terms: RecordTerms, rows: Rows, draws: Draws) -> Floats:
    """The sum over rows of `rounded` contributions, in real units, on the grid; shape (d,).

    `values`(rows, places) are the contributions of a block of rows, by number and by place among all of them.
    """
    dimension = terms.shares.dimension
    total = np.zeros(dimension, dtype=np.int64)
    for places in _blocks(len(rows)):
        part = rows[places]
        total += rounded(values(part, places), terms, draws.roundings(part, dimension)).sum(axis=0)
    sums: Floats = np.ldexp(total.astype(np.float64), terms.power)
    return sums


def _blocks(count: int) -> Iterator[slice]:
    return (slice(first, first + BLOCK) for first in range(0, count, BLOCK))
