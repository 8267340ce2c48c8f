"""Lower bounds under what was measured: their shape is theirs, their one constant is taken from the largest n."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from protocol.trust import Trust
from studies.report.arms import Look
from studies.report.view import Level, View
from studies.theory import central, heavy, local
from studies.theory.fitted import Fitted, fit_constant

LEAST, WORST = "lower bound", "rate of the worst law"
BROWN, NAVY = "#7A3E00", "#00395C"  # warm: local; cool: central; darker than any arm

Shape = Callable[[int, Level, float], float]  # n, level, constant -> least error


@dataclass(frozen=True)
class LowerBound:
    """The least L2 error of a trust model's estimates, n large; its constant touches a measured mean.

    `name`: what it is called. Means of records have a "rate of the worst law": theirs need not be the worst.
    """

    trust: Trust
    name: str
    fitted: Fitted
    look: Look
    _shape: Shape
    _most: float

    def at(self, n: int, level: Level) -> float | None:
        """The bound, or None where n is too small for it: its proof needs many parameters that differ that much.

        They have to fit in the ball, so that no such bound exceeds B / 2; without a ball the truth's norm stands for B.
        A level that the trust model does not have has no bound either.
        """
        if level.epsilon is None or (self.trust is Trust.CENTRAL and level.delta is None):
            return None
        error = self._shape(n, level, self.fitted.constant)
        return error if error <= self._most else None


@lru_cache(maxsize=4)
def lower_bounds(view: View) -> tuple[LowerBound, ...]:
    """One bound for each trust model that makes claims and has results; none where features do not span the space."""
    problem, law = view.loaded.study.problem, view.loaded.study.records
    if law is not None and law.tail is not None and law.moment is not None and problem.model == "mean":
        return _of_means(view, float(law.tail), float(law.moment))
    if (problem.kind, problem.model) != ("pairwise", "btl") or not view.has_theory:
        return ()
    eigenvalues, dimension = np.linalg.eigvalsh(view.theory.second_moments), problem.reduced_dimension
    if not eigenvalues[0] > 1e-12 * eigenvalues[-1]:
        return ()
    trace, largest = float(eigenvalues.sum()), float(eigenvalues[-1])

    def locally(n: int, level: Level, constant: float) -> float:
        return local.least_l2(n, float(level.epsilon or 0), dimension, trace, constant)

    def centrally(n: int, level: Level, constant: float) -> float:
        return central.least_l2(n, float(level.epsilon or 0), float(level.delta or 0), dimension, largest, constant)

    most = (view.zero() if problem.bound is None else float(problem.bound)) / 2
    ways = ((Trust.LOCAL, locally, BROWN), (Trust.CENTRAL, centrally, NAVY))
    found = [_fit(view, trust, shape, colour, most) for trust, shape, colour in ways]
    return tuple(bound for bound in found if bound is not None)


def _of_means(view: View, tail: float, moment: float) -> tuple[LowerBound, ...]:
    """Rates of means of heavy-tailed records: errors fall half as fast with n where holders randomise."""
    dimension = view.loaded.study.problem.dimension

    def locally(n: int, level: Level, constant: float) -> float:
        return heavy.least_local_error(n, float(level.epsilon or 0), moment, tail, constant)

    def centrally(n: int, level: Level, constant: float) -> float:
        epsilon, delta = float(level.epsilon or 0), float(level.delta or 0)
        if dimension == 1:
            return heavy.least_mean_error(n, epsilon, moment, tail, constant)
        return math.sqrt(2 * heavy.least_strong_risk(n, epsilon, delta, dimension, moment, tail, constant**2 / 2))

    ways = ((Trust.LOCAL, locally, BROWN), (Trust.CENTRAL, centrally, NAVY))
    found = [_fit(view, trust, shape, colour, math.inf, WORST, power=1.0) for trust, shape, colour in ways]
    return tuple(bound for bound in found if bound is not None)


def _fit(
    view: View, trust: Trust, shape: Shape, colour: str, most: float, name: str = LEAST, power: float = 0.5
) -> LowerBound | None:
    """The bound that is below every mean of the trust model at the largest n, and touches the lowest of them."""
    n = view.counts[-1]
    measured = [
        (shape(n, level, 1.0), summary.moments.mean)
        for level in view.levels
        for arm in view.arms
        if arm.trust is trust and (summary := view.at(arm, n, level)) is not None
    ]
    measured = [(least, mean) for least, mean in measured if mean > 0 and math.isfinite(least)]
    if not measured:
        return None
    fitted = fit_constant([x for x, _ in measured], [y for _, y in measured], [n] * len(measured), "lower", power)
    return LowerBound(trust, name, fitted, Look(f"{trust.label} {name}, {fitted}", colour, ""), shape, most)
