"""What an estimator of top choices is given, and what the estimators of one repetition share."""

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from server.choice_view import View
from server.estimators.newton import Minimum, Objective, descend
from server.kernels import Array
from server.kernels_choice import Sizes, choice_cumulant, choice_spread, mean_feature
from server.kernels_choice_reports import Marks, choice_likelihood
from server.kernels_solve import dot

_PILOT = 1000
_NONE = np.empty(0)


@dataclass(frozen=True, eq=False)
class ChoiceFeatures:
    """Public rounded blocks v (n, K, p) of rows with `sizes` (n,) choices; scales 1 / w (n,), empty: all one."""

    blocks: Array = field(repr=False)
    sizes: Sizes = field(repr=False)
    scales: Array = field(default_factory=lambda: _NONE, repr=False)

    def __post_init__(self) -> None:
        if self.blocks.ndim != 3 or 0 in self.blocks.shape or self.sizes.shape != self.blocks.shape[:1]:
            raise ValueError(f"expected blocks (n, K, p) and sizes (n,), got {self.blocks.shape} {self.sizes.shape}")
        if not np.isfinite(self.blocks).all() or self.sizes.min() < 2 or self.sizes.max() > self.blocks.shape[1]:
            raise ValueError(f"expected finite blocks, and sizes in 2..{self.blocks.shape[1]}")
        if self.scales.size and (self.scales.shape != self.sizes.shape or not self.scales.min() >= 1.0):
            raise ValueError("expected one scale 1 / w >= 1 for each row")

    @property
    def count(self) -> int:
        """Number of rows n."""
        return len(self.blocks)

    @property
    def dimension(self) -> int:
        """Number of coordinates p."""
        return int(self.blocks.shape[2])

    @cached_property
    def reach(self) -> Array:
        """max over rows and pairs of |x_j - x_k|, by coordinate, shape (p,)."""
        present = np.arange(self.blocks.shape[1]) < self.sizes[:, None]
        low = np.where(present[:, :, None], self.blocks, np.inf).min(axis=1)
        high = np.where(present[:, :, None], self.blocks, -np.inf).max(axis=1)
        widths: Array = high - low
        return np.asarray((widths * self.scales[:, None] if self.scales.size else widths).max(axis=0))

    def take(self, rows: slice) -> "ChoiceFeatures":
        """Some of the rows."""
        return ChoiceFeatures(self.blocks[rows], self.sizes[rows], self.scales[rows])

    def minimum(self, mean: Array, bound: float, ridge: float) -> Minimum:
        """argmin A(u) - mean . u + ridge ||u||^2 / 2 over ||u|| <= bound, A the mean log sum of exponentials.

        Raises EstimationError where bound is inf and there is no minimiser.
        Source: derived, see docs/CHOICES.md; A's third derivative along h is at most the width of h . x times its
        second, as for two choices, so `descend` proves what it proves there.
        """
        identity = np.eye(self.dimension)

        def objective(u: Array) -> tuple[float, Array, Array]:
            value, gradient, hessian = choice_cumulant(self.blocks, self.sizes, self.scales, u)
            value += 0.5 * ridge * dot(u, u) - dot(mean, u)
            return value, gradient - mean + ridge * u, hessian + ridge * identity

        return descend(objective, np.zeros(self.dimension), bound, self.reach, 1e-20, exact=True)


