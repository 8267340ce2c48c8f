"""The public part of what is estimated: dimension, model, features, bounds; never the truth."""

import hashlib
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from protocol.decimals import canonical

DRAWN = ("gaussian", "sphere")
GIVEN = ("values", "items")
MOST_DIMENSIONS = 1 << 20
SMALLEST_SCALE, LARGEST_SCALE = 1e-100, 1e100  # of given features: squares of other numbers vanish or overflow


@dataclass(frozen=True, eq=False)
class Problem:
    """Preferences over pairs with reward theta . phi: P(y = 1 | x) = sigma(theta . x), x = phi(second) - phi(first).

    `features` is "gaussian" (phi standard normal), "sphere" (phi uniform on the unit sphere), "values" (`design`
    holds x, shape (n, dimension), float64) or "items" (phi one-hot; `design` holds the two item numbers, shape (n, 2),
    int32). With `sum_zero` theta is restricted to coordinates that sum to 0, the identified part when phi is one-hot.
    `bound` is the radius B of the ball ||theta|| <= B; None means no ball.

    Raises ValueError where a field does not fit. Source: Chowdhury, Zhou, Natarajan 2024, Section 2.
    """

    dimension: int
    features: str
    sum_zero: bool
    bound: Decimal | None
    design: NDArray[np.float64] | NDArray[np.int32] | None = field(default=None, repr=False)
    kind: str = "pairwise"
    model: str = "btl"

    def __post_init__(self) -> None:
        if (self.kind, self.model) != ("pairwise", "btl"):
            raise ValueError(f"expected kind 'pairwise' and model 'btl', got {self.kind!r} and {self.model!r}")
        if not (2 if self.sum_zero else 1) <= self.dimension <= MOST_DIMENSIONS:
            raise ValueError(f"expected a dimension of at least {1 + self.sum_zero}, got {self.dimension}")
        if self.bound is not None and not (self.bound.is_finite() and self.bound > 0):
            raise ValueError(f"expected bound > 0, got {self.bound}")
        if self.features not in DRAWN + GIVEN:
            raise ValueError(f"expected features out of {DRAWN + GIVEN}, got {self.features!r}")
        if (self.design is None) != (self.features in DRAWN):
            raise ValueError(f"expected a design exactly for features out of {GIVEN}, got {self.features!r}")
        if self.design is not None:
            _check_design(self.design, self.features, self.dimension)

    @property
    def reduced_dimension(self) -> int:
        """p: dimension - 1 where the coordinates sum to zero, else dimension."""
        return self.dimension - 1 if self.sum_zero else self.dimension

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of all public fields: the problem's name in caches."""
        bound = "" if self.bound is None else canonical(self.bound)
        head = (self.kind, self.model, self.dimension, self.features, self.sum_zero, bound)
        digest = hashlib.sha256(repr(head).encode())
        if self.design is not None:
            digest.update(np.ascontiguousarray(self.design).tobytes())
        return digest.digest()


def _check_design(design: NDArray[np.float64] | NDArray[np.int32], features: str, dimension: int) -> None:
    if features == "values":
        if design.dtype != np.float64 or design.ndim != 2 or design.shape[1] != dimension or not len(design):
            raise ValueError(f"expected float64 values of shape (n, {dimension}), got {design.dtype} {design.shape}")
        if not np.isfinite(design).all():
            row = int(np.argmin(np.isfinite(design).all(axis=1)))
            raise ValueError(f"expected finite features, got NaN or inf in row {row}")
        largest = float(np.abs(design).max())
        if largest and not SMALLEST_SCALE <= largest <= LARGEST_SCALE:
            raise ValueError(
                f"expected a largest feature in {SMALLEST_SCALE}..{LARGEST_SCALE}, got {largest}: rescale the features"
            )
        return
    if design.dtype != np.int32 or design.ndim != 2 or design.shape[1] != 2 or not len(design):
        raise ValueError(f"expected int32 items of shape (n, 2), got {design.dtype} {design.shape}")
    if design.min() < 0 or design.max() >= dimension:
        raise ValueError(f"expected item numbers in 0..{dimension - 1}, got {design.min()}..{design.max()}")
    if (design[:, 0] == design[:, 1]).any():
        row = int(np.argmax(design[:, 0] == design[:, 1]))
        raise ValueError(f"expected two different items, got item {design[row, 0]} twice in row {row}")
