"""Estimators of top choices that see labels through the mean of one feature."""

import math

import numpy as np

from protocol.warned import warn
from server.estimators.base import Estimate, Options
from server.estimators.choice_base import ChoiceWorkspace
from server.estimators.covariance import refuse_biased, sandwich, with_interval
from server.estimators.newton import EstimationError, descend
from server.kernels import Array
from server.kernels_choice import choice_cumulant, descend_choices, mean_feature
from server.kernels_choice_reports import ONE_CHOICE
from server.kernels_solve import dot, norm


def mle(known: ChoiceWorkspace, options: Options) -> Estimate:
    """Maximum likelihood of clear top choices, or of the curator's noisy sum of their features.

    argmin over ||u|| <= bound of A(u) - S . u / n + ridge ||u||^2 / 2, A(u) = (1/n) sum_i w_i log sum_k exp(u . x_ik),
    S = sum_i v_{i, y_i}.
    Guarantee: that of S; this is post-processing of S and of public features.
    Covariance: that of `debiased`, with D the label itself.
    Raises ValueError for randomised labels, EstimationError where bound is inf and there is no minimiser.
    Source: Chowdhury, Zhou, Natarajan 2024, equation (11); as a function of S: derived, see docs/CHOICES.md.
    """
    if known.evidence.marks is not None and known.evidence.view.law[:, 0].any():
        raise ValueError("expected clear or central evidence for mle, got randomised labels: use debiased")
    return debiased(known, options)


def debiased(known: ChoiceWorkspace, options: Options) -> Estimate:
    """Minimiser of the de-biased loss of randomised top choices, convex at every epsilon.

    argmin over ||u|| <= bound of A(u) - f . u + ridge ||u||^2 / 2, f = (1/n) sum_i sum_k D_ik v_ik, D_ik the de-biased
    label: for K-ary randomised response (1{k = report} - b) / (a - b) with each row's own a, b.
    Guarantee: that of the reported labels; this is post-processing.
    Covariance: H^-1 V H^-1 / n, H = A''(u) + ridge I, V = n times the variance of f given the features; None on the
    boundary or where the ridge's bias counts.
    Raises EstimationError where bound is inf and there is no minimiser.
    Source: derived, see docs/CHOICES.md; Chowdhury, Zhou, Natarajan 2024, Section C, for the expectation it has.
    """
    ridge = float(options.ridge)
    minimum = known.minimum(options.bound, ridge)

    def covariance() -> Array:
        result = sandwich(minimum.curvature, known.score_variance(minimum.u), known.features.count)
        refuse_biased(result, minimum.curvature, ridge, minimum.u)
        return result

    return with_interval(minimum, covariance)


def naive(known: ChoiceWorkspace, options: Options) -> Estimate:
    """Minimiser of the clear loss, as if the report were the label: biased towards zero, for comparison.

    A set counts as 1/k of each of its choices, a side of a pair as the label. No interval: it would cover the wrong
    value. Guarantee: that of the reported labels; this is post-processing.
    Raises EstimationError where bound is inf and there is no minimiser. Source: derived, see docs/CHOICES.md.
    """
    features = known.features
    present = np.arange(features.blocks.shape[1]) < features.sizes[:, None]
    chosen = np.where(present, known.marks == 2, False)
    mean = mean_feature(features.blocks, features.sizes, chosen / chosen.sum(axis=1, keepdims=True))
    return with_interval(features.minimum(mean, options.bound, float(options.ridge)), None)


