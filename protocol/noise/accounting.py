"""The variance that a sum of shares needs for a claim, and the claim that a variance keeps: rounded to be safe."""

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from protocol.gaussian import delta_float, epsilon_float, gaussian_delta_bound, gaussian_mu
from protocol.noise import LAWS
from protocol.noise.increments import Increment, increment
from protocol.noise.law import check_variance

LARGEST_EPSILON = 40.0  # e^epsilon times what tables leave out has to stay small
DRAWN = 2.0**-100  # between a draw of 128 bits and its law, in total variation: see `protocol.noise.table`
SHARE = 2.0**-20  # of delta, for what is beyond a table
_UP = 1 + 2.0**-40


@dataclass(frozen=True)
class Shares:
    """Integer noise of `law` in shares: at least `honest` rows are there whose shares nobody else knows.

    All rows add shares of variance `variance` / `honest` to each of `dimension` coordinates, in grid units squared.
    Raises ValueError for a law that is unknown, and numbers that are not positive.
    """

    law: str
    variance: Fraction
    honest: int
    dimension: int

    def __post_init__(self) -> None:
        if self.law not in LAWS:
            raise ValueError(f"expected a law of noise out of {sorted(LAWS)}, got {self.law!r}")
        if self.honest < 1 or self.dimension < 1:
            raise ValueError(f"expected honest rows and a dimension >= 1, got {self.honest} and {self.dimension}")
        check_variance(self.variance)
        if LAWS[self.law].possible(self.variance, self.honest) != self.variance:
            raise ValueError(f"expected a variance that {self.honest} rows can share, got {self.variance}")

    @property
    def share(self) -> Fraction:
        """The variance of one row's share."""
        return self.variance / self.honest


def delta_bound(shares: Shares, epsilon: Decimal, sensitivity_squared: int) -> float:
    """An upper bound on delta at epsilon of an integer vector with this noise, where one unit moves it by D at most.

    delta <= e^(g d) (delta_Gauss(epsilon - 2 g d; D m) + (1 + e^epsilon) d (b + h 2^-100)), with m and b of the law's
    `increment`, d the dimension, h the honest rows, whose draws are as near their law as `DRAWN`, g the law's gap: 0
    but for discrete Gaussian shares. 1 where 2 g d >= epsilon.

    Guarantee: (epsilon, result) where `honest` rows' shares are unknown, whatever others add; unit and neighbours are
    those of D. Raises TypeError and ValueError as `epsilon_float`, and for epsilon > 40 or a sensitivity < 1.
    Source: derived, see docs/PRIVACY.md.
    """
    return _bound(shares, epsilon, sensitivity_squared, within=1e-30)


def keeps(shares: Shares, epsilon: Decimal, delta: Decimal, sensitivity_squared: int) -> bool:
    """Whether the noise keeps (epsilon, delta) for a unit that moves the sum by D at most, by `delta_bound`'s formula.

    What its table leaves out may be as much as a 2^-20th of delta. Raises as `delta_bound`.
    """
    limit = delta_float(delta)
    within = SHARE * limit / ((1 + math.exp(_level(epsilon))) * shares.dimension)
    return _bound(shares, epsilon, sensitivity_squared, within) <= limit


@lru_cache(maxsize=256, typed=True)
def least_variance(
    law: str, epsilon: Decimal, delta: Decimal, sensitivity_squared: int, dimension: int, honest: int
) -> Fraction:
    """The total variance that `honest` rows have to add to each coordinate: the Gaussian one, raised until it `keeps`.

    In grid units squared; above (D / mu)^2 of the Gaussian mechanism by some 1 / (4 v), and by what shares need.

    Guarantee: `keeps` holds for the result. Raises ValueError where no law of a possible variance does: a grid that is
    too coarse or too fine, see `protocol.noise.law:check_variance`.
    """
    mu = gaussian_mu(epsilon, delta)
    asked = Fraction(math.ceil(sensitivity_squared / Fraction(mu) ** 2))
    for shift in range(24, -4, -1):
        variance = LAWS[law].possible(asked * (1 + Fraction(2) ** -shift), honest)
        if keeps(Shares(law, variance, honest, dimension), epsilon, delta, sensitivity_squared):
            return variance
    raise ValueError(
        f"expected a claim that {law} noise keeps, got ({epsilon}, {delta}) at a sensitivity of "
        f"{math.sqrt(sensitivity_squared):.6g} grid units in dimension {dimension}: use a finer grid"
    )


def _level(epsilon: Decimal) -> float:
    level = epsilon_float(epsilon)
    if level > LARGEST_EPSILON:
        raise ValueError(f"expected epsilon <= {LARGEST_EPSILON} with noise in shares, got {epsilon}")
    return level


def _bound(shares: Shares, epsilon: Decimal, sensitivity_squared: int, within: float) -> float:
    if not isinstance(sensitivity_squared, int) or isinstance(sensitivity_squared, bool) or sensitivity_squared < 1:
        raise ValueError(f"expected a squared sensitivity of at least 1 as an exact int, got {sensitivity_squared!r}")
    level, law = _level(epsilon), LAWS[shares.law]
    gap = law.gap(shares.honest, shares.share) * shares.dimension * _UP
    remaining = math.nextafter(level - 2 * gap, -math.inf) if gap else level
    if remaining <= 0:
        return 1.0
    found = _increment(shares.law, shares.variance, within)
    mu = math.nextafter(math.sqrt(math.nextafter(float(sensitivity_squared), math.inf)), math.inf) * found.largest
    left = (1 + math.exp(level)) * shares.dimension * (found.beyond + shares.honest * DRAWN)
    total = (gaussian_delta_bound(remaining, mu * _UP) + left) * math.exp(gap) * _UP
    return min(1.0, total)


@lru_cache(maxsize=256)
def _increment(law: str, variance: Fraction, within: float) -> Increment:
    return increment(LAWS[law].shape(float(variance)), within)
