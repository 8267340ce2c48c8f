"""Thresholds, rounds and steps of private gradient descent on heavy-tailed gradients, from public constants alone."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from server.thresholds import bias_constant, group_error_bound, group_threshold, groups_count, positive, probability


@dataclass(frozen=True)
class Descent:
    """How far to cut gradients, how often to step, and how far. `gradient_error` bounds each gradient's l2 error."""

    threshold: float
    rounds: int
    step: float
    gradient_error: float | None = None


def theorem_threshold(moment: float, tail: float, n: int, epsilon: float, dimension: int, rounds: int = 1) -> float:
    """tau = (u epsilon n / (d^(3/2) sqrt(T)))^(1/(1+v)) of Theorem 7, over T rounds; with T = 1 that of Theorem 6.

    As printed, with the whole epsilon; up to constants and logarithms. Raises ValueError for what is not positive.
    Source: Tao, Wu, Cheng, Wang 2022, Theorems 6 and 7.

    >>> theorem_threshold(16.0, 1.0, 400, 1.0, 1), theorem_threshold(16.0, 1.0, 400, 1.0, 1, 16)
    (80.0, 40.0)
    """
    bias_constant("truncate", tail)
    positive(moment=moment, n=n, epsilon=epsilon, dimension=dimension, rounds=rounds)
    return float((moment * epsilon * n / (dimension**1.5 * math.sqrt(rounds))) ** (1 / (1 + tail)))


def convex_descent(
    moment: float, tail: float, n: int, epsilon: float, dimension: int, gradient_norm: float, diameter: float
) -> Descent:
    """Theorem 6, all records in each round: tau = (u epsilon n / d^(3/2))^(1/(1+v)), T = (R epsilon n / (tau d^2))^2.

    R = `gradient_norm`, step = diameter / (R sqrt(T)); T is rounded down, and at least 1. Up to constants and
    logarithms. Raises ValueError for a constant that is not positive. Source: Tao, Wu, Cheng, Wang 2022, Theorem 6.
    """
    positive(gradient_norm=gradient_norm, diameter=diameter)
    threshold = theorem_threshold(moment, tail, n, epsilon, dimension)
    rounds = max(1, math.floor((gradient_norm * epsilon * n / (threshold * dimension**2)) ** 2))
    return Descent(threshold, rounds, diameter / (gradient_norm * math.sqrt(rounds)))


def contraction(strength: float, smoothness: float) -> float:
    """kappa = 1 - a b / (a + b)^2: how one step of length 1/(a + b) contracts, a-strong convexity, b-smoothness.

    Raises ValueError unless 0 < a <= b. Source: Tao, Wu, Cheng, Wang 2022, Theorem 7.

    >>> contraction(1.0, 1.0)
    0.75
    """
    positive(strength=strength, smoothness=smoothness)
    if strength > smoothness:
        raise ValueError(f"expected strength <= smoothness, got {strength} > {smoothness}")
    return 1 - strength * smoothness / (strength + smoothness) ** 2


def strong_rounds(strength: float, smoothness: float, diameter: float, gradient_error: float) -> int:
    """T = max(1, ceil(log(D a b / ((a + b) G)) / log(1/kappa))): what is left of the start equals what G leaves.

    With the diameter D, without which the printed T has a dimension. Raises ValueError for what is not positive.
    Source: Tao, Wu, Cheng, Wang 2022, Theorem 7; derived, see docs/HEAVY_TAILS.md.
    """
    kappa = contraction(strength, smoothness)
    positive(diameter=diameter, gradient_error=gradient_error)
    start = diameter * strength * smoothness / ((strength + smoothness) * gradient_error)
    return max(1, math.ceil(math.log(start) / -math.log(kappa)))


def strong_descent(
    moment: float,
    tail: float,
    n: int,
    epsilon: float,
    delta: float,
    dimension: int,
    failure: float,
    curvature: tuple[float, float],
    diameter: float,
    paper: bool = False,
) -> Descent:
    """Theorem 7, a fresh batch of floor(n/T) records a round: step 1/(a + b), T from G, G from T, in two turns.

    tau = (u epsilon (n/T) / (m sqrt(8 d log(1.25/delta))))^(1/(1+v)) with m = 4 log(2 d T / xi) groups, since batches
    are fresh. `paper`: tau = (u epsilon n / (d^(3/2) sqrt(T)))^(1/(1+v)) as printed. G is `group_error_bound` under the
    classical noise of Algorithm 3. `curvature` is (a, b).
    Raises ValueError for a constant that is not positive, or for fewer records than rounds.
    Source: Tao, Wu, Cheng, Wang 2022, Theorem 7; the default is derived, see docs/HEAVY_TAILS.md.
    """
    bias_constant("truncate", tail)
    positive(moment=moment, n=n, epsilon=epsilon, dimension=dimension)
    limit = probability("delta", delta)

    def at(rounds: int) -> tuple[float, float]:
        if rounds > n:
            raise ValueError(f"expected at least a record a round, got {n} for {rounds} rounds")
        batch, each = n // rounds, failure / rounds
        groups = groups_count(dimension, each, batch)
        tau = group_threshold(moment, tail, batch, epsilon, delta, dimension, groups)
        tau = theorem_threshold(moment, tail, n, epsilon, dimension, rounds) if paper else tau
        noise = math.sqrt(8 * dimension * math.log(1.25 / limit)) / (epsilon * (batch // groups))
        return tau, group_error_bound(tau, moment, tail, batch // groups, dimension, noise, each)

    return _settled(at, curvature, diameter)


def _settled(at: Callable[[int], tuple[float, float]], curvature: tuple[float, float], diameter: float) -> Descent:
    strength, smoothness = curvature
    rounds = 1
    for _ in range(2):
        rounds = strong_rounds(strength, smoothness, diameter, at(rounds)[1])
    threshold, error = at(rounds)
    return Descent(threshold, rounds, 1 / (strength + smoothness), error)
