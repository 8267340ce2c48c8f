"""Pairs under any symmetric model F: passes over all rows, and the estimators that are not those of the logistic one.

Passes are elementwise over all rows and then sum in the fixed tiles of the kernels: a result depends on the rows alone.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from protocol.links import Link
from protocol.warned import warn
from server.estimators.base import Estimate, Options
from server.estimators.features import RowFeatures
from server.estimators.minimiser import debiased
from server.estimators.newton import EstimationError
from server.estimators.randomized import rr_map, rr_mle
from server.estimators.workspace import Reports, Workspace
from server.kernels import Array, fold, indices, mean_product
from server.kernels_solve import dot, norm, project_on_ball


@dataclass(frozen=True, eq=False)
class LinkedFeatures(RowFeatures):
    """Rows v_i = w_i x_i (n, p) under a model F, with density f; scales 1 / w_i (n,), empty: all one.

    A(u) = (1/n) sum w_i G(z_i), G the integral of F - 1/2: the label-free part of the matching loss.
    """

    link: Link

    @property
    def dispersion(self) -> float:
        """1 / (4 f(0))."""
        return 0.25 / float(self.link.density(np.zeros(1))[0])

    @property
    def drift(self) -> Callable[[float], float]:
        """That of F."""
        return self.link.drift

    def cumulant(self, u: Array) -> tuple[float, Array, Array]:
        """A(u), (1/n) sum (F(z_i) - 1/2) v_i and (1/n) sum f(z_i) v_i v_i' / w_i."""
        z = self._index(u)
        values, curvature = self.link.primitive(z), self.link.density(z)
        if self.scales.size:
            values, curvature = values / self.scales, curvature * self.scales
        gradient = mean_product(self.rows, self.link.cdf(z) - 0.5)
        return fold(values, self.count) / self.count, gradient, self.moment(curvature)

    def likelihood(
        self, signs: Array, contrast: float, flip: float, observed: bool, u: Array
    ) -> tuple[float, Array, Array]:
        """Negative mean log-likelihood of reports: q = flip + contrast F(sign z), with r(z) = contrast f / q.

        First derivative -sign r(sign z); second r(z) r(-z) where expected, r (r - f'/f) at sign z where `observed`.
        """
        toward = signs * self._index(u)
        rate = self._rate(toward, contrast, flip)
        value = -fold(self._log_chance(toward, contrast, flip), self.count) / self.count
        other = rate - self.link.tilt(toward) if observed else self._rate(-toward, contrast, flip)
        return value, mean_product(self.rows, -signs * rate), self.moment(rate * other)

    def variances(self, u: Array) -> Array:
        """F (1 - F) at u . x_i."""
        return self.link.variance(self._index(u))

    def score_variance(self, u: Array, hessian: Array, excess: float) -> Array:
        """Row by row: the variance of a label is not the curvature of its loss."""
        return self.moment(self.variances(u) + excess)

    def information(self, u: Array) -> Array:
        """(1/n) sum f^2 / (F (1 - F)) v_i v_i': what clear labels say about rows without weights."""
        return self.moment(self.link.information(self._index(u)))

    def _index(self, u: Array) -> Array:
        z = indices(self.rows, u)
        return z * self.scales if self.scales.size else z

    def _rate(self, z: Array, contrast: float, flip: float) -> Array:
        """contrast f / q; without flips lambda, whose tails do not vanish."""
        rate: Array = self.link.hazard(z)
        return rate * (contrast * self.link.cdf(z) / (flip + contrast * self.link.cdf(z))) if np.any(flip) else rate

    def _log_chance(self, z: Array, contrast: float, flip: float) -> Array:
        return np.log(flip + contrast * self.link.cdf(z)) if np.any(flip) else self.link.log_cdf(z)


def matching(known: Reports, options: Options) -> Estimate:
    """Minimiser of the matching loss: of clear labels, of randomised ones, or of the curator's noisy sum.

    argmin over ||u|| <= bound of A(u) - S . u / (n c) + ridge ||u||^2 / 2, c = contrast: per row the integral of F up
    to z, less the de-biased label times z. Convex at every epsilon for every F, and labels enter through S alone.
    Guarantee: that of the reported labels or of S; this is post-processing.
    Covariance: (H^-1 V H^-1 + H^-1 C H^-1 / (n c^2)) / n with H = (1/n) sum f(z_i) v_i v_i' / w_i + ridge I and
    V = (1/n) sum (F (1 - F) + flip keep / c^2) v_i v_i', C that of the curator's noise; None as for `debiased`.
    Raises EstimationError where bound is inf and there is no minimiser.
    Source: derived, see docs/ESTIMATORS.md.
    """
    return debiased(known, options)


