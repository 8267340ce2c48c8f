"""Public features of one repetition as the server uses them: rounded, arranged for the kernels, computed once."""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from protocol.coins import Address, Stream
from protocol.features import Rounded, differences, group_weights, norms, split_groups, weighted
from protocol.messages import Task
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.shaping import mapped, triangular_inverse
from protocol.store import FeatureStore
from protocol.terms import only_mechanism
from server.estimators.features import Features, PairFeatures
from server.kernels_pairs import Pairs
from server.mechanisms.discrete_gaussian import SMALLEST_SENSITIVITY
from server.mechanisms.sensitivity import largest_squared_norm, squared_group_norm

Rows = NDArray[np.int64]
Floats = NDArray[np.float64]
Groups = NDArray[np.int32]
T = TypeVar("T", np.float64, np.int32)


@dataclass(frozen=True, eq=False)
class Design:
    """Rows v_i = trunc(w_i Q^T x_i) on the grid 2^exponent: (n, p), with their weights (n,) or None.

    `groups` (n,) numbers the labelers where one of them is to be protected, None where one label is. Where rows went
    through a map before they were weighted, `back` (p, p) is its inverse: estimators see rows and sums through it.
    """

    rows: NDArray[np.float64] = field(repr=False)
    weights: NDArray[np.float64] | None = field(repr=False)
    exponent: int
    groups: Groups | None = field(default=None, repr=False)
    pairs: Pairs | None = field(default=None, repr=False)
    back: Floats | None = field(default=None, repr=False)

    def returned(self, rows: Floats) -> Floats:
        """Rows or sums of them, (..., p), in the coordinates of estimators: through `back`, all alike."""
        return rows if self.back is None else mapped(np.atleast_2d(rows), self.back).reshape(rows.shape)

    @cached_property
    def seen(self) -> Floats:
        """The rows as estimators see them, (n, p)."""
        return self.returned(self.rows)

    @cached_property
    def features(self) -> Features:
        """The rows as the kernels take them: comparisons of items whose scores sum to zero by their `pairs`."""
        if self.pairs is None:
            return Features.of(self.seen, self.weights)
        scales = np.empty(0) if self.weights is None else 1.0 / self.weights
        return PairFeatures(self.pairs, self.rows.shape[1] + 1, scales)

    @cached_property
    def sensitivity_squared(self) -> int:
        """The squared sensitivity of sum_i y_i v_i to one label, or to one labeler's, in grid units."""
        if self.groups is None:
            return largest_squared_norm(self.rows, self.exponent)
        return max(squared_group_norm(self.rows[group], self.exponent) for group in split_groups(self.groups))

    @cached_property
    def total(self) -> NDArray[np.float64]:
        """sum_i v_i, exact."""
        total: NDArray[np.float64] = self.rows.sum(axis=0)
        return total


class Designs:
    """All designs of one repetition of one problem; `rows` are the rows asked for, None for all n."""

    def __init__(self, store: FeatureStore, seed: int, problem: Problem, n: int, repetition: int) -> None:
        self.repetition = repetition
        self._store, self._seed, self._problem, self._n = store, seed, problem, n
        self._known: dict[tuple[int, float | None, tuple[bytes | None, ...]], Design] = {}

    def get(
        self,
        exponent: int,
        radius: float | None,
        rows: Rows | None = None,
        groups: Groups | None = None,
        linear: Floats | None = None,
    ) -> Design:
        """The design on a grid, of some rows or of all: clipped at a radius or not, rows or (of all rows) groups.

        With a map `linear`, lower triangular, of mapped rows.
        """
        arrays = tuple(None if array is None else array.tobytes() for array in (rows, groups, linear))
        key = (exponent, radius, arrays)
        if key not in self._known:
            back = None if linear is None else triangular_inverse(linear)
            place = (self._problem, self._n, self.repetition, 0, self._n)
            whose = None if groups is None else _taken(groups, rows)
            if whose is None or radius is None:
                whole = self._store.rounded(*place, exponent, radius, linear)
                weights = None if whole.weights is None else _taken(whole.weights, rows)
                made = Rounded(_taken(whole.rows, rows), weights)
            else:
                own = _taken(self._store.reduced(*place), rows)
                own = own if linear is None else mapped(own, linear)
                made = weighted(own, exponent, group_weights(own, whose, radius))
            self._known[key] = Design(made.rows, made.weights, exponent, whose, self._pairs(rows), back)
        return self._known[key]

    def _pairs(self, rows: Rows | None) -> Pairs | None:
        design = self._problem.design
        if design is None or self._problem.features != "items" or not self._problem.sum_zero:
            return None
        return _taken(design[: self._n].astype(np.int32, copy=False), rows)

    @cached_property
    def longest(self) -> float:
        """An upper bound of max_i ||x_i|| over all n rows, before projection."""
        address = Address(self._seed, Stream.PROBLEM, self._n, self.repetition)
        x = differences(self._problem, address, 0, self._n)
        return float(norms(x).max()) * (1 + 1e-12)

    def sensitivity_squared(self, task: Task, design: Design) -> int:
        """The squared sensitivity that a central task asks for, in units of its grid of sums, which may be finer.

        That of rows; with `unprojected` at least that of the longest x; never below `SMALLEST_SENSITIVITY`.
        Raises ValueError for `unprojected` groups, and where the design does not have the groups of the task's unit.
        """
        if task.exponent is None or (design.groups is not None) != (task.unit is Unit.LABELER):
            raise ValueError(f"expected a grid, and groups exactly for labelers, got the unit {task.unit.label}")
        squared = design.sensitivity_squared << 2 * (design.exponent - task.exponent)
        if only_mechanism(task).get("unprojected"):
            if task.groups is not None:
                raise ValueError("expected projected rows where labelers are protected, got unprojected ones")
            squared = max(squared, math.ceil(self.longest * 2.0**-task.exponent) ** 2)
        return max(squared, SMALLEST_SENSITIVITY**2)


def _taken(values: NDArray[T], rows: Rows | None) -> NDArray[T]:
    return values if rows is None else np.ascontiguousarray(values[rows])
