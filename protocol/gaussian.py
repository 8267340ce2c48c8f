"""The Gaussian mechanism: its exact privacy profile, and the smallest noise that keeps a claim."""

import math
from decimal import Decimal
from functools import lru_cache

from scipy.special import erfcx, ndtr

from protocol import decimals

LARGEST_EPSILON = Decimal(1000)
SMALLEST_DELTA = Decimal("1e-60")
ROUNDING = 16 * 2.0**-52  # per term of the profile; measured errors stay below a quarter of it
UNDERFLOW = 1e-307  # covers results near the subnormal range


def epsilon_float(epsilon: Decimal) -> float:
    """An asked epsilon as a double, rounded down.

    Raises TypeError for anything but a decimal, ValueError unless 1e-9 <= epsilon <= 1000 (above 40 the formulas hold,
    and protect nobody).
    """
    if decimals.epsilon(_exact(epsilon, "epsilon")) > LARGEST_EPSILON:
        raise ValueError(f"expected epsilon <= {LARGEST_EPSILON}, got {epsilon}: it would protect nobody")
    return decimals.down(epsilon)


def delta_float(delta: Decimal) -> float:
    """An asked delta as a double, rounded down.

    Raises TypeError for anything but a decimal, ValueError unless 1e-60 <= delta < 1.
    """
    if decimals.delta(_exact(delta, "delta")) < SMALLEST_DELTA:
        raise ValueError(f"expected delta >= {SMALLEST_DELTA}, got {delta}")
    return decimals.down(delta)


def gaussian_delta(epsilon: float, mu: float) -> float:
    """The smallest delta at which Gaussian noise is (epsilon, delta)-private, to nearest.

    delta = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu), with mu = sensitivity / stddev.

    Guarantee: exact in any dimension; unit and neighbours are those of the sensitivity.
    Raises ValueError unless both arguments are positive and finite.
    Source: Balle, Wang 2018, Theorem 8; see docs/PRIVACY.md for the form computed here.

    >>> round(gaussian_delta(1.0, 1.0), 6)
    0.126937
    """
    return _profile(epsilon, mu)[0]


def gaussian_delta_bound(epsilon: float, mu: float) -> float:
    """`gaussian_delta` plus an allowance for every rounding error of its computation: never below the true value."""
    value, allowance = _profile(epsilon, mu)
    return min(1.0, value + allowance)


def _exact(value: Decimal, name: str) -> Decimal:
    if not isinstance(value, Decimal):
        raise TypeError(f"expected {name} as decimal.Decimal, got {type(value).__name__}: doubles are not exact")
    return value


def _profile(epsilon: float, mu: float) -> tuple[float, float]:
    """The profile and an upper bound on its rounding error.

    e^epsilon phi(mu/2 + epsilon/mu) = phi(mu/2 - epsilon/mu), so both terms share one density and no power of e^epsilon
    is formed; with Mills ratios the factor's error multiplies the difference and is not amplified by cancellation.
    """
    for name, value in (("epsilon", epsilon), ("mu", mu)):
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"expected {name} > 0 and finite, got {value}")
    near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if near > 40:
        return 0.0, UNDERFLOW
    density = math.exp(-near * near / 2) / math.sqrt(2 * math.pi)
    second = density * _mills(far)
    if near >= 0:
        first = density * _mills(near)
        difference = max(0.0, density * (_mills(near) - _mills(far)))
        error = first + second + (1 + far) ** 2 * difference
    else:
        first = float(ndtr(-near))
        difference = max(0.0, first - second)
        error = first + second + far * density
    return difference, ROUNDING * error + UNDERFLOW


def _mills(t: float) -> float:
    """Phi(-t) / phi(t), without underflow for large t."""
    return math.sqrt(math.pi / 2) * float(erfcx(t / math.sqrt(2)))


@lru_cache(maxsize=4096, typed=True)  # typed: a double that equals a decimal is still refused
def gaussian_mu(epsilon: Decimal, delta: Decimal) -> float:
    """The largest sensitivity / stddev at which Gaussian noise is (epsilon, delta)-private, rounded down.

    Bisection to adjacent doubles on `gaussian_delta_bound`, whose value at the result is at most delta.

    Guarantee: `gaussian_delta_bound(epsilon, mu) <= delta`; unit and neighbours are those of the sensitivity.
    Raises TypeError and ValueError as `epsilon_float` and `delta_float`.
    Source: Balle, Wang 2018, Theorem 8; that the profile increases in mu is shown in docs/PRIVACY.md.
    """
    level, limit = epsilon_float(epsilon), delta_float(delta)
    root = math.sqrt(2 * level)
    low, high = level / (root + 40), root + 80  # the profile is below 1e-300, and 1
    while low < (middle := (low + high) / 2) < high:
        if gaussian_delta_bound(level, middle) <= limit:
            low = middle
        else:
            high = middle
    return low


def analytic_noise_multiplier(epsilon: Decimal, delta: Decimal) -> float:
    """The smallest stddev / sensitivity of (epsilon, delta)-private Gaussian noise: 1 / mu, rounded up.

    Guarantee: (epsilon, delta) for the sensitivity's unit and neighbours, by the exact profile.
    Raises TypeError and ValueError as `epsilon_float` and `delta_float`. Source: Balle, Wang 2018, Algorithm 1.
    """
    return math.nextafter(1 / gaussian_mu(epsilon, delta), math.inf)
