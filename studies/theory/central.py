"""Bounds of the central model, on the norm of the error; names as in `studies.theory.local`.

`delta` is privacy's slack, `failure` the probability that an upper bound fails, `stddev` the noise on a coordinate of
the sum S = sum (y_i - 1/2) x_i, `ridge` the regulariser alpha of the mean loss.
"""

import math
from decimal import Decimal

from server.mechanisms.gaussian import paper_noise_multiplier
from studies.theory.constants import positive, probability
from studies.theory.local import deviation


def objective_noise(epsilon: float, delta: float, feature_bound: float) -> float:
    """The noise of objective perturbation as printed and executed: L sqrt(8 log(2/delta) + 4 epsilon) / epsilon.

    Guarantee: (epsilon, delta) for one label, neighbours: replace one label.
    Raises ValueError. Source: Chowdhury, Zhou, Natarajan 2024, Theorem 5.2.
    """
    positive(epsilon=epsilon, feature_bound=feature_bound)
    probability(delta=delta)
    return 2 * feature_bound * paper_noise_multiplier(Decimal(str(epsilon)), Decimal(str(delta)))


def least_l2(n: float, epsilon: float, delta: float, dimension: int, largest: float, constant: float) -> float:
    """No (epsilon, delta)-label-private estimate has sup over theta of E ||error||^2 below the square of this.

    sqrt(c / lambda_max(Sigma_D) (d/n + d / (n (epsilon + delta))^2)); `largest` is lambda_max.
    Raises ValueError. Source: Chowdhury, Zhou, Natarajan 2024, Theorem 5.1.
    """
    positive(n=n, epsilon=epsilon, dimension=dimension, largest=largest, constant=constant)
    probability(delta=delta)
    return math.sqrt(constant * dimension / largest * (1 / n + 1 / (n * (epsilon + delta)) ** 2))


def least_seminorm(n: float, epsilon: float, delta: float, dimension: int, constant: float) -> float:
    """The same for E ||error||^2_Sigma_D: sqrt(c (d/n + d^2 / (n (epsilon + delta))^2)).

    Stated for delta = 0, and for delta exponentially small in d. Raises ValueError.
    Source: Chowdhury, Zhou, Natarajan 2024, Theorem D.3.
    """
    positive(n=n, epsilon=epsilon, dimension=dimension, constant=constant)
    if delta:
        probability(delta=delta)
    return math.sqrt(constant * (dimension / n + (dimension / (n * (epsilon + delta))) ** 2))


def coverage_sample_size(dimension: int, feature_bound: float, coverage: float, failure: float) -> float:
    """The n = 32 L^2 log(d / failure) / kappa from which on lambda_min(Sigma_D) >= kappa / 2, but for `failure`.

    Raises ValueError. Source: Chowdhury, Zhou, Natarajan 2024, Theorem 5.3; matrix Chernoff.
    """
    positive(dimension=dimension, feature_bound=feature_bound, coverage=coverage)
    probability(failure=failure)
    return 32 * feature_bound**2 * math.log(dimension / failure) / coverage


def objective_l2(
    n: float,
    stddev: float,
    dimension: int,
    feature_bound: float,
    bound: float,
    curvature: float,
    coverage: float,
    ridge: float,
    failure: float,
    constant: float,
) -> float:
    """||error|| <= C / (gamma kappa + alpha) (L sqrt(log(1/f) / n) + alpha B + stddev sqrt(d log(1/f)) / n).

    For the exact minimiser of the perturbed objective; f is `failure`. Infinity where n < `coverage_sample_size`.
    Raises ValueError. Source: Chowdhury, Zhou, Natarajan 2024, Theorem 5.3.
    """
    positive(n=n, bound=bound, curvature=curvature, constant=constant)
    if n < coverage_sample_size(dimension, feature_bound, coverage, failure):
        return math.inf
    tail = -math.log(failure)
    parts = feature_bound * math.sqrt(tail / n) + ridge * bound + stddev * math.sqrt(dimension * tail) / n
    return constant / (curvature * coverage + ridge) * parts


def objective_l2_rate(
    n: float,
    epsilon: float,
    delta: float,
    dimension: int,
    feature_bound: float,
    curvature: float,
    coverage: float,
    failure: float,
    constant: float,
    privacy_constant: float,
) -> float:
    """L / (gamma kappa) (C sqrt(log(1/f) / n) + C' sqrt(d log(1/f) (log(1/delta) + epsilon)) / (epsilon n)).

    What is left of Theorem 5.3 with its noise and a ridge of at most stddev / (n B). Both constants are free.
    Raises ValueError. Source: Chowdhury, Zhou, Natarajan 2024, Theorem 5.4.
    """
    positive(n=n, epsilon=epsilon, dimension=dimension, feature_bound=feature_bound, curvature=curvature)
    positive(coverage=coverage, constant=constant, privacy_constant=privacy_constant)
    probability(delta=delta, failure=failure)
    tail = -math.log(failure)
    noise = math.sqrt(dimension * tail * (epsilon - math.log(delta))) / (epsilon * n)
    return feature_bound / (curvature * coverage) * (constant * math.sqrt(tail / n) + privacy_constant * noise)


def best_ridge(n: float, stddev: float, dimension: int, bound: float) -> float:
    """alpha = stddev sqrt(d) / (n B), which balances the last two terms of `objective_seminorm`.

    Raises ValueError. Source: Chowdhury, Zhou, Natarajan 2024, Theorem D.5.
    """
    positive(n=n, stddev=stddev, dimension=dimension, bound=bound)
    return stddev * math.sqrt(dimension) / (n * bound)


def objective_seminorm(
    n: float,
    stddev: float,
    dimension: int,
    bound: float,
    curvature: float,
    ridge: float,
    failure: float,
    constant: float,
) -> float:
    """||error||_(Sigma_D + alpha I) <= C / gamma (w + sqrt(alpha) B + stddev w / sqrt(n alpha)).

    w = sqrt((d + log(1/failure)) / n). With `best_ridge` the price of privacy is of order sqrt(B stddev) d^(1/4) /
    sqrt(n): not of lower order than w. `shaped_seminorm` is.
    Raises ValueError. Source: Chowdhury, Zhou, Natarajan 2024, Theorem D.5.
    """
    positive(stddev=stddev, bound=bound, curvature=curvature, ridge=ridge, constant=constant)
    width = deviation(n, dimension, failure)
    return constant / curvature * (width + math.sqrt(ridge) * bound + stddev * width / math.sqrt(n * ridge))


def shaped_seminorm(n: float, mu: float, dimension: int, leverage: float, curvature: float) -> float:
    """sqrt(l d) / (gamma n mu): what mu-Gaussian-private noise shaped like Sigma_D adds to E ||error||^2_Sigma_D, root.

    l = max_i x_i^T Sigma_D^-1 x_i >= d is `leverage`: where rows have equal ones the order is that of
    `least_seminorm`, d / (n epsilon). Raises ValueError for a leverage below d, which does not exist.

    Source: derived; the noise H^-1 b / n with b ~ N(0, l / mu^2 Sigma_D), and H >= gamma Sigma_D.
    """
    positive(n=n, mu=mu, dimension=dimension, curvature=curvature)
    if not leverage >= dimension:
        raise ValueError(f"expected leverage >= dimension = {dimension}, got {leverage}")
    return math.sqrt(leverage * dimension) / (curvature * n * mu)