@dataclass(frozen=True, eq=False)
class ChoiceEvidence:
    """What the server holds about top choices in one repetition of one task, in reduced coordinates.

    marks (n, K), twice the g_k of `server.choice_view`, None in the central model; view: the law that the server asked
    for; total (p,): the curator's noisy sum of v_{i, y_i}, None elsewhere; noise_stddev: of each coordinate of it;
    summed (n, K, p): the blocks that it is a sum of, where these were rounded to a coarser grid than the features'.
    Raises ValueError for parts that do not fit.
    """

    features: ChoiceFeatures
    view: View
    marks: Marks | None = field(default=None, repr=False)
    total: NDArray[np.float64] | None = field(default=None, repr=False)
    noise_stddev: float = 0.0
    summed: NDArray[np.float64] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if (self.marks is None) == (self.total is None):
            raise ValueError("expected either reports or a curator's sum")
        if self.marks is not None:
            shape = self.features.blocks.shape[:2]
            if self.marks.dtype != np.uint8 or self.marks.shape != shape or self.marks.max() > 2:
                raise ValueError(f"expected uint8 marks 0, 1, 2 of shape {shape}, got {self.marks.dtype}")
            if self.features.scales.size:
                raise ValueError("expected labels without clipping weights, got weights: they belong to a central sum")
        if self.total is not None and not (self.total.shape == (self.features.dimension,)):
            raise ValueError(f"expected a sum of shape ({self.features.dimension},), got {self.total.shape}")
        if self.summed is not None and self.summed.shape != self.features.blocks.shape:
            raise ValueError(f"expected summed blocks of the features' shape, got {self.summed.shape}")
        if not 0.0 <= self.noise_stddev < math.inf:
            raise ValueError(f"expected a finite noise_stddev >= 0, got {self.noise_stddev}")


class ChoiceWorkspace:
    """One repetition's evidence with derived quantities, each computed once. Not safe for several threads."""

    def __init__(self, evidence: ChoiceEvidence) -> None:
        self.evidence = evidence
        self.features = evidence.features
        self._minima: dict[tuple[float, float], Minimum] = {}

    @cached_property
    def marks(self) -> Marks:
        """Reports as twice g; raises ValueError where the model holds none."""
        if self.evidence.marks is None:
            raise ValueError("expected evidence with reported labels, got a central sum: use mle")
        return self.evidence.marks

    @cached_property
    def shares(self) -> Array:
        """De-biased one-hot labels D_k = alpha + scale g_k, shape (n, K); absent choices have no meaning."""
        rule = self.evidence.view.shares[self.features.sizes]
        shares: Array = rule[:, :1] + rule[:, 1:] * (0.5 * self.marks)
        return shares

    @cached_property
    def mean(self) -> Array:
        """Mean de-biased feature of the label: (1/n) sum_i sum_k D_ik v_ik, or the curator's sum / n."""
        if self.evidence.total is not None:
            return self.evidence.total / self.features.count
        return mean_feature(self.features.blocks, self.features.sizes, self.shares)

    def minimum(self, bound: float, ridge: float) -> Minimum:
        """The de-biased minimiser."""
        if (bound, ridge) not in self._minima:
            self._minima[bound, ridge] = self.features.minimum(self.mean, bound, ridge)
        return self._minima[bound, ridge]

    def pilot(self, bound: float) -> Array:
        """The de-biased minimiser of the first min(n, 1000) reports."""
        head = self.features.take(slice(_PILOT))
        return head.minimum(mean_feature(head.blocks, head.sizes, self.shares[:_PILOT]), bound, 0.0).u

    def curvature(self, u: Array) -> Array:
        """A''(u), shape (p, p)."""
        return choice_cumulant(self.features.blocks, self.features.sizes, self.features.scales, u)[2]

    def score_variance(self, u: Array) -> Array:
        """n times the variance of `mean` given the features, at the parameter u, shape (p, p)."""
        features, noise = self.features, self.evidence.noise_stddev**2 / self.features.count
        spread = choice_spread(features.blocks, features.sizes, features.scales, self.evidence.view.spread, u)
        return spread + noise * np.eye(len(u))

    def likelihood(self, wanted: int, u: Array) -> tuple[float, Array, Array]:
        """Of the reports: see `server.kernels_choice_reports.choice_likelihood`."""
        view, features = self.evidence.view, self.features
        return choice_likelihood(features.blocks, features.sizes, self.marks, view.law, view.reports, wanted, u)


def penalised(objective: Objective, ridge: float) -> Objective:
    """The objective with ridge ||u||^2 / 2 added."""

    def ridged(u: Array) -> tuple[float, Array, Array]:
        value, gradient, curvature = objective(u)
        return value + 0.5 * ridge * dot(u, u), gradient + ridge * u, curvature + ridge * np.eye(len(u))

    return ridged
