"""Lower bounds on epsilon and delta from counts, with exact confidence: Clopper and Pearson's limits."""

import math
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainccinv, betaincinv, expit, ndtr, ndtri

from protocol.gaussian import gaussian_delta, gaussian_mu

Numbers = NDArray[np.float64]
_SAFE = 1e-9  # relative: more than what the inverses of beta functions err by
LEAST = 1e-9  # an epsilon or a distance: less is nothing
MOST_EPSILON = 700.0  # e^epsilon as a double


def least_chance(hits: Numbers, draws: Numbers, alpha: float) -> Numbers:
    """A limit that the probability of a hit is below with probability at most alpha, whatever it is.

    The alpha-quantile of Beta(hits, draws - hits + 1); 0 for no hit. Source: Clopper, Pearson 1934.

    >>> round(float(least_chance(np.array([100.0]), np.array([100.0]), 0.05)[0]), 6)  # 0.05^(1/100)
    0.970487
    """
    some = hits > 0
    found = betaincinv(np.where(some, hits, 1.0), draws - np.where(some, hits, 1.0) + 1, alpha)
    return np.where(some, found * (1 - _SAFE), 0.0)


def largest_chance(hits: Numbers, draws: Numbers, alpha: float) -> Numbers:
    """A limit that the probability of a hit is above with probability at most alpha, whatever it is.

    The (1 - alpha)-quantile of Beta(hits + 1, draws - hits); 1 where all are hits. Source: Clopper, Pearson 1934.

    >>> round(float(largest_chance(np.array([0.0]), np.array([100.0]), 0.05)[0]), 6)  # 1 - 0.05^(1/100)
    0.029513
    """
    some = hits < draws
    known = np.where(some, hits, draws - 1)
    return np.where(some, np.minimum(betainccinv(known + 1, draws - known, alpha) * (1 + _SAFE), 1.0), 1.0)


def epsilon_bounds(hits: Numbers, others: Numbers, draws: float, delta: float, alpha: float) -> Numbers:
    """What epsilon is at least, by `hits` of `draws` under one input and `others` of as many under its neighbour.

    log((p - delta) / q), p and q the limits of both at alpha / 2 each; 0 where that says nothing. A mechanism that is
    (epsilon, delta)-private exceeds its epsilon with probability at most alpha, if the event, the inputs and the
    direction were fixed before the draws. Source: Jagielski, Ullman, Oprea 2020; Nasr et al. 2021.
    """
    size = np.full(np.shape(hits), float(draws))
    p = least_chance(np.asarray(hits, dtype=np.float64), size, alpha / 2)
    q = largest_chance(np.asarray(others, dtype=np.float64), size, alpha / 2)
    return np.log(np.maximum((p - delta) / q, 1.0))


def epsilon_bound(hits: int, others: int, draws: int, delta: float, alpha: float) -> float:
    """`epsilon_bounds` of one event. Raises ValueError for counts that do not fit.

    >>> round(epsilon_bound(900, 100, 1000, 0.0, 0.001), 3), epsilon_bound(100, 900, 1000, 0.0, 0.001)
    (1.859, 0.0)
    """
    if not (0 <= hits <= draws and 0 <= others <= draws and draws >= 1):
        raise ValueError(f"expected counts of at most {draws} draws, got {hits} and {others}")
    if not (0 < alpha < 1 and 0 <= delta < 1):
        raise ValueError(f"expected 0 < alpha < 1 and 0 <= delta < 1, got {alpha} and {delta}")
    return float(epsilon_bounds(np.array([float(hits)]), np.array([float(others)]), draws, delta, alpha)[0])


def delta_bound(hits: int, others: int, draws: int, epsilon: float, alpha: float) -> float:
    """What delta is at least where epsilon is as claimed: p - e^epsilon q, or 0. Confidence as of `epsilon_bounds`."""
    size = np.array([float(draws)])
    p = least_chance(np.array([float(hits)]), size, alpha / 2)[0]
    q = largest_chance(np.array([float(others)]), size, alpha / 2)[0]
    return max(0.0, float(p - math.exp(min(epsilon, MOST_EPSILON)) * q))


def normal_bound(hits: int, others: int, draws: int, delta: float, alpha: float) -> float:
    """What epsilon is at least at this delta where outputs of neighbours are told apart no better than two normal laws.

    Those are mu apart, mu >= Phi^-1(p) - Phi^-1(q), p and q as of `epsilon_bounds`, and epsilon is where the profile of
    mu is delta. It needs no rare outputs. Confidence as there, and jointly with it: both follow from p and q.
    Source: Nasr et al. 2023, section 4; Dong, Roth, Su 2022, Corollary 2.13.
    """
    size = np.array([float(draws)])
    p = least_chance(np.array([float(hits)]), size, alpha / 2)[0]
    q = largest_chance(np.array([float(others)]), size, alpha / 2)[0]
    return normal_epsilon(float(ndtri(p) - ndtri(q)), delta) if p > q else 0.0


def normal_epsilon(mu: float, delta: float) -> float:
    """The epsilon at which two normal laws, mu apart, have this delta; rounded down, 0 where they have less."""
    low, high = LEAST, 1.0
    if mu <= LEAST or gaussian_delta(LEAST, mu) <= delta:
        return 0.0
    while gaussian_delta(high, mu) > delta:
        low, high = high, 2 * high
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(middle, mu) > delta else (low, middle)
    return low


@lru_cache(maxsize=256)
def normal_would_find(draws: int, claimed: float, delta: float, alpha: float, chance: float = 0.99) -> float:
    """`would_find` of `normal_bound`: by two normal laws, at the point between them."""
    from scipy.stats import binom  # slow to import

    miss = (1 - chance) / 2

    def found(epsilon: float) -> bool:
        half = gaussian_mu(Decimal(repr(epsilon)), Decimal(repr(delta))) / 2
        few, many = int(binom.ppf(miss, draws, ndtr(half))), int(binom.ppf(1 - miss, draws, ndtr(-half)))
        return normal_bound(few, many, draws, delta, alpha) > claimed

    return least_above(claimed, found)


def ceiling(draws: int, delta: float, alpha: float) -> float:
    """The largest bound that so many draws can give: all are hits, and none of the neighbour's."""
    return epsilon_bound(draws, 0, draws, delta, alpha)


@lru_cache(maxsize=256)
def would_find(draws: int, claimed: float, delta: float, alpha: float, chance: float = 0.99) -> float:
    """The least epsilon above the claimed one that is found with probability `chance` in the easiest case.

    That is randomised response at this epsilon, with its best event known: hits with e^epsilon / (1 + e^epsilon), and
    1 / (1 + e^epsilon) for the neighbour. Rarer events need more. Infinity where no number of hits would do.
    """
    from scipy.stats import binom  # slow to import

    miss = (1 - chance) / 2

    def found(epsilon: float) -> bool:
        p, q = float(expit(epsilon)), float(expit(-epsilon))
        few, many = int(binom.ppf(miss, draws, p)), int(binom.ppf(1 - miss, draws, q))  # beyond: with probability miss
        return epsilon_bound(few, many, draws, delta, alpha) > claimed

    return least_above(claimed, found)


def least_above(claimed: float, found: Callable[[float], bool]) -> float:
    """The least epsilon above the claimed one from which on all are `found`; infinity where none up to 64 more is."""
    low, high = claimed, claimed + 1.0
    while not found(high):
        high = claimed + 2 * (high - claimed)
        if high > claimed + 64:
            return math.inf
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if found(middle) else (middle, high)
    return high
