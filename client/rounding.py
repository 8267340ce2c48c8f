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
_TRIES = 64  # to shorten a row: mostly one or two do
_FRACTION, _DROPPED = 2.0**-53, np.uint64(11)


def rounded(values: Floats, terms: RecordTerms, words: NDArray[np.uint64]) -> Integers:
    """Contributions (rows, d), which are within their bound, as whole numbers of grid units within it.

    |q| is the next number below |x| / unit, or with a chance of the fraction that is left the next one above: without a
    bias. Where a coordinate would go beyond `terms.largest` it is that. Where a row's squared length would go beyond
    `terms.longest`, the row is shortened by hardly more than it takes, and rounded by the same coins: by half a unit
    where its coordinates are many units, by d / 8 over its length where they are few. Coins: `words` (rows, d).

    Guarantee: |q_j| <= `largest`, and |q|^2 <= `longest` where there is one, in whole numbers and whatever the coins.
    """
    units, part = np.ldexp(np.abs(values), -terms.power), (words >> _DROPPED).astype(np.float64) * _FRACTION
    found = _whole(units, part, terms.largest)
    if terms.longest is not None:
        _shorten(found, units, part, terms.longest, terms.largest)
    signed: Integers = np.where(values < 0, -found, found)
    return signed


def _shorten(found: Integers, units: Floats, part: Floats, longest: int, largest: int) -> None:
    """Round rows that came out too long once more, shortened by what they were too long by, and a quarter of a unit."""
    length, away = math.sqrt(longest), np.zeros(len(found))
    for _ in range(_TRIES):
        squares = _squares(found)
        long = squares > longest
        if not long.any():
            return
        away[long] += 0.25 + (squares[long] - longest) / (2.0 * length)
        factor = np.maximum(0.0, 1.0 - away[long] / length)
        found[long] = _whole(units[long] * factor[:, None], part[long], largest)
    found[_squares(found) > longest] = 0


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
