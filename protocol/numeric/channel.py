"""A randomiser of numbers: the law of a holder's report given a vector, and what both sides need to know of it."""

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from protocol.numeric.terms import NumericTerms

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]
Kept = NDArray[np.bool_]


def every(kept: Kept) -> Kept:
    """Rows of which all entries are kept: (rows, d) -> (rows,)."""
    found: Kept = np.logical_and.reduce(kept, axis=1)
    return found


@dataclass(frozen=True)
class NumericChannel(ABC):
    """A law of reports (rows, d) given values (rows, d) within a bound, unbiased for the values.

    `norm` says what the bound holds: "linf" |x_j| <= bound, or "l2" the Euclidean norm of a row.
    `live`: the law is one of integers, so the level is that of what is executed and a holder may use secret coins.
    Otherwise doubles stand for a continuous law, `level` is that of the law, and the channel is for simulations.

    Guarantee: (`level`, `delta`)-local differential privacy of one row; neighbours: replace the row by any other one
    within the bound. `level` is rounded up, and at most the epsilon asked for.
    """

    terms: NumericTerms
    norm = "linf"
    live = False

    @property
    def delta(self) -> Decimal:
        """The delta of the guarantee; 0 for all but Gaussian noise."""
        return self.terms.delta

    @property
    def threshold(self) -> Decimal:
        """The bound as it was asked."""
        return self.terms.threshold

    @property
    def bound(self) -> float:
        """The bound of values as a double, not above `threshold`."""
        return self.terms.bound

    @property
    def dimension(self) -> int:
        """Numbers in a row."""
        return self.terms.dimension

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of name, parameters and integers of the law: the channel's name in reports and ledgers."""
        law = " ".join(map(str, self.integers))
        return hashlib.sha256(f"halftruth numbers v1\n{self.terms.spelled}\n{law}\n".encode()).digest()

    @property
    def integers(self) -> tuple[int, ...]:
        """The integers that the sampler compares coins with, where there are some."""
        return ()

    @property
    @abstractmethod
    def level(self) -> Decimal:
        """The privacy level, rounded up."""

    @property
    @abstractmethod
    def words(self) -> int:
        """64-bit words that one row takes."""

    @abstractmethod
    def report(self, values: Floats, words: Words) -> Floats:
        """Reports of values that are within the bound: values (rows, d), words (rows, `words`) -> (rows, d).

        A row's report depends on its own value and words only, bit for bit. Values are not checked here: the border
        is `client.vector_randomizer`.
        """

    @abstractmethod
    def mse(self, values: Floats) -> Floats:
        """E ||report - value||^2 of each row, exact up to the rounding of doubles: (rows, d) -> (rows,)."""

    @property
    @abstractmethod
    def worst_mse(self) -> float:
        """The largest `mse` of a row within the bound."""

    @abstractmethod
    def legal(self, reports: Floats) -> Kept:
        """Which rows are outputs of the law: (rows, d) -> (rows,). NaN and inf are not."""
