"""Sums of bounded contributions in whole numbers, each of which is rounded to the grid up or down at random."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from client.draws import Draws
from protocol.noise.record_terms import RecordTerms

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Rows = NDArray[np.int64]
BLOCK = 2048  # rows
_FRACTION, _DROPPED = 2.0**-53, np.uint64(11)


def rounded(values: Floats, terms: RecordTerms, words: NDArray[np.uint64]) -> Integers:
    """Contributions (rows, d), which are within their bound, as whole numbers of grid units within it.

    |q| is the next number below |x| / unit, or with a chance of the fraction that is left the next one above: without a
    bias, but where a coordinate would go beyond `terms.largest`, and where a row's squared length would go beyond
    `terms.longest`: then its numbers are truncated towards zero, which makes no row longer. Coins: `words` (rows, d).

    Guarantee: |q_j| <= `largest`, and |q|^2 <= `longest` where there is one, in whole numbers and whatever the coins.
    """
    units = np.ldexp(np.abs(values), -terms.power)
    below = np.minimum(np.floor(units), terms.largest)
    up = (words >> _DROPPED).astype(np.float64) * _FRACTION < units - below
    found = np.minimum(below + up, terms.largest).astype(np.int64)
    if terms.longest is not None:
        low = below.astype(np.int64)
        long = (found * found).sum(axis=1) > terms.longest
        found[long] = low[long]
        beyond = (found * found).sum(axis=1) > terms.longest  # none, as the bound of lengths is held in floats
        found[beyond] = 0
    negative: Integers = np.where(values < 0, -found, found)
    return negative


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
