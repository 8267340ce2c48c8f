"""What theory predicts, without a constant fitted to results: root mean square errors by the sandwich formula."""

import math
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache

import numpy as np
from scipy.special import expit

from protocol.arms import Arm
from protocol.coins import Floats
from protocol.features import default_radius, norms
from protocol.problem import Problem
from protocol.trust import Trust
from server.mechanisms import CENTRAL
from studies.moments import ORACLE_ROWS, dot, fresh, gram, reduce


def curvature(feature_bound: float, bound: float) -> float:
    """gamma = sigma'(2 L B), the smallest curvature of the log-loss for ||phi|| <= L and ||theta|| <= B.

    Source: Chowdhury, Zhou, Natarajan 2024, Section 2.

    >>> round(curvature(1.0, 1.0), 12)
    0.104993585404
    """
    chance = float(expit(-2 * feature_bound * bound))
    return chance * (1 - chance)


def convexity_threshold(feature_bound: float, bound: float) -> float:
    """The epsilon = 4 L B from which on the loss of RR-MLE is convex for any labels.

    Source: Chowdhury, Zhou, Natarajan 2024, Theorem 4.1.

    >>> convexity_threshold(1.0, 1.0)
    4.0
    """
    return 4 * feature_bound * bound


@dataclass(frozen=True, eq=False)
class Theory:
    """Predictions for one problem at its truth, from second moments over a fixed draw of 2^17 fresh rows.

    With s = sigma(theta . x), s' = s (1 - s), kappa = 1 / (4 sinh^2(epsilon / 2)), in reduced coordinates:
    H = E[s' x x^T], V = E[(s' + kappa) x x^T], I = E[s'^2 / (s' + kappa) x x^T].
    Every curve is sqrt(E ||error||^2) to first order in n; it knows no ball and no bias.

    Source: derived; the sandwich covariance, and the Fisher information of randomised response.
    """

    problem: Problem
    theta: Floats
    seed: int

    def without_privacy(self, n: int) -> float:
        """sqrt(tr(H^-1) / n): the maximum likelihood estimate on clear labels."""
        return math.sqrt(_sampling(self, None)[0] / n)

    def debiased(self, n: int, epsilon: float) -> float:
        """sqrt(tr(H^-1 V H^-1) / n): the exact de-biased minimiser on randomised labels."""
        return math.sqrt(_debiased(self, epsilon) / n)

    def rr_mle(self, n: int, epsilon: float) -> float:
        """sqrt(tr(I^-1) / n): the maximum likelihood estimate on randomised labels, the least possible."""
        return math.sqrt(_efficient(self, epsilon) / n)

    def central(self, n: int, stddev: float, radius: float | None = None) -> float:
        """sqrt(tr(H^-1 V H^-1) / n + stddev^2 tr(H^-2) / n^2): noise of `stddev` per coordinate on the sum.

        With clipping weights w = min(1, radius / ||x||): H = E[w s' x x^T], V = E[w^2 s' x x^T]; without, V = H.
        """
        sampling, noise = _sampling(self, radius)
        return math.sqrt(sampling / n + (stddev / n) ** 2 * noise)

    def sensitivity(self, n: int, radius: float | None = None, projected: bool = True) -> float:
        """The root mean square of the largest norm of n rows, at most `radius` each: what the noise is scaled by.

        Of n rows out of the fixed draw, sorted by norm: E max^2 = sum_k r_k^2 ((k/N)^n - ((k-1)/N)^n). Features of a
        file are no draw: then it is the largest norm of the first n rows.
        """
        return _sensitivity(self, n, radius, projected)

    @cached_property
    def drawn(self) -> Floats:
        """The fixed draw of differences x, shape (rows, dimension)."""
        return fresh(self.problem, self.seed, ORACLE_ROWS, repetition=1)

    @cached_property
    def rows(self) -> Floats:
        """The draw in reduced coordinates."""
        return reduce(self.problem, self.drawn)

    @cached_property
    def lengths(self) -> Floats:
        """Row norms in reduced coordinates."""
        return norms(self.rows)

    @cached_property
    def lengths_unprojected(self) -> Floats:
        """Row norms in all coordinates."""
        return norms(self.drawn)

    @cached_property
    def slope(self) -> Floats:
        """s' = sigma'(theta . x) of every row."""
        chance = expit(dot(self.drawn, self.theta))
        slope: Floats = chance * (1 - chance)
        return slope


def predict(theory: Theory, arm: Arm, n: int, epsilon: Decimal | None, delta: Decimal | None) -> float | None:
    """The predicted root mean square error of an arm, or None where no formula without free constants is known."""
    if arm.trust is Trust.CLEAR and arm.estimator == "mle":
        return theory.without_privacy(n)
    if epsilon is None:
        return None
    if arm.trust is Trust.LOCAL:
        curve = {"debiased": theory.debiased, "rr-mle": theory.rr_mle}.get(arm.estimator)
        return None if curve is None else curve(n, float(epsilon))
    if arm.trust is not Trust.CENTRAL or delta is None:
        return None
    mechanism = CENTRAL[arm.mechanism]
    radius = None
    if mechanism.clipped:
        chosen = arm.get("radius")
        radius = float(chosen) if isinstance(chosen, Decimal) else default_radius(theory.problem, n)
    sensitivity = theory.sensitivity(n, radius, projected=arm.get("norm") != "unprojected")
    return theory.central(n, mechanism.noise_multiplier(epsilon, delta) * sensitivity, radius)


def flip_noise(epsilon: float) -> float:
    """kappa = 1 / (4 sinh^2(epsilon / 2)): the variance that flips add to a de-biased label.

    Source: derived; var(de-biased label) = s' + kappa.
    """
    return 1 / (4 * math.sinh(epsilon / 2) ** 2)


@lru_cache(maxsize=1024)
def _sensitivity(theory: Theory, n: int, radius: float | None, projected: bool) -> float:
    lengths = theory.lengths if projected else theory.lengths_unprojected
    if radius is not None:
        lengths = np.minimum(lengths, radius)
    if theory.problem.design is not None:
        return float(lengths[:n].max())
    below = (np.arange(len(lengths) + 1) / len(lengths)) ** n
    return math.sqrt(float((np.sort(lengths) ** 2 * np.diff(below)).sum()))


@lru_cache(maxsize=64)
def _sampling(theory: Theory, radius: float | None) -> tuple[float, float]:
    """tr(H^-1 V H^-1) and tr(H^-2) of clear labels, with clipping weights."""
    weights = np.ones(len(theory.rows))
    if radius is not None:
        weights = np.minimum(1.0, radius / theory.lengths)
    inverse = np.linalg.inv(gram(theory.rows, weights * theory.slope))
    spread = gram(theory.rows, weights**2 * theory.slope)
    return float(np.trace(inverse @ spread @ inverse)), float(np.trace(inverse @ inverse))


@lru_cache(maxsize=64)
def _debiased(theory: Theory, epsilon: float) -> float:
    inverse = np.linalg.inv(gram(theory.rows, theory.slope))
    spread = gram(theory.rows, theory.slope + flip_noise(epsilon))
    return float(np.trace(inverse @ spread @ inverse))


@lru_cache(maxsize=64)
def _efficient(theory: Theory, epsilon: float) -> float:
    information = gram(theory.rows, theory.slope**2 / (theory.slope + flip_noise(epsilon)))
    return float(np.trace(np.linalg.inv(information)))
