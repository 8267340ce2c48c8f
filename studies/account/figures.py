"""What several releases about one row cost together, by each way of counting, side by side."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from importlib.util import find_spec

from server.mechanisms.composition import account, advanced_epsilon
from server.mechanisms.discrete_gaussian import root_up
from server.mechanisms.gaussian import LARGEST_EPSILON, delta_float
from server.mechanisms.loss_distributions import peeling_epsilon
from server.mechanisms.loss_distributions import pure_epsilon as numerical_pure
from server.mechanisms.pure_composition import basic_epsilon, pure_epsilon, pure_rho
from server.mechanisms.zcdp import epsilon_of, gaussian_rho
from studies.account.releases import Release

NUMERICAL = "dp_accounting"


@dataclass(frozen=True)
class Figures:
    """Levels at one delta, each a guarantee, rounded up; infinity above 1000, None where a way does not apply.

    `exact` is attained: by Gaussian noise, or by randomised response at a pure level. `printed` is the nominal level of
    the noise by Algorithm 2 of Tao, Wu, Cheng, Wang 2022; the others are said by `server.mechanisms.composition`.
    """

    exact: float | None = None
    zcdp: float | None = None
    zcdp_simple: float | None = None
    renyi: float | None = None
    numerical: float | None = None
    basic: float | None = None
    advanced: float | None = None
    printed: float | None = None


def figures(releases: Sequence[Release], delta: Decimal | None) -> Figures:
    """All figures of the releases of one row; at delta = 0 (None) levels can only be added.

    Guarantee: (figure, delta) for the unit and neighbours of the releases, whatever later ones made of earlier results.
    """
    if any(one.delta and one.multiplier is None and one.rho is None for one in releases):
        return _whole(releases)
    multipliers = [one.multiplier for one in releases if one.multiplier is not None]
    pures = [one.pure for one in releases if one.pure is not None and one.rho is None]
    if delta is None:
        return Figures(basic=_added([one.pure for one in releases]))
    if len(multipliers) == len(releases) and len(set(multipliers)) == 1:
        return _gaussian(len(releases), multipliers[0], delta)
    if len(pures) == len(releases) and len(set(pures)) == 1:
        return _pure(len(releases), pures[0], delta)
    return _mixed(releases, delta)


def _whole(releases: Sequence[Release]) -> Figures:
    """Claims of which nothing else is known: they add up."""
    return Figures(basic=_added([one.level for one in releases]))


def _gaussian(rounds: int, multiplier: float, delta: Decimal) -> Figures:
    found = account(rounds, multiplier, delta, numerical=_numerical())
    return Figures(
        exact=found.exact,
        zcdp=found.zcdp,
        zcdp_simple=found.zcdp_simple,
        renyi=found.renyi,
        numerical=found.numerical,
        basic=found.basic,
        advanced=found.advanced,
        printed=found.paper,
    )


def _pure(rounds: int, level: float, delta: Decimal) -> Figures:
    rho = pure_rho(level, rounds)
    return Figures(
        exact=pure_epsilon(delta, level, rounds),
        zcdp=epsilon_of(rho, delta),
        zcdp_simple=epsilon_of(rho, delta, tight=False),
        numerical=numerical_pure(delta, level, rounds) if _numerical() else None,
        basic=_capped(basic_epsilon(level, rounds)),
        advanced=_capped(advanced_epsilon(level, delta_float(delta), rounds)),
    )


def _mixed(releases: Sequence[Release], delta: Decimal) -> Figures:
    """Several kinds together: rho adds up; so do pure levels and the exact level of all Gaussian noise."""
    rho = math.fsum(_rho(one) for one in releases) * (1 + 2.0**-48)
    multipliers = [one.multiplier for one in releases if one.multiplier is not None]
    levels = [one.pure for one in releases if one.multiplier is None]
    if multipliers:
        levels.append(account(1, joint_multiplier(multipliers), delta).exact)
    return Figures(
        zcdp=epsilon_of(rho, delta),
        zcdp_simple=epsilon_of(rho, delta, tight=False),
        numerical=_peeled(releases, delta),
        basic=_added(levels),
    )


def joint_multiplier(multipliers: Sequence[float]) -> float:
    """1 / sqrt(sum 1 / m^2), rounded down: Gaussian releases together are one of this multiplier."""
    mu = root_up(sum((1 / Fraction(each) ** 2 for each in multipliers), Fraction(0)))
    return math.nextafter(1 / mu, 0.0)


def _peeled(releases: Sequence[Release], delta: Decimal) -> float | None:
    """Where all were peeled with one scale."""
    peeled = [one.peeled for one in releases]
    first = peeled[0]
    if first is None or any(one is None or one.scale != first.scale for one in peeled) or not _numerical():
        return None
    return peeling_epsilon(delta, sum(one.count for one in peeled if one is not None), first.scale)


def _rho(one: Release) -> float:
    if one.multiplier is not None:
        return gaussian_rho(1, one.multiplier)
    if one.rho is not None:
        return one.rho
    assert one.pure is not None
    return pure_rho(one.pure, 1)


def _added(levels: Sequence[float | None]) -> float | None:
    """The sum of levels, rounded up; None where a release has none."""
    known = [level for level in levels if level is not None]
    if len(known) < len(levels):
        return None
    return _capped(math.fsum(known) * (1 + 2.0**-50) if len(known) > 1 else known[0])


def _capped(level: float) -> float:
    return level if level <= LARGEST_EPSILON else math.inf


def _numerical() -> bool:
    return find_spec(NUMERICAL) is not None
