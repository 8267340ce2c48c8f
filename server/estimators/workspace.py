"""What the estimators of one repetition share: arranged features and minimisers that start others.

Nothing here outlives its release, so no estimate can depend on another task, epsilon or release; and a minimiser is
the same bits whether another arm asked for it before or not.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocol.coins import Address
from protocol.terms import TIE
from server.estimators.base import Evidence, wins
from server.estimators.features import Features, PairFeatures, Passes
from server.estimators.graph_newton import graph_minimum
from server.estimators.newton import EstimationError, Minimum, Objective, descend
from server.kernels import Array
from server.kernels_randomized import chances
from server.kernels_solve import dot, project_on_ball

PILOT = 1000  # reports
Start = tuple[Array, Array | None]  # where a descent begins, and about the curvature there


class Reports(ABC):
    """One release as estimators see it: public features, what was reported, and passes over both.

    features; half_sum (p,) = sum_i (y_i - 1/2) v_i of what was reported; contrast, flip, third, noise_stddev and
    noise_factor: of the channel, see `Evidence`. Not safe for several threads.
    """

    features: Passes
    half_sum: Array
    contrast: float
    flip: float
    noise_stddev: float
    noise_factor: Array | None = None
    third: float = 0.0

    def __init__(self) -> None:
        self._minima: dict[tuple[float, float, float], Minimum] = {}

    @abstractmethod
    def likelihood(self, observed: bool, u: Array) -> tuple[float, Array, Array]:
        """Negative mean log-likelihood of the reports, its gradient, and expected or `observed` information.

        Raises ValueError where there are no reports, or they may be ties: see `server.kernels_randomized:likelihood`.
        """

    def score_variance(self, u: Array, hessian: Array) -> Array:
        """(1/n) sum over rows of the variance of a de-biased report times v_i v_i', where the model holds at u.

        `hessian` (p, p) is that of A near u.
        """
        excess = self.flip * (self.flip + self.contrast) / self.contrast**2
        return self.features.score_variance(u, hessian, excess)

    @abstractmethod
    def chunks(self) -> Iterator[tuple[Array, Array]]:
        """Rows in their order, in parts: columns (p, m) and reports y (m,), a tie 1/2."""

    @abstractmethod
    def head(self) -> "Reports":
        """The first reports, at most 1000."""

    @property
    def coins(self) -> Address | None:
        """Where a bootstrap finds its coins; None where there are none."""
        return None

    @property
    def clearest(self) -> float:
        """The largest contrast of a report."""
        return self.contrast

    def stretches(self) -> Iterator[tuple[Array, Array, float, float, float]]:
        """`chunks`, each with contrast, flip, and its age: how many reports of that channel were worth those before."""
        done = 0
        for columns, symbols in self.chunks():
            yield columns, symbols, self.contrast, self.flip, done
            done += len(symbols)

    def alike(self) -> "Reports":
        """What weighs every report alike, whatever its channel says."""
        return self

    def plain(self) -> "Reports":
        """What takes the reports for clear labels, all alike."""
        return self

    def chances(self, u: Array) -> Array:
        """P(report = 1) of every row at u, shape (n,). Raises ValueError where reports are not in memory, or tie."""
        raise ValueError('expected reports in memory for interval = "bootstrap", got a stream: use "wald"')

    def answering(self, symbols: NDArray[np.uint8]) -> "Reports":
        """The same rows with other reports. Raises ValueError where reports are not in memory."""
        raise ValueError("expected reports in memory, got a stream")

    @property
    def count(self) -> int:
        """Number of rows n."""
        return self.features.count

    @property
    def dimension(self) -> int:
        """Number of reduced coordinates p."""
        return self.features.shape[1]

    def minimum(self, contrast: float, bound: float, ridge: float, start: Array | None = None) -> Minimum:
        """argmin A(u) - S . u / (n contrast) + ridge ||u||^2 / 2 over ||u|| <= bound, S = half_sum.

        With a start of the caller's the last digits are those of that start, and are kept for nobody else.
        """
        if start is not None:
            return self.of_mean(self.mean(contrast), bound, ridge, start)
        key = (contrast, bound, ridge)
        if key not in self._minima:
            self._minima[key] = self.of_mean(self.mean(contrast), bound, ridge)
        return self._minima[key]

    def of_mean(self, mean: Array, bound: float, ridge: float, start: Array | None = None) -> Minimum:
        """argmin A(u) - mean . u + ridge ||u||^2 / 2 over ||u|| <= bound."""
        return logistic_minimum(self.features, mean, bound, ridge, start)

    def rough_minimum(self, contrast: float, bound: float, ridge: float) -> Array:
        """The same minimiser with A averaged over a sample of the rows, where these are many: a cheap start."""
        if self.features.sample is not None:
            with suppress(EstimationError):  # a sample may lack what all rows have
                return sample_minimum(self.features.sample, self.mean(contrast), bound, ridge).u
        return self.minimum(contrast, bound, ridge).u

    def pilot(self, bound: float) -> Array:
        """The de-biased minimiser of the first min(n, 1000) reports."""
        return self.head().minimum(self.contrast, bound, 0.0).u

    @cached_property
    def noise(self) -> Array:
        """The covariance of the curator's noise on half_sum, shape (p, p)."""
        factor = np.eye(self.dimension) if self.noise_factor is None else self.noise_factor
        covariance: Array = self.noise_stddev**2 * (factor @ factor.T)
        return covariance

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
        self.noise_factor = evidence.noise_factor
        self.contrast, self.flip, self.third = evidence.contrast, evidence.flip, evidence.third

    @cached_property
    def signs(self) -> Array:
        """Reported labels as -1 and 1, ties as 0, shape (n,); raises ValueError where the model holds none."""
        if self.evidence.symbols is None:
            raise ValueError("expected evidence with reported labels, got a central sum: use mle")
        if self.evidence.weights is not None:
            raise ValueError("expected labels without clipping weights, got weights: they belong to a central sum")
        signs = self.evidence.symbols.astype(np.float64)
        signs *= 2.0
        signs -= 1.0
        signs[self.evidence.symbols == TIE] = 0.0
        return signs

    @cached_property
    def tied(self) -> str:
        """What to use in place of a law of two symbols, where a report is a clear tie or can be a randomised one.

        Empty where it is not. Of randomised ties that does not depend on whether there are some. Raises what `signs`
        raises.
        """
        if self.third:
            return "randomised ones: use debiased"
        return "" if self.signs.all() else "clear ones: use mle"

    def likelihood(self, observed: bool, u: Array) -> tuple[float, Array, Array]:
        """Of all reports at once."""
        if self.tied:
            raise ValueError(f"expected reports without ties, got {self.tied}")
        return self.features.likelihood(self.signs, self.contrast, self.flip, observed, u)

    def score_variance(self, u: Array, hessian: Array) -> Array:
        """Of randomised ties by what was reported: (y - 1/2)^2 is 1/4, or 0 of a tie, without any model of ties."""
        if not self.third:
            return super().score_variance(u, hessian)
        squares = np.where(self.signs == 0.0, 0.0, 0.25 / self.contrast**2)
        own: Array = self.features.score_variance(u, hessian, 0.0) + self.features.moment(squares - 0.25)
        return own

    def chunks(self) -> Iterator[tuple[Array, Array]]:
        """All rows in one part."""
        symbols = 0.5 * (self.signs + 1.0)
        yield np.ascontiguousarray(self.evidence.rows.T), symbols

    @property
    def coins(self) -> Address | None:
        """Those of the evidence."""
        return self.evidence.coins

    def chances(self, u: Array) -> Array:
        """flip + contrast sigma(u . v_i)."""
        if self.tied:
            raise ValueError('expected reports without ties for interval = "bootstrap", got some: use "wald"')
        return chances(np.ascontiguousarray(self.evidence.rows), self.contrast, self.flip, u)

    def answering(self, symbols: NDArray[np.uint8]) -> "Workspace":
        """The same rows with other reports."""
        half_sum = (wins(symbols) - 0.5) @ self.evidence.rows
        return Workspace(replace(self.evidence, symbols=symbols, half_sum=half_sum, features=self.features, coins=None))

    def head(self) -> "Workspace":
        """The first reports."""
        signs = self.signs[:PILOT]
        rows = self.evidence.rows[: len(signs)]
        symbols = None if self.evidence.symbols is None else self.evidence.symbols[: len(signs)]
        features = self.features.take(slice(PILOT))
        half_sum, law = 0.5 * (signs @ rows), (self.contrast, self.flip, 0.0)
        return Workspace(Evidence(rows, None, symbols, half_sum, *law, features, third=self.third))


