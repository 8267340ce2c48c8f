"""Estimators from the likelihood of randomised top choices, whatever they went through."""

from contextlib import suppress

import numpy as np

from server.estimators.base import Estimate, Options
from server.estimators.choice_base import ChoiceWorkspace, penalised
from server.estimators.covariance import refuse_biased, sandwich, with_interval
from server.estimators.newton import EstimationError, Minimum, descend
from server.kernels import Array
from server.kernels_choice_reports import ACTUAL, EXPECTED, OBSERVED, SETS
from server.kernels_solve import is_definite

_SAFE_PIVOT = 1e-3  # share of its diagonal entry that every pivot of the observed information has to keep


def rr_mle(known: ChoiceWorkspace, options: Options) -> Estimate:
    """Maximum likelihood of randomised top choices, downhill from the de-biased minimiser (from 0 if there is none).

    A stationary point over ||u|| <= bound of -(1/n) sum log q_i + ridge ||u||^2 / 2, q_i = base + slope sum_k g_k p_k.
    Guarantee: that of the reported labels; this is post-processing.
    Covariance: I^-1 / n, I the expected information at u, or the mean square of the scores where reports are sets; None
    on the boundary or where the ridge's bias counts.
    Raises ValueError for evidence without labels, EstimationError where bound is inf and there is no minimiser.
    Source: derived, see docs/CHOICES.md; for two choices Chowdhury, Zhou, Natarajan 2024, equation (3).
    """
    ridge, start = float(options.ridge), np.zeros(known.features.dimension)
    with suppress(EstimationError):  # the likelihood may have a minimiser where the de-biased loss has none
        start = known.minimum(options.bound, ridge * _steepness(known)).u
    minimum = _valley(known, start, options.bound, ridge)

    def covariance() -> Array:
        information = _information(known, minimum.u)
        bread = information + ridge * np.eye(len(information))
        result = sandwich(bread, information, known.features.count)
        refuse_biased(result, bread, ridge, minimum.u)
        return result

    return with_interval(minimum, covariance)


def rr_map(known: ChoiceWorkspace, options: Options) -> Estimate:
    """Mode of the posterior of randomised top choices under the prior N(0, tau^2 I): the best at a small epsilon.

    The loss of `rr_mle` with ridge 1 / (n tau^2), downhill from the de-biased minimiser with a matching ridge.
    Guarantee: that of the reported labels; this is post-processing.
    Covariance: (n I + I / tau^2)^-1, the Laplace approximation of the posterior's: credible intervals under the prior.
    Raises ValueError for evidence without labels. Source: derived, see docs/CHOICES.md.
    """
    count = known.features.count
    ridge = 1.0 / (count * float(options.tau) ** 2)
    start = known.minimum(options.bound, ridge * _steepness(known)).u
    minimum = _valley(known, start, options.bound, ridge)

    def covariance() -> Array:
        bread = _information(known, minimum.u) + ridge * np.eye(len(minimum.u))
        return sandwich(bread, bread, count)

    return with_interval(minimum, covariance)


def _steepness(known: ChoiceWorkspace) -> float:
    """How much steeper the de-biased loss is than the likelihood of indifferent labels, by the traces of both."""
    zero = np.zeros(known.features.dimension)
    information = float(_information(known, zero).trace())
    return float(known.curvature(zero).trace()) / information if information > 0.0 else 1.0


def _valley(known: ChoiceWorkspace, start: Array, bound: float, ridge: float) -> Minimum:
    """The stationary point downhill from `start`."""
    identity = ridge * np.eye(len(start))

    def objective(u: Array) -> tuple[float, Array, Array]:
        # Observed information converges quadratically, but only the other is sure to be positive.
        value, gradient, curvature = known.likelihood(OBSERVED, u)
        if not is_definite(curvature + identity, _SAFE_PIVOT):
            sure = _information(known, u)
            mixed = 0.5 * (curvature + sure)
            curvature = mixed if is_definite(mixed + identity, _SAFE_PIVOT) else sure
        return value, gradient, curvature

    count = known.features.count
    return descend(penalised(objective, ridge), start, bound, known.features.reach, 1e-8 / count, exact=False)


def _information(known: ChoiceWorkspace, u: Array) -> Array:
    """Information of one report at u, shape (p, p)."""
    wanted = ACTUAL if known.evidence.view.reports == SETS else EXPECTED
    return known.likelihood(wanted, u)[2]
