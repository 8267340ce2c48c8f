"""Numbers that the bounds are made of: curvatures of losses, and what randomised response does to them."""

import math

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_expit, log_ndtr

from protocol.links import LINKS


def positive(**values: float) -> None:
    """Raise ValueError unless every value is positive and finite."""
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"expected {name} > 0 and finite, got {value}")


def probability(**values: float) -> None:
    """Raise ValueError unless every value is strictly between 0 and 1."""
    for name, value in values.items():
        if not 0 < value < 1:
            raise ValueError(f"expected {name} between 0 and 1, got {value}")


def curvature(feature_bound: float, bound: float) -> float:
    """gamma = sigma'(2 L B), the smallest curvature of the log-loss for ||phi|| <= L and ||theta|| <= B.

    Raises ValueError for bounds that are not positive. Source: Chowdhury, Zhou, Natarajan 2024, Section 2.

    >>> round(curvature(1.0, 1.0), 12)
    0.104993585404
    """
    positive(feature_bound=feature_bound, bound=bound)
    reach = 2 * feature_bound * bound
    return float(expit(-reach) * expit(reach))


def thurstone_curvature(feature_bound: float, bound: float) -> float:
    """The smallest curvature of the Thurstone log-loss, lambda (2 L B + lambda) with lambda = phi(2 L B) / Phi(2 L B).

    -(log Phi)''(z) = lambda(z) (z + lambda(z)) decreases in z. Raises ValueError for bounds that are not positive.
    Source: derived, for the strong log-concavity that Chowdhury, Zhou, Natarajan 2024, Section 2 asks of other models.
    """
    positive(feature_bound=feature_bound, bound=bound)
    reach = 2 * feature_bound * bound
    ratio = math.exp(-reach * reach / 2 - math.log(2 * math.pi) / 2 - float(log_ndtr(reach)))
    return ratio * (reach + ratio)


def thurstone_slope(feature_bound: float, bound: float) -> float:
    """lambda(-2 L B), lambda = phi / Phi: the largest derivative in z of the Thurstone log-loss, de-biased or not.

    So gradients are at most 2 L lambda(-2 L B) long, which exceeds the 2 L of the logistic model as soon as L B > 0.15.
    Raises ValueError for bounds that are not positive. Source: derived; lambda decreases, and keep + flip = 1.

    >>> round(thurstone_slope(1.0, 1.0), 4)
    2.3732
    """
    positive(feature_bound=feature_bound, bound=bound)
    return float(LINKS["thurstone"].hazard(np.array(-2 * feature_bound * bound)))


def top_choice_curvature(feature_bound: float, bound: float, choices: int | None = None) -> float:
    """gamma_K of the log-loss of a top choice out of K: e^(-4 L B) / 2 as printed, (K - 1)/(2 K) e^(-4 L B) derived.

    The first where `choices` is left out. The second: the Hessian is sum_{j<k} p_j p_k x_jk x_jk^T with p_j p_k >=
    e^(-4 L B) / K^2, for K (K - 1) / 2 pairs that each have the coverage kappa. Raises ValueError for K < 2.
    Source: Chowdhury, Zhou, Natarajan 2024, Theorem C.2; derived.
    """
    positive(feature_bound=feature_bound, bound=bound)
    if choices is not None and choices < 2:
        raise ValueError(f"expected choices >= 2, got {choices}")
    share = 1.0 if choices is None else (choices - 1) / choices
    return share / 2 * math.exp(-4 * feature_bound * bound)


def convexity_threshold(feature_bound: float, bound: float) -> float:
    """The epsilon = 4 L B from which on the loss of RR-MLE is convex for any labels.

    Raises ValueError for bounds that are not positive. Source: Chowdhury, Zhou, Natarajan 2024, Theorem 4.1.

    >>> convexity_threshold(1.0, 1.0)
    4.0
    """
    positive(feature_bound=feature_bound, bound=bound)
    return 4 * feature_bound * bound


