"""What several releases of one curator cost together: sums as Gaussian noise, beside the sum of all claims."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from protocol.decimals import add
from protocol.privacy import Guarantee, Unit, compose
from server.choice_record import Choice, ChoiceRequest
from server.mechanisms.discrete_gaussian import SMALLEST_SENSITIVITY, calibrate_run, root_up, up
from server.mechanisms.gaussian import LARGEST_EPSILON, delta_float, epsilon_float, gaussian_delta_bound
from server.release_record import Release

# Units whose claims hold for a unit, of labels and of records.
PROTECTING = {
    Unit.LABEL: (Unit.LABEL, Unit.LABELER),
    Unit.LABELER: (Unit.LABELER,),
    Unit.RECORD: (Unit.RECORD, Unit.HOLDER),
    Unit.HOLDER: (Unit.HOLDER,),
    Unit.ADDED_RECORD: (Unit.ADDED_RECORD, Unit.ADDED_HOLDER),
    Unit.ADDED_HOLDER: (Unit.ADDED_HOLDER,),
}
ABOUT_RECORDS = (*PROTECTING[Unit.RECORD], *PROTECTING[Unit.ADDED_RECORD])

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
    Of choices, `epsilon` has the claims: those of sums as Gaussian noise, at their own delta, and those are added.
    """

    unit: Unit
    releases: int
    basic: Guarantee | None
    mu: float
    epsilon: Decimal | None


def composition(releases: Sequence[Release | Choice], unit: Unit) -> Composition | None:
    """A ledger's releases and choices together, as if about the same unit; None where they do not protect `unit`.

    A claim for labelers holds for each of their labels as well, one for holders for each of their records; sums of
    labels and sums of records are added up apart. T rounds that share a claim make it once, whichever runs they are of.

    Guarantee: (`epsilon`, delta) and `basic`, neighbours: replace one `unit`; where claims of later releases were not
    chosen by what earlier ones said. Source: derived, see docs/PRIVACY.md.
    """
    about = [one for one in releases if (one.request.unit in ABOUT_RECORDS) == (unit in ABOUT_RECORDS)]
    if not about or any(one.request.unit not in PROTECTING[unit] for one in about):
        return None
    sums = [one for one in about if isinstance(one, Release)]
    noises = [_noise(release) for release in sums]
    mu = composed_mu(noises) if noises else 0.0
    try:
        basic = compose(_claims(about, unit))
    except ValueError:  # the sum of delta
        return Composition(unit, len(about), None, mu, None)
    return Composition(unit, len(about), basic, mu, _level(basic, sums, noises, unit))


def _level(basic: Guarantee, sums: Sequence[Release], noises: Sequence[Noise], unit: Unit) -> Decimal | None:
    """Sums as Gaussian noise at the delta that they claim, and what else is claimed."""
    if not sums:
        return basic.epsilon
    claimed = compose(_claims(sums, unit))
    level = composed_epsilon(claimed.delta, noises)
    return None if level is None else add(level, add(basic.epsilon, -claimed.epsilon))


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


def _noise(release: Release) -> Noise:
    """A release's noise; of a round of a run, whose sensitivity may have followed results, the least it may be."""
    request, dimension = release.request, len(release.values)
    if request.rounds == 1:
        return Noise(release.stddev, request.sensitivity_squared, dimension)
    least = calibrate_run(request.epsilon, request.delta, dimension, request.noise_multiplier, request.rounds)
    return Noise(least, SMALLEST_SENSITIVITY**2, dimension)


def _claims(releases: Sequence[Release | Choice], unit: Unit) -> Iterator[Guarantee]:
    """Claims to add: k releases whose noise is that of T rounds tell no more than ceil(k / T) such runs."""
    runs = Counter(map(_kind, releases))
    for (epsilon, delta, rounds, *_), count in runs.items():
        yield from [Guarantee(epsilon, delta or Decimal(0), unit)] * math.ceil(count / rounds)


def _kind(one: Release | Choice) -> tuple[Decimal, Decimal | None, int, *tuple[object, ...]]:
    """What rounds of one claim have in common: the claim, how many there are, and what sets their noise."""
    request = one.request
    more = (request.sparsity, request.share) if isinstance(request, ChoiceRequest) else (len(one.values),)
    return request.epsilon, request.delta, request.rounds, request.mechanism, *more


def _square(noise: Noise) -> Fraction:
    return Fraction(noise.sensitivity_squared) / Fraction(noise.stddev) ** 2


def _shift(noise: Noise) -> float:
    return root_up(noise.dimension * noise.sensitivity_squared / (4 * Fraction(noise.stddev) ** 4))
