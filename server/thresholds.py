"""Where to cut heavy-tailed values, from public constants alone.

`tail` is v in (0, 1] and `moment` is u: E|x|^(1+v) <= u, of every coordinate. `noise_per_unit` is the standard
deviation of noise on a mean per unit of threshold. `shape`: what happens beyond, "truncate" to zero or "clip".
"""

import math
from functools import lru_cache

TRUNCATE, CLIP = "truncate", "clip"
GROUP_FAILURE = (1 - math.sqrt(1 - math.exp(-0.5))) / 2  # p with KL(1/2 || p) = 1/4: 4 log(2d/xi) groups suffice


def clip_constant(tail: float) -> float:
    """c_v = v^v / (1+v)^(1+v): clipping at B moves a mean by at most c_v u B^-v, truncation by at most u B^-v.

    The largest (t - 1) / t^(1+v), at t = (1+v)/v. Source: derived, see docs/HEAVY_TAILS.md.

    >>> clip_constant(1.0)
    0.25
    """
    positive(tail=tail)
    if tail > 1:
        raise ValueError(f"expected a tail in (0, 1], got {tail}")
    return math.exp(tail * math.log(tail) - (1 + tail) * math.log1p(tail))


def bias_constant(shape: str, tail: float) -> float:
    """The factor of u B^-v in the bias: 1 for "truncate", c_v for "clip". Raises ValueError for another shape."""
    if shape not in (TRUNCATE, CLIP):
        raise ValueError(f"expected a shape of {TRUNCATE!r} or {CLIP!r}, got {shape!r}")
    constant = clip_constant(tail)
    return constant if shape == CLIP else 1.0


def paper_threshold(moment: float, tail: float, n: int, epsilon: float, delta: float, failure: float) -> float:
    """B = (u n epsilon / sqrt(log(1.25/delta) log(2/xi)))^(1/(1+v)), the level of Algorithm 1.

    Its order is that of the theorem; the place of log(2/xi) in it is our reading. Raises ValueError for a constant that
    is not positive. Source: Tao, Wu, Cheng, Wang 2022, Algorithm 1 and Theorem 1.
    """
    bias_constant(TRUNCATE, tail)
    positive(moment=moment, n=n, epsilon=epsilon)
    logs = math.log(1.25 / probability("delta", delta)) * math.log(2 / probability("failure", failure))
    return float((moment * n * epsilon / math.sqrt(logs)) ** (1 / (1 + tail)))


def mean_error_bound(
    threshold: float, moment: float, tail: float, n: int, noise_per_unit: float, failure: float, shape: str = TRUNCATE
) -> float:
    """What the error of a noisy truncated mean exceeds with a probability of at most `failure`.

    c u B^-v + sqrt(2 u B^(1-v) L / n) + 2 B L / (3 n) + noise B sqrt(2 L), L = log(4/xi): bias, Bernstein, Gauss.
    Some five times what happens: no confidence interval. Source: derived, see docs/HEAVY_TAILS.md.
    """
    positive(threshold=threshold)
    terms = _bound_terms(moment, tail, n, noise_per_unit, failure, shape)
    return math.fsum(factor * threshold**power for factor, power in terms)


def bound_threshold(
    moment: float, tail: float, n: int, noise_per_unit: float, failure: float, shape: str = TRUNCATE
) -> float:
    """The threshold at which `mean_error_bound` is least. Source: derived, see docs/HEAVY_TAILS.md."""
    return _least(_bound_terms(moment, tail, n, noise_per_unit, failure, shape))


def mse_threshold(moment: float, tail: float, n: int, noise_per_unit: float, shape: str = CLIP) -> float:
    """The threshold that minimises (c u)^2 B^-2v + u B^(1-v) / n + noise^2 B^2, bias and variance at their worst.

    The default of the central model, per coordinate. Source: derived, see docs/HEAVY_TAILS.md.
    """
    constant = bias_constant(shape, tail)
    positive(moment=moment, n=n, noise_per_unit=noise_per_unit)
    return _least(
        (((constant * moment) ** 2, -2 * tail), (moment / n, 1 - tail), (noise_per_unit * noise_per_unit, 2.0))
    )


def local_threshold(moment: float, tail: float, n: int, worst_variance: float, shape: str = CLIP) -> float:
    """B = (v (c u)^2 n / w)^(1/(2(1+v))), where n holders randomise a value of [-1, 1] with a variance of at most w.

    Minimises (c u)^2 B^-2v + w B^2 / n. Source: derived, see docs/HEAVY_TAILS.md; the rate is that of Duchi, Jordan,
    Wainwright 2018.
    """
    constant = bias_constant(shape, tail)
    positive(moment=moment, n=n, worst_variance=worst_variance)
    return float((tail * (constant * moment) ** 2 * n / worst_variance) ** (1 / (2 * (1 + tail))))


