"""Estimators from the likelihood of randomised labels."""

from contextlib import suppress

import numpy as np

from server.estimators.base import Estimate, Options
from server.estimators.bootstrap import with_replicas
from server.estimators.covariance import NoInterval, refuse_biased, sandwich, with_interval
from server.estimators.newton import EstimationError, Minimum, Objective, descend
from server.estimators.prior import width_of
from server.estimators.workspace import Reports, inside
from server.kernels import Array
from server.kernels_solve import dot, inverse, is_definite, norm, project_on_ball

_SAFE_PIVOT = 1e-3  # share of its diagonal entry that every pivot of the observed information has to keep


def rr_mle(known: Reports, options: Options) -> Estimate:
    """Maximum likelihood of randomised labels: downhill from the de-biased minimiser (from 0 if there is none).

    Where there are many rows, from that minimiser with its label-free part averaged over a sample of the public rows.

    A stationary point over ||u|| <= bound of -(1/n) sum log q_i + ridge ||u||^2 / 2, q_i the probability of the i-th
    report. The loss is convex for sure only from epsilon = 4 L B on: the start decides which valley is found.
    Guarantee: that of the reported labels; this is post-processing.
    Covariance: I^-1 / n, I the expected information at u; None on the boundary or where the ridge's bias counts.
    Raises ValueError for evidence without labels or a tempered ridge (which is rr-map), EstimationError where bound is
    inf and there is no minimiser.
    Source: Chowdhury, Zhou, Natarajan 2024, equation (3); covariance: derived, see docs/ESTIMATORS.md.
    """
    if isinstance(options.ridge, str):
        raise ValueError(f"expected ridge to be a number for rr-mle, got {options.ridge!r}: rr-map has a prior")
    ridge = options.ridge
    minimum = _likeliest(known, options.bound, ridge)

    def covariance() -> Array:
        information = known.likelihood(False, minimum.u)[2]
        bread = information + ridge * np.eye(len(information))
        result = sandwich(bread, information, known.count)
        refuse_biased(result, bread, ridge, minimum.u)
        return result

    estimate = with_interval(minimum, covariance)
    if options.interval == "bootstrap":
        return with_replicas(known, estimate, lambda drawn: _likeliest(drawn, options.bound, ridge).u)
    return estimate


def rr_map(known: Reports, options: Options, start: Array | None = None) -> Estimate:
    """Mode of the posterior of randomised labels under the prior N(0, tau^2 I).

    The loss of `rr_mle` with ridge 1 / (n tau^2), downhill from the de-biased minimiser with the matching ridge (from a
    sample of the public rows where there are many), or from `start` (p,), an estimate from the same release with
    another tau. tau may be "bound" or "marginal": `server.estimators.prior`.
    Guarantee: that of the reported labels; this is post-processing.
    Covariance: (n I + I / tau^2)^-1, the Laplace approximation of the posterior's: its intervals are credible
    intervals under the prior, and cover as often as they say only where the labels outweigh it. None where tau is from
    the reports and its ridge counts: it would be taken as if it were known.
    Raises ValueError for evidence without labels, or for a ridge beside tau.
    Source: derived, see docs/ESTIMATORS.md.
    """
    if options.ridge != 0.0:
        raise ValueError(f"expected ridge = 0 for rr-map, whose prior is tau, got {options.ridge}")

    def search(ridge: float, start: Array) -> Minimum:
        return _valley(known, start, np.inf, ridge)

    tau, notes = width_of(known, options, search, _penalised(known, 0.0))
    ridge = 1.0 / (known.count * tau**2)
    if start is None:
        begin = known.rough_minimum(known.contrast, options.bound, ridge / known.contrast**2)
    else:
        begin = inside(start, known.dimension, options.bound)
    minimum = _valley(known, begin, options.bound, ridge)

    def covariance() -> Array:
        bread = known.likelihood(False, minimum.u)[2] + ridge * np.eye(len(minimum.u))
        result = sandwich(bread, bread, known.count)
        if options.tau == "marginal":
            refuse_biased(result, bread, ridge, minimum.u, tau)
        return result

    return with_interval(minimum, covariance, notes)


def one_step(known: Reports, options: Options) -> Estimate:
    """One step of Fisher scoring from the de-biased minimiser, projected onto the ball: asymptotically `rr_mle`.

    u = Proj(u0 - I(u0)^-1 grad(u0)), grad that of -(1/n) sum log q_i and I its expected information: two passes more
    than the de-biased minimiser u0 takes, and no valley to be chosen.
    Guarantee: that of the reported labels; this is post-processing.
    Covariance: I^-1 / n at u; None where u or u0 is on the boundary, since a step from there does not end near a root.
    Raises ValueError for evidence without labels, EstimationError where bound is inf and u0 does not exist, or where
    I(u0) is singular.
    Source: Le Cam 1956; derived for randomised labels, see docs/ESTIMATORS.md.
    """
    minimum, off_boundary = _stepped(known, options.bound)

    def covariance() -> Array:
        if not off_boundary:
            raise NoInterval("the ball constraint is active where the step begins")
        information = known.likelihood(False, minimum.u)[2]
        return sandwich(information, information, known.count)

    estimate = with_interval(minimum, covariance)
    if options.interval == "bootstrap":
        return with_replicas(known, estimate, lambda drawn: _stepped(drawn, options.bound)[0].u)
    return estimate


def _stepped(known: Reports, bound: float) -> tuple[Minimum, bool]:
    """Where the step ends, and whether it began off the ball's boundary."""
    start = known.minimum(known.contrast, bound, 0.0)
    _, gradient, information = known.likelihood(False, start.u)
    inverted, definite = inverse(information, 0.0)
    if not definite:
        raise EstimationError("expected features that span the space for one-step, got a singular information")
    u = start.u - np.array([dot(row, gradient) for row in inverted])
    project_on_ball(u, bound)
    hit = norm(u) >= bound * (1.0 - 1e-9)
    return Minimum(u, information, hit, start.iterations + 1, np.nan, start.converged), not start.hit_boundary


def _likeliest(known: Reports, bound: float, ridge: float) -> Minimum:
    matching = ridge / known.contrast**2  # the de-biased loss is 1 / c^2 times as steep
    start = np.zeros(known.dimension)
    with suppress(EstimationError):  # the likelihood may have a minimiser where the de-biased loss has none
        start = known.rough_minimum(known.contrast, bound, matching)
    return _valley(known, start, bound, ridge)


def _valley(known: Reports, start: Array, bound: float, ridge: float) -> Minimum:
    """The stationary point downhill from `start`."""
    objective, features = _penalised(known, ridge), known.features
    return descend(objective, start, bound, features.reach, 1e-8 / known.count, exact=False, drift=features.drift)


def _penalised(known: Reports, ridge: float) -> Objective:
    identity = ridge * np.eye(known.dimension)

    def objective(u: Array) -> tuple[float, Array, Array]:
        # Observed information converges quadratically, but only expected information is sure to be positive.
        value, gradient, curvature = known.likelihood(True, u)
        if not is_definite(curvature + identity, _SAFE_PIVOT):
            expected = known.likelihood(False, u)[2]
            mixed = 0.5 * (curvature + expected)
            curvature = mixed if is_definite(mixed + identity, _SAFE_PIVOT) else expected
        return value + 0.5 * ridge * dot(u, u), gradient + ridge * u, curvature + identity

    return objective
