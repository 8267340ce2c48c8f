"""Labels, error and level of privacy: each from the other two, by the sandwich formula; and when not to believe it."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal

import numpy as np

from protocol.arms import Arm
from protocol.coins import Floats
from protocol.features import coordinates
from protocol.trust import Trust
from protocol.warned import warn
from studies.theory.sandwich import Theory, spread

MOST_LABELS = 10**15
LEAST_EPSILON, LARGEST_EPSILON = Decimal("1e-6"), Decimal(40)
DIGITS = Context(prec=4, rounding=ROUND_CEILING)

# Where the formula stops to hold, measured: see docs/PLANNING.md.
LARGEST_SCORE_ERROR = 0.35
LEAST_LABELS_A_COORDINATE = 50


@dataclass(frozen=True)
class Way:
    """One way to an estimate, as plans call it."""

    name: str
    words: str
    arm: Arm


WAYS: dict[str, Way] = {
    way.name: way
    for way in (
        Way("clear", "clear labels, MLE", Arm(Trust.CLEAR, "none", "mle")),
        Way("local", "local, RR-MLE", Arm(Trust.LOCAL, "randomized-response", "rr-mle")),
        Way("local-debiased", "local, de-biased", Arm(Trust.LOCAL, "randomized-response", "debiased")),
        Way("distributed", "distributed, Skellam in shares", Arm(Trust.DISTRIBUTED, "skellam", "mle")),
        Way("central", "central, Gaussian on the clipped sum", Arm(Trust.CENTRAL, "gaussian-statistic-clipped", "mle")),
    )
}


@dataclass(frozen=True)
class Setting:
    """How many labels, at which level of privacy; clear ways have none."""

    n: int
    epsilon: Decimal | None
    delta: Decimal


@dataclass(frozen=True)
class Prediction:
    """The root mean square L2 error of a way at a setting.

    `worth`: labels that clear estimation needs for this error, divided by n: what one label is worth. `score_error` is
    the same error measured in scores of pairs, sqrt(E (x . error)^2). `doubts` say why the formula may not hold.
    """

    way: Way
    setting: Setting
    error: float
    worth: float
    score_error: float
    doubts: tuple[str, ...]


def error_at(theory: Theory, way: Way, setting: Setting) -> float:
    """The predicted root mean square L2 error."""
    return math.sqrt(float(np.trace(_spread(theory, way, setting))))


def predict(theory: Theory, way: Way, setting: Setting) -> Prediction:
    """The error at a setting, what a label is worth there, and doubts."""
    covariance = _spread(theory, way, setting)
    error = math.sqrt(float(np.trace(covariance)))
    worth = (theory.without_privacy(1) / error) ** 2 / setting.n
    score_error = math.sqrt(float((theory.second_moments * covariance).sum()))
    return Prediction(way, setting, error, worth, score_error, tuple(_doubts(theory, setting, covariance, score_error)))


def labels_needed(theory: Theory, way: Way, error: float, epsilon: Decimal | None, delta: Decimal) -> int | None:
    """The smallest n whose predicted error is at most `error`; None beyond 10^15."""
    return _smallest(lambda n: error_at(theory, way, Setting(n, epsilon, delta)) <= error, MOST_LABELS)


def epsilon_needed(theory: Theory, way: Way, error: float, n: int, delta: Decimal) -> Decimal | None:
    """The smallest epsilon, to four digits, whose predicted error with n labels is at most `error`.

    None where not even epsilon = 40 is enough, 1e-6 where that is.
    """

    def enough(level: Decimal) -> bool:
        return error_at(theory, way, Setting(n, level, delta)) <= error

    if not enough(LARGEST_EPSILON):
        return None
    low, high = LEAST_EPSILON, LARGEST_EPSILON
    if enough(low):
        return low
    while (middle := DIGITS.create_decimal((low * high).sqrt())) not in (low, high):
        low, high = (low, middle) if enough(middle) else (middle, high)
    step = Decimal(1).scaleb(high.adjusted() - 3)
    return high - step if enough(high - step) else high


def _smallest(enough: Callable[[int], bool], most: int) -> int | None:
    """The smallest n in 1, ..., most with enough(n), which stays true once it is."""
    high = 1
    while not enough(high):
        high *= 2
        if high > most:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _spread(theory: Theory, way: Way, setting: Setting) -> Floats:
    covariance = spread(theory, way.arm, setting.n, setting.epsilon, setting.delta)
    if covariance is None:
        raise ValueError(f"expected a way and a level with a formula, got {way.name} at epsilon = {setting.epsilon}")
    return covariance


def _doubts(theory: Theory, at: Setting, covariance: Floats, score_error: float) -> list[str]:
    """Why the formula may not hold: the ball, the curvature, too few labels, an error as large as the truth.

    And where it holds, but the level is none.
    """
    problem, error = theory.problem, math.sqrt(float(np.trace(covariance)))
    u = coordinates(problem, theory.theta)
    length = math.sqrt(float((u * u).sum()))
    found = []
    if problem.bound is not None:
        along = math.sqrt(float(u @ covariance @ u)) / length if length else error
        if math.hypot(length, error) + 2 * along > float(problem.bound):
            found.append(
                warn("near-the-ball", f"estimates reach the ball of radius {problem.bound}, which cuts their error")
            )
    if score_error > LARGEST_SCORE_ERROR:
        found.append(
            warn(
                "large-errors",
                f"scores of pairs are off by {score_error:.2g} (root mean square; at most {LARGEST_SCORE_ERROR} is "
                "small against the bend of the logistic curve): the true error is larger, unless the ball cuts it",
            )
        )
    if at.n < LEAST_LABELS_A_COORDINATE * problem.reduced_dimension:
        found.append(warn("few-labels", f"fewer than {LEAST_LABELS_A_COORDINATE} labels a coordinate"))
    if length and error >= length:
        found.append(warn("no-better-than-zero", f"the answer 0 is as good: its error is {length:.3g}"))
    if at.epsilon is not None and at.epsilon > LARGEST_EPSILON:
        found.append(warn("protects-nobody", f"epsilon above {LARGEST_EPSILON} protects nobody"))
    return found
