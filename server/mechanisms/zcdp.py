"""Zero-concentrated differential privacy: what rho is worth as (epsilon, delta), and back, never in the claim's favour.

rho-zCDP: the Renyi divergence of every order alpha > 1 between outputs of neighbours is at most alpha rho.
"""

import math
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from server.mechanisms.discrete_gaussian import root_up
from server.mechanisms.gaussian import LARGEST_EPSILON, delta_float, epsilon_float

_SLACK = 2.0**-46  # relative; covers every rounding error below: some ten operations each
_ORDERS = (
    *(1 + step / 10 for step in range(1, 100)),
    *(11 + step / 2 for step in range(28)),
    *(float(whole) for whole in (*range(25, 65), 128, 256, 512, 1024)),
)
_SMALLEST = 1e-9  # no smaller level is told
_CLOSEST, _FARTHEST = 1e-12, 1e12  # alpha - 1


def zcdp_delta_bound(rho: float, epsilon: float) -> float:
    """An upper bound on delta at epsilon under rho-zCDP.

    inf over alpha > 1 of exp((alpha - 1)(alpha rho - epsilon)) / (alpha - 1) (1 - 1/alpha)^alpha, at the alpha with
    (2 alpha - 1) rho + log(1 - 1/alpha) = epsilon; every alpha gives a bound. Rounded up.

    Guarantee: (epsilon, result) for the unit and neighbours of rho. Raises ValueError for what is not positive.
    Source: Canonne, Kamath, Steinke 2020, Corollary 13.
    """
    _check(rho=rho, epsilon=epsilon)
    low, high = math.log(_CLOSEST), math.log(_FARTHEST)
    while low < (middle := (low + high) / 2) < high:
        excess = math.exp(middle)
        if (1 + 2 * excess) * rho - math.log1p(1 / excess) < epsilon:
            low = middle
        else:
            high = middle
    excess = math.exp(high)
    gain, loss = excess * (1 + excess) * rho, excess * epsilon
    share, order = (1 + excess) * math.log1p(1 / excess), math.log(excess)
    error = _SLACK * (1 + gain + loss + share + abs(order))
    return math.exp(min(0.0, gain - loss - share - order + error))


def simple_zcdp_delta_bound(rho: float, epsilon: float) -> float:
    """exp(-(epsilon - rho)^2 / (4 rho)), rounded up; 1 where epsilon <= rho.

    Guarantee: (epsilon, result) for the unit and neighbours of rho. Raises ValueError for what is not positive.
    Source: Bun, Steinke 2016, Proposition 1.3.
    """
    _check(rho=rho, epsilon=epsilon)
    if epsilon <= rho:
        return 1.0
    exponent = (epsilon - rho) ** 2 / (4 * rho)
    return math.exp(min(0.0, -exponent * (1 - 2.0**-48) + _SLACK * (1 + epsilon + rho)))


def epsilon_of(rho: float, delta: Decimal, tight: bool = True) -> float:
    """The least level at which rho-zCDP has this delta, rounded up: the bound at the result is at most delta.

    `tight` False: rho + 2 sqrt(rho log(1/delta)). Infinity above 1000.
    Guarantee: (result, delta) for the unit and neighbours of rho. Raises TypeError and ValueError as `delta_float`.
    Source: Canonne, Kamath, Steinke 2020, Corollary 13; Bun, Steinke 2016, Proposition 1.3.
    """
    bound, limit = zcdp_delta_bound if tight else simple_zcdp_delta_bound, delta_float(delta)
    low, high = _SMALLEST, float(LARGEST_EPSILON)
    if bound(rho, high) > limit:
        return math.inf
    if bound(rho, low) <= limit:
        return low
    while low < (middle := (low + high) / 2) < high:
        if bound(rho, middle) <= limit:
            high = middle
        else:
            low = middle
    return high


@lru_cache(maxsize=4096, typed=True)  # typed: a double that equals a decimal is still refused
def rho_of(epsilon: Decimal, delta: Decimal, tight: bool = True) -> float:
    """The largest rho that is worth (epsilon, delta), rounded down: the bound at the result is at most delta.

    `tight` False: (sqrt(log(1/delta) + epsilon) - sqrt(log(1/delta)))^2.
    Guarantee: result-zCDP implies (epsilon, delta). Raises TypeError and ValueError as `epsilon_float`, `delta_float`.
    Source: as `epsilon_of`.
    """
    bound = zcdp_delta_bound if tight else simple_zcdp_delta_bound
    level, limit = epsilon_float(epsilon), delta_float(delta)
    high = level
    while bound(high, level) <= limit:
        high *= 2
    low = (level / (math.sqrt(level - math.log(limit)) + math.sqrt(-math.log(limit)))) ** 2 / 2
    while bound(low, level) > limit:
        low /= 2
    while low < (middle := (low + high) / 2) < high:
        if bound(middle, level) <= limit:
            low = middle
        else:
            high = middle
    return low


def zcdp_noise_multiplier(epsilon: Decimal, delta: Decimal, rounds: int = 1, tight: bool = True) -> float:
    """sqrt(T / (2 rho)), rounded up: stddev / sensitivity of each of T Gaussian rounds by zCDP.

    Guarantee: (epsilon, delta) over all rounds. Raises as `rho_of`, and ValueError for rounds < 1.
    Source: Bun, Steinke 2016, Proposition 1.6 and Lemma 1.7.
    """
    if rounds < 1:
        raise ValueError(f"expected rounds >= 1, got {rounds}")
    return root_up(Fraction(rounds, 2) / Fraction(rho_of(epsilon, delta, tight)))


def gaussian_rho(rounds: int, multiplier: float) -> float:
    """T / (2 m^2), rounded up: the rho of T Gaussian rounds with stddev / sensitivity m.

    Raises ValueError for rounds < 1 or a multiplier that is not positive. Source: Bun, Steinke 2016, Proposition 1.6.
    """
    _check(multiplier=multiplier)
    if rounds < 1:
        raise ValueError(f"expected rounds >= 1, got {rounds}")
    return math.nextafter(float(Fraction(rounds, 2) / Fraction(multiplier) ** 2), math.inf)


def renyi_epsilon(rounds: int, multiplier: float, delta: Decimal) -> float:
    """The level that Renyi accounting finds with a list of orders, rounded up: never below that of all orders.

    min over alpha of alpha rho + log(1 - 1/alpha) - log(alpha delta) / (alpha - 1), alpha up to 11 by tenths, to 25 by
    halves, to 64 by ones, and 128, 256, 512, 1024.
    Guarantee: (result, delta) over all rounds. Raises as `gaussian_rho` and `delta_float`.
    Source: Mironov 2017; Canonne, Kamath, Steinke 2020, Proposition 12.
    """
    rho, limit = gaussian_rho(rounds, multiplier), delta_float(delta)
    levels = []
    for alpha in _ORDERS:
        parts = (alpha * rho, math.log1p(-1 / alpha), -(math.log(alpha) + math.log(limit)) / (alpha - 1))
        levels.append(math.fsum(parts) + _SLACK * math.fsum(abs(part) for part in parts))
    return max(_SMALLEST, min(levels))


def _check(**values: float) -> None:
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"expected {name} > 0 and finite, got {value}")