def logistic_minimum(features: Passes, mean: Array, bound: float, ridge: float, start: Array | None = None) -> Minimum:
    """argmin A(u) - mean . u + ridge ||u||^2 / 2 over ||u|| <= bound, to a decrement of 1e-20.

    Starts at `start`, else at the minimiser with A averaged over a sample of rows, where there are many.
    Raises EstimationError where bound is inf and there is no minimiser, ValueError for a start that is none.
    Source: Chowdhury, Zhou, Natarajan 2024, equation (6), in the form derived in docs/ESTIMATORS.md.
    """
    if isinstance(features, PairFeatures) and features.is_graph:
        given = None if start is None else inside(start, len(mean), bound)
        return graph_minimum(features.pairs, features.scales, features.items, mean, bound, ridge, given)
    begin = _begin(features, mean, bound, ridge) if start is None else (inside(start, len(mean), bound), None)
    return _descended(features, mean, bound, ridge, begin, 1e-20)


def sample_minimum(sample: Features, mean: Array, bound: float, ridge: float) -> Minimum:
    """The minimum over a sample, to a thousandth of what a sample of that size leaves open."""
    if isinstance(sample, PairFeatures) and sample.is_graph:
        return logistic_minimum(sample, mean, bound, ridge)
    begin = _begin(sample, mean, bound, ridge)
    return _descended(sample, mean, bound, ridge, begin, 1e-3 / sample.count)


