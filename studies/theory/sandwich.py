"""What theory predicts, without a constant fitted to results: root mean square errors by the sandwich formula."""

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property, lru_cache

import numpy as np

from protocol.arms import MENU, Arm
from protocol.coins import Floats
from protocol.features import default_radius, norms
from protocol.links import LINKS
from protocol.problem import Problem
from protocol.shaping import SHAPED, mapped, shaping, triangular_inverse
from protocol.trust import Trust
from server.mechanisms import CENTRAL
from studies.moments import ORACLE_ROWS, dot, fresh, gram, reduce
from studies.theory.between import noise_in_shares, report_level
from studies.theory.choices import choice_covariance
from studies.theory.constants import flip_noise


@dataclass(frozen=True, eq=False)
class Theory:
    """Predictions for one problem at its truth, from second moments over a fixed draw of 2^17 fresh rows.

    With s = F(theta . x), F of the problem's model, s' = F'(theta . x), t = s (1 - s) (the logistic s'),
    kappa = 1 / (4 sinh^2(epsilon / 2)), in reduced coordinates: H = E[s' x x^T], V = E[(t + kappa) x x^T],
    I = E[s'^2 / (t + kappa) x x^T]. The de-biased minimiser is that of the matching loss.
    Every curve is sqrt(E ||error||^2) to first order in n; it knows no ball and no bias.

    Source: derived; the sandwich covariance, and the Fisher information of randomised response.
    """

    problem: Problem
    theta: Floats
    seed: int

    def without_privacy(self, n: int) -> float:
        """sqrt(tr(I^-1) / n) without flips: the maximum likelihood estimate on clear labels."""
        return _size(_clear(self) / n)

    def debiased(self, n: int, epsilon: float) -> float:
        """sqrt(tr(H^-1 V H^-1) / n): the exact de-biased minimiser on randomised labels."""
        return _size(_debiased(self, epsilon) / n)

    def rr_mle(self, n: int, epsilon: float) -> float:
        """sqrt(tr(I^-1) / n): the maximum likelihood estimate on randomised labels, the least possible."""
        return _size(_efficient(self, epsilon) / n)

    def central(self, n: int, stddev: float, radius: float | None = None) -> float:
        """sqrt(tr(H^-1 V H^-1) / n + stddev^2 tr(H^-2) / n^2): noise of `stddev` per coordinate on the sum.

        With clipping weights w = min(1, radius / ||x||): H = E[w s' x x^T], V = E[w^2 t x x^T].
        """
        return _size(self.central_covariance(n, stddev, radius))

    def central_covariance(self, n: int, stddev: float, radius: float | None = None, shaped: bool = False) -> Floats:
        """The covariance whose trace `central` takes, shape (p, p).

        Where noise is `shaped` w = min(1, radius / ||M x||) and H^-1 M^-1 M^-T H^-1 stands for H^-2.
        """
        sampling, noise = _sampling(self, radius, shaped)
        covariance: Floats = sampling / n + (stddev / n) ** 2 * noise
        return covariance

    def crossing(self, stddev: float, radius: float | None = None) -> float:
        """The n = stddev^2 tr(H^-2) / tr(H^-1 V H^-1) at which a curator's noise costs as much as sampling does.

        Below, the central error falls as 1/n; above, it joins the error without privacy.
        """
        sampling, noise = _sampling(self, radius)
        return stddev**2 * float(np.trace(noise) / np.trace(sampling))

    def sensitivity(self, n: int, radius: float | None = None, projected: bool = True) -> float:
        """The root mean square of the largest norm of n rows, at most `radius` each: what the noise is scaled by.

        Of n rows out of the fixed draw, sorted by norm: E max^2 = sum_k r_k^2 ((k/N)^n - ((k-1)/N)^n). Features of a
        file are no draw: then it is the largest norm of the first n rows.
        """
        return _sensitivity(self, n, radius, "lengths" if projected else "lengths_unprojected")

    def radius(self, n: int) -> float:
        """Where a clipping mechanism clips n rows by default: the root mean square norm of a row."""
        design = self.problem.design
        return default_radius(self.problem, n if design is None else min(n, len(design)))

    @cached_property
    def drawn(self) -> Floats:
        """The fixed draw of differences x, shape (rows, dimension)."""
        return fresh(self.problem, self.seed, ORACLE_ROWS, repetition=1)

    @cached_property
    def rows(self) -> Floats:
        """The draw in reduced coordinates."""
        return reduce(self.problem, self.drawn)

    @cached_property
    def second_moments(self) -> Floats:
        """Sigma = E[x x^T] in reduced coordinates, shape (p, p)."""
        return gram(self.rows)

    @cached_property
    def lengths(self) -> Floats:
        """Row norms in reduced coordinates."""
        return norms(self.rows)

    @cached_property
    def lengths_unprojected(self) -> Floats:
        """Row norms in all coordinates."""
        return norms(self.drawn)

    @cached_property
    def lengths_mapped(self) -> Floats:
        """Row norms under the map of shaped noise."""
        return norms(mapped(self.rows, self.shape))

    @cached_property
    def shape(self) -> Floats:
        """The map M of shaped noise; raises ValueError where features do not span the space."""
        design = self.problem.design
        return shaping(self.problem, 1 if design is None else len(design))

    @cached_property
    def slope(self) -> Floats:
        """s' = F'(theta . x) of every row."""
        return LINKS[self.problem.model].density(dot(self.drawn, self.theta))

    @cached_property
    def variance(self) -> Floats:
        """t = F (1 - F) of every row, the variance of a label."""
        return LINKS[self.problem.model].variance(dot(self.drawn, self.theta))


