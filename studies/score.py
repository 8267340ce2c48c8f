"""How far an estimate is from the truth. The true error is scored: it is not divided by sqrt(n)."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from protocol.coins import Floats
from protocol.features import coordinates, reduced_rows
from protocol.study import Study
from studies.moments import dot, fresh, gram

TEST_ROWS = 4096


@dataclass(frozen=True)
class Score:
    """Errors of one estimate; the smaller the better, but for `accuracy`."""

    error_l2: float
    error_sigma: float
    excess_log_loss: float
    accuracy: float


class Scorer:
    """Scores the estimates of one study against its truth, on one draw of fresh test features (stream METRICS)."""

    def __init__(self, study: Study, theta: Floats) -> None:
        self._study = study
        self._theta = theta
        self._test = np.asfortranarray(fresh(study.problem, study.seed, TEST_ROWS))
        self._z = dot(self._test, theta)
        self._chance = expit(self._z)
        self._partition = _partition(self._z)

    def covariance(self, n: int, repetition: int) -> Floats:
        """Sigma_D = (1/n) sum_i u_i u_i^T of a repetition's features in reduced coordinates, shape (p, p)."""
        return gram(reduced_rows(self._study.problem, self._study.seed, n, repetition, 0, n))

    def score(self, estimate: Floats, covariance: Floats) -> Score:
        """Score an estimate of shape (d,).

        error_l2 = ||estimate - theta||, error_sigma = ||estimate - theta||_Sigma_D (of `covariance`), excess_log_loss =
        E KL(sigma(z) || sigma(z')), accuracy = E[sigma(z) 1{z' > 0} + sigma(-z) 1{z' <= 0}] with z = theta . x and
        z' = estimate . x on fresh features, from true probabilities. Raises ValueError for NaN, inf or a wrong shape.
        """
        if estimate.shape != self._theta.shape or not np.isfinite(estimate).all():
            raise ValueError(f"expected a finite estimate of shape {self._theta.shape}, got {estimate}")
        gap = estimate - self._theta
        reduced = coordinates(self._study.problem, gap)
        z = dot(self._test, estimate)
        divergence = _partition(z) - self._partition - self._chance * (z - self._z)
        right = np.where(z > 0, self._chance, 1.0 - self._chance)
        return Score(
            error_l2=float(np.sqrt((gap * gap).sum())),
            error_sigma=float(np.sqrt(max(0.0, (reduced[:, None] * covariance * reduced).sum()))),
            excess_log_loss=max(0.0, float(divergence.mean())),
            accuracy=float(right.mean()),
        )


def _partition(z: Floats) -> Floats:
    """log(1 + e^z), without overflow."""
    values: Floats = np.maximum(z, 0.0) + np.log(1.0 + np.exp(-np.abs(z)))
    return values
