"""Labelers needed: how many times as many as without privacy a trust model asks for the same error."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import stdtrit

from protocol.arms import Arm
from protocol.coins import Floats
from protocol.trust import Trust
from studies.report.view import Level, View
from studies.summary import Moments
from studies.tails import tail_index

SURE = 1.96  # joint standard errors by which an error off the grid has to differ
_NEAR = "errors at the two ends of the grid of n hardly differ"
RATE = -0.5  # the slope of log error in log n beyond the grid: only resampled curves end there


@dataclass(frozen=True)
class Price:
    """`ratio` = labelers of `trust` / labelers of `reference` for the same error, with its 95 % interval.

    `arm` and `reference` are the best of their trust models at the largest n. Beyond the grid `ratio` is a bound, and
    `beyond` says "more" or "less". Where nothing can be told `ratio` is None, and `reason` says why. `rough`: errors
    have so heavy a tail that the interval is not to be relied on.
    """

    trust: Trust
    level: Level
    arm: Arm | None = None
    reference: Arm | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    beyond: str = ""
    reason: str = ""
    rough: bool = False


def prices(view: View) -> list[Price]:
    """One price for each level and each trust model that claims something, beside the clear one.

    Where no arm is clear, that of the local model beside the central one; an empty list where there is neither.
    """
    present = [trust for trust, _ in view.sections() if trust is not None]
    order = [trust for trust in (Trust.CLEAR, Trust.CENTRAL) if trust in present]
    if not order:
        return []
    asked = [trust for trust in present if trust not in (order[0], Trust.CLEAR)]
    return [_price(view, trust, order[0], level) for level in view.levels for trust in asked]


def labelers(left: Floats, right: Floats, counts: Sequence[int]) -> tuple[float, float, float]:
    """(ratio, low, high): labelers of `left` for each of `right` at the smallest mean error that both reach.

    `left`, `right` (repetitions, len(counts)): errors; the mean curves are made monotone and interpolated, log error
    against log n. The interval is t's with the jackknife's standard error of log ratio, repetitions left out one by
    one; NaN for one repetition.   Source: Efron 1982, The jackknife, the bootstrap and other resampling plans, ch. 3.
    """
    log_n = np.log(np.array(counts, dtype=float))
    size = len(left)
    ratio = _log_ratio(left.mean(axis=0), right.mean(axis=0), log_n)
    if size < 2:
        return math.exp(ratio), math.nan, math.nan
    without = [(errors.sum(axis=0) - errors) / (size - 1) for errors in (left, right)]
    each = np.array([_log_ratio(one, other, log_n) for one, other in zip(*without, strict=True)])
    error = math.sqrt((size - 1) / size * float(((each - each.mean()) ** 2).sum()))
    half = float(stdtrit(size - 1, 0.975)) * error
    return math.exp(ratio), math.exp(ratio - half), math.exp(ratio + half)


def _log_ratio(left: Floats, right: Floats, log_n: Floats) -> float:
    lefts, rights = _monotone(left), _monotone(right)
    target = max(lefts[-1], rights[-1])
    return _needed(lefts, log_n, target) - _needed(rights, log_n, target)


def _monotone(means: Floats) -> Floats:
    curve: Floats = isotonic_regression(np.log(means), increasing=False).x
    return curve


def _needed(curve: Floats, log_n: Floats, target: float) -> float:
    """log n at which a falling curve of log errors is at `target`, beyond its ends by the rate 1/sqrt(n)."""
    if target > curve[0]:
        return float(log_n[0] + (target - curve[0]) / RATE)
    return float(np.interp(-target, -curve, log_n))


def _price(view: View, trust: Trust, against: Trust, level: Level) -> Price:
    arm, reference = _best(view, trust, level), _best(view, against, level)
    if arm is None or reference is None:
        return Price(trust, level, arm, reference, reason="there are no results of both at the largest n")
    found = [(one, _errors(view, one, level)) for one in (arm, reference)]
    for one, errors in found:
        if reason := _why_not(view, one, errors):
            return Price(trust, level, arm, reference, reason=reason)
    (_, left), (_, right) = found
    rough = any((tail := tail_index(errors[:, -1])) is not None and tail.no_variance for _, errors in found)
    said = Price(trust, level, arm, reference, rough=rough)
    for mine, other, beyond, sign in ((left, right, "more", 1), (right, left, "less", -1)):
        far, near = mine[:, -1], other[:, 0]
        if far.mean() > near.mean():  # the other one is better with the fewest labelers than this one with the most
            if len(far) < 2 or far.mean() - near.mean() < SURE * math.hypot(Moments.of(far).se, Moments.of(near).se):
                return replace(said, reason=_NEAR)
            return replace(said, ratio=(view.counts[-1] / view.counts[0]) ** sign, beyond=beyond)
    ratio, low, high = labelers(left, right, view.counts)
    return replace(said, ratio=ratio, low=_there(low), high=_there(high))


def _there(value: float) -> float | None:
    return None if math.isnan(value) else value


def _best(view: View, trust: Trust, level: Level) -> Arm | None:
    """The arm of a trust model with the least mean error at the largest n."""
    n = view.counts[-1]
    found = [(s.moments.mean, arm) for arm in view.arms if arm.trust is trust and (s := view.at(arm, n, level))]
    return min(found, key=lambda pair: pair[0], default=(0.0, None))[1]


def _errors(view: View, arm: Arm, level: Level) -> Floats:
    """Errors of shape (repetitions, counts)."""
    columns: Iterator[Floats] = (view.errors[view.setting(arm, n, level), arm.name] for n in view.counts)
    return np.stack(list(columns), axis=1)


def _why_not(view: View, arm: Arm, errors: Floats) -> str:
    """Why labelers of an arm cannot be told; "" where they can."""
    name, mean = view.looks[arm.name].label, float(errors[:, -1].mean())
    if len(view.counts) < 2:
        return f"the grid has one n only, {view.counts[0]:,}: no curve to read labelers off"
    if not (errors > 0).all():
        return f"some errors of {name} are 0"
    if mean >= view.zero():
        return f"the error of {name}, the best there, is no less than that of the answer 0, which asks nobody"
    if any((tail := tail_index(column)) is not None and tail.no_mean for column in errors.T):
        return f"errors of {name} have so heavy a tail that they have no mean"
    return ""
