"""Estimators that minimise A(u) - s . u: they see labels through one sum only."""

import numpy as np

from server.estimators.base import Estimate, Options
from server.estimators.bootstrap import with_replicas
from server.estimators.covariance import NoInterval, refuse_biased, sandwich, with_interval
from server.estimators.newton import Minimum
from server.estimators.prior import ridge_of
from server.estimators.workspace import Reports
from server.kernels import Array

_LARGEST = 4000  # coordinates of a covariance: 128 MB a matrix


def mle(known: Reports, options: Options, start: Array | None = None) -> Estimate:
    """Maximum likelihood from clear labels, or from the curator's noisy sum (objective perturbation).

    argmin over ||u|| <= bound of A(u) - S . u / n + ridge ||u||^2 / 2, A(u) = (1/n) sum w_i log(2 cosh(z_i / 2)),
    z_i = u . v_i / w_i, S = half_sum.
    Guarantee: that of S; this is post-processing of S and of public features.
    Covariance: that of `debiased` at contrast 1; H and V differ where rows have clipping weights.
    Raises ValueError for randomised labels, EstimationError where bound is inf and there is no minimiser.
    Source: Chowdhury, Zhou, Natarajan 2024, Algorithm 2; as a function of S: derived, see docs/ESTIMATORS.md.
    """
    if known.contrast != 1.0:
        raise ValueError(f"expected clear or central evidence for mle, got contrast {known.contrast}: use debiased")
    return debiased(known, options, start)


def debiased(known: Reports, options: Options, start: Array | None = None) -> Estimate:
    """Minimiser of the de-biased loss of randomised labels.

    argmin over ||u|| <= bound of A(u) - S . u / (n c) + ridge ||u||^2 / 2, c = contrast; options.ridge "tempered" is
    the Gaussian prior's: see `server.estimators.prior:ridge_of`. `start` (p,): where to begin, for instance at the
    estimate with a neighbouring ridge or bound; of the same release only, or last digits tell of another.
    Guarantee: that of the reported labels; this is post-processing.
    Covariance: (H^-1 V H^-1 + H^-1 C H^-1 / (n c^2)) / n, C that of the curator's noise, with H = A''(u) + ridge I and
    V = (1/n) sum (sigma'(z_i) + flip keep / c^2) v_i v_i', or of randomised ties (y_i the report, 1/2 for a tie)
    (1/n) sum (sigma'(z_i) - 1/4 + (y_i - 1/2)^2 / c^2) v_i v_i'; None on the boundary or where the ridge's bias counts.
    Raises EstimationError where bound is inf and there is no minimiser.
    Source: Chowdhury, Zhou, Natarajan 2024, equation (6); covariance: derived, see docs/ESTIMATORS.md.
    """
    known = known.alike() if options.weights == "equal" else known
    ridge, width, notes = ridge_of(known, options, known.contrast)
    minimum = known.minimum(known.contrast, options.bound, ridge, start)

    def covariance() -> Array:
        bread = _curvature(known, minimum, ridge)
        hessian = bread - ridge * np.eye(len(bread))
        result = sandwich(bread, _score_variance(known, minimum.u, hessian), known.count)
        refuse_biased(result, bread, ridge, minimum.u, width)
        return result

    estimate = with_interval(minimum, covariance, notes)
    if options.interval == "bootstrap":
        return with_replicas(known, estimate, lambda drawn: _refit(drawn, options).u)
    return estimate


def naive(known: Reports, options: Options) -> Estimate:
    """Minimiser of the clear loss, as if the labels had not been randomised: biased towards zero, for comparison.

    argmin over ||u|| <= bound of A(u) - S . u / n + ridge ||u||^2 / 2. No interval: it would cover the wrong value.
    Guarantee: that of the reported labels; this is post-processing.
    Raises EstimationError where bound is inf and there is no minimiser.
    Source: derived, see docs/ESTIMATORS.md.
    """
    known = known.plain()
    ridge, _, notes = ridge_of(known, options, 1.0)
    return with_interval(known.minimum(1.0, options.bound, ridge), None, notes)


def _refit(known: Reports, options: Options) -> Minimum:
    return known.minimum(known.contrast, options.bound, ridge_of(known, options, known.contrast)[0])


def _curvature(known: Reports, minimum: Minimum, ridge: float) -> Array:
    """That of the minimum; where it was found without one, the one there, unless that is too large to invert."""
    p = known.dimension
    if minimum.curvature.size:
        return minimum.curvature
    if p > _LARGEST:
        raise NoInterval(f"a covariance of {p} coordinates is too large, at most {_LARGEST} are")
    curvature: Array = known.features.cumulant(minimum.u)[2] + ridge * np.eye(p)
    return curvature


def _score_variance(known: Reports, u: Array, hessian: Array) -> Array:
    """n times the variance of S / (n c) given the features, the plug-in V of a sandwich."""
    square = known.contrast**2
    return known.score_variance(u, hessian) + known.noise / (known.count * square)
