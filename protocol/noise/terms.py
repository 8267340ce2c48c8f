"""The terms of a task whose noise comes in shares: grid, modulus and variance, alike for client and server."""

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from protocol.arms import DISTRIBUTED
from protocol.features import row_bound
from protocol.gaussian import analytic_noise_multiplier
from protocol.messages import Mechanism, Task
from protocol.noise.accounting import Shares, keeps, least_variance
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.secure.masks import MOST_MODULUS, check_modulus, honest_rows
from protocol.trust import Trust

FINE = 13  # the noise of a whole sum is 2^13 to 2^14 grid units: next to it, rounding rows to the grid is nothing
FINEST = 900  # exponents of grids are from -900 to 900
WRAPPED = 2.0**-80  # the chance that a coordinate of a sum, with all of its noise, leaves the window that it is read in
_ROUNDED = Fraction(1, 1 << 30)  # relative: more than lengths and weights of rows are off by
_NAMES = {"delta", "epsilon", "honest", "least", "radius", "variance"}


@dataclass(frozen=True)
class Terms:
    """What one row adds, and what is promised: rows are clipped at `radius`, and no label, or none of a labeler's
    labels together, move a sum farther than the root of `sensitivity_squared`, in grid units.
    """

    shares: Shares
    radius: float
    sensitivity_squared: int
    largest: int
    modulus: int


@dataclass(frozen=True)
class Counted:
    """Rows that a task counts on: `least` have to stay, and `honest` of these tell nobody their noise."""

    honest: int
    least: int


@dataclass(frozen=True)
class Asked:
    """What a task for sums with noise in shares is made of: its only mechanism, its grid, and its modulus."""

    mechanism: Mechanism
    exponent: int
    modulus: int


def asked(task: Task, law: str, radius: Decimal, rows: Counted) -> Asked:
    """The grid, noise and modulus of a task at (epsilon, delta), which says all but these.

    The grid has the noise of 2^`FINE` units or more, so rows of a ball have as many, over the noise multiplier and the
    labels of one labeler. With half wins rows are on a grid twice as coarse: `protocol.terms.row_exponent`.

    Guarantee: `protocol.noise.accounting:keeps` for the task's sensitivity.
    Raises ValueError for a claim that the law cannot keep, and for numbers out of range.
    """
    n, problem, epsilon, delta = _rows_asked(task), task.problem, task.epsilon, task.delta
    if not 1 <= rows.honest <= rows.least <= n:
        raise ValueError(f"expected honest rows among least ones among {n}, got {rows.honest} and {rows.least}")
    if epsilon is None or delta is None:
        raise ValueError("expected a claim with epsilon and delta")
    noise = float(radius) * _labels(task) * analytic_noise_multiplier(epsilon, delta)
    if not (math.isfinite(noise) and noise > 0):
        raise ValueError(f"expected a radius > 0 of moderate size, got {radius}")
    exponent = math.frexp(noise)[1] - 1 - FINE
    squared = sensitivity_squared(problem, radius, exponent, _labels(task))
    variance = least_variance(law, epsilon, delta, squared, problem.reduced_dimension, rows.honest)
    counted = {"honest": Decimal(rows.honest), "least": Decimal(rows.least)}
    mechanism = Mechanism.of(law, epsilon=epsilon, delta=delta, variance=as_decimal(variance), radius=radius, **counted)
    largest = _largest(problem, float(radius), task.map is not None, exponent)
    return Asked(
        mechanism, exponent, least_modulus(n, largest, Fraction(n, rows.honest) * variance, problem.reduced_dimension)
    )


