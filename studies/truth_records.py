"""The truth of synthetic records (x, y): minimisers of their risks, and how much risk an estimate has beyond."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import expit

from protocol.coins import Address, Floats, Stream, words
from protocol.laws import Law
from studies.moments import dot

ROWS = 1 << 16
_STEP, _REACH = 1 / 16, 9.0  # of the trapezoidal rule for normal scores


@dataclass(frozen=True, eq=False)
class RecordTruth:
    """The law of records: independent coordinates of x by `features`, y by the `model` with weights w (dimension,).

    "mean": no y. "linear" and "ridge": y = <w, x> + e, e by `noise`. "logistic": P(y = 1) = sigma(<w, x>), y in {0, 1}.
    `seed` names the rows of averages that have no closed form: stream METRICS.
    Raises ValueError for parts that do not fit, and for noise that moves the minimiser away from w.
    """

    model: str
    dimension: int
    features: Law
    weights: Floats | None = None
    noise: Law | None = None
    penalty: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise ValueError(f"expected a model out of {sorted(MODELS)}, got {self.model!r}")
        if (self.weights is None) != (self.model == "mean"):
            raise ValueError(f"expected weights for every model but the mean, got {self.weights} for {self.model}")
        if self.weights is not None:
            _check(self.weights, self.dimension, "weights")
        if (self.noise is not None) != (self.model in ("linear", "ridge")):
            raise ValueError(f"expected noise exactly for linear and ridge, got {self.noise} for {self.model}")
        if self.noise is not None and self.noise.mean * self.features.mean:
            said = f"{self.noise.describe} and {self.features.describe}"
            raise ValueError(f"expected noise or features of mean 0, got {said}: say centred")
        if not 0 <= self.penalty < math.inf or (self.penalty > 0) != (self.model == "ridge"):
            raise ValueError(f"expected a penalty > 0 exactly for ridge, got {self.penalty} for {self.model}")

    @cached_property
    def second_moments(self) -> Floats:
        """Sigma = E[x x^T] of shape (d, d): Var x_1 on the diagonal, and (E x_1)^2 everywhere.

        Raises ValueError where it is infinite.
        """
        if not math.isfinite(self.features.variance):
            raise ValueError(f"expected features of finite variance, got {self.features.describe}")
        sigma = np.full((self.dimension, self.dimension), self.features.mean**2)
        np.fill_diagonal(sigma, self.features.mean**2 + self.features.variance)
        return sigma

    @cached_property
    def minimiser(self) -> Floats:
        """What minimises the risk, of shape (d,): E x, w, (Sigma + penalty I)^-1 Sigma w, or w."""
        return MODELS[self.model][0](self)

    def excess_risk(self, estimate: Floats) -> float:
        """Risk of an estimate (d,) less that of the minimiser: of "ridge" with the penalty, of "logistic" the log loss.

        Raises ValueError for NaN, inf or a wrong shape, and for linear models where E x x^T is infinite.
        """
        _check(estimate, self.dimension, "an estimate")
        return max(0.0, MODELS[self.model][1](self, estimate))

    @cached_property
    def rows(self) -> Floats:
        """A fixed draw of features x, (ROWS, d) in column order: stream METRICS, repetition 2."""
        size, drawn = self.features.words, np.empty((ROWS, self.dimension), order="F")
        for j in range(self.dimension):
            column = words(Address(self.seed, Stream.METRICS, 0, 2), j * ROWS * size, ROWS * size)
            drawn[:, j] = self.features.sample(column.reshape(ROWS, size))
        return drawn


def sparse_weights(seed: int, dimension: int, nonzeros: int, repetition: int = 0) -> Floats:
    """`nonzeros` entries +-1/sqrt(nonzeros) on a drawn support, zeros elsewhere; shape (dimension,), norm 1.

    Stream TRUTH: the support has the smallest of the first `dimension` words (ties: the lowest index), signs are the
    top bits of the words after these. Raises ValueError unless 1 <= nonzeros <= dimension.
    """
    if not 1 <= nonzeros <= dimension:
        raise ValueError(f"expected 1 <= nonzeros <= {dimension}, got {nonzeros}")
    drawn = words(Address(seed, Stream.TRUTH, 0, repetition), 0, 2 * dimension)
    support = np.argsort(drawn[:dimension], kind="stable")[:nonzeros]
    weights = np.zeros(dimension)
    weights[support] = np.where(drawn[dimension + support] >> np.uint64(63), 1.0, -1.0) / math.sqrt(nonzeros)
    return weights


def _mean(records: RecordTruth) -> Floats:
    return np.full(records.dimension, records.features.mean)


def _weights(records: RecordTruth) -> Floats:
    assert records.weights is not None
    return records.weights.copy()


def _ridge(records: RecordTruth) -> Floats:
    sigma = records.second_moments
    shrunk = np.linalg.solve(sigma + records.penalty * np.eye(len(sigma)), sigma @ _weights(records))
    return np.asarray(shrunk, dtype=np.float64)


def _distance(records: RecordTruth, estimate: Floats) -> float:
    """||estimate - E x||^2 / 2."""
    gap = estimate - records.minimiser
    return math.fsum(gap * gap) / 2


def _quadratic(records: RecordTruth, estimate: Floats) -> float:
    """gap^T (Sigma + penalty I) gap / 2: a difference of risks that is finite also where E e^2 is not."""
    gap, features = estimate - records.minimiser, records.features
    if not math.isfinite(features.variance):
        raise ValueError(f"expected features of finite variance, got {features.describe}")
    ridge = features.variance + records.penalty
    return (ridge * math.fsum(gap * gap) + (features.mean * math.fsum(gap)) ** 2) / 2


def _log_loss(records: RecordTruth, estimate: Floats) -> float:
    """E KL between labels at z* = <w, x> and at z = <estimate, x>."""
    if records.features.name == "normal":
        return _normal_log_loss(records.features, records.minimiser, estimate)
    return float(_divergence(dot(records.rows, records.minimiser), dot(records.rows, estimate)).mean())


def _normal_log_loss(features: Law, weights: Floats, estimate: Floats) -> float:
    """For normal x: z* = m* + s* A and z = m + c A + r B with A, B independent standard normal.

    The trapezoidal rule in A and B, whose error falls geometrically: 1e-12 for scores of standard deviation up to 10.
    """
    mean, deviation = features.mean, math.sqrt(features.variance)
    length = math.sqrt(math.fsum(weights * weights))
    along = math.fsum(weights * estimate) / length if length else 0.0
    across: Floats = estimate - along * weights / length if length else estimate
    a = np.arange(-_REACH, _REACH + _STEP, _STEP)
    chance = np.exp(-a * a / 2) * (_STEP / math.sqrt(2 * math.pi))
    right = mean * math.fsum(weights) + deviation * length * a[:, None]
    guess = mean * math.fsum(estimate) + deviation * (along * a[:, None] + math.sqrt(math.fsum(across * across)) * a)
    return math.fsum((chance[:, None] * chance * _divergence(right, guess)).ravel())


def _divergence(right: Floats, guess: Floats) -> Floats:
    """log(1 + e^z) - log(1 + e^z*) - sigma(z*) (z - z*), the Kullback-Leibler divergence of two labels."""
    loss: Floats = np.logaddexp(0.0, guess) - np.logaddexp(0.0, right) - expit(right) * (guess - right)
    return loss


def _check(values: Floats, dimension: int, name: str) -> None:
    if values.shape != (dimension,) or not np.isfinite(values).all():
        raise ValueError(f"expected {name} of {dimension} finite numbers, got {values}")


Model = tuple[Callable[[RecordTruth], Floats], Callable[[RecordTruth, Floats], float]]
MODELS: dict[str, Model] = {  # name -> its minimiser, and the excess risk of an estimate
    "mean": (_mean, _distance),
    "linear": (_weights, _quadratic),
    "ridge": (_ridge, _quadratic),
    "logistic": (_weights, _log_loss),
}
