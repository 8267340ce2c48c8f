"""A randomiser of one number in [-1, 1]: what mechanisms of coordinates are made of."""

import math
from abc import ABC, abstractmethod
from decimal import Decimal

from protocol.numeric.channel import Floats, Words


class Scalar(ABC):
    """A law of a report given a number t in [-1, 1], unbiased for t.

    Guarantee: `level`-local differential privacy of t; neighbours: replace t. `live` as in `NumericChannel`.
    """

    words: int
    live: bool

    @property
    def outputs(self) -> Floats | None:
        """All that can be reported, rising; None: a continuum."""
        return None

    @property
    def reach(self) -> float:
        """No report from a continuum is larger, whatever the coins; infinity: not known."""
        return math.inf

    @property
    def integers(self) -> tuple[int, ...]:
        """The integers that the sampler compares coins with, where there are some."""
        return ()

    @property
    @abstractmethod
    def level(self) -> Decimal:
        """The privacy level, rounded up."""

    @abstractmethod
    def report(self, t: Floats, words: Words) -> Floats:
        """Reports of t (rows,) from words (rows, `words`): shape (rows,)."""

    @abstractmethod
    def second_moment(self, t: Floats) -> Floats:
        """E report^2 given t."""

    @abstractmethod
    def worst(self, scale: float) -> float:
        """max over |t| <= 1 of scale * second_moment(t) - t^2, for a scale >= 1: the worst variance where it is 1."""