def predict(theory: Theory, arm: Arm, n: int, epsilon: Decimal | None, delta: Decimal | None) -> float | None:
    """The predicted root mean square error of an arm, or None where no formula without free constants is known."""
    covariance = spread(theory, arm, n, epsilon, delta)
    return None if covariance is None else _size(covariance)


def spread(theory: Theory, arm: Arm, n: int, epsilon: Decimal | None, delta: Decimal | None) -> Floats | None:
    """The predicted covariance of an arm's estimate in reduced coordinates, shape (p, p), or None as `predict`.

    An arm with a ridge has none: the ridge moves its estimates. The one-step estimate has that of RR-MLE. Shuffled
    reports have the covariance of local ones at their own level, noise in shares that of a curator's with its size.
    Raises numpy.linalg.LinAlgError where features do not span the space.
    """
    if theory.problem.kind == "records":
        return None
    if arm.trust is Trust.SHUFFLED:
        if epsilon is None or delta is None:
            return None
        level = report_level(theory.problem, arm, n, epsilon, delta)
        return None if level is None else spread(theory, replace(arm, trust=Trust.LOCAL), n, level, None)
    if theory.problem.kind == "choice":
        return None if arm.get("ridge") else choice_covariance(theory, arm, n, epsilon, delta)
    if arm.get("ridge"):
        return None
    if arm.mechanism == MENU:  # its levels differ
        return None
    if arm.trust is Trust.CLEAR:
        clear = CLEAR.get(arm.estimator)
        return None if clear is None else clear(theory) / n
    if epsilon is None:
        return None
    if arm.trust is Trust.LOCAL:
        matrix = LOCAL.get(arm.estimator)
        return None if matrix is None else matrix(theory, float(epsilon)) / n
    if arm.trust is Trust.DISTRIBUTED and delta is not None:
        return theory.central_covariance(n, *noise_in_shares(theory.problem, arm, n, epsilon, delta))
    if arm.trust is not Trust.CENTRAL or arm.mechanism not in CENTRAL or delta is None:
        return None
    return theory.central_covariance(n, *central_noise(theory, arm, n, epsilon, delta), arm.mechanism == SHAPED)


def central_noise(theory: Theory, arm: Arm, n: int, epsilon: Decimal, delta: Decimal) -> tuple[float, float | None]:
    """A central arm's noise per coordinate of the sum (root mean square), and its clipping radius if it clips."""
    mechanism, radius = CENTRAL[arm.mechanism], None
    if mechanism.clipped:
        chosen = arm.get("radius")
        usual = math.sqrt(theory.problem.reduced_dimension) if mechanism.shaped else theory.radius(n)
        radius = float(chosen) if isinstance(chosen, Decimal) else usual
    if mechanism.shaped:
        return mechanism.noise_multiplier(epsilon, delta) * _sensitivity(theory, n, radius, "lengths_mapped"), radius
    sensitivity = theory.sensitivity(n, radius, projected=arm.get("norm") != "unprojected")
    return mechanism.noise_multiplier(epsilon, delta) * sensitivity, radius


def _size(covariance: Floats) -> float:
    return math.sqrt(float(np.trace(covariance)))


def _inverse(matrix: Floats) -> Floats:
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64)


@lru_cache(maxsize=1024)
def _sensitivity(theory: Theory, n: int, radius: float | None, which: str) -> float:
    lengths: Floats = getattr(theory, which)
    if radius is not None:
        lengths = np.minimum(lengths, radius)
    if theory.problem.design is not None:
        return float(lengths[:n].max())
    below = (np.arange(len(lengths) + 1) / len(lengths)) ** n
    return math.sqrt(float((np.sort(lengths) ** 2 * np.diff(below)).sum()))


@lru_cache(maxsize=64)
def _sampling(theory: Theory, radius: float | None, shaped: bool = False) -> tuple[Floats, Floats]:
    """H^-1 V H^-1 and H^-2 of clear labels, with clipping weights; H^-1 M^-1 M^-T H^-1 where noise is shaped."""
    weights = np.ones(len(theory.rows))
    if radius is not None:
        with np.errstate(divide="ignore"):
            weights = np.minimum(1.0, radius / (theory.lengths_mapped if shaped else theory.lengths))
    inverse = _inverse(gram(theory.rows, weights * theory.slope))
    middle = gram(theory.rows, weights**2 * theory.variance)
    back = triangular_inverse(theory.shape) if shaped else np.eye(len(inverse))
    return inverse @ middle @ inverse, inverse @ back @ back.T @ inverse


def _matching(theory: Theory) -> Floats:
    """H^-1 V H^-1 of clear labels."""
    return _sampling(theory, None)[0]


def _clear(theory: Theory) -> Floats:
    """I^-1 of clear labels; of the logistic model H^-1."""
    if theory.problem.model == "btl":
        return _matching(theory)
    return _inverse(gram(theory.rows, LINKS[theory.problem.model].information(dot(theory.drawn, theory.theta))))


@lru_cache(maxsize=64)
def _debiased(theory: Theory, epsilon: float) -> Floats:
    inverse = _inverse(gram(theory.rows, theory.slope))
    sandwich: Floats = inverse @ gram(theory.rows, theory.variance + flip_noise(epsilon)) @ inverse
    return sandwich


@lru_cache(maxsize=64)
def _efficient(theory: Theory, epsilon: float) -> Floats:
    return _inverse(gram(theory.rows, theory.slope**2 / (theory.variance + flip_noise(epsilon))))


# Estimators with a formula.
CLEAR = {"mle": _clear, "matching": _matching}
LOCAL = {"debiased": _debiased, "matching": _debiased, "rr-mle": _efficient, "one-step": _efficient}