def groups_count(dimension: int, failure: float, n: int, even: bool = False) -> int:
    """m = ceil(4 log(2d/xi)) groups, at least 1 and at most n; `even` takes the next even number where n allows it.

    A median of an even number moves half as far. Source: Tao, Wu, Cheng, Wang 2022, Algorithm 3.

    >>> groups_count(10, 0.05, 10_000), groups_count(1000, 0.01, 10_000)
    (24, 49)
    """
    positive(dimension=dimension, n=n)
    count = max(1, min(n, math.ceil(4 * math.log(2 * dimension / probability("failure", failure)))))
    return count + 1 if even and count % 2 and count < n else count


def group_threshold(
    moment: float, tail: float, n: int, epsilon: float, delta: float, dimension: int, groups: int
) -> float:
    """tau = (u epsilon n / (m sqrt(8 d log(1.25/delta))))^(1/(1+v)): bias and noise of Algorithm 3 are equal.

    Source: Tao, Wu, Cheng, Wang 2022, Theorem 3; the balance is derived, see docs/HEAVY_TAILS.md.
    """
    bias_constant(TRUNCATE, tail)
    positive(moment=moment, n=n, epsilon=epsilon, dimension=dimension, groups=groups)
    noise = groups * math.sqrt(8 * dimension * math.log(1.25 / probability("delta", delta)))
    return float((moment * epsilon * n / noise) ** (1 / (1 + tail)))


def group_error_bound(
    threshold: float, moment: float, tail: float, group: int, dimension: int, noise_per_unit: float, failure: float
) -> float:
    """What the l2 error of Algorithm 3 exceeds with a probability of at most `failure`, with groups of this size.

    sqrt(d) (u tau^-v + (4 2^v u / (p g^v))^(1/(1+v))) + noise tau (sqrt(d) + sqrt(2 log(2/xi))), p = 0.186, for
    4 log(2d/xi) groups of g. Source: Tao, Wu, Cheng, Wang 2022, Theorems 3 and 4; constants derived, see
    docs/HEAVY_TAILS.md.
    """
    bias_constant(TRUNCATE, tail)
    positive(threshold=threshold, moment=moment, group=group, dimension=dimension)
    spread = (2 ** (2 + tail) * moment / (GROUP_FAILURE * group**tail)) ** (1 / (1 + tail))
    root, tails = math.sqrt(dimension), math.sqrt(2 * math.log(2 / probability("failure", failure)))
    return float(root * (moment * threshold**-tail + spread) + noise_per_unit * threshold * (root + tails))


def sparse_threshold(
    moment: float,
    tail: float,
    batch: int,
    epsilon: float,
    delta: float,
    sparsity: int,
    dimension: int,
    rounds: int,
    failure: float,
) -> float:
    """B = (u / K)^(1/(1+v)), K = 8 sqrt(2 s log(1/delta)) log(s d T / xi) / (m epsilon): Algorithm 5, batches of m.

    Balances bias with the noise of printed peeling. Source: Tao, Wu, Cheng, Wang 2022, Algorithm 5 and Theorem 10.
    """
    bias_constant(TRUNCATE, tail)
    positive(moment=moment, batch=batch, epsilon=epsilon, sparsity=sparsity, dimension=dimension, rounds=rounds)
    logs = math.log(sparsity * dimension * rounds / probability("failure", failure))
    root = math.sqrt(2 * sparsity * math.log(1 / probability("delta", delta)))
    return float((moment * batch * epsilon / (8 * root * logs)) ** (1 / (1 + tail)))


def positive(**values: float) -> None:
    """Raise ValueError naming the first value that is not positive and finite."""
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"expected {name} > 0 and finite, got {value}")


def probability(name: str, value: float) -> float:
    """The value, where it lies strictly between 0 and 1. Raises ValueError."""
    if not 0 < value < 1:
        raise ValueError(f"expected 0 < {name} < 1, got {value}")
    return value


def _bound_terms(
    moment: float, tail: float, n: int, noise_per_unit: float, failure: float, shape: str
) -> tuple[tuple[float, float], ...]:
    constant, level = bias_constant(shape, tail), math.log(4 / probability("failure", failure))
    positive(moment=moment, n=n, noise_per_unit=noise_per_unit)
    linear = 2 * level / (3 * n) + noise_per_unit * math.sqrt(2 * level)
    return (constant * moment, -tail), (math.sqrt(2 * moment * level / n), (1 - tail) / 2), (linear, 1.0)


@lru_cache(maxsize=256)  # each round of a run asks for the same
def _least(terms: tuple[tuple[float, float], ...]) -> float:
    """The B > 0 that minimises sum_i a_i B^p_i: the first power is negative, the others are not, all factors positive.

    The sum is convex in log B, so its slope has one root. With k growing terms it lies between the points where one of
    them has the k-fold slope of the first, and where one has the same.
    """
    (falling, below), *others = terms
    rising = [(factor, power) for factor, power in others if power > 0]

    def balance(share: float) -> float:
        return min(math.log(share * falling * -below / (factor * power)) / (power - below) for factor, power in rising)

    low, high = balance(1 / len(rising)), balance(1.0)
    while low < (middle := (low + high) / 2) < high:
        slopes = [factor * power * math.exp(power * middle) for factor, power in rising]
        if math.fsum(slopes) < falling * -below * math.exp(below * middle):
            low = middle
        else:
            high = middle
    return math.exp(high)
