"""Addresses of random numbers: every coin of a simulation has a place of its own.

(seed, stream, n, repetition, round) names a Philox4x64 sequence, and a row's coins sit at positions that depend on the
row's number only. So numbers depend neither on how rows are split over clients nor on block size or order of arrival.
Real privacy never uses addresses: its coins are the operating system's (see `client.draws`).
"""

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

Words = NDArray[np.uint64]
Floats = NDArray[np.float64]


class Stream(IntEnum):
    """What a sequence of coins is for; two uses never share a stream."""

    PROBLEM = 0
    TRUTH = 1
    LABELS = 2
    PRIVACY = 3
    ESCALATION = 4
    CURATOR = 5
    COHORT = 6
    MISBEHAVIOUR = 7
    BOOTSTRAP = 8
    METRICS = 9
    PAIRS = 10
    SUBSETS = 11
    LEVELS = 12
    NUMBERS = 13
    RECORDS = 14
    AUDIT = 15
    ROUNDING = 16
    ROTATION = 17


@dataclass(frozen=True)
class Address:
    """The name of one sequence of 64-bit words.

    Each component must be below 2^32 and the seed below 2^128: beyond, SeedSequence addresses collide (ValueError).
    """

    seed: int
    stream: Stream
    n: int = 0
    repetition: int = 0
    round: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 1 << 128:
            raise ValueError(f"expected 0 <= seed < 2^128, got {self.seed}")
        for name in ("n", "repetition", "round"):
            if not 0 <= getattr(self, name) < 1 << 32:
                raise ValueError(f"expected 0 <= {name} < 2^32, got {getattr(self, name)}")


def words(address: Address, start: int, count: int) -> Words:
    """Words start, ..., start + count - 1 of a sequence.

    >>> here = Address(7, Stream.LABELS, n=10)
    >>> bool((words(here, 0, 9)[5:] == words(here, 5, 4)).all())
    True
    """
    return spans(address, [(start, count)])[0]


def spans(address: Address, places: Iterable[tuple[int, int]]) -> list[Words]:
    """Words start, ..., start + count - 1 of a sequence for each (start, count).

    The generator makes blocks of four words, so a seek goes to block start // 4 and skips the rest.
    """
    generator, key = _generator(), key_of(address)
    found = []
    for start, count in places:
        if start < 0 or count < 0:
            raise ValueError(f"expected start >= 0 and count >= 0, got {start} and {count}")
        skip = start % 4
        generator.state = _state(key, start // 4)
        found.append(generator.random_raw(skip + count)[skip:])
    return found


@lru_cache(maxsize=1024)
def key_of(address: Address) -> tuple[int, int]:
    """The 128 bits that Philox has for a sequence, as `numpy.random.Philox(seed_sequence)` does."""
    place = (int(address.stream), address.n, address.repetition, address.round)
    sequence = np.random.SeedSequence(address.seed, spawn_key=place)
    first, second = sequence.generate_state(2, np.uint64).tolist()
    return first, second


def _state(key: tuple[int, int], block: int) -> Any:
    """What numpy's generator looks like before it makes a block: plain numbers, which it takes faster than arrays."""
    inside = {"counter": (block, 0, 0, 0), "key": key}
    rest = {"buffer": (0, 0, 0, 0), "buffer_pos": 4, "has_uint32": 0, "uinteger": 0}
    return {"bit_generator": "Philox", "state": inside, **rest}


_thread = threading.local()


def _generator() -> np.random.Philox:
    """This thread's generator: making one costs as much as 2,000 words, and each use sets all of its state."""
    if not hasattr(_thread, "generator"):
        _thread.generator = np.random.Philox(np.random.SeedSequence(0))
    generator: np.random.Philox = _thread.generator
    return generator


def uniform(drawn: Words) -> Floats:
    """One number in the open interval (0, 1) a word: (top 52 bits + 1/2) / 2^52, exact and symmetric about 1/2."""
    return ((drawn >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


LARGEST_NORMAL = 8.3  # no number of `normal` is further from 0: its distribution function is 2^-53 there


def normal(drawn: Words) -> Floats:
    """One standard normal number a word, by the inverse distribution function of `uniform`. For simulation only."""
    values: Floats = ndtri(uniform(drawn))
    return values