def literal(known: ChoiceWorkspace, options: Options) -> Estimate:
    """Minimiser of the score p_report^a / prod_{j != report} p_j^b: the binary one, copied to K choices. Biased.

    argmin over ||u|| <= bound of (1/n) sum_i (a - (K-1) b) log sum_k exp(z_k) - ((a + b) z_report - b sum_k z_k): its
    expectation is (a^2 - (K-1) b^2) log p_y - (K-2) b^2 sum_{k != y} log p_k, so it is wrong for K >= 3, and where
    e^epsilon < K - 1 it is concave and its minimum lies on the ball. For comparison only; `debiased` is right.
    Guarantee: that of the reported labels; this is post-processing. No interval.
    Raises ValueError for reports that are not one choice, EstimationError without a ball where it needs one.
    Source: Chowdhury, Zhou, Natarajan 2024, equation (5), carried over word for word; derived, see docs/CHOICES.md.
    """
    view, features = known.evidence.view, known.features
    if view.reports != ONE_CHOICE:
        raise ValueError("expected reports of one choice for literal: mechanism k-randomized-response")
    other, gap = view.law[features.sizes].T
    weight = gap - (features.sizes - 2) * other  # a - (K - 1) b
    mean = mean_feature(
        features.blocks, features.sizes, (gap + 2.0 * other)[:, None] * (known.marks == 2) - other[:, None]
    )
    if math.isinf(options.bound) and weight.min() <= 0.0:
        raise EstimationError("expected a finite bound for literal where e^epsilon < K - 1: its loss has no minimum")

    def objective(u: Array) -> tuple[float, Array, Array]:
        value, slope, bend = 0.0, np.zeros(len(u)), np.zeros((len(u), len(u)))
        for size in np.unique(features.sizes).tolist():
            own = features.sizes == size
            factor, share = float(weight[own][0]), float(own.mean())
            part = choice_cumulant(features.blocks[own], features.sizes[own], features.scales, u)
            value += share * factor * part[0]
            slope += share * factor * part[1]
            bend += share * max(factor, 0.0) * part[2]  # a concave part lies below its tangent: safe to step on
        return value - dot(mean, u), slope - mean, bend

    convex = bool(weight.min() > 0.0)
    enough = 1e-8 / features.count if convex else 1e-4  # along the ball tangents lead slowly, and to nothing of worth
    minimum = descend(objective, np.zeros(features.dimension), options.bound, features.reach, enough, exact=False)
    biased = warn("biased", f"literal score: for more than two choices, here up to {int(features.sizes.max())}")
    concave = () if convex else (warn("not-convex", "the literal score at this epsilon"),)
    return with_interval(minimum, None, (biased, *concave))


def sgd(known: ChoiceWorkspace, options: Options) -> Estimate:
    """`debiased_sgd` on clear labels. Raises ValueError for randomised ones."""
    if known.evidence.view.law[:, 0].any():
        raise ValueError("expected clear labels for sgd, got randomised ones: use debiased-sgd")
    return debiased_sgd(known, options)


def debiased_sgd(known: ChoiceWorkspace, options: Options) -> Estimate:
    """Last iterate of one pass over the reports in row order, with exactly unbiased gradients.

    u <- Proj(u - eta_t (sum_k p_k v_k - sum_k D_k v_k)), p at u, D the de-biased label, eta_t = 1 / (alpha t).
    alpha is options.step, or lambda_min(A'') over all rows at the de-biased minimiser of the first 1000 reports.
    Guarantee: that of the reported labels; this is post-processing. No covariance: see the one for two choices.
    Raises ValueError for evidence without labels or features that do not span the space, EstimationError where bound is
    inf and the pilot has no minimiser.
    Source: Chowdhury, Zhou, Natarajan 2024, Algorithm 1 and Section C; de-biased as derived in docs/CHOICES.md.
    """
    features = known.features
    alpha = options.step
    if isinstance(alpha, str):
        hessian = known.curvature(known.pilot(options.bound))
        alpha = float(np.linalg.eigvalsh(hessian)[0])
        if not alpha > 1e-12 * float(hessian.trace()):
            raise ValueError(f"expected features that span the space for a pilot step, got alpha = {alpha}: give one")
    u = descend_choices(features.blocks, features.sizes, known.shares, alpha, options.bound)
    return Estimate(u, None, norm(u) >= options.bound * (1.0 - 1e-9), (), 1, math.nan)