def terms_of(task: Task, mechanism: Mechanism) -> Terms:
    """The terms of a task under secure aggregation, checked: whoever answers relies on nobody to say that they hold.

    Guarantee: the task's (epsilon, delta), from whatever is made of the sum of all answers modulo any number, where
    `honest` rows or more answer whose shares of the noise nobody else knows: `keeps` holds. Of the `least` rows that a
    sum is opened of, all others may be in league with whoever sees it. Unit: one label, or one labeler, of whose labels
    at most `cap` are answered for; neighbours: replace one label, ties included, or all labels of one labeler.
    Raises ValueError for a mechanism that is none, parameters that are missing or out of range, a grid or modulus that
    does not fit, or a claim that the variance does not keep.
    """
    if task.trust is not Trust.DISTRIBUTED or mechanism.name not in DISTRIBUTED:
        raise ValueError(f"expected noise in shares out of {DISTRIBUTED}, got {mechanism.name[:40]!r}")
    values = dict(mechanism.parameters)
    if set(values) != _NAMES or (values["epsilon"], values["delta"]) != (task.epsilon, task.delta):
        raise ValueError(f"expected the parameters {sorted(_NAMES)}, and the task's level, got {sorted(values)}")
    if not all(value.is_finite() for value in values.values()):
        raise ValueError("expected parameters that are finite numbers")
    labelers, exponent = task.unit is Unit.LABELER, task.exponent
    if task.epsilon is None or task.delta is None or not (labelers or task.unit is Unit.LABEL):
        raise ValueError("expected a claim for a label, or for a labeler")
    if (task.cap > 0) is not labelers or task.groups is not None or exponent is None or abs(exponent) > FINEST:
        raise ValueError("expected a grid of moderate size, a cap exactly at the unit labeler, and no groups")
    honest, radius = honest_rows(task, mechanism), values["radius"]
    if not radius > 0:
        raise ValueError(f"expected a radius > 0, got {radius}")
    shares = Shares(mechanism.name, Fraction(values["variance"]), honest, task.problem.reduced_dimension)
    squared = sensitivity_squared(task.problem, radius, exponent, _labels(task))
    if not keeps(shares, task.epsilon, task.delta, squared):
        raise ValueError(
            f"expected a variance that keeps ({task.epsilon}, {task.delta}) at a sensitivity of "
            f"{math.sqrt(squared):.6g} grid units, got {shares.variance}"
        )
    largest = _largest(task.problem, float(radius), task.map is not None, exponent)
    return Terms(shares, float(radius), squared, largest, check_modulus(task))


def sensitivity_squared(problem: Problem, radius: Decimal, exponent: int, labels: int = 1) -> int:
    """How far so many labels move a sum of rows clipped at `radius` and truncated to the grid, squared, in grid units.

    Truncation makes no row longer, and y_i in [0, 1], half wins among them, moves a sum by no more than its row: m rows
    together by no more than m times that. Of choices it moves each coordinate of a difference by less than 1.
    """
    length = Fraction(radius) * (1 + _ROUNDED) / Fraction(2) ** exponent
    if problem.kind == "choice":
        length += math.isqrt(problem.reduced_dimension - 1) + 1
    return max(1, math.ceil((labels * length) ** 2))


def least_modulus(n: int, largest: int, variance: Fraction, dimension: int) -> int:
    """The least power of two whose window, centred at 0, holds a sum of n rows with noise of a total `variance`.

    M >= 2 (n largest + t), and P(|noise| > t) <= `WRAPPED` in all coordinates together by Bernstein's inequality:
    P <= 2 p exp(-t^2 / (2 v + 2 t / 3)), which the noise of every law keeps. A sum that wraps is wrong, and tells
    nothing more: what is sent are residues anyway. Raises ValueError beyond `MOST_MODULUS`.
    """
    lost = math.log(2 * dimension / WRAPPED)
    margin = math.ceil(lost / 3 + math.sqrt(lost**2 / 9 + 2 * float(variance) * lost))
    modulus = 1 << (2 * (n * largest + margin) - 1).bit_length()
    if modulus > MOST_MODULUS:
        raise ValueError(f"expected sums within 2^52 grid units, got up to {n} rows of {largest}: use fewer rows")
    return modulus


def _labels(task: Task) -> int:
    """How many labels of the task's unit are answered for, at most."""
    return max(1, task.cap)


def _rows_asked(task: Task) -> int:
    return task.n if task.rows is None else task.rows.count


def _largest(problem: Problem, radius: float, shaped: bool, exponent: int) -> int:
    """How many grid units a coordinate of a row has at most."""
    return math.ceil(Fraction(row_bound(problem, radius, shaped)) / Fraction(2) ** exponent)


def as_decimal(value: Fraction) -> Decimal:
    """A fraction over 1 or 2, as variances are, exactly."""
    return Decimal(value.numerator) / Decimal(value.denominator)
