"""Estimators from the likelihood of randomised labels."""

from contextlib import suppress

import numpy as np

from server.estimators.base import Estimate, Options
from server.estimators.covariance import refuse_biased, sandwich, with_interval
from server.estimators.newton import EstimationError, Minimum, descend
from server.estimators.workspace import Workspace
from server.kernels import Array
from server.kernels_solve import dot, is_definite

_SAFE_PIVOT = 1e-3  # share of its diagonal entry that every pivot of the observed information has to keep


def rr_mle(known: Workspace, options: Options) -> Estimate:
    """Maximum likelihood of randomised labels: downhill from the de-biased minimiser (from 0 if there is none).

    A stationary point over ||u|| <= bound of -(1/n) sum log q_i + ridge ||u||^2 / 2, q_i the probability of the i-th
    report. The loss is convex for sure only from epsilon = 4 L B on: the start decides which valley is found.
    Guarantee: that of the reported labels; this is post-processing.
    Covariance: I^-1 / n, I the expected information at u; None on the boundary or where the ridge's bias counts.
    Raises ValueError for evidence without labels, EstimationError where bound is inf and there is no minimiser.
    Source: Chowdhury, Zhou, Natarajan 2024, equation (3); covariance: derived, see docs/ESTIMATORS.md.
    """
    matching = options.ridge / known.evidence.contrast**2  # the de-biased loss is 1 / c^2 times as steep
    start = np.zeros(known.evidence.rows.shape[1])
    with suppress(EstimationError):  # the likelihood may have a minimiser where the de-biased loss has none
        start = known.minimum(known.evidence.contrast, options.bound, matching).u
    minimum = _valley(known, start, options.bound, options.ridge)

    def covariance() -> Array:
        information = _information(known, minimum.u)
        bread = information + options.ridge * np.eye(len(information))
        result = sandwich(bread, information, known.features.count)
        refuse_biased(result, bread, options.ridge, minimum.u)
        return result

    return with_interval(minimum, covariance)


def rr_map(known: Workspace, options: Options) -> Estimate:
    """Mode of the posterior of randomised labels under the prior N(0, tau^2 I).

    The loss of `rr_mle` with ridge 1 / (n tau^2), downhill from the de-biased minimiser with the matching ridge (from a
    sample of the public rows where there are many).
    Guarantee: that of the reported labels; this is post-processing.
    Covariance: (n I + I / tau^2)^-1, the Laplace approximation of the posterior's: its intervals are credible
    intervals under the prior, and cover as often as they say only where the labels outweigh it.
    Raises ValueError for evidence without labels, or for a ridge beside tau.
    Source: derived, see docs/ESTIMATORS.md.
    """
    if options.ridge != 0.0:
        raise ValueError(f"expected ridge = 0 for rr-map, whose prior is tau, got {options.ridge}")
    count = known.features.count
    ridge = 1.0 / (count * options.tau**2)
    start = known.rough_minimum(known.evidence.contrast, options.bound, ridge / known.evidence.contrast**2)
    minimum = _valley(known, start, options.bound, ridge)

    def covariance() -> Array:
        bread = _information(known, minimum.u) + ridge * np.eye(len(minimum.u))
        return sandwich(bread, bread, count)

    return with_interval(minimum, covariance)


def _valley(known: Workspace, start: Array, bound: float, ridge: float) -> Minimum:
    """The stationary point downhill from `start`."""
    evidence, features, signs = known.evidence, known.features, known.signs
    if not signs.all():
        raise ValueError("expected reports without ties, got clear ones: use mle")
    identity = ridge * np.eye(len(start))

    def objective(u: Array) -> tuple[float, Array, Array]:
        # Observed information converges quadratically, but only expected information is sure to be positive.
        value, gradient, curvature = features.likelihood(signs, evidence.contrast, evidence.flip, True, u)
        if not is_definite(curvature + identity, _SAFE_PIVOT):
            expected = _information(known, u)
            mixed = 0.5 * (curvature + expected)
            curvature = mixed if is_definite(mixed + identity, _SAFE_PIVOT) else expected
        return value + 0.5 * ridge * dot(u, u), gradient + ridge * u, curvature + identity

    return descend(objective, start, bound, features.reach, 1e-8 / features.count, exact=False)


def _information(known: Workspace, u: Array) -> Array:
    """Expected information of one report at u, shape (p, p)."""
    evidence = known.evidence
    return known.features.likelihood(known.signs, evidence.contrast, evidence.flip, False, u)[2]
