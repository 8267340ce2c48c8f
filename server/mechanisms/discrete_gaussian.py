"""The discrete Gaussian: exact sampling in integers, and a rigorous bound on its delta in any dimension."""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from server.mechanisms.gaussian import delta_float, epsilon_float, gaussian_delta_bound

SMALLEST_STDDEV = 1 << 10  # grid units: below, the grid is too coarse for the bound to be free
LARGEST_INFLATION = 10  # at most 2^-10 more noise than asked
SMALLEST_SENSITIVITY = 1 << 24  # grid units, 2^-52 of the largest sum each: less is noised as if it were this much


def uniform_below(limit: int, randbits: Callable[[int], int]) -> int:
    """A uniform integer in 0, ..., limit - 1 by rejection; `randbits(k)` gives k fair bits as an integer."""
    bits = (limit - 1).bit_length()
    while (value := randbits(bits)) >= limit:
        pass
    return value


def bernoulli_exp(numerator: int, denominator: int, below: Callable[[int], int]) -> bool:
    """True with probability exp(-numerator / denominator), exactly.

    `below(m)` is uniform on 0, ..., m - 1; the fraction is not negative.
    Source: Canonne, Kamath, Steinke 2020, Algorithm 1.
    """
    whole, rest = divmod(numerator, denominator)
    for _ in range(whole):
        if not _bernoulli_exp_of_fraction(1, 1, below):
            return False
    return _bernoulli_exp_of_fraction(rest, denominator, below)


def _bernoulli_exp_of_fraction(numerator: int, denominator: int, below: Callable[[int], int]) -> bool:
    """The same for a fraction in [0, 1]: the place of the first failure is odd with this probability."""
    place = 1
    while below(denominator * place) < numerator:
        place += 1
    return place % 2 == 1


def _geometric(scale: int, below: Callable[[int], int]) -> int:
    """An integer x >= 0 with probability proportional to exp(-x / scale)."""
    while not bernoulli_exp(offset := below(scale), scale, below):
        pass
    blocks = 0
    while bernoulli_exp(1, 1, below):
        blocks += 1
    return offset + scale * blocks


def _discrete_laplace(scale: int, below: Callable[[int], int]) -> int:
    """An integer x with probability proportional to exp(-|x| / scale). Source: the same, Algorithm 2."""
    while True:
        magnitude = _geometric(scale, below)
        negative = below(2) == 1
        if magnitude or not negative:  # zero is counted once
            return -magnitude if negative else magnitude


def sample_discrete_laplace(scale: int, size: int, randbits: Callable[[int], int]) -> list[int]:
    """Independent integers x with probability proportional to exp(-|x| / scale), exactly.

    The running time depends on the noise, never on the data. Raises ValueError for scale < 1 or size < 0.
    Source: Canonne, Kamath, Steinke 2020, Algorithm 2.
    """
    below = _checked_below(scale, size, randbits)
    return [_discrete_laplace(scale, below) for _ in range(size)]


def sample_geometric(scale: int, size: int, randbits: Callable[[int], int]) -> list[int]:
    """The same for integers x >= 0: one side of it, with zero counted in full."""
    below = _checked_below(scale, size, randbits)
    return [_geometric(scale, below) for _ in range(size)]


def _checked_below(scale: int, size: int, randbits: Callable[[int], int]) -> Callable[[int], int]:
    if scale < 1 or size < 0:
        raise ValueError(f"expected scale >= 1 and size >= 0, got {scale} and {size}")

    def below(limit: int) -> int:
        return uniform_below(limit, randbits)

    return below


def sample_discrete_gaussian(sigma_squared: int, size: int, randbits: Callable[[int], int]) -> list[int]:
    """Independent integers x with probability proportional to exp(-x^2 / (2 sigma_squared)), exactly.

    Integer arithmetic only; some twenty microseconds a value at any scale. `randbits(k)` must give k fair and
    independent bits. The running time depends on the noise, never on the data.
    Raises ValueError for sigma_squared < 1 or size < 0.
    Source: Canonne, Kamath, Steinke 2020, Algorithm 3.
    """
    if sigma_squared < 1 or size < 0:
        raise ValueError(f"expected sigma_squared >= 1 and size >= 0, got {sigma_squared} and {size}")
    scale = math.isqrt(sigma_squared) + 1

    def below(limit: int) -> int:
        return uniform_below(limit, randbits)

    def draw() -> int:
        while True:
            value = _discrete_laplace(scale, below)
            excess = abs(value) * scale - sigma_squared
            if bernoulli_exp(excess * excess, 2 * sigma_squared * scale * scale, below):
                return value

    return [draw() for _ in range(size)]


@lru_cache(maxsize=256, typed=True)
def delta_upper_bound(epsilon: Decimal, stddev: int | Fraction, sensitivity_squared: int, dimension: int) -> float:
    """An upper bound on delta at epsilon for independent discrete Gaussian noise on an integer vector.

    delta <= exp(p / (24 s^2)) delta_Gauss(epsilon - h; mu), with mu = Delta / s and h = sqrt(p) Delta / (2 s^2); p is
    the dimension, s the law's parameter `stddev`, Delta^2 the largest squared norm of a shift, in grid units.
    The result is 1 where epsilon <= h. Every step of the computation is rounded upwards.

    Guarantee: (epsilon, result) for whatever moves the vector by at most Delta, in both directions.
    Raises TypeError and ValueError for anything that is not positive. Source: derived, see docs/PRIVACY.md.
    """
    _check_shape(sensitivity_squared, dimension)
    if stddev <= 0:
        raise ValueError(f"expected stddev > 0, got {stddev}")
    level = epsilon_float(epsilon)
    variance = Fraction(stddev) ** 2
    mu = root_up(sensitivity_squared / variance)
    shift = root_up(dimension * sensitivity_squared / (4 * variance**2))
    remaining = math.nextafter(level - shift, -math.inf)
    if remaining <= 0:
        return 1.0
    factor = math.exp(up(Fraction(dimension, 24) / variance)) if variance * 24 * 700 > dimension else math.inf
    return min(1.0, gaussian_delta_bound(remaining, mu) * factor * (1 + 2.0**-50))


