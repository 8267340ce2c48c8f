"""The public part of what is estimated: dimension, model, features, bounds; never the truth."""

import hashlib
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from protocol.decimals import canonical
from protocol.links import LINKS

DRAWN = ("gaussian", "sphere")
GIVEN = ("values", "items")
RECORDS = "records"  # features of records are nobody's but their holder's
MODELS = {  # by kind of problem
    "pairwise": tuple(LINKS),
    "choice": ("plackett-luce",),
    "records": ("mean", "linear", "logistic"),
}
MOST_DIMENSIONS = 1 << 20
MOST_CHOICES = 63  # a set of choices is one number in a ledger
SMALLEST_SCALE, LARGEST_SCALE = 1e-100, 1e100  # of given features: squares of other numbers vanish or overflow
LARGEST_VARIANCE = Decimal("1e12")  # of a coordinate of drawn features; its inverse is the smallest


@dataclass(frozen=True, eq=False)
class Problem:
    """Preferences with reward theta . phi, over pairs or the top one of K choices; or a mean loss over private records.

    Kind "pairwise": P(y = 1 | x) = F(theta . x), x = phi(second) - phi(first); F = sigma for the model "btl", Phi for
    "thurstone", others: `protocol.links`.
    `features` is "gaussian" (phi standard normal), "sphere" (phi uniform on the unit sphere), "values" (`design`
    holds x, shape (n, dimension), float64) or "items" (phi one-hot; `design` holds the two item numbers, shape (n, 2),
    int32).
    Kind "choice", model "plackett-luce": P(y = k) = exp(theta . phi_k) / sum_j exp(theta . phi_j), k < K = `choices`.
    Drawn features give each phi_k; `design` holds phi, shape (n, K, dimension), float64, or item numbers, shape (n, K),
    int32. `sizes` (n,), int32, says how many of the K a row has, its first ones; None: all. Absent ones are 0, or -1.
    Kind "records": theta minimises E l(theta; x, y); the model is "mean" (l = |theta - x|^2 / 2), "linear"
    (l = (theta . x - y)^2 / 2) or "logistic" (l = log(1 + e^{theta . x}) - y theta . x). Records are private:
    `features` is "records", nothing of them is here.
    With `sum_zero` theta is restricted to coordinates that sum to 0, the identified part when phi is one-hot.
    `bound` is the radius B of the ball ||theta|| <= B; None means no ball.
    `scales` are the variances of phi's coordinates where pairs are "gaussian"; empty: all are 1.

    Raises ValueError where a field does not fit. Source: Chowdhury, Zhou, Natarajan 2024, Section 2.
    """

    dimension: int
    features: str
    sum_zero: bool
    bound: Decimal | None
    design: NDArray[np.float64] | NDArray[np.int32] | None = field(default=None, repr=False)
    kind: str = "pairwise"
    model: str = "btl"
    choices: int = 2
    sizes: NDArray[np.int32] | None = field(default=None, repr=False)
    scales: tuple[Decimal, ...] = ()

    def __post_init__(self) -> None:
        if self.model not in MODELS.get(self.kind, ()):
            raise ValueError(f"expected kind and model out of {MODELS}, got {self.kind!r} and {self.model!r}")
        if not (2 if self.sum_zero else 1) <= self.dimension <= MOST_DIMENSIONS:
            raise ValueError(f"expected a dimension of at least {1 + self.sum_zero}, got {self.dimension}")
        if self.bound is not None and not (self.bound.is_finite() and self.bound > 0):
            raise ValueError(f"expected bound > 0, got {self.bound}")
        if self.kind == "records":
            _check_records(self)
            return
        if self.features not in DRAWN + GIVEN:
            raise ValueError(f"expected features out of {DRAWN + GIVEN}, got {self.features!r}")
        if (self.design is None) != (self.features in DRAWN):
            raise ValueError(f"expected a design exactly for features out of {GIVEN}, got {self.features!r}")
        if self.design is not None and not (self.design.ndim and len(self.design)):
            raise ValueError("expected a design of at least one row, got none")
        _check_sizes(self)
        _check_scales(self)
        if self.design is not None:
            check = _check_design if self.kind == "pairwise" else _check_choices
            check(self)

    @property
    def reduced_dimension(self) -> int:
        """p: dimension - 1 where the coordinates sum to zero, else dimension."""
        return self.dimension - 1 if self.sum_zero else self.dimension

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of all public fields: the problem's name in caches."""
        bound = "" if self.bound is None else canonical(self.bound)
        head = (self.kind, self.model, self.dimension, self.features, self.sum_zero, bound)
        named = head if self.kind == "pairwise" else (*head, self.choices, self.sizes is not None)
        if self.scales:
            named = (*named, *map(canonical, self.scales))
        digest = hashlib.sha256(repr(named).encode())
        for array in (self.design, self.sizes):
            if array is not None:
                digest.update(np.ascontiguousarray(array).tobytes())
        return digest.digest()


def _check_records(problem: Problem) -> None:
    if problem.features != RECORDS or problem.sum_zero or problem.choices != 2 or problem.scales:
        raise ValueError(f"expected features {RECORDS!r} of records, and nothing of pairs, got {problem.features!r}")
    if problem.design is not None or problem.sizes is not None:
        raise ValueError("expected no design of records: they stay with their holders")


