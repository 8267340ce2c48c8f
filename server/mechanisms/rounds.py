"""Noise of several releases that share one claim, by the name of a mechanism of records."""

import math
from collections.abc import Callable
from decimal import Decimal

from server.mechanisms.gaussian import analytic_noise_multiplier, delta_float, epsilon_float, gaussian_delta_bound


def exact_rounds(epsilon: Decimal, delta: Decimal, rounds: int) -> float:
    """stddev / sensitivity of each of `rounds` Gaussian releases that are together (epsilon, delta)-private.

    sqrt(rounds) times the analytic multiplier: releases with mu each, chosen one after another, are together exactly
    one with mu sqrt(rounds).

    Guarantee: (epsilon, delta) for the sensitivity's unit and neighbours, over all rounds together.
    Raises ValueError for rounds < 1, and as `analytic_noise_multiplier`.
    Source: Dong, Roth, Su 2022, Corollary 3.3; Balle, Wang 2018, Theorem 8.
    """
    _check(rounds)
    return math.nextafter(math.sqrt(rounds) * analytic_noise_multiplier(epsilon, delta), math.inf)


def classical_rounds(epsilon: Decimal, delta: Decimal, rounds: int) -> float:
    """The noise as printed: advanced composition, then the classical Gaussian mechanism.

    sqrt(2 log(1.25 / delta')) / epsilon', with (epsilon', delta') = (epsilon, delta) in one round and
    epsilon / (2 sqrt(2 T log(2 / delta))), delta / (2 T) in T.

    Guarantee: (epsilon, delta) over all rounds; the formula is proved for epsilon' < 1, and used only where the exact
    profile of the Gaussian mechanism confirms it.
    Raises ValueError for rounds < 1, and where the profile does not confirm the claim.
    Source: Tao, Wu, Cheng, Wang 2022, Algorithms 1 to 3; Dwork, Roth 2014, Theorem A.1.
    """
    _check(rounds)
    level, limit = epsilon_float(epsilon), delta_float(delta)
    if rounds > 1:
        level, limit = split(level, limit, rounds)
    multiplier = math.sqrt(2 * math.log(1.25 / limit)) / level
    if limit >= 1 or gaussian_delta_bound(level, 1 / multiplier) > limit:
        raise ValueError(
            f"expected a claim for which the classical Gaussian mechanism holds, got ({epsilon}, {delta}): "
            'use the mechanism "gaussian"'
        )
    return math.nextafter(multiplier, math.inf)


def split(epsilon: float, delta: float, rounds: int) -> tuple[float, float]:
    """(epsilon', delta') of each of T rounds: epsilon / (2 sqrt(2 T log(2 / delta))), delta / (2 T).

    Source: Tao, Wu, Cheng, Wang 2022, Algorithm 2; Dwork, Rothblum, Vadhan 2010, Theorem III.3.
    """
    return epsilon / (2 * math.sqrt(2 * rounds * math.log(2 / delta))), delta / (2 * rounds)


def _check(rounds: int) -> None:
    if rounds < 1:
        raise ValueError(f"expected at least one round, got {rounds}")


ROUNDS: dict[str, Callable[[Decimal, Decimal, int], float]] = {
    "gaussian": exact_rounds,
    "gaussian-classical": classical_rounds,
}
