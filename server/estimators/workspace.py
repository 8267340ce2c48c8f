"""What the estimators of one repetition share: arranged features and minimisers that start others.

Nothing here outlives its evidence, so no estimate can depend on another task, epsilon or release; and a minimiser is
the same bits whether another arm asked for it before or not.
"""

from contextlib import suppress
from functools import cached_property

import numpy as np

from server.estimators.base import Evidence, wins
from server.estimators.features import Features
from server.estimators.newton import EstimationError, Minimum, Objective, descend
from server.kernels import Array
from server.kernels_solve import dot


class Workspace:
    """One repetition's evidence with derived quantities, each computed once. Not safe for several threads."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.features = evidence.features or Features.of(evidence.rows, evidence.weights)
        self._minima: dict[tuple[float, float, float], Minimum] = {}

    @cached_property
    def signs(self) -> Array:
        """Reported labels as -1 and 1, clear ties as 0, shape (n,); raises ValueError where the model holds none."""
        if self.evidence.symbols is None:
            raise ValueError("expected evidence with reported labels, got a central sum: use mle")
        if self.evidence.weights is not None:
            raise ValueError("expected labels without clipping weights, got weights: they belong to a central sum")
        return 2.0 * wins(self.evidence.symbols) - 1.0

    def minimum(self, contrast: float, bound: float, ridge: float) -> Minimum:
        """argmin A(u) - S . u / (n contrast) + ridge ||u||^2 / 2 over ||u|| <= bound, S = half_sum."""
        key = (contrast, bound, ridge)
        if key not in self._minima:
            self._minima[key] = logistic_minimum(self.features, self._mean(contrast), bound, ridge)
        return self._minima[key]

    def rough_minimum(self, contrast: float, bound: float, ridge: float) -> Array:
        """The same minimiser with A averaged over a sample of the rows, where these are many: a cheap start."""
        return logistic_minimum(self.features.sample or self.features, self._mean(contrast), bound, ridge).u

    def pilot(self, bound: float) -> Array:
        """The de-biased minimiser of the first min(n, 1000) reports."""
        head = self.features.take(slice(1000))
        half_sum = 0.5 * (self.signs[: head.count] @ self.evidence.rows[: head.count])
        return logistic_minimum(head, half_sum / (head.count * self.evidence.contrast), bound, 0.0).u

    def _mean(self, contrast: float) -> Array:
        return self.evidence.half_sum / (self.features.count * contrast)


def logistic_minimum(features: Features, mean: Array, bound: float, ridge: float) -> Minimum:
    """argmin A(u) - mean . u + ridge ||u||^2 / 2 over ||u|| <= bound, to a decrement of 1e-20.

    Starts at the minimiser with A averaged over a sample of rows, where there are many.
    Raises EstimationError where bound is inf and there is no minimiser.
    Source: Chowdhury, Zhou, Natarajan 2024, equation (6), in the form derived in docs/ESTIMATORS.md.
    """
    start = np.zeros(len(mean))
    if features.sample is not None:
        with suppress(EstimationError):  # a sample may lack what all rows have
            start = logistic_minimum(features.sample, mean, bound, ridge).u
    return descend(_penalised(features, mean, ridge), start, bound, features.reach, 1e-20, exact=True)


def _penalised(features: Features, mean: Array, ridge: float) -> Objective:
    identity = np.eye(len(mean))

    def objective(u: Array) -> tuple[float, Array, Array]:
        value, gradient, hessian = features.cumulant(u)
        value += 0.5 * ridge * dot(u, u) - dot(mean, u)
        return value, gradient - mean + ridge * u, hessian + ridge * identity

    return objective
