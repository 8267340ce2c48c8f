"""The largest ratio of two finite laws, over all events, in integers: no draws, no confidence."""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocol.coins import Words

Law = Mapping[Hashable, int]  # output -> weight; all laws of a subject have one total
WORD = 1 << 64
_WIDE = Context(prec=120)
MOST_CELLS = 1 << 19


class NotExact(Exception):
    """The coins of one class do not lead to one output, or classes do not cover all coins: a law that is not known."""


@dataclass(frozen=True)
class Ratio:
    """`growth` = max over events of (P - delta) / Q, None where Q is 0; the event that shows it, likeliest first."""

    growth: Fraction | None
    event: tuple[Hashable, ...]

    @property
    def epsilon(self) -> float:
        """log of growth, at least 0; infinity where an output is impossible under the neighbour."""
        if self.growth is None:
            return float("inf")
        if self.growth <= 1:
            return 0.0
        return float(_WIDE.ln(_WIDE.divide(Decimal(self.growth.numerator), Decimal(self.growth.denominator))))

    def exceeds(self, epsilon: Decimal) -> bool:
        """Whether the ratio is above e^epsilon, decided with 120 digits."""
        if self.growth is None:
            return True
        bound = _WIDE.multiply(_WIDE.exp(epsilon), Decimal(self.growth.denominator))
        return bound < Decimal(self.growth.numerator)


def largest_ratio(one: Law, other: Law, delta: Fraction = Fraction(0)) -> Ratio:
    """The least growth g with P(S) <= g Q(S) + delta for every event S, P and Q the laws: exact.

    An optimal event holds the outputs of the largest ratios, so prefixes of their order are all that has to be looked
    at. Raises ValueError for laws of different or no weight.

    >>> largest_ratio({"a": 3, "b": 1}, {"a": 1, "b": 3}).growth
    Fraction(3, 1)
    """
    total = sum(one.values())
    if total <= 0 or sum(other.values()) != total or min(one.values()) < 0 or min(other.values()) < 0:
        raise ValueError("expected two laws of the same positive weight")
    known = [key for key, weight in one.items() if weight and other.get(key)]
    impossible = tuple(key for key, weight in one.items() if weight and not other.get(key))
    p, limit = sum(one[key] for key in impossible), delta * total
    if p > limit:
        return Ratio(None, impossible)
    if not delta:
        return _likeliest(one, other, known)
    q, best, size = 0, Fraction(0), 0
    known.sort(key=lambda key: Fraction(one[key], other[key]), reverse=True)
    for place, key in enumerate(known):
        p, q = p + one[key], q + other[key]
        if (growth := (p - limit) / q) > best:
            best, size = growth, place + 1
    return Ratio(best, (*impossible, *known[:size]))


def _likeliest(one: Law, other: Law, known: Sequence[Hashable]) -> Ratio:
    """The output of the largest ratio: doubles find the candidates, integers decide."""
    ratios = [one[key] / other[key] for key in known]
    least = max(ratios) * (1 - 1e-12)
    found = {(one[key], other[key]): key for key, ratio in zip(known, ratios, strict=True) if ratio >= least}
    growth, key = max(((Fraction(*weights), key) for weights, key in found.items()), key=lambda pair: pair[0])
    return Ratio(growth, (key,))


@dataclass(frozen=True)
class Axis:
    """Classes of a 64-bit word that a sampler does not tell apart: the `first` and `last` of each, and `sizes`."""

    first: tuple[int, ...]
    last: tuple[int, ...]
    sizes: tuple[int, ...]

    @classmethod
    def cut(cls, cuts: Iterable[int], start: int = 0, stop: int = WORD) -> "Axis":
        """The intervals of [start, stop) between cuts.

        >>> Axis.cut([4], 0, 10)
        Axis(first=(0, 4), last=(3, 9), sizes=(4, 6))
        """
        edges = sorted({start, stop, *(cut for cut in cuts if start < cut < stop)})
        found = list(pairwise(edges))
        return cls(tuple(a for a, _ in found), tuple(b - 1 for _, b in found), tuple(b - a for a, b in found))

    @classmethod
    def low_bits(cls, bits: int) -> "Axis":
        """Words of the same lowest bits."""
        count = 1 << bits
        return cls(tuple(range(count)), tuple(WORD - count + value for value in range(count)), (WORD >> bits,) * count)


Box = Sequence[Axis]
Sampler = Callable[[Words], NDArray[Any]]
Places = NDArray[np.int64]


def enumerated(run: Sampler, boxes: Sequence[Box]) -> Law:
    """The law of what a sampler makes of independent uniform words: run on both ends of each class of the words.

    Boxes are products of classes, one axis a word, and have to cover all words once. run: words (rows, k) -> outputs
    (rows, ...), told apart by their bytes. Raises NotExact where two ends of a class differ: where outputs follow
    monotonically from each word within a class, that both ends agree says that all of it does.
    """
    width, law = len(boxes[0]), Counter[Hashable]()
    for box in boxes:
        shape = tuple(len(axis.first) for axis in box)
        if len(box) != width or math.prod(shape) > MOST_CELLS:
            raise NotExact(f"expected at most {MOST_CELLS} classes of {width} words, got {shape}")
        places = [grid.ravel() for grid in np.indices(shape)]
        first, last = (_run(run, [side(axis) for axis in box], places) for side in (_firsts, _lasts))
        if first.tobytes() != last.tobytes():
            raise NotExact("expected coins of one class to lead to one output, got two")
        outputs, which = np.unique(first, return_inverse=True)
        named = [output.tobytes() for output in outputs]
        for output, weight in _weighed(which, box, places):
            law[named[output]] += weight
    if sum(law.values()) != WORD**width:
        raise NotExact("expected classes that cover all words once")
    return law


def _weighed(which: Places, box: Box, places: Sequence[Places]) -> Iterator[tuple[int, int]]:
    """The coins of each output, in parts: cells whose classes have the same sizes, of which there are few, together."""
    kind, products = np.zeros(len(which), dtype=np.int64), [1]
    for axis, place in zip(box, places, strict=True):
        known = sorted(set(axis.sizes))
        number = {size: index for index, size in enumerate(known)}
        kind = kind * len(known) + np.array([number[size] for size in axis.sizes], dtype=np.int64)[place]
        products = [product * size for product in products for size in known]
    cells, counts = np.unique(which * len(products) + kind, return_counts=True)
    for cell, count in zip(cells.tolist(), counts.tolist(), strict=True):
        output, index = divmod(cell, len(products))
        yield output, count * products[index]


def _run(run: Sampler, ends: Sequence[tuple[int, ...]], places: Sequence[Places]) -> NDArray[np.void]:
    """Outputs of one end of each class, a row as one number of its bytes."""
    words = np.stack([np.array(end, dtype=np.uint64)[at] for end, at in zip(ends, places, strict=True)], axis=1)
    rows = np.ascontiguousarray(run(words).reshape(len(words), -1))
    return rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))[:, 0]


def _firsts(axis: Axis) -> tuple[int, ...]:
    return axis.first


def _lasts(axis: Axis) -> tuple[int, ...]:
    return axis.last
