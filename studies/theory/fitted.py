"""Constants that the paper leaves unnamed, taken from results, and labelled with where they were taken."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from studies.theory.constants import positive


@dataclass(frozen=True)
class Fitted:
    """A constant and the n of the results that it was fitted to."""

    constant: float
    n: int

    def __str__(self) -> str:
        return f"fitted at n = {self.n:,}"


def fit_constant(
    shape: Sequence[float],
    measured: Sequence[float],
    n: Sequence[int],
    side: Literal["lower", "upper"],
    power: float = 1.0,
) -> Fitted:
    """The constant with which a bound touches what was measured at the largest n, and is on its side of all of that.

    `shape` holds the bound with the constant 1, `measured` the errors, `n` where. The bound is constant^power times
    shape: power 1/2 for the lower bounds, whose c is in front of the square. Ratios measured / shape at the largest n:
    their minimum for a lower bound, their maximum for an upper one.

    Raises ValueError for no value, different lengths, or values that are not positive and finite.

    >>> print(fit_constant([2.0, 1.0], [7.0, 3.0], [100, 400], "lower"))
    fitted at n = 400
    """
    if not shape or not len(shape) == len(measured) == len(n):
        raise ValueError(f"expected as many shapes as errors and n, got {len(shape)}, {len(measured)} and {len(n)}")
    largest = max(n)
    ratios = []
    for value, error, count in zip(shape, measured, n, strict=True):
        positive(shape=value, measured=error, power=power)
        if count == largest:
            ratios.append(error / value)
    ratio = min(ratios) if side == "lower" else max(ratios)
    return Fitted(ratio ** (1 / power), largest)
