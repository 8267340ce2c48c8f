"""Public features as the kernels take them, with what is computed from them alone."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from protocol.features import lift, project
from protocol.threads import spread
from server.estimators.graph_newton import MANY, joins
from server.estimators.row_sums import BLOCK, blocks, sums_over_rows
from server.kernels import Array, add_moment, largest, mean_moment
from server.kernels_logistic import add_cumulant, cumulant, variances
from server.kernels_pairs import Pairs, add_pair_moments, pair_cumulant, pair_differences, pair_likelihood
from server.kernels_randomized import add_likelihood, likelihood

_LEAST, _MOST = 2048, 65_536  # rows on which a fit starts: an eighth of all, within these
_NONE = np.empty(0)


class Passes(ABC):
    """Public features of n comparisons in p reduced coordinates, seen through sums over all rows."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(n, p)."""

    @property
    def count(self) -> int:
        """Number of rows n."""
        return self.shape[0]

    @property
    @abstractmethod
    def reach(self) -> Array:
        """At least max_i |x_ij| for every coordinate j, shape (p,)."""

    @property
    @abstractmethod
    def sample(self) -> "Features | None":
        """Evenly spaced rows, enough for a start, or None where all rows are few."""

    @property
    @abstractmethod
    def second_moment(self) -> Array:
        """(1/n) sum v_i v_i', shape (p, p)."""

    @property
    def dispersion(self) -> float:
        """The variance of a label where both are likely, over the curvature of its loss there."""
        return 1.0

    @property
    def drift(self) -> Callable[[float], float] | None:
        """How fast the logarithm of a row's curvature changes over |z| <= w, by w: see `server.estimators.newton`."""
        return None

    @abstractmethod
    def cumulant(self, u: Array) -> tuple[float, Array, Array]:
        """A(u) = (1/n) sum w_i log(2 cosh(u . x_i / 2)), with gradient (p,) and Hessian (p, p)."""

    def slope(self, u: Array) -> tuple[float, Array]:
        """A(u) and its gradient."""
        return self.cumulant(u)[:2]

    def score_variance(self, u: Array, hessian: Array, excess: float) -> Array:
        """(1/n) sum (sigma'(u . x_i) + excess) v_i v_i', shape (p, p); `hessian` is that of A near u."""
        return hessian + excess * self.second_moment if excess else hessian


def sample_step(count: int, p: int) -> int:
    """How far apart the rows of a sample are; 0 where all rows are few enough."""
    least = max(_LEAST, 20 * p)
    return count // max(least, min(count // 8, _MOST)) if count >= 4 * least else 0


class Features(Passes):
    """Rows v_i = w_i x_i in memory; scales 1 / w_i (n,), empty where all are one."""

    scales: Array

    @staticmethod
    def of(rows: Array, weights: Array | None) -> "Features":
        """From rows (n, p) and weights (n,), None where all are one."""
        return DenseFeatures(np.ascontiguousarray(rows), _NONE if weights is None else 1.0 / weights)

    @abstractmethod
    def likelihood(
        self, signs: Array, contrast: float, flip: float, observed: bool, u: Array
    ) -> tuple[float, Array, Array]:
        """Of reports about rows without weights: see `server.kernels_randomized.likelihood`."""

    @abstractmethod
    def moment(self, values: Array) -> Array:
        """(1/n) sum_i values_i v_i v_i', shape (p, p)."""

    @abstractmethod
    def variances(self, u: Array) -> Array:
        """sigma'(u . x_i), shape (n,)."""

    @abstractmethod
    def take(self, rows: slice | NDArray[np.intp]) -> Self:
        """Some of the rows."""

    def vouch_for(self, rows: Array) -> bool:
        """Whether these rows are known to be finite: nobody writes to them, and they were looked at before."""
        return False

    @cached_property
    def sample(self) -> Self | None:
        """Evenly spaced rows."""
        step = sample_step(*self.shape)
        return self.take(slice(None, None, step)) if step else None

    @cached_property
    def second_moment(self) -> Array:
        """(1/n) sum v_i v_i', shape (p, p)."""
        return self.moment(np.ones(self.count))

    def score_variance(self, u: Array, hessian: Array, excess: float) -> Array:
        """Row by row where rows have weights."""
        if self.scales.size:
            return self.moment(self.variances(u) + excess)
        return super().score_variance(u, hessian, excess)


@dataclass(frozen=True, eq=False)
class RowFeatures(Features):
    """Any rows (n, p), not copied; models of pairs differ in their passes."""

    rows: Array = field(repr=False)
    scales: Array = field(repr=False)

    @property
    def shape(self) -> tuple[int, int]:
        """(n, p)."""
        n, p = self.rows.shape
        return n, p

    @cached_property
    def reach(self) -> Array:
        """max_i |x_ij|."""
        found = spread(lambda rows: largest(self.rows[rows], self.scales[rows]), blocks(self.count))
        return np.asarray(np.max(found, axis=0))

    def vouch_for(self, rows: Array) -> bool:
        """Of its own rows."""
        return rows is self.rows and rows.dtype == np.float64 and not rows.flags.writeable and self._finite

    @cached_property
    def _finite(self) -> bool:
        return bool(np.isfinite(self.rows).all())

    def moment(self, values: Array) -> Array:
        """Of all coordinates of all rows."""
        if self.count <= BLOCK:
            return mean_moment(self.rows, values)

        def add(rows: slice, _: Array, moments: Array) -> float:
            add_moment(self.rows[rows], values[rows], moments)
            return 0.0

        return sums_over_rows(self.count, 0, self.shape[1], add).mean(self.count)[2]

    def take(self, rows: slice | NDArray[np.intp]) -> Self:
        """Some of the rows, copied; read-only as these are, since kernels are compiled for either."""
        copied = self.rows[rows].copy()
        copied.flags.writeable = self.rows.flags.writeable
        return replace(self, rows=copied, scales=_some(self.scales, rows))