def _check_sizes(problem: Problem) -> None:
    sizes, most = problem.sizes, problem.choices
    if problem.kind == "pairwise":
        if most != 2 or sizes is not None:
            raise ValueError(f"expected two choices and no sizes for pairs, got {most} choices")
        return
    if not 2 <= most <= MOST_CHOICES:
        raise ValueError(f"expected 2 to {MOST_CHOICES} choices, got {most}")
    if sizes is None:
        return
    if problem.design is None or sizes.dtype != np.int32 or sizes.shape != (len(problem.design),):
        raise ValueError("expected one int32 size for each row of a design, got others")
    if (sizes == most).all():
        raise ValueError("expected no sizes where all rows have all choices: one spelling")
    if sizes.min() < 2 or sizes.max() > most:
        raise ValueError(f"expected sizes of rows in 2..{most}, got {sizes.min()}..{sizes.max()}")


def _check_scales(problem: Problem) -> None:
    scales = problem.scales
    if not scales:
        return
    if (problem.kind, problem.features) != ("pairwise", "gaussian") or len(scales) != problem.dimension:
        raise ValueError(f"expected {problem.dimension} scales of gaussian features of pairs, got {len(scales)}")
    if not all(scale.is_finite() and 1 / LARGEST_VARIANCE <= scale <= LARGEST_VARIANCE for scale in scales):
        raise ValueError(f"expected scales, variances of coordinates, in 1e-12..1e12, got {list(map(str, scales))}")
    if all(scale == 1 for scale in scales):
        raise ValueError("expected no scales where all are 1: one spelling")


def of_pairs(items: int, pairs: NDArray[np.int32], features: NDArray[np.float64] | None) -> Problem:
    """What a file of comparisons asks: the score of each item, or the weights of their `features` (items, p).

    `pairs` (n, 2) are numbers of items; with features x = phi(second) - phi(first). Raises ValueError for features that
    differ in nothing, or beyond all scales.
    """
    if features is None:
        return Problem(items, "items", sum_zero=True, bound=None, design=pairs)
    x = features[pairs[:, 1]] - features[pairs[:, 0]]
    return Problem(features.shape[1], "values", sum_zero=False, bound=None, design=x)


def _check_design(problem: Problem) -> None:
    design, dimension = problem.design, problem.dimension
    assert design is not None
    if problem.features == "values":
        if design.dtype != np.float64 or design.ndim != 2 or design.shape[1] != dimension or not len(design):
            raise ValueError(f"expected float64 values of shape (n, {dimension}), got {design.dtype} {design.shape}")
        _check_values(design)
        return
    if design.dtype != np.int32 or design.ndim != 2 or design.shape[1] != 2 or not len(design):
        raise ValueError(f"expected int32 items of shape (n, 2), got {design.dtype} {design.shape}")
    if design.min() < 0 or design.max() >= dimension:
        raise ValueError(f"expected item numbers in 0..{dimension - 1}, got {design.min()}..{design.max()}")
    if (design[:, 0] == design[:, 1]).any():
        row = int(np.argmax(design[:, 0] == design[:, 1]))
        raise ValueError(f"expected two different items, got item {design[row, 0]} twice in row {row}")


def _check_choices(problem: Problem) -> None:
    design, most, dimension = problem.design, problem.choices, problem.dimension
    assert design is not None
    sizes = np.full(len(design), most, dtype=np.int32) if problem.sizes is None else problem.sizes
    absent = np.arange(most, dtype=np.int32) >= sizes[:, None]
    if problem.features == "values":
        if design.dtype != np.float64 or design.shape[1:] != (most, dimension) or not len(design):
            expected = f"(n, {most}, {dimension})"
            raise ValueError(f"expected float64 values of shape {expected}, got {design.dtype} {design.shape}")
        _check_values(design)
        if design[absent].any():
            raise ValueError("expected zeros for the choices that a row does not have")
        return
    if design.dtype != np.int32 or design.shape[1:] != (most,) or not len(design):
        raise ValueError(f"expected int32 items of shape (n, {most}), got {design.dtype} {design.shape}")
    if ((design == -1) != absent).any() or design.min() < -1 or design.max() >= dimension:
        raise ValueError(f"expected item numbers in 0..{dimension - 1}, and -1 exactly for absent choices")
    ordered = np.sort(design, axis=1)
    twice = ((ordered[:, 1:] == ordered[:, :-1]) & ~np.equal(ordered[:, 1:], -1)).any(axis=1)
    if twice.any():
        raise ValueError(f"expected different items in a row, got one twice in row {int(np.argmax(twice))}")


def _check_values(design: NDArray[np.float64] | NDArray[np.int32]) -> None:
    finite = np.isfinite(design).reshape(len(design), -1).all(axis=1)
    if not finite.all():
        raise ValueError(f"expected finite features, got NaN or inf in row {int(np.argmin(finite))}")
    largest = float(np.abs(design).max())
    if largest and not SMALLEST_SCALE <= largest <= LARGEST_SCALE:
        raise ValueError(
            f"expected a largest feature in {SMALLEST_SCALE}..{LARGEST_SCALE}, got {largest}: rescale the features"
        )
