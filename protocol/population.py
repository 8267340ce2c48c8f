"""Labelers of a synthetic study who ask for different levels of privacy: who asks for which, by an address."""

from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from protocol.coins import Address, Stream, words

MOST_LEVELS = 16
SHARE_DIGITS = 15  # so that shares times 2^53 are not larger than doubles hold


@dataclass(frozen=True)
class Population:
    """`levels`, increasing, and the `shares` of labelers who ask for at most each; shares are > 0 and sum to 1.

    Raises ValueError for parts that do not fit.
    """

    levels: tuple[Decimal, ...]
    shares: tuple[Decimal, ...]

    def __post_init__(self) -> None:
        if not 2 <= len(self.levels) <= MOST_LEVELS or len(self.levels) != len(self.shares):
            raise ValueError(f"expected 2..{MOST_LEVELS} levels and a share for each, got {self.levels} {self.shares}")
        if list(self.levels) != sorted(set(self.levels)):
            raise ValueError(f"expected levels that increase, got {', '.join(map(str, self.levels))}")
        if (
            min(self.shares) <= 0
            or sum(self.shares) != 1
            or any(_digits(share) > SHARE_DIGITS for share in self.shares)
        ):
            raise ValueError(f"expected shares > 0 of {SHARE_DIGITS} digits that sum to 1, got {self.shares}")


def levels_of(population: Population, seed: int, n: int, start: int, stop: int) -> NDArray[np.uint8]:
    """Which level each of the rows start, ..., stop - 1 asks for: an index into `population.levels`.

    Index j has probability shares[j]. A row's coin is the top 53 bits of its word of stream LEVELS at (seed, n): the
    same in every repetition, whoever holds the row, and independent of features and labels.
    """
    coins = words(Address(seed, Stream.LEVELS, n), start, stop - start) >> np.uint64(11)
    ends, total = [], Decimal(0)
    for share in population.shares[:-1]:
        total += share
        ends.append(int(total * (1 << 53)))
    found: NDArray[np.uint8] = np.searchsorted(np.array(ends, dtype=np.uint64), coins, side="right").astype(np.uint8)
    return found


def _digits(share: Decimal) -> int:
    exponent = share.as_tuple().exponent
    return -exponent if isinstance(exponent, int) else SHARE_DIGITS + 1