def _begin(features: Passes, mean: Array, bound: float, ridge: float) -> Start:
    if features.sample is not None:
        with suppress(EstimationError):  # a sample may lack what all rows have
            found = sample_minimum(features.sample, mean, bound, ridge)
            return found.u, found.curvature if found.converged and found.curvature.size else None
    return np.zeros(len(mean)), None


def _descended(features: Passes, mean: Array, bound: float, ridge: float, begin: Start, tolerance: float) -> Minimum:
    (start, nearby), objective, reach = begin, penalised(features, mean, ridge), features.reach

    def slope(u: Array) -> tuple[float, Array]:
        value, gradient = features.slope(u)
        return value + 0.5 * ridge * dot(u, u) - dot(mean, u), gradient - mean + ridge * u

    cheaper = slope if features.sample is not None else None  # of few rows all looks are cheap
    looks: dict[str, Any] = {"drift": features.drift, "slope": cheaper, "nearby": nearby}
    return descend(objective, start, bound, reach, tolerance, exact=True, **looks)


def inside(start: Array, p: int, bound: float) -> Array:
    """A start of the caller's, moved into the ball; raises ValueError for a wrong shape, NaN or inf."""
    if start.shape != (p,) or not np.isfinite(start).all():
        raise ValueError(f"expected a finite start of shape ({p},), got {start}")
    begin = start.astype(np.float64)
    project_on_ball(begin, bound)
    return begin


def penalised(features: Passes, mean: Array, ridge: float) -> Objective:
    """A(u) - mean . u + ridge ||u||^2 / 2 with its derivatives."""
    identity = np.eye(len(mean)) if ridge != 0.0 else None

    def objective(u: Array) -> tuple[float, Array, Array]:
        value, gradient, hessian = features.cumulant(u)
        if identity is None:
            return value - dot(mean, u), gradient - mean, hessian
        value += 0.5 * ridge * dot(u, u) - dot(mean, u)
        return value, gradient - mean + ridge * u, hessian + ridge * identity

    return objective
