"""Objective perturbation where a whole record may change, features too: Theorem E.1, and a tighter count of noise."""

import math

from scipy.optimize import brentq

from server.mechanisms.gaussian import gaussian_delta
from studies.theory.constants import positive, probability


def printed_ridge(n: float, epsilon: float, feature_bound: float) -> float:
    """alpha = 4 L^2 / (n epsilon), the least regulariser of the theorem: its determinant costs epsilon / 2.

    Raises ValueError. Source: Chowdhury, Zhou, Natarajan 2024, Theorem E.1; the constant derived along its proof.
    """
    positive(n=n, epsilon=epsilon, feature_bound=feature_bound)
    return 4 * feature_bound**2 / (n * epsilon)


def printed_noise(epsilon: float, delta: float, feature_bound: float) -> float:
    """stddev = 8 L / epsilon sqrt(2 log(4/delta) + epsilon / 2).

    Guarantee: (epsilon, delta) for one record, neighbours: replace one record; for the exact unconstrained minimiser
    with `printed_ridge`, and features that are clipped at L.
    Raises ValueError. Source: Chowdhury, Zhou, Natarajan 2024, Theorem E.1; the constant derived along its proof.

    >>> round(printed_noise(1.0, 1e-5, 1.0), 1)
    41.0
    """
    positive(epsilon=epsilon, feature_bound=feature_bound)
    probability(delta=delta)
    return 8 * feature_bound / epsilon * math.sqrt(2 * math.log(4 / delta) + epsilon / 2)


def tight_ridge(n: float, epsilon: float, feature_bound: float, share: float) -> float:
    """The alpha whose determinant costs (1 - share) epsilon: L^2 / (n (e^((1 - share) epsilon) - 1)).

    The two data sets' Hessians differ by u u^T - v v^T with norms at most L each, so the determinants' ratio is at
    most 1 + L^2 / (n alpha). Raises ValueError. Source: derived.
    """
    positive(n=n, epsilon=epsilon, feature_bound=feature_bound)
    probability(share=share)
    return feature_bound**2 / (n * math.expm1((1 - share) * epsilon))


def tight_delta(stddev: float, epsilon: float, feature_bound: float, share: float) -> float:
    """delta <= G(4 L / stddev) + 2 G(2 L / stddev), G the Gaussian profile at share * epsilon.

    b' - b = t x - t' x' with residuals of known sign and size at most 1: the loss is convex in them, so that its
    maximum is at a corner, and the three corners that matter are added up.

    Guarantee: (epsilon, delta) for one record, neighbours: replace one record; for the exact unconstrained minimiser
    with `tight_ridge`, and features that are clipped at L.
    Raises ValueError. Source: derived.
    """
    positive(stddev=stddev, epsilon=epsilon, feature_bound=feature_bound)
    probability(share=share)
    far, near = (gaussian_delta(share * epsilon, k * feature_bound / stddev) for k in (4, 2))
    return far + 2 * near


def tight_noise(epsilon: float, delta: float, feature_bound: float, share: float) -> float:
    """The stddev at which `tight_delta` is delta, to twelve digits: a number for comparison, not rounded up.

    Raises ValueError. Source: derived.

    >>> [round(tight_noise(1.0, 1e-5, 1.0, share), 1) for share in (0.5, 0.9)]
    [28.1, 16.4]
    """
    probability(delta=delta)
    low, high = 1e-3 * feature_bound, printed_noise(epsilon, delta, feature_bound) / share
    return float(
        brentq(lambda stddev: tight_delta(stddev, epsilon, feature_bound, share) - delta, low, high, rtol=1e-13)
    )
