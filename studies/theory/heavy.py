"""Rates for heavy-tailed records: how errors fall with n, epsilon and delta. Constants are free: see `fitted`.

`tail` is v in (0, 1], `moment` is u: E|x_j|^(1+v) <= u. `failure` is the probability that an upper bound fails.
Theorem 5 is no rate: its noise is `server.mechanisms.composition.split_noise_multiplier`.
"""

import math

from studies.theory.constants import positive, probability


def central_exponent(tail: float) -> float:
    """v / (1 + v): an error falls like n to minus this with a curator, and without privacy too.

    Source: Tao, Wu, Cheng, Wang 2022, Theorems 1 and 2.

    >>> central_exponent(1.0), local_exponent(1.0)
    (0.5, 0.25)
    """
    return _tail(tail) / (1 + tail)


def local_exponent(tail: float) -> float:
    """v / (2 (1 + v)), half of the central one, where holders randomise.

    Source: Duchi, Jordan, Wainwright 2018; derived, see docs/HEAVY_TAILS.md.
    """
    return central_exponent(tail) / 2


def mean_error(
    n: float, epsilon: float, delta: float, moment: float, tail: float, failure: float, constant: float
) -> float:
    """C u^(1/(1+v)) (sqrt(log(1/delta)) log(1/xi) / (n epsilon))^(v/(1+v)): what Algorithm 1 is at most off by.

    Raises ValueError. Source: Tao, Wu, Cheng, Wang 2022, Theorem 1.
    """
    positive(n=n, epsilon=epsilon)
    probability(delta=delta, failure=failure)
    return constant * _power(moment, tail, math.sqrt(-math.log(delta)) * -math.log(failure) / (n * epsilon))


def least_mean_error(n: float, epsilon: float, moment: float, tail: float, constant: float) -> float:
    """C u^(1/(1+v)) (1 / (n epsilon))^(v/(1+v)): for some law no private estimate of a mean is better.

    Raises ValueError. Source: Tao, Wu, Cheng, Wang 2022, Theorem 2.
    """
    positive(n=n, epsilon=epsilon)
    return constant * _power(moment, tail, 1 / (n * epsilon))


def least_local_error(n: float, epsilon: float, moment: float, tail: float, constant: float) -> float:
    """C u^(1/(1+v)) (1 / (n epsilon^2))^(v/(2(1+v))): the same for holders who randomise, epsilon up to 1.

    Also what clipping and any unbiased randomiser reach. Raises ValueError.
    Source: Duchi, Jordan, Wainwright 2018, Section 3; derived, see docs/HEAVY_TAILS.md.
    """
    positive(n=n, epsilon=epsilon)
    return constant * _power(moment, tail, 1 / math.sqrt(n) / epsilon)


def means_error(
    n: float,
    epsilon: float,
    delta: float,
    dimension: int,
    threshold: float,
    moment: float,
    tail: float,
    failure: float,
    constant: float,
) -> float:
    """What Algorithm 3 is at most off by in l2, truncating at tau in d dimensions.

    C (sqrt(d) (u tau^-v + u^(1/(1+v)) (log(d/xi)/n)^(v/(1+v))) + tau d log(d/xi) sqrt(log(1/delta)) / (epsilon n)
    sqrt(1 + log(1/xi)/d)).
    Raises ValueError. Source: Tao, Wu, Cheng, Wang 2022, Theorem 3.
    """
    positive(n=n, epsilon=epsilon, dimension=dimension, threshold=threshold)
    probability(delta=delta, failure=failure)
    logs = math.log(dimension / failure)
    spread = moment * math.pow(threshold, -_tail(tail)) + _power(moment, tail, logs / n)
    noise = threshold * dimension * logs * math.sqrt(-math.log(delta)) / (epsilon * n)
    return constant * (math.sqrt(dimension) * spread + noise * math.sqrt(1 - math.log(failure) / dimension))


def mean_deviation(n: float, moment: float, tail: float, failure: float) -> float:
    """(4 2^v u / (xi n^v))^(1/(1+v)): a mean of n records is farther off with probability at most xi. No free constant.

    Raises ValueError. Source: Tao, Wu, Cheng, Wang 2022, Theorem 4; the constant: von Bahr, Esseen 1965.
    """
    positive(n=n, moment=moment)
    probability(failure=failure)
    return math.pow(2 ** (2 + _tail(tail)) * moment / (failure * n**tail), 1 / (1 + tail))


