"""Many canaries in one run: each of m records is one of two, by a fair coin, and the release is to say which.

A release of (epsilon, 0)-private data lets nobody guess a coin with more than e^epsilon / (1 + e^epsilon), whatever is
known of the others. So r guesses of which v are right bound epsilon, though nothing was run twice.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, expit, gammaln

from studies.audit.bound import least_above
from studies.audit.subject import Floats

SHARES = (1.0, 0.3, 0.1, 0.03)  # of the canaries that are guessed; confidence is shared by all that are tried
_LEAST_STEP = 2.0**-30


@dataclass(frozen=True)
class Guessed:
    """What one run says: `right` of `guesses` about `canaries`, and the lower bound that follows."""

    canaries: int
    guesses: int
    right: int
    epsilon: float


def chance_of_guesses(canaries: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """How likely at least so many right guesses are, at most, of what is (epsilon, delta)-private.

    beta + 2 m delta alpha, with beta = P(B >= v), B binomial of r and e^epsilon / (1 + e^epsilon), and
    alpha = max over i = 1..v of P(v > B >= v - i) / i.

    Raises ValueError unless 0 <= right <= guesses <= canaries. Source: Steinke, Nasr, Jagielski 2023, Theorem 5.2 and
    Appendix D.

    >>> round(chance_of_guesses(10, 10, 10, 0.0, 0.0), 12) == 2.0**-10
    True
    """
    if not (0 <= right <= guesses <= canaries and guesses >= 1):
        raise ValueError(f"expected 0 <= right <= guesses <= canaries, got {right}, {guesses}, {canaries}")
    if not (epsilon >= 0 and 0 <= delta < 1):
        raise ValueError(f"expected epsilon >= 0 and 0 <= delta < 1, got {epsilon} and {delta}")
    if right == 0:
        return 1.0
    q = float(expit(epsilon))
    beta = float(bdtrc(right - 1, guesses, q))
    if delta == 0:
        return min(1.0, beta)
    counts = np.arange(right - 1, -1, -1)  # v - i for i = 1..v
    sums = np.cumsum(_binomial(counts, guesses, q))
    alpha = float((sums / np.arange(1, right + 1)).max())
    return min(1.0, beta + 2 * canaries * delta * alpha)


def epsilon_of_guesses(canaries: int, guesses: int, right: int, delta: float, alpha: float) -> float:
    """The largest epsilon that so many right guesses refute at `alpha`, 0 for none; rounded down.

    Source: Steinke, Nasr, Jagielski 2023, Appendix D.

    >>> round(epsilon_of_guesses(1000, 100, 75, 1e-4, 0.05), 3)  # the paper's example
    0.673
    """
    if chance_of_guesses(canaries, guesses, right, 0.0, delta) >= alpha:
        return 0.0
    low, high = 0.0, 1.0
    while chance_of_guesses(canaries, guesses, right, high, delta) < alpha:
        low, high = high, 2 * high
        if high > 512:
            return low
    while high - low > _LEAST_STEP:
        middle = (low + high) / 2
        if chance_of_guesses(canaries, guesses, right, middle, delta) < alpha:
            low = middle
        else:
            high = middle
    return low


def guessed(coins: NDArray[np.bool_], scores: Floats, delta: float, alpha: float) -> Guessed:
    """Guess the coins of the canaries whose scores are furthest from 0, by their signs; the best of four shares.

    coins, scores (m,). A score may use all of the release, and nothing of the coins. Confidence: 1 - alpha for all
    four together.
    """
    order, m = np.argsort(-np.abs(scores), kind="stable"), len(coins)
    right = (coins == (scores > 0))[order]
    tried = sorted({max(1, math.floor(share * m)) for share in SHARES})
    found = [(int(right[:r].sum()), r) for r in tried]
    return max(
        (Guessed(m, r, v, epsilon_of_guesses(m, r, v, delta, alpha / len(tried))) for v, r in found),
        key=lambda one: one.epsilon,
    )


@lru_cache(maxsize=256)
def guesses_would_find(canaries: int, claimed: float, delta: float, alpha: float, chance: float = 0.99) -> float:
    """The least epsilon above the claimed one that is found with probability `chance` where each canary is randomised
    by itself, as randomised response does; infinity where none is. Sums, in which canaries hide each other, show less.
    """
    from scipy.stats import binom  # slow to import

    def found(epsilon: float) -> bool:
        right = int(binom.ppf(1 - chance, canaries, float(expit(epsilon))))
        return chance_of_guesses(canaries, canaries, right, claimed, delta) < alpha / len(SHARES)

    return least_above(claimed, found)


def _binomial(counts: NDArray[np.int64], n: int, q: float) -> Floats:
    """P(B = k) for each k."""
    logs = gammaln(n + 1) - gammaln(counts + 1) - gammaln(n - counts + 1)
    found: Floats = np.exp(logs + counts * math.log(q) + (n - counts) * math.log1p(-q))
    return found
