"""Public features of one repetition as the server uses them: rounded, arranged for the kernels, computed once."""

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from protocol.coins import Address, Stream
from protocol.features import differences, norms
from protocol.messages import Task
from protocol.problem import Problem
from protocol.store import FeatureStore
from server.estimators.features import Features
from server.mechanisms.sensitivity import largest_squared_norm

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Design:
    """Rows v_i = trunc(w_i Q^T x_i) on the grid 2^exponent: (n, p), with their weights (n,) or None."""

    rows: NDArray[np.float64] = field(repr=False)
    weights: NDArray[np.float64] | None = field(repr=False)
    exponent: int

    @cached_property
    def features(self) -> Features:
        """The rows as the kernels take them."""
        return Features.of(self.rows, self.weights)

    @cached_property
    def largest_squared_norm(self) -> int:
        """The squared sensitivity of sum_i y_i v_i to one label, in grid units."""
        return largest_squared_norm(self.rows, self.exponent)

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
        self._known: dict[tuple[int, float | None, bytes | None], Design] = {}

    def get(self, exponent: int, radius: float | None, rows: Rows | None = None) -> Design:
        """The design on a grid, clipped at a radius or not, of some rows or of all."""
        key = (exponent, radius, None if rows is None else rows.tobytes())
        if key not in self._known:
            whole = self._store.rounded(self._problem, self._n, self.repetition, 0, self._n, exponent, radius)
            weights = None if whole.weights is None else _taken(whole.weights, rows)
            self._known[key] = Design(_taken(whole.rows, rows), weights, exponent)
        return self._known[key]

    @cached_property
    def longest(self) -> float:
        """An upper bound of max_i ||x_i|| over all n rows, before projection."""
        address = Address(self._seed, Stream.PROBLEM, self._n, self.repetition)
        x = differences(self._problem, address, 0, self._n)
        return float(norms(x).max()) * (1 + 1e-12)

    def sensitivity_squared(self, task: Task, design: Design) -> int:
        """The squared sensitivity that a central task asks for, in grid units: of rows, or of x with `unprojected`."""
        squared = design.largest_squared_norm
        if task.menu[0].get("unprojected"):
            squared = max(squared, math.ceil(self.longest * 2.0**-design.exponent) ** 2)
        return squared


def _taken(values: NDArray[np.float64], rows: Rows | None) -> NDArray[np.float64]:
    return values if rows is None else np.ascontiguousarray(values[rows])
