"""The terms of a task about records whose noise comes in shares: grid, bounds, modulus and variance, alike for both.

A contribution is bounded as a curator's tasks bound it, and rounded to the grid at random, up or down: without a bias,
which n rows truncated towards zero would add up to n / 2 units. Its bound holds afterwards in whole numbers, whatever
the coins: see `client.rounding:rounded`. Where the mechanism says `rotate` it is turned before, by a public rotation:
that leaves its length, and makes its coordinates small.
"""

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from protocol.arms import DISTRIBUTED
from protocol.gaussian import analytic_noise_multiplier
from protocol.messages import Mechanism, Task
from protocol.noise.accounting import Shares, keeps, least_variance
from protocol.noise.rotation import MOST, coordinate_bound, padded
from protocol.noise.terms import FINE, Asked, Counted, as_decimal, least_modulus
from protocol.privacy import Unit
from protocol.record_terms import L2, SUMS, Bounded, squared_sensitivity
from protocol.secure.masks import MOST_MODULUS, check_modulus, honest_rows
from protocol.trust import Trust

UNITS = (Unit.RECORD, Unit.HOLDER)
EXPONENTS = range(-900, 901)
LARGEST = Decimal(10) ** 300  # of a parameter
_NEEDED = {"delta", "epsilon", "honest", "least", "threshold", "variance"}
_KNOWN = _NEEDED | {"l2", "rotate", "rounds", "truncate"}


@dataclass(frozen=True)
class RecordTerms:
    """What one row adds: at most `largest` grid units in a coordinate, and `longest` in squared length (None: no bound
    of its own); `power` is the grid's exponent. What is promised: no row moves a sum farther than the root of
    `sensitivity_squared`, and the noise of all `how.rounds` rounds keeps the task's claim together.
    """

    how: Bounded
    shares: Shares
    power: int
    largest: int
    longest: int | None
    sensitivity_squared: int
    modulus: int


def sum_width(task: Task) -> int:
    """How many numbers a sum of records has: the problem's, or as many as a rotation makes of them."""
    return padded(task.problem.dimension) if task.menu[0].get("rotate") else task.problem.dimension


def asked_of_records(
    how: Bounded, dimension: int, n: int, law: str, level: tuple[Decimal, Decimal], rows: Counted
) -> Asked:
    """What a task asks at (epsilon, delta), which `how.rounds` sums of n rows share; its mechanism has no bounds yet.

    The noise of a whole sum is 2^`FINE` grid units or more, and that of a curator's Gaussian mechanism within what
    `least_variance` adds.

    A sum of rotated rows is within `rotated_sum` in each coordinate but with a chance of 2^-40 over the signs: then it
    may wrap, and is wrong, as where noise is too large.

    Guarantee: `protocol.noise.accounting:keeps` for all rounds together.
    Raises ValueError for a claim that the law cannot keep, and for numbers out of range.
    """
    if not 1 <= rows.honest <= rows.least <= n:
        raise ValueError(f"expected honest rows among least ones among {n}, got {rows.honest} and {rows.least}")
    epsilon, delta = level
    most = how.threshold * (2.0 if how.norm == L2 else 2.0 * math.sqrt(dimension))
    noise = most * analytic_noise_multiplier(epsilon, delta) * math.sqrt(how.rounds)
    if not (math.isfinite(noise) and noise > 0):
        raise ValueError(f"expected a threshold > 0 of moderate size, got {how.threshold}")
    power = math.frexp(noise)[1] - 1 - FINE
    width = padded(dimension) if how.rotate else dimension
    largest, _, squared = bounds(how, power, width)
    together = how.rounds * squared, how.rounds * width
    variance = least_variance(law, epsilon, delta, *together, rows.honest)
    counted = {"honest": Decimal(rows.honest), "least": Decimal(rows.least)}
    mechanism = Mechanism.of(law, epsilon=epsilon, delta=delta, variance=as_decimal(variance), **counted)
    most = rotated_sum(how, power, dimension, n, largest) if how.rotate else n * largest
    return Asked(mechanism, power, least_modulus(1, most, Fraction(n, rows.honest) * variance, width))


def rotated_sum(how: Bounded, power: int, dimension: int, n: int, largest: int) -> int:
    """What a coordinate of a sum of n rotated rows has at most, in grid units, but with a chance of 2^-40 over signs.

    The sum is as long as n bounds; each row's rounding adds less than one unit. Never above n `largest`.
    """
    length = n * float(Fraction(how.threshold) / Fraction(2) ** power)
    return min(n * largest, math.ceil(coordinate_bound(length, dimension)) + n)


