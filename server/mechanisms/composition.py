"""T Gaussian releases together, each of one multiplier m = stddev / sensitivity: exactly, and by what others use.

Together they are one Gaussian release of multiplier m / sqrt(T), however later questions depend on earlier answers.
"""

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from server.mechanisms.discrete_gaussian import root_up
from server.mechanisms.gaussian import (
    LARGEST_EPSILON,
    SMALLEST_DELTA,
    delta_float,
    epsilon_float,
    gaussian_delta_bound,
    gaussian_mu,
)
from server.mechanisms.loss_distributions import gaussian_epsilon
from server.mechanisms.zcdp import epsilon_of, gaussian_rho, renyi_epsilon

_DOWN, _UP = 1 - 2.0**-48, 1 + 2.0**-48  # cover every rounding error of the closed forms below
_SMALLEST = 1e-9


@dataclass(frozen=True)
class Account:
    """What T rounds of one multiplier cost at one delta, by each way of counting: infinity above 1000.

    `exact`: the Gaussian profile, what is true. `zcdp`, `zcdp_simple`: the tight and the simple conversion. `renyi`: a
    list of orders. `basic` and `advanced` add levels of single rounds. `paper`: the nominal level for which Algorithm 2
    asks for this noise. `numerical`: privacy loss distributions, where asked for. All are rounded up and guarantees.
    """

    exact: float
    zcdp: float
    zcdp_simple: float
    renyi: float
    basic: float
    advanced: float
    paper: float
    numerical: float | None = None


@lru_cache(maxsize=256, typed=True)
def exact_noise_multiplier(epsilon: Decimal, delta: Decimal, rounds: int = 1) -> float:
    """sqrt(T) / mu, rounded up: the least stddev / sensitivity of each of T rounds.

    Guarantee: (epsilon, delta) over all rounds for the sensitivity's unit and neighbours, also where later rounds
    depend on earlier results. Raises TypeError and ValueError as `gaussian_mu`, ValueError for rounds < 1.
    Source: Balle, Wang 2018, Theorem 8; Dong, Roth, Su 2022, Corollary 3.3.
    """
    return root_up(_rounds(rounds) / Fraction(gaussian_mu(epsilon, delta)) ** 2)


def exact_epsilon(delta: Decimal, rounds: int, multiplier: float) -> float:
    """The least level of T rounds at this delta, rounded up: the profile's bound at the result is at most delta.

    Guarantee: (result, delta) over all rounds. Infinity above 1000. Raises ValueError for what is not positive.
    Source: as `exact_noise_multiplier`.
    """
    if not (math.isfinite(multiplier) and multiplier > 0):
        raise ValueError(f"expected multiplier > 0 and finite, got {multiplier}")
    return _gaussian_epsilon(delta_float(delta), root_up(_rounds(rounds) / Fraction(multiplier) ** 2))


def classical_noise_multiplier(epsilon: Decimal, delta: Decimal) -> float:
    """sqrt(2 log(1.25/delta)) / epsilon, rounded up: stddev / sensitivity of one release.

    Proved for epsilon < 1; used here as far as the exact profile confirms it, 8.4 at delta = 1e-5.

    Guarantee: (epsilon, delta) for the sensitivity's unit and neighbours. Raises ValueError beyond.
    Source: Dwork, Roth 2014, Theorem A.1; Tao, Wu, Cheng, Wang 2022, Algorithm 1.
    """
    return _classical(epsilon_float(epsilon), delta_float(delta))


def split(epsilon: Decimal, delta: Decimal, rounds: int) -> tuple[float, float]:
    """Each round's share: epsilon / (2 sqrt(2 T log(2/delta))) and delta / (2 T), rounded down.

    Guarantee: T rounds of the result are (epsilon, delta) together, also where later ones depend on earlier results.
    Raises ValueError where advanced composition does not say so (a large epsilon), or for rounds < 1.
    Source: Tao, Wu, Cheng, Wang 2022, Algorithm 2 and Theorem 5; Dwork, Rothblum, Vadhan 2010.
    """
    level, limit, count = epsilon_float(epsilon), delta_float(delta), int(_rounds(rounds))
    share, rest = _share(level, limit, count), limit / (2 * count) * _DOWN
    if rest < SMALLEST_DELTA:
        raise ValueError(f"expected delta / (2 rounds) >= {SMALLEST_DELTA}, got {rest:.3g}")
    if advanced_epsilon(share, limit / 2, count) > level:
        raise ValueError(f"expected an epsilon that {count} rounds of {share:.3g} keep together, got {epsilon}")
    return share, rest