def convex_risk(n: float, epsilon: float, dimension: int, moment: float, tail: float, constant: float) -> float:
    """C (e + e^3), e = u^(1/(1+v)) d^((1+4v)/(2+2v)) / (epsilon n)^(v/(1+v)): excess risk of Algorithm 2, convex.

    Up to logarithms. Raises ValueError. Source: Tao, Wu, Cheng, Wang 2022, Theorem 6.
    """
    positive(n=n, epsilon=epsilon, dimension=dimension)
    error = math.pow(dimension, (1 + 4 * _tail(tail)) / (2 + 2 * tail)) * _power(moment, tail, 1 / (n * epsilon))
    return constant * (error + error**3)


def strong_risk(
    n: float, epsilon: float, dimension: int, moment: float, tail: float, constant: float, paper: bool = False
) -> float:
    """C u^(2/(1+v)) d^((1+2v)/(1+v)) / (epsilon n)^(2v/(1+v)): excess risk of Algorithm 2, strongly convex.

    `paper`: d^((1+4v)/(1+v)) as in the theorem. Fresh batches need no net, so that the former holds: it is what the
    remark after the theorem says, and the order of `least_strong_risk`. Up to logarithms. Raises ValueError.
    Source: Tao, Wu, Cheng, Wang 2022, Theorem 7; derived, see docs/HEAVY_TAILS.md.
    """
    positive(n=n, epsilon=epsilon, dimension=dimension)
    power = (1 + (4 if paper else 2) * _tail(tail)) / (1 + tail)
    return constant * math.pow(dimension, power) * _power(moment, tail, 1 / (n * epsilon)) ** 2


def least_strong_risk(
    n: float, epsilon: float, delta: float, dimension: int, moment: float, tail: float, constant: float
) -> float:
    """C d u^(2/(1+v)) p^(2v/(1+v)), p = d / (n epsilon) for delta = 0, else sqrt(d log(1/delta)) / (n epsilon).

    The least excess risk for (w - x)^2 / 2, half the squared error of a mean. Raises ValueError.
    Source: Tao, Wu, Cheng, Wang 2022, Theorem 8.
    """
    return constant * dimension * _power(moment, tail, _share(n, epsilon, delta, dimension)) ** 2


def least_convex_risk(
    n: float, epsilon: float, delta: float, dimension: int, moment: float, tail: float, constant: float
) -> float:
    """C sqrt(d) u^(1/(1+v)) p^(v/(1+v)), p as in `least_strong_risk`: for -<w, x> in the unit ball.

    Raises ValueError. Source: Tao, Wu, Cheng, Wang 2022, Theorem 9.
    """
    return constant * math.sqrt(dimension) * _power(moment, tail, _share(n, epsilon, delta, dimension))


def sparse_risk(
    n: float, epsilon: float, delta: float, dimension: int, sparsity: int, moment: float, tail: float, constant: float
) -> float:
    """C s^((1+2v)/(1+v)) u^(2/(1+v)) (log(d) sqrt(log(1/delta)) / (n epsilon))^(2v/(1+v)): risk of Algorithm 5.

    Up to logarithms of n. Raises ValueError. Source: Tao, Wu, Cheng, Wang 2022, Theorem 10.
    """
    positive(n=n, epsilon=epsilon, sparsity=sparsity)
    probability(delta=delta)
    share = math.log(dimension) * math.sqrt(-math.log(delta)) / (n * epsilon)
    power = (1 + 2 * _tail(tail)) / (1 + tail)
    return constant * math.pow(sparsity, power) * _power(moment, tail, share) ** 2


def least_sparse_risk(
    n: float, epsilon: float, delta: float, dimension: int, sparsity: int, moment: float, tail: float, constant: float
) -> float:
    """C u^(2/(1+v)) p^(2v/(1+v)), p = k / (n epsilon) for delta = 0, else sqrt(k log(1/delta)) / (n epsilon).

    k = s log(d), s the truth's sparsity. Raises ValueError. Source: Tao, Wu, Cheng, Wang 2022, Theorem 11.
    """
    positive(sparsity=sparsity)
    return constant * _power(moment, tail, _share(n, epsilon, delta, sparsity * math.log(dimension))) ** 2


def _power(moment: float, tail: float, share: float) -> float:
    """u^(1/(1+v)) p^(v/(1+v)): how far a mean moves where a share p of records has all of the moment."""
    positive(moment=moment, share=share)
    return math.pow(moment, 1 / (1 + _tail(tail))) * math.pow(share, tail / (1 + tail))


def _share(n: float, epsilon: float, delta: float, degrees: float) -> float:
    positive(n=n, epsilon=epsilon, degrees=degrees)
    if not delta:
        return degrees / (n * epsilon)
    probability(delta=delta)
    return math.sqrt(degrees * -math.log(delta)) / (n * epsilon)


def _tail(tail: float) -> float:
    if not 0 < tail <= 1:
        raise ValueError(f"expected 0 < tail <= 1, got {tail}")
    return tail