def mle(known: Reports, options: Options) -> Estimate:
    """Maximum likelihood from clear labels: -(1/n) sum log F(+-z_i), downhill from the minimiser of `matching`.

    Convex where F is log-concave; for "cauchy" the start decides which valley is found.
    Covariance: I^-1 / n, I = (1/n) sum f^2 / (F (1 - F)) v_i v_i'.
    Raises ValueError for randomised labels and for ties, EstimationError where bound is inf and there is no minimiser.
    Source: Chowdhury, Zhou, Natarajan 2024, Section 2; covariance: derived, see docs/ESTIMATORS.md.
    """
    _insist_on_clear(known, "mle", "rr-mle")
    return rr_mle(known, options)


def sgd(known: Reports, options: Options) -> Estimate:
    """`debiased_sgd` on clear labels. Raises ValueError for randomised ones, and what that raises."""
    _insist_on_clear(known, "sgd", "debiased-sgd")
    return debiased_sgd(known, options)


def debiased_sgd(known: Reports, options: Options) -> Estimate:
    """Last iterate of one pass over the reports in row order, down the de-biased log-loss.

    u <- Proj(u - eta_t `residual` v_t), eta_t = 1 / (alpha c t), alpha = options.step, or the least eigenvalue of the
    information of clear labels at the minimiser of `matching` on the first 1000 reports. The expected gradient is
    c (F(z) - F(z*)) f / (F (1 - F)) v; a gradient is at most ||v|| lambda(-2 L B) long where F is log-concave.
    Guarantee: that of the reported labels; this is post-processing. No covariance: see the one of the logistic model.
    The loss is not convex: see docs/ESTIMATORS.md. Raises EstimationError without a ball, where the first steps would
    be without limit; ValueError for evidence without labels, or features that do not span the space.
    Source: Chowdhury, Zhou, Natarajan 2024, equation (10) and Algorithm 1, for the model of its Section 2.
    """
    if math.isinf(options.bound):
        raise EstimationError("expected a finite bound for descent in this model: its gradients grow with ||u||")
    assert isinstance(known, Workspace) and isinstance(known.features, LinkedFeatures)
    link, alpha = known.features.link, options.step
    if isinstance(alpha, str):
        information = known.features.information(known.pilot(options.bound))
        alpha = float(np.linalg.eigvalsh(information)[0])
        if not alpha > 1e-12 * float(information.trace()):
            raise ValueError(f"expected features that span the space for a pilot step, got {alpha}: give a number")
    u, t = np.zeros(known.dimension), 0
    for columns, symbols in known.chunks():
        for row, symbol in zip(np.ascontiguousarray(columns.T), symbols.tolist(), strict=True):
            t += 1
            slope = residual(link, dot(u, row), symbol, known.contrast, known.flip)
            u -= slope / (alpha * known.contrast * t) * row
            project_on_ball(u, options.bound)
    concave = warn("not-convex", "the de-biased log-loss of this model is not convex: use matching")
    warnings = () if known.contrast == 1.0 else (concave,)
    return Estimate(u, None, norm(u) >= options.bound * (1.0 - 1e-9), warnings, 1, math.nan)


def residual(link: Link, z: float, symbol: float, contrast: float, flip: float) -> float:
    """Derivative in z of a report's un-normalised de-biased log-loss.

    (flip - y) lambda(z) + (keep - y) lambda(-z), y = symbol: that is -keep lambda(z) - flip lambda(-z) for y = 1 and
    keep lambda(-z) + flip lambda(z) for y = 0; of the logistic model c sigma(z) - (y - flip).
    """
    ahead, behind = link.hazard(np.array((z, -z))).tolist()
    return float((flip - symbol) * ahead + (flip + contrast - symbol) * behind)


def _insist_on_clear(known: Reports, name: str, other: str) -> None:
    if known.contrast != 1.0:
        raise ValueError(f"expected clear labels for {name}, got contrast {known.contrast}: use {other}")


LINK_ESTIMATORS: dict[str, Callable[[Workspace, Options], Estimate]] = {
    "mle": mle,
    "matching": matching,
    "sgd": sgd,
    "debiased-sgd": debiased_sgd,
    "rr-mle": rr_mle,
    "rr-map": rr_map,
}
