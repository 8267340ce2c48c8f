"""Objective perturbation where a whole record (x, y) is protected: its noise, and what the noise is worth.

L(u) = sum_i log(1 + exp(-(2 y_i - 1) u . x_i)) + n ridge ||u||^2 / 2 + b . u over ||u|| <= B with ||x_i|| <= radius and
b ~ N(0, stddev^2 I): only its minimiser is released. All of this is over real numbers.
"""

import math
from dataclasses import dataclass
from decimal import Decimal

from protocol.arms import RECORD
from protocol.messages import Mechanism, Task
from server.mechanisms.gaussian import analytic_noise_multiplier, delta_float, epsilon_float, gaussian_delta_bound

_SLACK = 1 + 2.0**-40  # a clipped row may be longer than its radius by rounding
_EXACT = 1e-10  # a mean gradient that Newton's method reaches
_OUTPUT = 0.01  # the share of epsilon and delta for noise on the output
_NOISE = 0.9  # the share of the objective's epsilon for its noise, in the printed constants
_SPLITS = 99  # shares of epsilon that are tried for the ridge


@dataclass(frozen=True)
class Perturbation:
    """What is added to the objective: b of `stddev` per coordinate, and `ridge` ||u||^2 / 2 to the mean loss."""

    stddev: float
    ridge: float


@dataclass(frozen=True)
class ApproximateMinimiser:
    """A perturbed objective that is minimised until its mean gradient is at most `tolerance`, then noise `output`."""

    objective: Perturbation
    tolerance: float
    output: float


def record_delta_bound(epsilon: float, noise: Perturbation, n: int, radius: float) -> float:
    """An upper bound on delta at epsilon for the exact minimiser; 1 where the ridge alone costs epsilon.

    G(2 R / stddev) + 2 G(R / stddev) at epsilon - log(1 + R^2 / (4 n ridge)), G the Gaussian profile, R = radius.

    Guarantee: (epsilon, result) over real numbers; unit: one record; neighbours: replace one record.
    Source: derived, see docs/PRIVACY.md; Chowdhury, Zhou, Natarajan 2024, Theorem E.1.
    """
    left = _after_ridge(epsilon, noise, n, radius)
    if not left > 0:
        return 1.0
    mu = radius / noise.stddev
    return min(1.0, gaussian_delta_bound(left, 2 * mu) + 2 * gaussian_delta_bound(left, mu))


def add_remove_delta_bound(epsilon: float, noise: Perturbation, n: int, radius: float) -> float:
    """The same where neighbours add or remove a record, with n ridge and stddev public constants: G(R / stddev).

    Guarantee: (epsilon, result) over real numbers; unit: one record; neighbours: add or remove one record.
    Source: derived, see docs/PRIVACY.md.
    """
    left = _after_ridge(epsilon, noise, n, radius)
    return gaussian_delta_bound(left, radius / noise.stddev) if left > 0 else 1.0


def paper_perturbation(epsilon: Decimal, delta: Decimal, n: int, radius: float, ridge: float | None) -> Perturbation:
    """The theorem's constants: ridge >= R^2 / (n epsilon), stddev = 4 R sqrt(2 log(4/delta) + epsilon/2) / epsilon.

    With R = 2 L: alpha >= 4 L^2 / (n epsilon) and 8 L / epsilon. `ridge` None takes the least.

    Guarantee: `record_delta_bound` is at most delta. Raises ValueError for a smaller ridge.
    Source: Chowdhury, Zhou, Natarajan 2024, Theorem E.1, constants derived.
    """
    level, limit = epsilon_float(epsilon), delta_float(delta)
    least = radius**2 / (n * level)
    stddev = 4 * radius * math.sqrt(2 * math.log(4 / limit) + level / 2) / level
    return _kept(epsilon, delta, n, radius, Perturbation(stddev, _at_least(ridge, least)))


def tight_perturbation(
    epsilon: Decimal, delta: Decimal, n: int, radius: float, ridge: float | None, bound: float, dimension: int
) -> Perturbation:
    """The least noise that `record_delta_bound` allows at a ridge.

    `ridge` None takes the one that minimises ridge B + stddev sqrt(p) / n, the bias and noise of the score, over 99
    shares of epsilon for the ridge; B = `bound`, 1 where there is no ball. All of that is public.

    Guarantee: `record_delta_bound` is at most delta. Raises ValueError for a ridge that costs all of epsilon.
    Source: derived, see docs/PRIVACY.md.
    """
    level = epsilon_float(epsilon)
    tried = (
        [ridge]
        if ridge is not None
        else [radius**2 / (4 * n * math.expm1(level * (1 - share / (_SPLITS + 1)))) for share in range(1, _SPLITS + 1)]
    )
    known = [Perturbation(_least_stddev(epsilon, delta, n, radius, alpha), alpha) for alpha in tried]
    size = 1.0 if math.isinf(bound) else bound
    best = min(known, key=lambda one: one.ridge * size + one.stddev * math.sqrt(dimension) / n)
    return _kept(epsilon, delta, n, radius, best)


