"""One-pass projected stochastic gradient descent."""

import math

import numpy as np

from server.estimators.base import Estimate, Options
from server.estimators.workspace import Workspace
from server.kernels_logistic import descend_once


def sgd(known: Workspace, options: Options) -> Estimate:
    """`debiased_sgd` on clear labels. Raises ValueError for randomised ones."""
    contrast = known.evidence.contrast
    if contrast != 1.0:
        raise ValueError(f"expected clear labels for sgd, got contrast {contrast}: use debiased-sgd")
    return debiased_sgd(known, options)


def debiased_sgd(known: Workspace, options: Options) -> Estimate:
    """Last iterate of one pass over the reports in row order, with un-normalised de-biased gradients.

    u <- Proj(u - eta_t g_t), g_t = (c sigma(u . v_t) - (y_t - flip)) v_t, eta_t = 1 / (alpha c t), c = contrast.
    alpha is options.step, or lambda_min(A'') over all rows at the de-biased minimiser of the first 1000 reports.
    Guarantee: that of the reported labels; this is post-processing.
    No covariance: that of a last iterate depends on alpha in ways no plug-in knows.
    Raises ValueError for evidence without labels or features that do not span the space, EstimationError where bound is
    inf and the pilot has no minimiser.
    Source: Chowdhury, Zhou, Natarajan 2024, equation (10) and Algorithm 1.
    """
    evidence = known.evidence
    symbols = 0.5 * (known.signs + 1.0)
    alpha = _pilot_alpha(known, options.bound) if isinstance(options.step, str) else options.step
    columns = np.ascontiguousarray(evidence.rows.T)
    u = descend_once(columns, symbols, evidence.contrast, evidence.flip, alpha, options.bound)
    hit = float(np.linalg.norm(u)) >= options.bound * (1.0 - 1e-9)
    return Estimate(u, None, hit, (), 1, math.nan)


def _pilot_alpha(known: Workspace, bound: float) -> float:
    hessian = known.features.cumulant(known.pilot(bound))[2]
    alpha = float(np.linalg.eigvalsh(hessian)[0])
    if not alpha > 1e-12 * float(hessian.trace()):
        raise ValueError(f"expected features that span the space for a pilot step, got alpha = {alpha}: give a number")
    return alpha
