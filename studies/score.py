"""How far an estimate is from the truth. The true error is scored: it is not divided by sqrt(n)."""

from dataclasses import dataclass

import numpy as np

from protocol.coins import Floats
from protocol.features import coordinates
from protocol.links import LINKS
from protocol.store import FeatureStore
from protocol.study import Study
from studies.moments import dot, fresh, gram

TEST_ROWS = 4096


@dataclass(frozen=True)
class Score:
    """Errors of one estimate; the smaller the better, but for `accuracy`. Of records there is an excess risk only."""

    error_l2: float
    error_sigma: float
    excess_log_loss: float | None
    accuracy: float | None
    excess_risk: float | None = None


class Scorer:
    """Scores the estimates of one study against its truth, on one draw of fresh test features (stream METRICS).

    `features` is where a repetition's are found that somebody else draws as well; they are drawn here without it.
    """

    def __init__(self, study: Study, theta: Floats, features: FeatureStore | None = None) -> None:
        self._study = study
        self._theta = theta
        self._features = features or FeatureStore(study.seed, budget_bytes=0)
        self._test = np.asfortranarray(fresh(study.problem, study.seed, TEST_ROWS))
        self._z = dot(self._test, theta)
        self._link = LINKS[study.problem.model]
        self._chance = self._link.cdf(self._z)
        self._other = 1.0 - self._chance
        self._least = _partition(self._z)

    def covariance(self, n: int, repetition: int) -> Floats:
        """Sigma_D = (1/n) sum_i u_i u_i^T of a repetition's features in reduced coordinates, shape (p, p)."""
        return gram(self._features.reduced(self._study.problem, n, repetition, 0, n))

    def score(self, estimate: Floats, covariance: Floats) -> Score:
        """Score an estimate of shape (d,).

        error_l2 = ||estimate - theta||, error_sigma = ||estimate - theta||_Sigma_D (of `covariance`), excess_log_loss =
        E KL(F(z) || F(z')), accuracy = E[F(z) 1{z' > 0} + F(-z) 1{z' <= 0}] with z = theta . x and z' = estimate . x on
        fresh features, F of the problem's model, from true probabilities.
        Raises ValueError for NaN, inf or a wrong shape.
        """
        if estimate.shape != self._theta.shape or not np.isfinite(estimate).all():
            raise ValueError(f"expected a finite estimate of shape {self._theta.shape}, got {estimate}")
        gap = estimate - self._theta
        reduced = coordinates(self._study.problem, gap)
        z = dot(self._test, estimate)
        divergence = self._divergence(z)
        right = np.where(z > 0, self._chance, self._other)
        return Score(
            error_l2=float(np.sqrt((gap * gap).sum())),
            error_sigma=float(np.sqrt(max(0.0, (reduced[:, None] * covariance * reduced).sum()))),
            excess_log_loss=max(0.0, float(divergence.mean())),
            accuracy=float(right.mean()),
        )

    def _divergence(self, z: Floats) -> Floats:
        """KL(F(z*) || F(z)) of every test row; of the logistic model by its log-partition, which cancels less."""
        if self._study.problem.model == "btl":
            return _partition(z) - self._least - self._chance * (z - self._z)
        gain = self._link.log_cdf(self._z) - self._link.log_cdf(z)
        loss = self._link.log_cdf(-self._z) - self._link.log_cdf(-z)
        return self._chance * gain + self._link.cdf(-self._z) * loss


def _partition(z: Floats) -> Floats:
    """log(1 + e^z), without overflow."""
    values: Floats = np.exp(-np.abs(z))
    values += 1.0
    np.log(values, out=values)
    values += np.maximum(z, 0.0)
    return values
