"""Discrete Gaussian noise in shares: sums of it are nearly of the law, and how nearly is known."""

import math
from collections.abc import Iterator
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np

from protocol.noise.law import Floats, Law, reach, whole

USUAL_LOSS = math.exp(-0.5)  # beta: the share of roundings that may be drawn again
_BITS = 256
_CONTEXT = Context(prec=100)
_CLOSE = 1e-30  # a bound of the gap that needs no closer look


def shape(variance: float) -> Floats:
    """exp(-k^2 / (2 v)) for k = 0, ..., `reach`: v is the law's parameter, and its variance but for 1e-8 at v = 1."""
    values: Floats = np.exp(-(np.arange(reach(variance) + 1, dtype=np.float64) ** 2) / (2 * variance))
    return values


def ratios(variance: Fraction) -> Iterator[tuple[int, int]]:
    """P(k + 1) / P(k) = exp(-(2 k + 1) / (2 v)): each is e^(-1/v) times the one before."""
    ratio, factor = (_exponential(-power / variance) for power in (Fraction(1, 2), Fraction(1)))
    while True:
        yield ratio, 1 << _BITS
        ratio = ratio * factor >> _BITS


def _exponential(power: Fraction) -> int:
    """e^power, in units of 2^-256."""
    value = _CONTEXT.exp(_CONTEXT.divide(Decimal(power.numerator), Decimal(power.denominator)))
    return int(_CONTEXT.multiply(value, Decimal(1 << _BITS)))


def rounded_norm(norm: float, dimension: int, loss: float = USUAL_LOSS) -> float:
    """Delta_2, how long a vector of length c is after conditional randomised rounding.

    Delta_2^2 = min(c^2 + d/4 + sqrt(2 log(1/beta)) (c + sqrt(d)/2), (c + sqrt(d))^2); rounding is repeated until the
    length is within, which takes at most 1 / (1 - beta) draws on average.
    Raises ValueError unless 0 < beta < 1, c > 0 and d > 0. Source: Kairouz, Liu, Steinke 2021, Theorem 1.

    >>> rounded_norm(3.0, 4)  # (3 + 2)^2 = 25 is more than 9 + 1 + 4
    3.7416573867739413
    """
    if not (norm > 0 and dimension > 0 and 0 < loss < 1):
        raise ValueError(f"expected a norm and dimension > 0 and 0 < loss < 1, got {norm}, {dimension} and {loss}")
    root = math.sqrt(dimension)
    likely = norm**2 + dimension / 4 + math.sqrt(-2 * math.log(loss)) * (norm + root / 2)
    return math.sqrt(min(likely, (norm + root) ** 2))


def gap(n: int, variance: float) -> float:
    """tau = 10 sum_{k=1}^{n-1} exp(-2 pi^2 s^2 k / (k + 1)): a sum of n discrete Gaussians is none, but nearly.

    Probabilities of the sum, each of s^2 = `variance`, are within factors e^-tau and e^tau of those of one of n s^2.
    The same holds where some of them are joined to shares of several times the variance.
    Raises ValueError unless s >= 1/2 and n >= 1. Source: Kairouz, Liu, Steinke 2021, Theorem 1.

    >>> gap(100, 4.0) < 1e-13, gap(1, 4.0)
    (True, 0.0)
    """
    if not (n >= 1 and variance >= 0.25):
        raise ValueError(
            f"expected a variance of at least 1/4 of each of n >= 1 shares, got {variance} of {n}: use a finer grid"
        )
    return 10 * math.fsum(math.exp(-2 * math.pi**2 * variance * k / (k + 1)) for k in range(1, n))


def rho(sensitivity: float, n: int, variance: float, dimension: int) -> float:
    """rho = eps^2 / 2 of a sum to which n holders each add discrete Gaussian noise of a `variance`, by coordinate.

    eps = min(sqrt(D^2 / (n s^2) + tau d / 2), D / (sqrt(n) s) + tau sqrt(d)), D the l2 `sensitivity`: `rounded_norm`
    where a holder is added or removed with its noise, twice that where it is replaced. n counts honest holders that
    answered, no others.

    Guarantee: rho-zCDP; unit: a holder; neighbours: those that the sensitivity is of.
    Raises ValueError for a constant out of range. Source: Kairouz, Liu, Steinke 2021, Theorem 1.

    >>> round(rho(10.0, 100, 4.0, 1000), 12)
    0.125
    """
    if not (sensitivity > 0 and dimension > 0):
        raise ValueError(f"expected a sensitivity and dimension > 0, got {sensitivity} and {dimension}")
    between, ratio = gap(n, variance), sensitivity / math.sqrt(n * variance)
    return min(ratio**2 + between * dimension / 2, (ratio + between * math.sqrt(dimension)) ** 2) / 2


def _gap(rows: int, share: Fraction) -> float:
    """`gap`, or 10 n exp(-pi^2 s^2), which is more, where that is next to nothing. Raises ValueError for s^2 < 1/4."""
    variance = math.nextafter(float(share), 0)
    bound = 10 * rows * math.exp(-(math.pi**2) * variance)
    return bound if bound < _CLOSE else gap(rows, variance)


LAW = Law("discrete-gaussian", shape, ratios, whole, _gap)
