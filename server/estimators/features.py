"""Public features as the kernels take them, with what is computed from them alone."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np

from server.kernels import Array, mean_moment
from server.kernels_logistic import cumulant, variances

_SAMPLE = 2048  # rows on which a fit starts, where there are four times as many


@dataclass(frozen=True, eq=False)
class Features:
    """Rows v_i = w_i x_i as columns (p, n), with scales 1 / w_i (n,), or an empty array where all are one."""

    columns: Array = field(repr=False)
    scales: Array = field(repr=False)

    @classmethod
    def of(cls, rows: Array, weights: Array | None) -> Self:
        """From rows (n, p) and weights (n,), None where all are one."""
        return cls(np.array(rows.T, order="C"), np.empty(0) if weights is None else 1.0 / weights)

    @property
    def count(self) -> int:
        """Number of rows n."""
        return len(self.columns[0])

    @cached_property
    def reach(self) -> Array:
        """max_i |x_ij| for every feature j, shape (p,)."""
        sizes = np.abs(self.columns)
        if self.scales.size:
            sizes *= self.scales
        largest: Array = sizes.max(axis=1)
        return largest

    @cached_property
    def second_moment(self) -> Array:
        """(1/n) sum v_i v_i', shape (p, p)."""
        return mean_moment(self.columns, np.ones(self.count))

    @cached_property
    def sample(self) -> Self | None:
        """Evenly spaced rows, enough for a start, or None where all rows are few."""
        rows = max(_SAMPLE, 20 * len(self.columns))
        return self._take(slice(None, None, self.count // rows)) if self.count >= 4 * rows else None

    def head(self, count: int) -> Self:
        """The first rows, at most `count`."""
        return self._take(slice(count))

    def _take(self, rows: slice) -> Self:
        return type(self)(np.ascontiguousarray(self.columns[:, rows]), self.scales[rows].copy())

    def cumulant(self, u: Array) -> tuple[float, Array, Array]:
        """A(u) = (1/n) sum w_i log(2 cosh(u . x_i / 2)), with gradient (p,) and Hessian (p, p)."""
        return cumulant(self.columns, self.scales, u)

    def score_variance(self, u: Array, hessian: Array, excess: float) -> Array:
        """(1/n) sum (sigma'(u . x_i) + excess) v_i v_i', shape (p, p); `hessian` is that of A near u."""
        if self.scales.size:
            return mean_moment(self.columns, variances(self.columns, self.scales, u) + excess)
        return hessian + excess * self.second_moment if excess else hessian
