"""The noise multipliers of the central model: the analytic one, and that of objective perturbation as printed."""

import math
from decimal import Decimal

from protocol.gaussian import (
    LARGEST_EPSILON,
    SMALLEST_DELTA,
    analytic_noise_multiplier,
    delta_float,
    epsilon_float,
    gaussian_delta,
    gaussian_delta_bound,
    gaussian_mu,
)

__all__ = [
    "LARGEST_EPSILON",
    "SMALLEST_DELTA",
    "analytic_noise_multiplier",
    "delta_float",
    "epsilon_float",
    "gaussian_delta",
    "gaussian_delta_bound",
    "gaussian_mu",
    "paper_noise_multiplier",
]


def paper_noise_multiplier(epsilon: Decimal, delta: Decimal) -> float:
    """The noise of objective perturbation as printed, in units of the sensitivity max ||x_i|| <= 2L.

    sqrt(2 log(2/delta) + epsilon) / epsilon; times 2L this is L sqrt(8 log(2/delta) + 4 epsilon) / epsilon.

    Guarantee: (epsilon, delta) for the sensitivity's unit and neighbours; 1.35 to 1.6 times what is needed.
    Raises TypeError and ValueError as `epsilon_float` and `delta_float`.
    Source: Chowdhury, Zhou, Natarajan 2024, Theorem 5.2.
    """
    level, limit = epsilon_float(epsilon), delta_float(delta)
    return math.sqrt(2 * math.log(2 / limit) + level) / level