def calibrate(
    epsilon: Decimal, delta: Decimal, sensitivity_squared: int, dimension: int, noise_multiplier: float
) -> int:
    """The stddev of the discrete Gaussian in grid units: noise_multiplier * Delta, rounded up until the bound holds.

    Guarantee: `delta_upper_bound` at (epsilon, result) is at most delta.
    Raises TypeError and ValueError as `delta_upper_bound`, and ValueError where the scale is below 2^10 grid units or
    would grow by more than 2^-10: the grid is too coarse, or the multiplier too small for the claim.
    """
    limit = delta_float(delta)
    _check_shape(sensitivity_squared, dimension)
    if not (math.isfinite(noise_multiplier) and noise_multiplier > 0):
        raise ValueError(f"expected noise_multiplier > 0 and finite, got {noise_multiplier}")
    asked = _ceil_root(Fraction(noise_multiplier) ** 2 * sensitivity_squared)
    if asked < SMALLEST_STDDEV:
        raise ValueError(
            f"expected a stddev of at least {SMALLEST_STDDEV} grid units, got {asked}: "
            "use a finer grid (a smaller exponent)"
        )
    for shift in range(asked.bit_length(), LARGEST_INFLATION - 1, -1):
        stddev = asked + (asked >> shift)
        if delta_upper_bound(epsilon, stddev, sensitivity_squared, dimension) <= limit:
            return stddev
    raise ValueError(
        f"expected a noise_multiplier within 2^-{LARGEST_INFLATION} of what ({epsilon}, {delta}) needs in dimension "
        f"{dimension}, got {noise_multiplier} at {asked} grid units: use a finer grid or more noise"
    )


@lru_cache(maxsize=256, typed=True)
def calibrate_run(epsilon: Decimal, delta: Decimal, dimension: int, noise_multiplier: float, rounds: int) -> int:
    """The stddev s0 of each of `rounds` releases that share a claim, where each moves by D0 = `SMALLEST_SENSITIVITY`.

    How far a release moves may depend on what earlier ones said: where that is D, `scaled_stddev` has s0 D / D0. So mu,
    h and p / (24 s^2) of every round are at most those of s0 and D0, and `rounds` times these keep the claim.

    Guarantee: `delta_upper_bound` at (epsilon, s0, rounds D0^2, rounds p) is at most delta.
    Raises as `calibrate`. Source: derived, see docs/PRIVACY.md.
    """
    moved = rounds * SMALLEST_SENSITIVITY**2
    return calibrate(epsilon, delta, moved, rounds * dimension, noise_multiplier / math.sqrt(rounds))


def scaled_stddev(least: int, sensitivity_squared: int) -> int:
    """s0 D / D0, rounded up, for a sensitivity D; one below D0 is noised as if it were D0."""
    moved = max(sensitivity_squared, SMALLEST_SENSITIVITY**2)
    return _ceil_root(Fraction(least, SMALLEST_SENSITIVITY) ** 2 * moved)


def check_claim(epsilon: Decimal, delta: Decimal, dimension: int, noise_multiplier: float) -> None:
    """Raise what `calibrate` would raise at some sensitivity of at least `SMALLEST_SENSITIVITY`, knowing none.

    At a scale c Delta the bound falls as Delta grows, for mu = 1 / c stays while h and p / (24 s^2) fall. So where it
    holds at the smallest Delta for c = noise_multiplier (1 + 2^-11), `calibrate`, which may go to 1 + 2^-10 less one
    unit, finds a scale for every larger one.
    """
    limit = delta_float(delta)
    if not (math.isfinite(noise_multiplier) and noise_multiplier * SMALLEST_SENSITIVITY >= 2 * SMALLEST_STDDEV):
        raise ValueError(f"expected a claim that asks for some noise, got a noise_multiplier of {noise_multiplier}")
    scale = Fraction(noise_multiplier) * SMALLEST_SENSITIVITY * (1 + Fraction(1, 2 << LARGEST_INFLATION))
    if delta_upper_bound(epsilon, scale, SMALLEST_SENSITIVITY**2, dimension) > limit:
        raise ValueError(
            f"expected a claim that integer noise keeps in dimension {dimension}, got ({epsilon}, {delta}): "
            "ask for a larger epsilon or a smaller delta"
        )


def _check_shape(sensitivity_squared: int, dimension: int) -> None:
    for name, value in (("sensitivity_squared", sensitivity_squared), ("dimension", dimension)):
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"expected {name} as an exact int, got {type(value).__name__}")
        if value < 1:
            raise ValueError(f"expected {name} >= 1, got {value}")


def up(value: Fraction) -> float:
    """A double not below a fraction."""
    return math.nextafter(float(value), math.inf)


def root_up(value: Fraction) -> float:
    """A double not below the square root of a fraction."""
    return math.nextafter(math.sqrt(up(value)), math.inf)


def _ceil_root(value: Fraction) -> int:
    """The smallest integer not below the square root of a positive fraction."""
    return math.isqrt(math.ceil(value) - 1) + 1
