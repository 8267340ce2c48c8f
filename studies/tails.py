"""How heavy the tail of some numbers is, and what of them does not exist where it is heavy."""

import math
from dataclasses import dataclass

import numpy as np

from protocol.coins import Floats
from protocol.warned import warn

TAIL_SHARE, LEAST_TAIL = 0.05, 10
SURE = 2.0  # standard errors


@dataclass(frozen=True)
class TailIndex:
    """Hill's estimate of a in P(|X| > x) ~ x^-a from the `count` largest values, and its standard error."""

    index: float
    error: float
    count: int

    @property
    def no_mean(self) -> bool:
        """Whether the index is below 1 beyond doubt: then there is no mean to estimate."""
        return self.index + SURE * self.error < 1

    @property
    def no_variance(self) -> bool:
        """Whether the index is below 2 beyond doubt: then squares have no mean."""
        return self.index + SURE * self.error < 2

    def __str__(self) -> str:
        return f"tail index {self.index:.2f} ± {self.error:.2f} (Hill, {self.count} largest)"


def tail_index(values: Floats) -> TailIndex | None:
    """How heavy the tail of |values| is, by the largest 5 % of them; None for too few that differ.

    Source: Hill 1975.
    """
    size = np.sort(np.abs(values[values != 0]))[::-1]
    count = max(LEAST_TAIL, int(TAIL_SHARE * len(size)))
    if len(size) <= count or size[0] <= size[count]:
        return None
    index = 1 / float(np.log(size[:count] / size[count]).mean())
    return TailIndex(index, index / math.sqrt(count), count)


def heavy(what: str, tail: TailIndex) -> str | None:
    """The warning for whoever reads a mean of such numbers; None where there is nothing to warn of."""
    if tail.index >= 2:
        return None
    if tail.index > 1:
        return warn("no-variance", f"{what}, below 2: their variance is infinite, or nearly")
    if not tail.no_mean:
        return warn("no-mean", f"{what}, at most 1, though not beyond doubt: such a law may have no mean")
    return warn(
        "no-mean",
        f"{what}, below 1: such a law has no mean. The estimate is that of these records and says nothing of others; "
        "more records do not help",
    )