def flip_noise(epsilon: float) -> float:
    """kappa = 1 / (4 sinh^2(epsilon / 2)): the variance that flips add to a de-biased label.

    Raises ValueError unless epsilon > 0. Source: derived; var(de-biased label) = s' + kappa.
    """
    positive(epsilon=epsilon)
    return math.exp(-epsilon) / math.expm1(-epsilon) ** 2


def debias_factor(epsilon: float, choices: int = 2) -> float:
    """(e^epsilon + K - 1) / (e^epsilon - 1), the factor by which K-ary randomised response widens every upper bound.

    coth(epsilon / 2) for K = 2. Raises ValueError unless epsilon > 0 and K >= 2.
    Source: Chowdhury, Zhou, Natarajan 2024, Theorems 4.2 and C.2.

    >>> round(debias_factor(1.0), 12), round(debias_factor(1.0, 5), 12)
    (2.163953413739, 3.909883534347)
    """
    positive(epsilon=epsilon)
    if choices < 2:
        raise ValueError(f"expected choices >= 2, got {choices}")
    return (1 + (choices - 1) * math.exp(-epsilon)) / -math.expm1(-epsilon)


def rr_curvature(epsilon: float, feature_bound: float, bound: float) -> float:
    """gamma_epsilon, the smallest second derivative in z of the RR-MLE loss over |z| <= 2 L B.

    min over s in [xi, 1 - xi], xi = sigma(-2 L B), of c s (1 - s) (a s^2 - (1 - a) (1 - s)^2) / q^2, q = 1 - a + c s,
    a = sigma(epsilon), c = tanh(epsilon / 2). It is positive exactly for epsilon > 4 L B, and then attained at an end.
    Raises ValueError for arguments that are not positive. Source: Chowdhury, Zhou, Natarajan 2024, Theorem 4.1.
    """
    positive(epsilon=epsilon, feature_bound=feature_bound, bound=bound)
    reach = 2 * feature_bound * bound
    keep, flip, contrast = float(expit(epsilon)), float(expit(-epsilon)), math.tanh(epsilon / 2)

    def second(z: float) -> float:
        wins, loses = float(expit(z)), float(expit(-z))
        chance = flip + contrast * wins
        return contrast * wins * loses * (keep * wins**2 - flip * loses**2) / chance**2

    ends = min(second(-reach), second(reach))
    if ends > 0:
        return ends
    return min(ends, float(minimize_scalar(second, bounds=(-reach, max(-reach, -epsilon / 2)), method="bounded").fun))


def rr_slope(epsilon: float, feature_bound: float, bound: float) -> float:
    """G_epsilon, the largest first derivative in z of the RR-MLE loss over |z| <= 2 L B; at most 1.

    max of c s (1 - s) / q, attained at z = -epsilon / 2, where it is tanh(epsilon / 4), or at the end z = -2 L B.
    Raises ValueError for arguments that are not positive. Source: Chowdhury, Zhou, Natarajan 2024, Theorem 4.1.
    """
    positive(epsilon=epsilon, feature_bound=feature_bound, bound=bound)
    z = max(-epsilon / 2, -2 * feature_bound * bound)
    contrast = math.tanh(epsilon / 2)
    return contrast * float(expit(z) * expit(-z)) / (float(expit(-epsilon)) + contrast * float(expit(z)))


def bernoulli_divergence(z: float, other: float) -> float:
    """KL(Ber(sigma(z)) || Ber(sigma(other))), in nats: how well two parameters' answers can be told apart."""
    mean = float(expit(z))
    first = mean * (log_expit(z) - log_expit(other))
    return max(0.0, float(first + (1 - mean) * (log_expit(-z) - log_expit(-other))))


def divergence_bound(z: float, other: float, constant: float = 1 / 8) -> float:
    """constant (z - other)^2, which `bernoulli_divergence` does not exceed.

    1/8 is sharp: the divergence is (z - other)^2 / 2 times a curvature sigma' of at most 1/4. As printed it is 1.
    Source: Chowdhury, Zhou, Natarajan 2024, Claim B.1; the constant derived.
    """
    return constant * (z - other) ** 2
