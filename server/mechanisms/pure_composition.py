"""T releases of one pure level together: what they cost at a delta, exactly and by what others use.

No (e, 0)-private release says more than randomised response of level e, however questions depend on earlier answers, so
what T of these cost is what T of any cost at most.
"""

import math
from decimal import Decimal

import numpy as np
from scipy.special import gammaln

from server.mechanisms.gaussian import LARGEST_EPSILON, delta_float
from server.mechanisms.zcdp import epsilon_of

_SLACK = 2.0**-44  # relative, of logarithms: some ten operations each
_LAST_BITS = 2.0**-51
_SMALLEST = 1e-9  # no smaller level is told


def pure_delta_bound(epsilon: float, level: float, rounds: int) -> float:
    """An upper bound on delta at epsilon of T releases of level e.

    sum over k of C(T, k) max(0, exp(k e) - exp(epsilon + (T - k) e)) / (1 + exp(e))^T, rounded up: what randomised
    responses attain.

    Guarantee: (epsilon, result) for the unit and neighbours of the level. Raises ValueError for what is not positive.
    Source: Kairouz, Oh, Viswanath 2015, Theorem 3.3.
    """
    if rounds < 1 or not (math.isfinite(level) and level > 0 and epsilon >= 0):
        raise ValueError(f"expected rounds >= 1, a level > 0 and epsilon >= 0, got {rounds}, {level} and {epsilon}")
    k = np.arange(rounds + 1, dtype=np.float64)
    gain = (2 * k - rounds) * level - epsilon + _LAST_BITS * (rounds * level + epsilon)  # a difference: rounded up
    k, gain = k[gain > 0], gain[gain > 0]
    if not len(k):
        return 0.0
    weight = gammaln(rounds + 1) - gammaln(k + 1) - gammaln(rounds - k + 1) + k * level
    logs = weight - rounds * (level + math.log1p(math.exp(-level))) + np.log(-np.expm1(-gain))
    error = _SLACK * (1 + rounds * (1 + level))
    return min(1.0, math.fsum(np.exp(logs)) * math.exp(error))


def pure_epsilon(delta: Decimal, level: float, rounds: int) -> float:
    """The least level of T releases of level e at this delta, rounded up: at most T e. Infinity above 1000.

    Guarantee: (result, delta) over all releases for the unit and neighbours of the level. Raises TypeError and
    ValueError as `delta_float` and `pure_delta_bound`. Source: as `pure_delta_bound`.
    """
    limit, low, high = delta_float(delta), _SMALLEST, basic_epsilon(level, rounds)
    if pure_delta_bound(low, level, rounds) <= limit:
        return low
    while low < (middle := (low + high) / 2) < high:
        if pure_delta_bound(middle, level, rounds) <= limit:
            high = middle
        else:
            low = middle
    return high if high <= LARGEST_EPSILON else math.inf


def basic_epsilon(level: float, rounds: int) -> float:
    """T e, rounded up. Source: Dwork, Roth 2014, Theorem 3.16."""
    return level if rounds == 1 else math.nextafter(rounds * level, math.inf)


def pure_zcdp_epsilon(delta: Decimal, level: float, rounds: int, tight: bool = True) -> float:
    """The level of T releases of level e by zCDP, of which each has e^2 / 2, rounded up; infinity above 1000.

    Guarantee: (result, delta) over all releases. Source: Bun, Steinke 2016, Proposition 1.4.
    """
    return epsilon_of(pure_rho(level, rounds), delta, tight)


def pure_rho(level: float, rounds: int) -> float:
    """T e^2 / 2, rounded up. Source: Bun, Steinke 2016, Proposition 1.4 and Lemma 1.7."""
    return rounds * level**2 / 2 * (1 + 2.0**-48)
