"""One-pass projected stochastic gradient descent, and averages of its iterates."""

import math

import numpy as np

from protocol.warned import warn
from server.estimators.base import Estimate, Options
from server.estimators.workspace import Reports
from server.kernels import Array
from server.kernels_descent import descend, descend_and_add, fifth_root
from server.kernels_solve import norm

_FIRST_STEP = 4.0  # of averaged descent, in units of 1 / lambda_max of the features' second moment
_UNSETTLED = warn("interval-not-valid", "a mean of iterates is too far from its limit")


def sgd(known: Reports, options: Options) -> Estimate:
    """`debiased_sgd` on clear labels. Raises ValueError for randomised ones."""
    if known.contrast != 1.0:
        raise ValueError(f"expected clear labels for sgd, got contrast {known.contrast}: use debiased-sgd")
    return debiased_sgd(known, options)


def debiased_sgd(known: Reports, options: Options) -> Estimate:
    """One pass over the reports in row order, with un-normalised de-biased gradients.

    u <- Proj(u - eta_t g_t), g_t = (c sigma(u . v_t) - (y_t - flip)) v_t, c = contrast. With averaging "last" the last
    iterate, eta_t = 1 / (alpha c t), alpha = options.step or lambda_min(A'') over all rows at the de-biased minimiser
    of the first 1000 reports. Else eta_t = 4 / (lambda_max c t^(3/5)), lambda_max of (1/n) sum v_i v_i', and the mean
    of "all" iterates or of those of the last "half".
    Guarantee: that of the reported labels; this is post-processing.
    No covariance: that of a last iterate depends on alpha in ways no plug-in knows, and that of a mean is reached
    too late: see docs/ESTIMATORS.md.
    Raises ValueError for evidence without labels or features that do not span the space, EstimationError where bound is
    inf and the pilot has no minimiser.
    Source: Chowdhury, Zhou, Natarajan 2024, equation (10) and Algorithm 1; averages: Polyak, Juditsky 1992.
    """
    if options.averaging != "last":
        u = _mean(known, options)
        return Estimate(u, None, _hits(u, options), (_UNSETTLED,), 1, math.nan)
    alpha, u = first_step(known, options), np.zeros(known.dimension)
    for columns, symbols, contrast, flip, age in known.stretches():
        descend(columns, symbols, contrast, flip, alpha, options.bound, age, u)
    return last_iterate(u, options)


def first_step(known: Reports, options: Options) -> float:
    """alpha of the last iterate's steps 1 / (alpha c t)."""
    return pilot_alpha(known, options.bound) if isinstance(options.step, str) else options.step


def last_iterate(u: Array, options: Options) -> Estimate:
    """The estimate that a pass ended at."""
    return Estimate(u, None, _hits(u, options), (), 1, math.nan)


def _hits(u: Array, options: Options) -> bool:
    return norm(u) >= options.bound * (1.0 - 1e-9)


def _mean(known: Reports, options: Options) -> Array:
    largest = float(np.linalg.eigvalsh(known.features.second_moment)[-1])
    if not largest > 0.0:
        raise ValueError("expected features that are not all zero, got zeros")
    skip = known.count // 2 if options.averaging == "half" else 0
    u, total, done = np.zeros(known.dimension), np.zeros(known.dimension), 0
    for columns, symbols, contrast, flip, age in known.stretches():
        root = fifth_root((known.clearest / contrast) ** 2)  # reports weigh contrast^2, and time passes by weight
        place = (options.bound, age, age + max(0, skip - done) + 0.5)
        descend_and_add(columns, symbols, contrast, flip, _FIRST_STEP / largest / root**2, *place, u, total)
        done += len(symbols)
    mean: Array = total / (known.count - skip)
    return mean


def pilot_alpha(known: Reports, bound: float) -> float:
    """lambda_min(A'') at the de-biased minimiser of the first reports; raises ValueError where that is singular."""
    hessian = known.features.cumulant(known.pilot(bound))[2]
    alpha = float(np.linalg.eigvalsh(hessian)[0])
    if not alpha > 1e-12 * float(hessian.trace()):
        raise ValueError(f"expected features that span the space for a pilot step, got alpha = {alpha}: give a number")
    return alpha
