"""Coins of the randomiser: the operating system's, or addressed ones in a simulation. The caller picks; no default.

A row owns a lane of 16 bits, and 47 further bits that are read only where the lane leaves its outcome open.
"""

import os
from dataclasses import replace
from itertools import pairwise
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from protocol.coins import Address, Stream, Words, words
from protocol.messages import Coins

Rows = NDArray[np.int64]
ESCALATION_BITS = 47
MOST_STEPS = 64  # words of one row that shuffle its choices
FAR = 4096  # where two rows are farther apart, a new seek is cheaper than reading on
T = TypeVar("T", np.uint16, np.uint64)


class Draws(Protocol):
    """Uniform coins of rows: together, lane * 2^47 + escalation is uniform on 0, ..., 2^63 - 1."""

    @property
    def coins(self) -> Coins:
        """Where they come from, for the report."""

    def lanes(self, rows: Rows) -> NDArray[np.uint16]:
        """16 bits for each row."""

    def escalations(self, rows: Rows) -> Words:
        """47 bits for each row, as uint64."""

    def fair(self, rows: Rows) -> NDArray[np.uint8]:
        """A fair bit for each row, which decides a tie."""

    def steps(self, rows: Rows, count: int) -> Words:
        """`count` words for each row, which shuffle choices; shape (count, rows)."""

    def vectors(self, rows: Rows, count: int) -> Words:
        """`count` words for each row, which randomise its numbers; shape (rows, count)."""


class AddressedDraws:
    """Coins of a simulation: reproducible, independent of how rows are split; they protect nobody.

    Lane of row r: bits 16 (r % 4), ..., 16 (r % 4) + 15 of word r // 4 in stream PRIVACY (lane 0 is the lowest).
    Escalation of row r: the top 47 bits of word r in stream ESCALATION. Fair bit of row r: the top bit of word r in
    stream LABELS, which draws synthetic labels and is free where labels come from a file.
    """

    coins = Coins.ADDRESSED

    def __init__(self, seed: int, n: int, repetition: int, round: int = 0) -> None:
        self._lanes = Address(seed, Stream.PRIVACY, n, repetition, round)
        self._escalations = Address(seed, Stream.ESCALATION, n, repetition, round)
        self._ties = Address(seed, Stream.LABELS, n, repetition, round)
        self._steps = Address(seed, Stream.SUBSETS, n, repetition, round * MOST_STEPS)
        self._numbers = Address(seed, Stream.NUMBERS, n, repetition, round)

    def lanes(self, rows: Rows) -> NDArray[np.uint16]:
        """The row's lane; rows in increasing order."""
        lanes = np.empty(len(rows), dtype=np.uint16)
        for part, first, last in _near(rows):
            held = words(self._lanes, first // 4, last // 4 - first // 4 + 1).astype("<u8", copy=False).view("<u2")
            lanes[part] = _pick(held[first % 4 :], rows[part], first)
        return lanes

    def escalations(self, rows: Rows) -> Words:
        """The row's escalation; rows in increasing order."""
        return _words(self._escalations, rows) >> np.uint64(64 - ESCALATION_BITS)

    def fair(self, rows: Rows) -> NDArray[np.uint8]:
        """The row's fair bit; rows in increasing order."""
        return (_words(self._ties, rows) >> np.uint64(63)).astype(np.uint8)

    def steps(self, rows: Rows, count: int) -> Words:
        """Step j is the row's word of a sequence of its own; rows in increasing order."""
        if count > MOST_STEPS:
            raise ValueError(f"expected at most {MOST_STEPS} steps, got {count}")
        places = [replace(self._steps, round=self._steps.round + step) for step in range(count)]
        return np.array([_words(place, rows) for place in places], dtype=np.uint64).reshape(count, len(rows))

    def vectors(self, rows: Rows, count: int) -> Words:
        """Words r count, ..., r count + count - 1 of stream NUMBERS for row r; rows in increasing order."""
        if count < 1:
            raise ValueError(f"expected at least 1 word a row, got {count}")
        result = np.empty((len(rows), count), dtype=np.uint64)
        for part, first, last in _near(rows, FAR // count):
            held = words(self._numbers, first * count, (last - first + 1) * count).reshape(-1, count)
            result[part] = _pick(held, rows[part], first)
        return result


class SecretDraws:
    """Coins of the operating system: fresh at every call, known to nobody."""

    coins = Coins.OS

    def lanes(self, rows: Rows) -> NDArray[np.uint16]:
        """Fresh bits; the rows only say how many."""
        return np.frombuffer(os.urandom(2 * len(rows)), dtype="<u2").astype(np.uint16, copy=False)

    def escalations(self, rows: Rows) -> Words:
        """Fresh bits; the rows only say how many."""
        drawn = np.frombuffer(os.urandom(8 * len(rows)), dtype="<u8").astype(np.uint64, copy=False)
        return drawn >> np.uint64(64 - ESCALATION_BITS)

    def fair(self, rows: Rows) -> NDArray[np.uint8]:
        """Fresh bits; the rows only say how many."""
        return np.frombuffer(os.urandom(len(rows)), dtype=np.uint8) & np.uint8(1)

    def steps(self, rows: Rows, count: int) -> Words:
        """Fresh bits; the rows only say how many."""
        drawn = np.frombuffer(os.urandom(8 * count * len(rows)), dtype="<u8").astype(np.uint64, copy=False)
        return drawn.reshape(count, len(rows))

    def vectors(self, rows: Rows, count: int) -> Words:
        """Fresh bits; the rows only say how many."""
        drawn = np.frombuffer(os.urandom(8 * count * len(rows)), dtype="<u8").astype(np.uint64, copy=False)
        return drawn.reshape(len(rows), count)


def _words(address: Address, rows: Rows) -> Words:
    """Word r of a sequence for each row r; rows in increasing order."""
    result = np.empty(len(rows), dtype=np.uint64)
    for part, first, last in _near(rows):
        result[part] = _pick(words(address, first, last - first + 1), rows[part], first)
    return result


def _near(rows: Rows, far: int = FAR) -> list[tuple[slice, int, int]]:
    """Increasing rows, split where they are more than `far` apart: (part, first row, last row)."""
    if not len(rows):
        return []
    dense = rows[-1] - rows[0] < far + len(rows)
    cuts = [] if dense else (np.flatnonzero(np.diff(rows) > far) + 1).tolist()
    edges = [0, *cuts, len(rows)]
    return [(slice(a, b), int(rows[a]), int(rows[b - 1])) for a, b in pairwise(edges)]


def _pick(held: NDArray[T], rows: Rows, first: int) -> NDArray[T]:
    """What belongs to `rows` out of values of first, first + 1, ..."""
    if rows[-1] - first + 1 == len(rows):
        return held[: len(rows)]
    return held[rows - first]
