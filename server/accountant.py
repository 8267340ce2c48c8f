"""What several releases of one curator cost together: as Gaussian noise, beside the sum of their claims."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from protocol.privacy import Guarantee, Unit, compose
from server.mechanisms.discrete_gaussian import root_up, up
from server.mechanisms.gaussian import LARGEST_EPSILON, delta_float, epsilon_float, gaussian_delta_bound
from server.release_record import Release

_DIGITS = Context(prec=4, rounding=ROUND_CEILING)
_SEARCH = Context(prec=28)
_SMALLEST, _CLOSE = Decimal("1e-6"), Decimal("1e-6")


@dataclass(frozen=True)
class Noise:
    """One sum's discrete Gaussian noise: its `stddev`, and how far a unit moves the sum, in units of the same grid."""

    stddev: int | Fraction
    sensitivity_squared: int
    dimension: int


@dataclass(frozen=True)
class Composition:
    """What `releases` releases say together of one unit that is in all of them.

    `basic` adds claims, None at a delta of 1 or more. mu = sqrt(sum mu_j^2) is that of the Gaussian noise which they
    come down to, and `epsilon` the level at the same delta, rounded up to four digits: None where that is above 1000.
    """

    unit: Unit
    releases: int
    basic: Guarantee | None
    mu: float
    epsilon: Decimal | None


def composition(releases: Sequence[Release], unit: Unit) -> Composition | None:
    """All releases of a ledger together, as if all were about the same labels; None where they do not protect `unit`.

    A claim for labelers holds for each of their labels as well.
    Guarantee: (`epsilon`, delta) and `basic`, for one label or one labeler, neighbours: replace it; where claims of
    later releases were not chosen by what earlier ones said. Source: derived, see docs/PRIVACY.md.
    """
    if not releases or (unit is not Unit.LABEL and any(release.request.unit is not unit for release in releases)):
        return None
    noises = [Noise(release.stddev, release.request.sensitivity_squared, len(release.values)) for release in releases]
    try:
        basic = compose(Guarantee(one.request.epsilon, one.request.delta, unit) for one in releases)
    except ValueError:  # the sum of delta
        basic = None
    level = None if basic is None else composed_epsilon(basic.delta, noises)
    return Composition(unit, len(releases), basic, composed_mu(noises), level)


def composed_mu(noises: Sequence[Noise]) -> float:
    """sqrt(sum_j Delta_j^2 / s_j^2), rounded up: what noise of unit scale would hide of all sums together."""
    return root_up(sum((_square(noise) for noise in noises), Fraction(0)))


def composed_delta_bound(epsilon: Decimal, noises: Sequence[Noise]) -> float:
    """An upper bound on delta at epsilon for several sums with discrete Gaussian noise, asked one after the other.

    exp(sum_j p_j / (24 s_j^2)) delta_Gauss(epsilon - sum_j h_j; sqrt(sum_j mu_j^2)), mu_j = Delta_j / s_j and
    h_j = sqrt(p_j) Delta_j / (2 s_j^2); 1 where epsilon is not above the sum of h_j. Rounded upwards.

    Guarantee: (epsilon, result) for whatever moves each sum by at most Delta_j, in both directions, whatever earlier
    results did to later sums; the s_j, Delta_j and p_j do not depend on results.
    Raises TypeError and ValueError for an epsilon out of range. Source: derived, see docs/PRIVACY.md.
    """
    shift = sum((Fraction(_shift(noise)) for noise in noises), Fraction(0))
    remaining = math.nextafter(epsilon_float(epsilon) - up(shift), -math.inf)
    if remaining <= 0:
        return 1.0
    excess = sum((Fraction(noise.dimension, 24) / Fraction(noise.stddev) ** 2 for noise in noises), Fraction(0))
    factor = math.exp(up(excess)) if excess < 700 else math.inf
    return min(1.0, gaussian_delta_bound(remaining, composed_mu(noises)) * factor * (1 + 2.0**-50))


def composed_epsilon(delta: Decimal, noises: Sequence[Noise]) -> Decimal | None:
    """The smallest epsilon, to four digits rounded up, at which `composed_delta_bound` is at most delta.

    None where it is above 1000. Raises TypeError and ValueError for a delta out of range.
    """
    limit, low, high = delta_float(delta), _SMALLEST, LARGEST_EPSILON
    if composed_delta_bound(high, noises) > limit:
        return None
    while high - low > low * _CLOSE:
        middle = _SEARCH.sqrt(_SEARCH.multiply(low, high))
        if composed_delta_bound(middle, noises) <= limit:
            high = middle
        else:
            low = middle
    return _DIGITS.plus(high)  # the bound falls in epsilon


def _square(noise: Noise) -> Fraction:
    return Fraction(noise.sensitivity_squared) / Fraction(noise.stddev) ** 2


def _shift(noise: Noise) -> float:
    return root_up(noise.dimension * noise.sensitivity_squared / (4 * Fraction(noise.stddev) ** 4))
