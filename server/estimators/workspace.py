"""What the estimators of one repetition share: arranged features and minimisers that start others.

Nothing here outlives its release, so no estimate can depend on another task, epsilon or release; and a minimiser is
the same bits whether another arm asked for it before or not.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property

import numpy as np

from server.estimators.base import Evidence, wins
from server.estimators.features import Features, Passes
from server.estimators.newton import EstimationError, Minimum, Objective, descend
from server.kernels import Array
from server.kernels_solve import dot

PILOT = 1000  # reports


class Reports(ABC):
    """One release as estimators see it: public features, what was reported, and passes over both.

    features; half_sum (p,) = sum_i (y_i - 1/2) v_i of what was reported; contrast, flip and noise_stddev: of the
    channel, see `Evidence`. Not safe for several threads.
    """

    features: Passes
    half_sum: Array
    contrast: float
    flip: float
    noise_stddev: float

    def __init__(self) -> None:
        self._minima: dict[tuple[float, float, float], Minimum] = {}

    @abstractmethod
    def likelihood(self, observed: bool, u: Array) -> tuple[float, Array, Array]:
        """Negative mean log-likelihood of the reports, its gradient, and expected or `observed` information.

        Raises ValueError where there are no reports, or clear ties: see `server.kernels_randomized:likelihood`.
        """

    @abstractmethod
    def chunks(self) -> Iterator[tuple[Array, Array]]:
        """Rows in their order, in parts: columns (p, m) and reports y (m,), a tie 1/2."""

    @abstractmethod
    def head(self) -> "Reports":
        """The first reports, at most 1000."""

    @property
    def count(self) -> int:
        """Number of rows n."""
        return self.features.count

    @property
    def dimension(self) -> int:
        """Number of reduced coordinates p."""
        return self.features.shape[1]

    def minimum(self, contrast: float, bound: float, ridge: float) -> Minimum:
        """argmin A(u) - S . u / (n contrast) + ridge ||u||^2 / 2 over ||u|| <= bound, S = half_sum."""
        key = (contrast, bound, ridge)
        if key not in self._minima:
            self._minima[key] = logistic_minimum(self.features, self.mean(contrast), bound, ridge)
        return self._minima[key]

    def rough_minimum(self, contrast: float, bound: float, ridge: float) -> Array:
        """The same minimiser with A averaged over a sample of the rows, where these are many: a cheap start."""
        return logistic_minimum(self.features.sample or self.features, self.mean(contrast), bound, ridge).u

    def pilot(self, bound: float) -> Array:
        """The de-biased minimiser of the first min(n, 1000) reports."""
        return self.head().minimum(self.contrast, bound, 0.0).u

    def mean(self, contrast: float) -> Array:
        """S / (n contrast)."""
        return self.half_sum / (self.count * contrast)


class Workspace(Reports):
    """One repetition's evidence with derived quantities, each computed once."""

    features: Features

    def __init__(self, evidence: Evidence) -> None:
        super().__init__()
        self.evidence = evidence
        self.features = evidence.features or Features.of(evidence.rows, evidence.weights)
        self.half_sum, self.noise_stddev = evidence.half_sum, evidence.noise_stddev
        self.contrast, self.flip = evidence.contrast, evidence.flip

    @cached_property
    def signs(self) -> Array:
        """Reported labels as -1 and 1, clear ties as 0, shape (n,); raises ValueError where the model holds none."""
        if self.evidence.symbols is None:
            raise ValueError("expected evidence with reported labels, got a central sum: use mle")
        if self.evidence.weights is not None:
            raise ValueError("expected labels without clipping weights, got weights: they belong to a central sum")
        return 2.0 * wins(self.evidence.symbols) - 1.0

    def likelihood(self, observed: bool, u: Array) -> tuple[float, Array, Array]:
        """Of all reports at once."""
        if not self.signs.all():
            raise ValueError("expected reports without ties, got clear ones: use mle")
        return self.features.likelihood(self.signs, self.contrast, self.flip, observed, u)

    def chunks(self) -> Iterator[tuple[Array, Array]]:
        """All rows in one part."""
        symbols = 0.5 * (self.signs + 1.0)
        yield np.ascontiguousarray(self.evidence.rows.T), symbols

    def head(self) -> "Workspace":
        """The first reports."""
        signs = self.signs[:PILOT]
        rows = self.evidence.rows[: len(signs)]
        symbols = None if self.evidence.symbols is None else self.evidence.symbols[: len(signs)]
        features = self.features.take(slice(PILOT))
        return Workspace(Evidence(rows, None, symbols, 0.5 * (signs @ rows), self.contrast, self.flip, 0.0, features))


def logistic_minimum(features: Passes, mean: Array, bound: float, ridge: float) -> Minimum:
    """argmin A(u) - mean . u + ridge ||u||^2 / 2 over ||u|| <= bound, to a decrement of 1e-20.

    Starts at the minimiser with A averaged over a sample of rows, where there are many.
    Raises EstimationError where bound is inf and there is no minimiser.
    Source: Chowdhury, Zhou, Natarajan 2024, equation (6), in the form derived in docs/ESTIMATORS.md.
    """
    start = np.zeros(len(mean))
    if features.sample is not None:
        with suppress(EstimationError):  # a sample may lack what all rows have
            start = logistic_minimum(features.sample, mean, bound, ridge).u
    return descend(penalised(features, mean, ridge), start, bound, features.reach, 1e-20, exact=True)


def penalised(features: Passes, mean: Array, ridge: float) -> Objective:
    """A(u) - mean . u + ridge ||u||^2 / 2 with its derivatives."""
    identity = np.eye(len(mean))

    def objective(u: Array) -> tuple[float, Array, Array]:
        value, gradient, hessian = features.cumulant(u)
        value += 0.5 * ridge * dot(u, u) - dot(mean, u)
        return value, gradient - mean + ridge * u, hessian + ridge * identity

    return objective
