"""Gaussian priors: how wide, and the ridge that stands for one where the loss is not the likelihood of reports."""

import math
from collections.abc import Callable
from contextlib import suppress

import numpy as np

from protocol.warned import warn
from server.estimators.base import Options
from server.estimators.newton import EstimationError, Minimum, Objective, descend
from server.estimators.workspace import Reports, penalised
from server.kernels import Array
from server.kernels_solve import ROUNDING, cholesky, dot

_WIDTHS = 20  # tried by marginal likelihood, a factor sqrt(2) apart
_LARGEST_INDEX = 10.0  # without a ball, the widest prior gives u . x this standard deviation

# ridge, start -> the minimiser without a ball
Search = Callable[[float, Array], Minimum]


def tempering(known: Reports, contrast: float) -> float:
    """How much flatter the log-likelihood of all that is unknown is than n times the de-biased loss.

    (D (1 - q) + tr C / (n tr A''(0))) / c^2, C the covariance of the curator's noise, D the features' `dispersion`, 1
    of the logistic model, q how often a winner is reported as a tie (0 of two symbols): near u = 0 labels, flips and
    that noise give S / (n c) about this times A'' / n as variance.
    Source: derived, see docs/ESTIMATORS.md.
    """
    noise = 0.0
    if known.noise_stddev:
        own = float(known.features.cumulant(np.zeros(known.dimension))[2].trace())
        noise = float(known.noise.trace()) / (known.count * own) if own else math.inf
    return (known.features.dispersion * (1.0 - known.third) + noise) / contrast**2


def ridge_of(known: Reports, options: Options, contrast: float) -> tuple[float, float, tuple[str, ...]]:
    """The ridge of a de-biased loss, the width of the prior that it stands for (0 for none), and what was chosen.

    options.ridge, or where that is "tempered" T / (n tau^2), T the `tempering`: the mode under a prior N(0, tau^2 I).
    Raises ValueError for a curator's noise on features that are all zero.
    """
    if not isinstance(options.ridge, str):
        return options.ridge, 0.0, ()
    tempered = tempering(known, contrast)
    if math.isinf(tempered):
        raise ValueError("expected features that are not all zero beside a curator's noise, got zeros")
    mean = known.mean(contrast)

    def search(ridge: float, start: Array) -> Minimum:
        objective = penalised(known.features, mean, ridge)
        reach, drift = known.features.reach, known.features.drift
        return descend(objective, start, math.inf, reach, 1e-8 / known.count, exact=True, drift=drift)

    tau, notes = width_of(known, options, search, penalised(known.features, mean, 0.0), tempered)
    return tempered / (known.count * tau**2), tau, notes


def width_of(
    known: Reports, options: Options, search: Search, loss: Objective, tempered: float = 1.0
) -> tuple[float, tuple[str, ...]]:
    """tau, and a sentence that says what was chosen where that depends on the reports.

    "bound": bound / sqrt(p), where the prior's mean square norm is that of the ball. "marginal": of 20 widths down from
    it, a factor sqrt(2) apart, the root mean square weighted by `evidence`, to four digits. (The likeliest one alone is
    often far too narrow where reports say little.) From the reports alone: post-processing.
    """
    if not isinstance(options.tau, str):
        return options.tau, ()
    widest = _widest(known, options.bound)
    if options.tau == "bound":
        return widest, ()
    start, weight, widths, found = np.zeros(known.dimension), known.count / tempered, [], []
    for k in reversed(range(_WIDTHS)):  # from the narrowest: each mode is a good start for the next
        width = widest * 2.0 ** (-0.5 * k)
        with suppress(EstimationError):  # too wide for what is known
            start = search(1.0 / (weight * width**2), start).u
            widths.append(width)
            found.append(evidence(loss, start, width, weight))
    likely = np.exp(np.array(found) - max(found))
    tau = float(f"{math.sqrt(float(likely @ np.square(widths) / likely.sum())):.4g}")
    return tau, (warn("prior-width", f"tau = {tau:g} by marginal likelihood"),)


def evidence(loss: Objective, mode: Array, tau: float, weight: float) -> float:
    """Laplace's approximation of log of the integral of exp(-weight loss(u)) N(u; 0, tau^2 I), from the mode.

    -weight loss - ||mode||^2 / (2 tau^2) - p log tau - (1/2) log det(weight loss'' + I / tau^2); -inf where the
    curvature is not definite.
    Source: Tierney, Kadane 1986.
    """
    value, _, curvature = loss(mode)
    factor = np.zeros(curvature.shape)
    if not cholesky(weight * curvature, tau**-2, ROUNDING, factor):
        return -math.inf
    half_log_det = math.fsum(math.log(entry) for entry in factor.diagonal())
    return -weight * value - 0.5 * dot(mode, mode) / tau**2 - len(mode) * math.log(tau) - half_log_det


def _widest(known: Reports, bound: float) -> float:
    if not math.isinf(bound):
        return bound / math.sqrt(known.dimension)
    length = math.sqrt(float(known.features.second_moment.trace()))
    return _LARGEST_INDEX / length if length else 1.0
