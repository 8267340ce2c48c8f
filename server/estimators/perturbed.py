"""One-pass gradient descent with one noise vector in the objective: for its accuracy alone, it protects nobody."""

import math
from dataclasses import replace
from decimal import Decimal

import numpy as np

from protocol.coins import Stream, normal, words
from protocol.warned import warn
from server.estimators.base import Estimate, Options
from server.estimators.sgd import pilot_alpha
from server.estimators.workspace import Workspace
from server.kernels_perturbed import descend_perturbed
from server.kernels_solve import norm
from server.mechanisms.gaussian import paper_noise_multiplier

_NO_CLAIM = warn(
    "no-claim", "Theorem 5.2 covers the exact minimiser, not one pass, whose last label shows through its noise"
)


def objective_perturbation_sgd(known: Workspace, options: Options) -> Estimate:
    """The last iterate of one pass over clear labels, with noise of Theorem 5.2 drawn once.

    u <- Proj(u - ((sigma(u . v_t) - y_t) v_t + b / n) / (alpha t)), b ~ N(0, s^2 I),
    s = max ||v_i|| sqrt(2 log(2/delta) + epsilon) / epsilon; alpha = options.step or that of `sgd`.

    Guarantee: none. Replacing y_n moves the result by v_n / (alpha n), the exact minimiser by H^-1 v_n / n: up to
    lambda_max(H) / alpha times as far, under the same noise.
    Raises ValueError for randomised labels; `server.outcome:outcomes` refuses labels that are not simulated.
    Source: Chowdhury, Zhou, Natarajan 2024, Algorithm 2 by stochastic gradients; that it is not covered: derived, see
    docs/PRIVACY.md.
    """
    coins = known.evidence.coins
    if coins is None or known.contrast != 1.0:
        raise ValueError(f"expected clear labels with coins, got contrast {known.contrast}: this makes no claim")
    alpha = pilot_alpha(known, options.bound) if isinstance(options.step, str) else options.step
    rows = known.evidence.rows
    scale = paper_noise_multiplier(Decimal(repr(options.epsilon)), Decimal(repr(options.delta)))
    stddev = scale * math.sqrt(float((rows**2).sum(axis=1).max()))
    b = stddev * normal(words(replace(coins, stream=Stream.CURATOR), 0, known.dimension))
    u = np.zeros(known.dimension)
    for columns, symbols in known.chunks():
        descend_perturbed(columns, symbols, b / known.count, alpha, options.bound, u)
    return Estimate(u, None, norm(u) >= options.bound * (1.0 - 1e-9), (_NO_CLAIM,), 1, math.nan)
