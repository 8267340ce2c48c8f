"""Thresholds that are public before anyone looks: 2^(j/2), on which holders say how large their contributions are."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from protocol.messages import Mechanism

MOST_POINTS = 1 << 10
FARTHEST = 1000
NAMES = ("highest", "lowest")


@dataclass(frozen=True)
class ThresholdGrid:
    """2^(j/2) for j = lowest, ..., highest. Raises ValueError for an empty or absurd range."""

    lowest: int
    highest: int

    def __post_init__(self) -> None:
        if not -FARTHEST <= self.lowest <= self.highest <= FARTHEST or self.width > MOST_POINTS:
            raise ValueError(
                f"expected -{FARTHEST} <= lowest <= highest <= {FARTHEST} and at most {MOST_POINTS} thresholds, "
                f"got {self.lowest} and {self.highest}"
            )

    @classmethod
    def of(cls, mechanism: Mechanism) -> "ThresholdGrid | None":
        """The grid that a mechanism's parameters name; None where they name none. Raises ValueError for half of one."""
        lowest, highest = mechanism.get("lowest"), mechanism.get("highest")
        if lowest is None and highest is None:
            return None
        if lowest is None or highest is None or lowest != int(lowest) or highest != int(highest):
            raise ValueError(f"expected whole numbers lowest and highest, got {lowest} and {highest}")
        return cls(int(lowest), int(highest))

    @property
    def width(self) -> int:
        """How many thresholds there are."""
        return self.highest - self.lowest + 1

    @property
    def thresholds(self) -> NDArray[np.float64]:
        """All of them, increasing, exact to a rounding.

        >>> ThresholdGrid(-2, 2).thresholds.tolist()
        [0.5, 0.7071067811865476, 1.0, 1.4142135623730951, 2.0]
        """
        span = range(self.lowest, self.highest + 1)
        return np.array([math.ldexp(math.sqrt(2) if j % 2 else 1.0, j // 2) for j in span])
