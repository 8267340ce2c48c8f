"""How far an estimate is from the truth where it comes from records: true errors, and the excess risk."""

import numpy as np

from protocol.coins import Floats
from protocol.study import Study
from studies.score import Score, Scorer


class RecordScorer(Scorer):
    """Scores estimates from records against the truth: error, error in the metric of the loss, excess risk."""

    def __init__(self, study: Study, theta: Floats) -> None:
        if study.records is None:
            raise ValueError("expected a study about records")
        self._study, self._theta, self._law = study, theta, study.records.features
        self._metric = np.eye(study.problem.dimension)
        if study.problem.model != "mean":
            mean, variance = self._law.mean, self._law.variance
            self._metric = mean * mean + np.eye(study.problem.dimension) * variance

    def covariance(self, n: int, repetition: int) -> Floats:
        """The second moments E x x^T of features, I for means: shape (d, d), the same in every repetition."""
        return self._metric

    def score(self, estimate: Floats, covariance: Floats) -> Score:
        """Score an estimate of shape (d,).

        error_l2 = ||estimate - theta||, error_sigma = ||estimate - theta||_S, S of `covariance`; excess_risk =
        error_sigma^2 / 2 for means and linear models, exactly, also where the noise has no variance.
        Raises ValueError for NaN, inf or a wrong shape.
        """
        if estimate.shape != self._theta.shape or not np.isfinite(estimate).all():
            raise ValueError(f"expected a finite estimate of shape {self._theta.shape}, got {estimate}")
        gap = estimate - self._theta
        squared = max(0.0, float((gap[:, None] * covariance * gap).sum()))
        return Score(
            error_l2=float(np.sqrt((gap * gap).sum())),
            error_sigma=float(np.sqrt(squared)),
            excess_log_loss=None,
            accuracy=None,
            excess_risk=squared / 2,
        )
