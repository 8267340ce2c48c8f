"""Public features of sets of choices as the server uses them: rounded, arranged for the kernels, computed once."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from protocol.choice_features import Sizes, row_sizes, spans
from protocol.messages import Task
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.store import FeatureStore
from protocol.terms import only_mechanism
from server.estimators.choice_base import ChoiceFeatures
from server.mechanisms.discrete_gaussian import SMALLEST_SENSITIVITY
from server.mechanisms.sensitivity import largest_squared_norm

Rows = NDArray[np.int64]
_SLACK = 1e-9  # more than lengths in up to 2^20 coordinates are off by


@dataclass(frozen=True, eq=False)
class ChoiceDesign:
    """Blocks v_ik = trunc(w_i Q^T (phi_ik - phi_i0)) on the grid 2^exponent, with `sizes`, and weights or None."""

    blocks: NDArray[np.float64] = field(repr=False)
    sizes: Sizes = field(repr=False)
    weights: NDArray[np.float64] | None = field(repr=False)
    exponent: int

    @cached_property
    def features(self) -> ChoiceFeatures:
        """The blocks as the kernels take them."""
        return ChoiceFeatures(self.blocks, self.sizes, np.empty(0) if self.weights is None else 1.0 / self.weights)

    @cached_property
    def sensitivity_squared(self) -> int:
        """max over rows i, choices j, k of ||v_ij - v_ik||^2, in grid units: one label moves sum_i v_{i, y_i} so far.

        Source: derived, see docs/PRIVACY.md.
        """
        lengths = spans(self.blocks, self.sizes)  # differences on a grid are exact: only squares and sums round
        near = lengths >= (1 - _SLACK) * lengths.max()
        blocks, sizes, largest = self.blocks[near], self.sizes[near], 0
        for k in range(1, blocks.shape[1]):
            gaps = (blocks[sizes > k, :k] - blocks[sizes > k, k : k + 1]).reshape(-1, blocks.shape[2])
            largest = max(largest, largest_squared_norm(gaps, self.exponent) if len(gaps) else 0)
        return largest


class ChoiceDesigns:
    """All designs of one repetition of one problem about choices; `rows` are the rows asked for, None for all n."""

    def __init__(self, store: FeatureStore, problem: Problem, n: int, repetition: int) -> None:
        self.repetition = repetition
        self._store, self._problem, self._n = store, problem, n
        self._known: dict[tuple[int, float | None, bytes | None], ChoiceDesign] = {}

    def get(self, exponent: int, radius: float | None, rows: Rows | None = None) -> ChoiceDesign:
        """The design on a grid, clipped at a radius or not."""
        key = (exponent, radius, None if rows is None else rows.tobytes())
        if key not in self._known:
            whole = self._store.rounded(self._problem, self._n, self.repetition, 0, self._n, exponent, radius)
            sizes = row_sizes(self._problem, 0, self._n)
            if rows is None:
                self._known[key] = ChoiceDesign(whole.rows, sizes, whole.weights, exponent)
            else:
                weights = None if whole.weights is None else whole.weights[rows]
                self._known[key] = ChoiceDesign(whole.rows[rows], sizes[rows], weights, exponent)
        return self._known[key]

    def sensitivity_squared(self, task: Task, design: ChoiceDesign) -> int:
        """The squared sensitivity of a central task in units of its grid; never below `SMALLEST_SENSITIVITY`.

        Raises ValueError for claims about labelers, and for rows whose differences need more than 2^53 units.
        """
        if task.exponent != design.exponent or task.unit is not Unit.LABEL or task.groups is not None:
            raise ValueError(f"expected one grid, and a claim for a label, got the unit {task.unit.label}")
        if only_mechanism(task).get("unprojected"):
            raise ValueError("expected projected choices, got unprojected ones")
        return max(design.sensitivity_squared, SMALLEST_SENSITIVITY**2)
