"""Bounds of the local model, on the norm of the error, not its square; upper ones fail with probability `failure`.

n labels, d coordinates, ||phi|| <= L (`feature_bound`), ||theta|| <= B (`bound`), gamma (`curvature`) and kappa
(`coverage`: the smallest eigenvalue of E[x x^T]; of the sample where it says so), Sigma_D = (1/n) sum x_i x_i^T.
Constants that the paper leaves unnamed are arguments; `studies.theory.fitted` takes them from results.
"""

import math

import numpy as np
from scipy.special import digamma

from studies.theory.constants import convexity_threshold, debias_factor, positive, probability, rr_curvature, rr_slope


def price(epsilon: float) -> float:
    """1 + 1 / (e^epsilon - 1)^2, by which local privacy raises a lower bound on the squared error.

    Raises ValueError unless epsilon > 0. Source: Chowdhury, Zhou, Natarajan 2024, Theorem 3.1.
    """
    positive(epsilon=epsilon)
    return 1 + (math.exp(-epsilon) / math.expm1(-epsilon)) ** 2


def least_seminorm(n: float, epsilon: float, dimension: int, constant: float) -> float:
    """No epsilon-label-private estimate has sup over theta of E ||error||^2_Sigma_D below the square of this, n large.

    sqrt(c (d/n + d / (n (e^epsilon - 1)^2))). c = 4 holds to first order: every private channel of a binary label is
    post-processed randomised response, whose Fisher information is at most tanh^2(epsilon / 2) / 4 x x^T a label.

    Raises ValueError for arguments that are not positive.
    Source: Chowdhury, Zhou, Natarajan 2024, Theorem 3.1; c derived from Cramer-Rao.
    """
    positive(n=n, dimension=dimension, constant=constant)
    return math.sqrt(constant * dimension / n * price(epsilon))


def least_l2(n: float, epsilon: float, dimension: int, trace: float, constant: float) -> float:
    """The same for E ||error||^2: sqrt(c d^2 / tr Sigma_D (1/n + 1 / (n (e^epsilon - 1)^2))), with the same c.

    `trace` is tr Sigma_D; with d lambda_max(Sigma_D) in its place it is the weaker second form of the theorem.
    Raises ValueError for arguments that are not positive.
    Source: Chowdhury, Zhou, Natarajan 2024, Theorem 3.2; tr(Sigma^-1) >= d^2 / tr Sigma.
    """
    positive(trace=trace)
    return least_seminorm(n, epsilon, dimension, constant) * math.sqrt(dimension / trace)


def rr_mle_seminorm(
    n: float, epsilon: float, dimension: int, feature_bound: float, bound: float, failure: float, constant: float
) -> float:
    """||error||_Sigma_D <= C G_epsilon / gamma_epsilon sqrt((d + log(1/failure)) / n) for RR-MLE, if epsilon > 4 L B.

    Below it the loss need not be convex and the theorem says nothing: infinity, though the estimate exists.
    Raises ValueError for arguments that are not positive. Source: Chowdhury, Zhou, Natarajan 2024, Theorem 4.1.
    """
    width = constant * deviation(n, dimension, failure)
    if epsilon <= convexity_threshold(feature_bound, bound):
        positive(epsilon=epsilon)
        return math.inf
    return width * rr_slope(epsilon, feature_bound, bound) / rr_curvature(epsilon, feature_bound, bound)


def debiased_seminorm(
    n: float,
    epsilon: float,
    dimension: int,
    curvature: float,
    failure: float,
    constant: float,
    ridge: float = 0.0,
    ridge_constant: float = 1.0,
    bound: float = 0.0,
) -> float:
    """||error||_(Sigma_D + lambda I) <= C / gamma coth(epsilon/2) sqrt((d + log(1/failure)) / n) + C' B sqrt(lambda).

    For the exact de-biased minimiser at every epsilon; lambda is `ridge`, C' `ridge_constant`.
    Raises ValueError for arguments that are not positive. Source: Chowdhury, Zhou, Natarajan 2024, Theorem 4.2.
    """
    positive(curvature=curvature)
    width = constant / curvature * debias_factor(epsilon) * deviation(n, dimension, failure)
    return width + ridge_constant * bound * math.sqrt(ridge)


