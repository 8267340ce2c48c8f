"""How large gradients of records are: E|g_j|^(1 + tail), which thresholds are chosen by.

An average of |g_j|^(1 + tail) over records will not do: its own tail index is barely above 1, and it nearly always
falls short, by a quarter over 10^5 records of a tail index 1.6 and tail = 0.5. So noise is integrated out.
"""

import math

import numpy as np
from scipy.interpolate import CubicSpline

from protocol.coins import Floats
from protocol.laws import Law
from studies.moments import dot
from studies.truth_records import ROWS, RecordTruth

_KNOTS = 129
_STEPS = 40


def mean_gradient_bound(features: Law, tail: float, size: float) -> float:
    """2^tail (size^(1 + tail) + E|x_j|^(1 + tail)) >= E|w_j - x_j|^(1 + tail) for |w_j| <= size.

    By convexity, |(w + x)/2|^(1 + tail) is at most the mean of the two powers.
    """
    return float(2**tail * (size ** (1 + tail) + features.absolute_moment(1 + tail)))


def gradient_moment(records: RecordTruth, tail: float, radius: float) -> float:
    """The largest E|g_j(w)|^(1 + tail) over coordinates j and ||w|| <= radius, g the gradient of one record's loss.

    "mean": g = w - x, by the law's own moments. "linear" and "ridge" (whose penalty needs no record): g = (<w, x> - y)
    x; exact over the noise, an average over `RecordTruth.rows` of x, so meant for light features. "logistic": E|x_j|^(1
    + tail), a bound, since |sigma - y| <= 1. Infinite where the law has no such moment.

    Raises ValueError unless 0 < tail <= 1 and radius >= 0. Source: the moment bound u of Tao, Wu, Cheng, Wang 2022, for
    these laws.
    """
    if not 0 < tail <= 1 or not 0 <= radius < math.inf:
        raise ValueError(f"expected 0 < tail <= 1 and radius >= 0, got {tail} and {radius}")
    features, power = records.features, 1 + tail
    if records.model == "mean":
        return max(features.moment_about(place, power) for place in (-radius, radius))
    if records.model == "logistic":
        return features.absolute_moment(power)
    assert records.noise is not None
    if power >= min(features.index / 2, records.noise.index):
        return math.inf
    return _Regression(records, power, radius).largest()


class _Regression:
    """F_j(w) = E[|x_j|^q M(<w - w*, x>)], M(t) = E|e - t|^q: convex in w, so largest on the sphere."""

    def __init__(self, records: RecordTruth, power: float, radius: float) -> None:
        assert records.noise is not None and records.weights is not None
        self._rows, self._weights = records.rows, records.weights
        self._power, self._radius = power, radius
        reach = (radius + math.hypot(*records.weights)) * math.sqrt(max(np.square(self._rows).sum(axis=1)))
        # Knots are close where |t| is small, where M bends.
        knots = max(reach, 1.0) * np.sinh(np.linspace(-4, 4, _KNOTS)) / math.sinh(4)
        self._moment = CubicSpline(knots, [records.noise.moment_about(t, power) for t in knots.tolist()])

    def largest(self) -> float:
        """Over one coordinate of each distinct weight, since coordinates of one law and one weight are exchangeable."""
        return max(self._climb(j, start) for j in self._coordinates() for start in self._starts(j))

    def _coordinates(self) -> list[int]:
        return [int(j) for j in np.unique(self._weights, return_index=True)[1]]

    def _starts(self, j: int) -> list[Floats]:
        """Where to climb from: both ways along the weights, all coordinates alike, and coordinate j."""
        size = len(self._weights)
        axes = [np.ones(size), np.eye(size)[j]] + ([self._weights] if self._weights.any() else [])
        unit = [axis / math.sqrt(math.fsum(axis * axis)) for axis in axes]
        return (
            [sign * self._radius * axis for axis in unit for sign in (-1.0, 1.0)] if self._radius else [np.zeros(size)]
        )

    def _climb(self, j: int, at: Floats) -> float:
        """w <- radius grad F / ||grad F||, along which a convex F never falls; until it gains less than 1e-9."""
        factor, best = np.abs(self._rows[:, j]) ** self._power, 0.0
        for _ in range(_STEPS):
            place = dot(self._rows, at - self._weights)
            value = float((factor * self._moment(place)).mean())
            if not self._radius or value <= best * (1 + 1e-9):
                return max(value, best)
            slope = factor * self._moment(place, 1)
            gradient = np.array([(slope * column).sum() for column in self._rows.T]) / ROWS
            best, at = value, self._radius * gradient / math.sqrt(math.fsum(gradient * gradient))
        return best