def approximate_minimiser(
    epsilon: Decimal,
    delta: Decimal,
    n: int,
    radius: float,
    ridge: float | None,
    bound: float,
    dimension: int,
    tight: bool,
) -> ApproximateMinimiser:
    """A minimiser that need not be exact: 1 % of epsilon and delta go to Gaussian noise on it.

    Two minimisers with mean gradients of at most gamma are up to 2 gamma / ridge apart where the exact ones agree.
    `tight`: noise of `tight_perturbation`, the analytic Gaussian, gamma = 1e-10. Else as printed, with this factor of
    2: gamma = 1 / n^2, ridge >= 2 (R^2/4) / (n (1 - 0.9) epsilon'),
    stddev = 2 R (1 + sqrt(2 log(1/delta'))) / (0.9 epsilon').

    Guarantee: (epsilon, delta) over real numbers; unit: one record; neighbours: replace one record.
    Raises ValueError for a smaller ridge, and as printed for (1 - 0.9) epsilon' >= 1.
    Source: Iyengar et al. 2019, Algorithm 1; the factor of 2: derived, see docs/PRIVACY.md.
    """
    parts = [(epsilon * share, delta * share) for share in (Decimal(str(1 - _OUTPUT)), Decimal(str(_OUTPUT)))]
    (inner, slack), (outer, rest) = parts
    tolerance = _EXACT if tight else 1.0 / n**2
    if tight:
        objective = tight_perturbation(inner, slack, n, radius, ridge, bound, dimension)
        multiplier = analytic_noise_multiplier(outer, rest)
    else:
        left = (1 - _NOISE) * epsilon_float(inner)
        if not left < 1:
            raise ValueError(f"expected epsilon < {1 / (1 - _NOISE) / (1 - _OUTPUT):.3g} for the printed constants")
        least = 2 * radius**2 / 4 / (n * left)
        stddev = 2 * radius * _classical(_NOISE * epsilon_float(inner), delta_float(slack))
        objective = _kept(inner, slack, n, radius, Perturbation(stddev, _at_least(ridge, least)))
        multiplier = _classical(epsilon_float(outer), delta_float(rest))
    return ApproximateMinimiser(objective, tolerance, 2 * tolerance / objective.ridge * multiplier)


def noise_of(task: Task, mechanism: Mechanism) -> Perturbation | ApproximateMinimiser:
    """What a mechanism for records adds, from public constants alone.

    Guarantee: that of the function which sizes it; unit: one record; neighbours: replace one record.
    Raises ValueError for a claim it cannot keep. Source: derived, see docs/PRIVACY.md.
    """
    epsilon, delta, radius, ridge = (mechanism.get(name) for name in ("epsilon", "delta", "radius", "ridge"))
    if epsilon is None or delta is None or radius is None:
        raise ValueError(f"expected epsilon, delta and a radius of {mechanism.name}, got {mechanism.parameters}")
    size, alpha = float(radius) * _SLACK, None if ridge is None else float(ridge)
    bound = math.inf if task.problem.bound is None else float(task.problem.bound)
    tight, p = mechanism.get("tight") is not None, task.problem.reduced_dimension
    if mechanism.name != RECORD[0]:
        return approximate_minimiser(epsilon, delta, task.n, size, alpha, bound, p, tight)
    if tight:
        return tight_perturbation(epsilon, delta, task.n, size, alpha, bound, p)
    return paper_perturbation(epsilon, delta, task.n, size, alpha)


def _classical(epsilon: float, delta: float) -> float:
    return (1 + math.sqrt(2 * math.log(1 / delta))) / epsilon


def _after_ridge(epsilon: float, noise: Perturbation, n: int, radius: float) -> float:
    return epsilon - math.log1p(radius**2 / (4 * n * noise.ridge))


def _at_least(ridge: float | None, least: float) -> float:
    if ridge is not None and ridge < least:
        raise ValueError(f"expected a ridge of at least {least:.6g} for the printed constants, got {ridge}")
    return least if ridge is None else ridge


def _least_stddev(epsilon: Decimal, delta: Decimal, n: int, radius: float, ridge: float) -> float:
    """The smallest stddev at which the bound is at most delta, by bisection to a relative 1e-12, rounded up."""
    level, limit = epsilon_float(epsilon), delta_float(delta)
    low, high = 1e-6 * radius, radius * 2.0**20
    if record_delta_bound(level, Perturbation(high, ridge), n, radius) > limit:
        least = radius**2 / (4 * n * math.expm1(level))
        raise ValueError(f"expected a ridge well above {least:.3g}, where it alone costs epsilon, got {ridge:.3g}")
    while high > low * (1 + 1e-12):
        middle = math.sqrt(low * high)
        if record_delta_bound(level, Perturbation(middle, ridge), n, radius) <= limit:
            high = middle
        else:
            low = middle
    return high


def _kept(epsilon: Decimal, delta: Decimal, n: int, radius: float, noise: Perturbation) -> Perturbation:
    """The perturbation, where the bound says that it keeps the claim. Raises ValueError."""
    found = record_delta_bound(epsilon_float(epsilon), noise, n, radius)
    if not found <= delta_float(delta):
        raise ValueError(f"expected noise that keeps delta = {delta} at epsilon = {epsilon}, got {found:.3g}")
    return noise
