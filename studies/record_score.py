"""How far an estimate is from the truth where it comes from records: true errors, and the excess risk."""

import numpy as np

from protocol.coins import Floats
from protocol.store import FeatureStore
from protocol.strict import StudyError
from protocol.study import Study
from studies.score import Score, Scorer
from studies.truth_records import RecordTruth


def truth_of(study: Study, theta: Floats) -> RecordTruth:
    """The truth of a study about records. Raises ValueError for parts that do not fit together."""
    law, problem = study.records, study.problem
    if law is None:
        raise ValueError(f"expected a study about records, got {problem.kind}")
    weights = None if problem.model == "mean" else theta
    return RecordTruth(problem.model, problem.dimension, law.features, weights, law.noise, seed=study.seed)


class RecordScorer(Scorer):
    """Scores estimates from records against the truth: error, error in the metric of the features, excess risk."""

    def __init__(self, study: Study, theta: Floats, _features: FeatureStore | None = None) -> None:
        self._theta, self._truth = theta, truth_of(study, theta)
        self._metric = np.eye(len(theta)) if study.problem.model == "mean" else self._truth.second_moments

    def covariance(self, n: int, repetition: int) -> Floats:
        """The second moments E x x^T of features, I for means: shape (d, d), the same in every repetition."""
        return self._metric

    def score(self, estimate: Floats, covariance: Floats) -> Score:
        """Score an estimate of shape (d,).

        error_l2 = ||estimate - theta||, error_sigma = ||estimate - theta||_S, S of `covariance`; excess_risk is that of
        `studies.truth_records:RecordTruth`, finite also where the noise has no variance.
        Raises ValueError for NaN, inf or a wrong shape.
        """
        risk = self._truth.excess_risk(estimate)
        gap = estimate - self._theta
        return Score(
            error_l2=float(np.sqrt((gap * gap).sum())),
            error_sigma=float(np.sqrt(max(0.0, (gap[:, None] * covariance * gap).sum()))),
            excess_log_loss=None,
            accuracy=None,
            excess_risk=risk,
        )


def expect_scores(study: Study, theta: Floats) -> None:
    """Raise StudyError for a study about records whose estimates nobody could score: before anybody runs it."""
    if study.problem.kind != "records":
        return
    try:
        RecordScorer(study, theta)
    except StudyError:
        raise
    except ValueError as error:
        raise StudyError(f"[records] {error}") from None