@dataclass(frozen=True, eq=False)
class DenseFeatures(RowFeatures):
    """Rows under the logistic model, by compiled passes."""

    def cumulant(self, u: Array) -> tuple[float, Array, Array]:
        """Of all coordinates of all rows."""
        return self._cumulant(u, curved=True)

    def slope(self, u: Array) -> tuple[float, Array]:
        """Without the Hessian, which is half of a pass."""
        return self._cumulant(u, curved=False)[:2]

    def likelihood(
        self, signs: Array, contrast: float, flip: float, observed: bool, u: Array
    ) -> tuple[float, Array, Array]:
        """Of all coordinates of all rows."""
        if self.count <= BLOCK:
            return likelihood(self.rows, signs, contrast, flip, observed, u)

        def add(rows: slice, gradient: Array, moments: Array) -> float:
            return add_likelihood(self.rows[rows], signs[rows], contrast, flip, observed, u, 0.0, gradient, moments)

        return sums_over_rows(self.count, u.size, u.size, add).mean(self.count)

    def variances(self, u: Array) -> Array:
        """Of all rows."""
        return variances(self.rows, self.scales, u)

    def _cumulant(self, u: Array, curved: bool) -> tuple[float, Array, Array]:
        if self.count <= BLOCK:
            return cumulant(self.rows, self.scales, u, curved)

        def add(rows: slice, gradient: Array, moments: Array) -> float:
            return add_cumulant(self.rows[rows], self.scales[rows], u, 0.0, gradient, moments)

        return sums_over_rows(self.count, u.size, u.size if curved else 0, add).mean(self.count)


@dataclass(frozen=True, eq=False)
class PairFeatures(Features):
    """Comparisons of two out of many items whose scores sum to zero: x_i = Q'(e_second - e_first), pairs (n, 2).

    A pass costs some operations a row, and d^2 for all, instead of p^2 a row. These x_i are not rounded to a grid: the
    rounded ones that labels are summed on differ from them by a few parts in 10^13, far below any standard error.
    """

    pairs: Pairs = field(repr=False)
    items: int
    scales: Array = field(repr=False)

    @property
    def shape(self) -> tuple[int, int]:
        """(n, p)."""
        return len(self.pairs), self.items - 1

    @cached_property
    def is_graph(self) -> bool:
        """Whether minimisers are found without a Hessian: of many items, all of them joined by comparisons."""
        return self.items >= MANY and joins(self.pairs, self.items)

    @cached_property
    def reach(self) -> Array:
        """Column j of Q holds j entries 1 / sqrt(j (j + 1)), then -j / sqrt(j (j + 1)): they differ by this at most."""
        j = np.arange(1.0, self.items)
        return np.sqrt((j + 1) / j)

    def cumulant(self, u: Array) -> tuple[float, Array, Array]:
        """By item, then projected."""
        return _reduced(*pair_cumulant(self.pairs, self.scales, lift(u)))

    def likelihood(
        self, signs: Array, contrast: float, flip: float, observed: bool, u: Array
    ) -> tuple[float, Array, Array]:
        """By item, then projected."""
        return _reduced(*pair_likelihood(self.pairs, signs, contrast, flip, observed, lift(u)))

    def moment(self, values: Array) -> Array:
        """By item, then projected."""
        moments = np.zeros((self.items, self.items))
        add_pair_moments(self.pairs, 0, values / self.scales**2 if self.scales.size else values, moments)
        return _projected(moments / self.count)

    def variances(self, u: Array) -> Array:
        """Of all rows."""
        return variances(pair_differences(self.pairs, lift(u))[:, None], _NONE, np.ones(1))

    def take(self, rows: slice | NDArray[np.intp]) -> Self:
        """Some of the rows, copied."""
        return type(self)(self.pairs[rows].copy(), self.items, _some(self.scales, rows))


def _some(scales: Array, rows: slice | NDArray[np.intp]) -> Array:
    return scales[rows].copy() if scales.size else scales


def _reduced(value: float, gradient: Array, moments: Array) -> tuple[float, Array, Array]:
    return value, project(gradient[None, :])[0], _projected(moments)


def _projected(moments: Array) -> Array:
    """Q' M Q of a symmetric M (d, d), elementwise: no result depends on a library's order of sums."""
    half = project(project(moments).T)
    symmetric: Array = 0.5 * (half + half.T)
    return symmetric
