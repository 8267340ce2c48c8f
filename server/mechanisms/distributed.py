"""Noise that holders add in shares under secure aggregation: what it promises, from constants.

No algorithm here runs such a round: holders trust a curator, or nobody. These are the formulas to compare both with.
Lengths are in units of the grid that values are rounded to.
"""

import math

from server.thresholds import positive, probability

USUAL_LOSS = math.exp(-0.5)  # beta: the share of roundings that may be drawn again


def rounded_norm(norm: float, dimension: int, loss: float = USUAL_LOSS) -> float:
    """Delta_2, how long a vector of length c is after conditional randomised rounding.

    Delta_2^2 = min(c^2 + d/4 + sqrt(2 log(1/beta)) (c + sqrt(d)/2), (c + sqrt(d))^2); rounding is repeated until the
    length is within, which takes at most 1 / (1 - beta) draws on average.
    Raises ValueError unless 0 < beta < 1, c > 0 and d > 0. Source: Kairouz, Liu, Steinke 2021, Theorem 1.

    >>> rounded_norm(3.0, 4)  # (3 + 2)^2 = 25 is more than 9 + 1 + 4
    3.7416573867739413
    """
    positive(norm=norm, dimension=dimension)
    root = math.sqrt(dimension)
    likely = norm**2 + dimension / 4 + math.sqrt(-2 * math.log(probability("loss", loss))) * (norm + root / 2)
    return math.sqrt(min(likely, (norm + root) ** 2))


def discrete_gaussian_gap(n: int, variance: float) -> float:
    """tau = 10 sum_{k=1}^{n-1} exp(-2 pi^2 s^2 k / (k + 1)): a sum of n discrete Gaussians is none, but nearly.

    Probabilities of the sum, each of s^2 = `variance`, are within factors e^-tau and e^tau of those of one of n s^2.
    Raises ValueError unless s >= 1/2 and n >= 1. Source: Kairouz, Liu, Steinke 2021, Theorem 1.

    >>> discrete_gaussian_gap(100, 4.0) < 1e-13, discrete_gaussian_gap(1, 4.0)
    (True, 0.0)
    """
    positive(n=n, variance=variance)
    if variance < 0.25:
        raise ValueError(f"expected a variance of at least 1/4 of each holder's noise, got {variance}")
    return 10 * math.fsum(math.exp(-2 * math.pi**2 * variance * k / (k + 1)) for k in range(1, n))


def discrete_gaussian_rho(sensitivity: float, n: int, variance: float, dimension: int) -> float:
    """rho = eps^2 / 2 of a sum to which n holders each add discrete Gaussian noise of a `variance`, by coordinate.

    eps = min(sqrt(D^2 / (n s^2) + tau d / 2), D / (sqrt(n) s) + tau sqrt(d)), D the l2 `sensitivity`: `rounded_norm`
    where a holder is added or removed with its noise, twice that where it is replaced. n counts honest holders that
    answered, no others.

    Guarantee: rho-zCDP; unit: a holder; neighbours: those that the sensitivity is of.
    Raises ValueError for a constant out of range. Source: Kairouz, Liu, Steinke 2021, Theorem 1.

    >>> round(discrete_gaussian_rho(10.0, 100, 4.0, 1000), 12)
    0.125
    """
    positive(sensitivity=sensitivity, dimension=dimension)
    gap = discrete_gaussian_gap(n, variance)
    ratio = sensitivity / math.sqrt(n * variance)
    return min(ratio**2 + gap * dimension / 2, (ratio + gap * math.sqrt(dimension)) ** 2) / 2


def skellam_divergence(order: float, sensitivity_l1: float, sensitivity_l2: float, variance: float) -> float:
    """Renyi divergence of an order a of sums with Skellam noise of a `variance` mu, at most.

    a D2^2 / (2 mu) + min(((2 a - 1) D2^2 + 6 D1) / (4 mu^2), 3 D1 / (2 mu)); noise of holders is closed under sums,
    so that mu is that of all honest ones together. Of whole numbers D1 <= min(sqrt(d) D2, D2^2).

    Guarantee: (a, this)-RDP; unit: a holder; neighbours: those that sensitivities are of.
    Raises ValueError unless a > 1 and all else is positive. Source: Agarwal, Kairouz, Liu 2021.
    """
    positive(sensitivity_l1=sensitivity_l1, sensitivity_l2=sensitivity_l2, variance=variance)
    if not (1 < order < math.inf):
        raise ValueError(f"expected a finite order > 1, got {order}")
    square = sensitivity_l2**2
    far = ((2 * order - 1) * square + 6 * sensitivity_l1) / (4 * variance**2)
    return order * square / (2 * variance) + min(far, 3 * sensitivity_l1 / (2 * variance))