def split_noise_multiplier(epsilon: Decimal, delta: Decimal, rounds: int) -> float:
    """The printed noise of T rounds: the classical multiplier of `split`, fourteen to seventeen times the exact one.

    Guarantee: (epsilon, delta) over all rounds. Raises ValueError as `split` and `classical_noise_multiplier`.
    Source: Tao, Wu, Cheng, Wang 2022, Algorithm 2.
    """
    return _classical(*split(epsilon, delta, rounds))


def advanced_epsilon(level: float, slack: float, rounds: int) -> float:
    """sqrt(2 T log(1/slack)) e + T e (exp(e) - 1), rounded up: T rounds of level e, adding `slack` to their deltas.

    Guarantee: (result, sum of deltas + slack). Source: Dwork, Rothblum, Vadhan 2010, Theorem III.3.
    """
    if level > 700:
        return math.inf
    return (math.sqrt(2 * rounds * -math.log(slack)) * level + rounds * level * math.expm1(level)) * _UP


def account(rounds: int, multiplier: float, delta: Decimal, numerical: bool = False) -> Account:
    """Each composition's figure for T rounds of one multiplier, side by side; `numerical` needs the extra `accounting`.

    Guarantee: (figure, delta) over all rounds, for the sensitivity's unit and neighbours.
    Raises TypeError and ValueError for rounds < 1, a multiplier that is not positive, a delta out of range, ImportError
    without the extra where it is asked for. Source: as the functions of this module.
    """
    exact, limit, rho = exact_epsilon(delta, rounds, multiplier), delta_float(delta), gaussian_rho(rounds, multiplier)
    mu, part = math.nextafter(1 / multiplier, math.inf), limit / (2 * rounds) * _DOWN
    # The nominal level e with classical(e / (2 sqrt(2 T log(2/delta))), delta / 2T) = m.
    nominal = math.sqrt(2 * math.log(1.25 / part)) / multiplier * 2 * math.sqrt(2 * rounds * math.log(2 / limit))
    return Account(
        exact=exact,
        zcdp=epsilon_of(rho, delta),
        zcdp_simple=epsilon_of(rho, delta, tight=False),
        renyi=_capped(renyi_epsilon(rounds, multiplier, delta)),
        basic=_capped(rounds * _gaussian_epsilon(limit / rounds * _DOWN, mu) * _UP),
        advanced=_capped(advanced_epsilon(_gaussian_epsilon(part, mu), limit / 2, rounds)),
        paper=_capped(nominal * _UP if nominal * _UP >= exact else math.inf),
        numerical=_capped(gaussian_epsilon(delta, rounds, multiplier)) if numerical else None,
    )


def _classical(level: float, limit: float) -> float:
    multiplier = math.sqrt(2 * math.log(1.25 / limit)) / level * _UP
    found = gaussian_delta_bound(level, math.nextafter(1 / multiplier, math.inf))
    if not found <= limit:
        raise ValueError(
            f"expected an epsilon at which the classical noise keeps delta = {limit:.3g}, got {level:.6g}, where it is "
            f"{found:.3g}: take the analytic noise"
        )
    return multiplier


def _share(level: float, limit: float, rounds: int) -> float:
    return level / (2 * math.sqrt(2 * rounds * math.log(2 / limit))) * _DOWN


def _gaussian_epsilon(limit: float, mu: float) -> float:
    low, high = _SMALLEST, float(LARGEST_EPSILON)
    if gaussian_delta_bound(high, mu) > limit:
        return math.inf
    if gaussian_delta_bound(low, mu) <= limit:
        return low
    while low < (middle := (low + high) / 2) < high:
        if gaussian_delta_bound(middle, mu) <= limit:
            high = middle
        else:
            low = middle
    return high


def _capped(level: float) -> float:
    return level if level <= LARGEST_EPSILON else math.inf


def _rounds(rounds: int) -> Fraction:
    if not isinstance(rounds, int) or isinstance(rounds, bool) or rounds < 1:
        raise ValueError(f"expected rounds >= 1, got {rounds!r}")
    return Fraction(rounds)