def debiased_l2(
    n: float, epsilon: float, dimension: int, curvature: float, smallest: float, failure: float, constant: float
) -> float:
    """||error|| <= C / (gamma sqrt(lambda_min(Sigma_D))) coth(epsilon/2) sqrt((d + log(1/failure)) / n).

    For the exact de-biased minimiser; `smallest` is lambda_min(Sigma_D).
    Raises ValueError for arguments that are not positive. Source: Chowdhury, Zhou, Natarajan 2024, Theorem 4.3.
    """
    positive(smallest=smallest)
    return debiased_seminorm(n, epsilon, dimension, curvature, failure, constant) / math.sqrt(smallest)


def sgd_l2(
    n: float,
    epsilon: float,
    feature_bound: float,
    curvature: float,
    coverage: float,
    failure: float,
    constant: float,
    choices: int = 2,
) -> float:
    """||error|| <= C L / (gamma kappa) (e^eps + K - 1) / (e^eps - 1) sqrt(log(log n / failure) / n): one-pass descent.

    Pairs: K = 2, step coth(epsilon/2) / (gamma kappa t). Top choices out of K: `curvature` is
    `top_choice_curvature`, and every pair needs the coverage. Infinity where n < 4 or failure >= 1/e.
    Raises ValueError for arguments that are not positive.
    Source: Chowdhury, Zhou, Natarajan 2024, Theorems 4.5 and C.2.
    """
    positive(n=n, feature_bound=feature_bound, curvature=curvature, coverage=coverage, constant=constant)
    slope = constant * feature_bound / (curvature * coverage) * debias_factor(epsilon, choices)
    return slope * math.sqrt(_repeated(n, failure) / n)


def sgd_l2_rakhlin(
    n: float, epsilon: float, feature_bound: float, curvature: float, coverage: float, failure: float
) -> float:
    """The same for pairs, with every constant: sqrt((624 log(log n / failure) + 1) 4 L^2 / (alpha^2 n)).

    alpha = tanh(epsilon/2) gamma kappa. Raises ValueError for arguments that are not positive.
    Source: Chowdhury, Zhou, Natarajan 2024, Theorem 4.5; the constant from Rakhlin, Shamir, Sridharan 2012,
    Proposition 1, for gradients of norm at most 2 L.
    """
    positive(n=n, feature_bound=feature_bound, curvature=curvature, coverage=coverage)
    alpha = curvature * coverage / debias_factor(epsilon)
    return 2 * feature_bound / alpha * math.sqrt((624 * _repeated(n, failure) + 1) / n)


def sgd_recursion(squared: float, t: int, alpha: float, feature_bound: float, noise: float = 0.0) -> float:
    """What one step of descent leaves of a squared distance: (1 - 2/t) D + 2/(alpha t) <z, theta - theta*> + G.

    G = 4 L^2 / (alpha^2 t^2); `noise` is the inner product, of mean zero. alpha = tanh(epsilon/2) gamma kappa.
    Raises ValueError for t < 1. Source: Chowdhury, Zhou, Natarajan 2024, equation (17).
    """
    positive(t=t, alpha=alpha, feature_bound=feature_bound)
    return (1 - 2 / t) * squared + 2 / (alpha * t) * noise + (2 * feature_bound / (alpha * t)) ** 2


def sgd_mean_square(n: int, alpha: float, feature_bound: float) -> float:
    """The recursion solved in expectation: E ||error||^2 after n >= 2 steps, at most 4 L^2 / (alpha^2 n).

    4 L^2 / alpha^2 (n - H_n) / (n (n - 1)) with H_n = 1 + 1/2 + ... + 1/n; the second step forgets the start.
    Raises ValueError for n < 2. Source: derived from Chowdhury, Zhou, Natarajan 2024, equation (17).
    """
    positive(alpha=alpha, feature_bound=feature_bound)
    if n < 2:
        raise ValueError(f"expected n >= 2, got {n}")
    harmonic = float(digamma(n + 1)) + np.euler_gamma
    return (2 * feature_bound / alpha) ** 2 * (n - harmonic) / (n * (n - 1))


def deviation(n: float, dimension: int, failure: float) -> float:
    """sqrt((d + log(1/failure)) / n), the width that upper bounds share. Raises ValueError."""
    positive(n=n, dimension=dimension)
    probability(failure=failure)
    return math.sqrt((dimension - math.log(failure)) / n)


def _repeated(n: float, failure: float) -> float:
    """log(log n / failure), infinite where the martingale bound behind it is not stated."""
    probability(failure=failure)
    return math.inf if n < 4 or failure >= 1 / math.e else math.log(math.log(n) / failure)
