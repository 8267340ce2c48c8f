"""What of a file of comparisons is public, on whichever side of the border it is known."""

from collections.abc import Sized
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from protocol.problem import Problem


class Described(Protocol):
    """Public facts: a holder's `client.sources.table:Table` has them, and so has a server's folder of a split."""

    @property
    def items(self) -> tuple[str, ...]:
        """Names of items, in the order of their numbers."""

    @property
    def pairs(self) -> NDArray[np.int32]:
        """The items of each row, (n, K): two, or up to K, then -1 where a row has fewer."""

    @property
    def features(self) -> NDArray[np.float64] | None:
        """What describes the items, (items, p), or None."""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features."""

    @property
    def labelers(self) -> Sized:
        """One entry for each labeler, whatever it holds."""

    @property
    def label_count(self) -> int:
        """How many different labels there are."""

    @property
    def problem(self) -> Problem:
        """What is estimated."""