def terms_of_records(task: Task, mechanism: Mechanism) -> RecordTerms:
    """The terms of a task under secure aggregation, checked: whoever answers relies on nobody to say that they hold.

    T rounds of noise in d coordinates are one of T d coordinates which a row moves by sqrt(T) times as much, also
    where later questions depend on earlier sums: trade-off curves of Gaussian shifts compose so.

    Guarantee: the task's (epsilon, delta) for one row over all rounds of its run, from whatever is made of the sums of
    all answers modulo any number, where in each `honest` rows or more answer whose shares of the noise nobody else
    knows: `keeps` holds. Unit: one record, or one holder; neighbours: replace it.
    Raises ValueError for a mechanism that is none, parameters that are missing or out of range, a grid or modulus that
    does not fit, or a claim that the variance does not keep.
    Source: Dong, Roth, Su 2022, Corollary 3.3 (rounds); derived, see docs/PRIVACY.md.
    """
    _check(task, mechanism)
    how, honest, width = Bounded.of(mechanism), honest_rows(task, mechanism), sum_width(task)
    if task.round >= how.rounds > 1:
        raise ValueError(f"expected a round below {how.rounds}, whose claim covers that many")
    assert task.exponent is not None and task.epsilon is not None and task.delta is not None
    largest, longest, squared = bounds(how, task.exponent, width)
    if task.n * largest > MOST_MODULUS // 2:
        raise ValueError(
            f"expected sums within 2^52 grid units, got up to {task.n} rows of {largest}: coarsen the grid"
        )
    variance = mechanism.get("variance")
    assert variance is not None
    shares = Shares(mechanism.name, Fraction(variance), honest, width)
    together = Shares(shares.law, shares.variance, honest, how.rounds * width)
    if not keeps(together, task.epsilon, task.delta, how.rounds * squared):
        raise ValueError(
            f"expected a variance that keeps ({task.epsilon}, {task.delta}) over {how.rounds} rounds at a sensitivity "
            f"of {math.sqrt(squared):.6g} grid units, got {shares.variance}"
        )
    return RecordTerms(how, shares, task.exponent, largest, longest, squared, check_modulus(task))


def _check(task: Task, mechanism: Mechanism) -> None:
    if task.trust is not Trust.DISTRIBUTED or task.problem.kind != "records" or mechanism.name not in DISTRIBUTED:
        raise ValueError(f"expected noise in shares out of {DISTRIBUTED} for records, got {mechanism.name[:40]!r}")
    values = dict(mechanism.parameters)
    if not _NEEDED <= set(values) <= _KNOWN or (values["epsilon"], values["delta"]) != (task.epsilon, task.delta):
        raise ValueError(f"expected {sorted(_NEEDED)}, of {sorted(_KNOWN)}, at the task's level, got {sorted(values)}")
    if not all(value.is_finite() and value < LARGEST for value in values.values()) or not (task.epsilon and task.delta):
        raise ValueError("expected parameters of moderate size, and a claim")
    if task.unit not in UNITS:
        raise ValueError(
            "expected rows that are replaced: how many rows each member has is in a session's roster, for all to see, "
            "so that rows which are added or removed show whatever the noise"
        )
    if task.cap or task.groups is not None or task.map is not None or task.coordinates is not None:
        raise ValueError("expected neither a cap, groups, a map nor coordinates where records are asked for")
    if task.exponent not in EXPONENTS:
        raise ValueError(f"expected the exponent of a grid in -900..900, got {task.exponent}")


def bounds(how: Bounded, power: int, dimension: int) -> tuple[int, int | None, int]:
    """The most of a coordinate, of a squared length, and how far a row moves a sum, squared: all in grid units.

    Numbers are rounded within these, so that nothing grows: a sum moves no farther than a curator's.
    Raises ValueError where the grid has no number but 0 within the bound, and for a bound too long to be turned.
    """
    units = Fraction(how.threshold) / Fraction(2) ** power
    if how.kind != SUMS or how.counted or units < 1:
        raise ValueError(f"expected plain sums on a grid finer than the threshold {how.threshold}, got 2^{power}")
    if how.rotate and how.threshold > MOST:  # else a row would be refused for its length, which tells of it
        raise ValueError(f"expected a threshold of at most 2^900 where rows are turned, got {how.threshold}")
    longest = math.floor(units**2) if how.norm == L2 else None
    return math.floor(units), longest, squared_sensitivity(how, power, dimension)
