"""How far an estimate is from the truth where labels are top choices; and which scorer a study needs."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from protocol.choice_features import reduce_blocks, row_sizes
from protocol.coins import Floats
from protocol.features import coordinates
from protocol.problem import Problem
from protocol.store import FeatureStore
from protocol.study import Study
from studies.moments import fresh_blocks, gram
from studies.record_score import RecordScorer
from studies.score import TEST_ROWS, Score, Scorer

_ORACLE_ROWS = 1 << 15


def scorer(study: Study, theta: Floats, features: FeatureStore | None = None) -> Scorer:
    """Scores the estimates of a study of any kind; `features` as in `studies.score:Scorer`."""
    return SCORERS[study.problem.kind](study, theta, features)


class ChoiceScorer(Scorer):
    """Scores estimates from top choices against the truth, on one draw of fresh test features (stream METRICS)."""

    def __init__(self, study: Study, theta: Floats, features: FeatureStore | None = None) -> None:
        self._study, self._theta = study, theta
        self._features = features or FeatureStore(study.seed, budget_bytes=0)
        self._choices, self._sizes = fresh_blocks(study.problem, study.seed, TEST_ROWS)
        self._z = dots(self._choices, theta)
        self._chance, self._partition = softmax(self._z, self._sizes)

    def covariance(self, n: int, repetition: int) -> Floats:
        """Sigma_D = (1/n) sum_i of the mean of x_jk x_jk^T over the pairs of row i, shape (p, p); x_jk = v_j - v_k.

        The mean over pairs is 2 / (K - 1) (sum_k v_k v_k^T - X X^T / K), X = sum_k v_k.
        """
        problem = self._study.problem
        v = self._features.reduced(problem, n, repetition, 0, n)
        sizes = row_sizes(problem, 0, n).astype(np.float64)
        most, p = v.shape[1:]
        total = np.zeros((n, p))
        for k in range(most):  # absent choices are zero
            total += v[:, k]
        each = gram(v.reshape(-1, p), np.repeat(2 * most / (sizes - 1), most))
        return each - gram(total, 2 / (sizes * (sizes - 1)))

    def score(self, estimate: Floats, covariance: Floats) -> Score:
        """Score an estimate of shape (d,).

        error_l2 = ||estimate - theta||, error_sigma = ||estimate - theta||_Sigma_D (of `covariance`), excess_log_loss =
        E KL(p || p'), accuracy = E p_k, k the choice that the estimate ranks first, with p, p' the probabilities of
        choices at theta and the estimate on fresh features. Raises ValueError for NaN, inf or a wrong shape.
        """
        if estimate.shape != self._theta.shape or not np.isfinite(estimate).all():
            raise ValueError(f"expected a finite estimate of shape {self._theta.shape}, got {estimate}")
        gap = estimate - self._theta
        reduced = coordinates(self._study.problem, gap)
        z = dots(self._choices, estimate)
        partition = softmax(z, self._sizes)[1]
        divergence = partition - self._partition - (self._chance * (z - self._z)).sum(axis=1)
        present = np.arange(z.shape[1]) < self._sizes[:, None]
        first = np.where(present, z, -np.inf).argmax(axis=1)
        return Score(
            error_l2=float(np.sqrt((gap * gap).sum())),
            error_sigma=float(np.sqrt(max(0.0, (reduced[:, None] * covariance * reduced).sum()))),
            excess_log_loss=max(0.0, float(divergence.mean())),
            accuracy=float(self._chance[np.arange(len(z)), first].mean()),
        )


def dots(blocks: Floats, theta: Floats) -> Floats:
    """theta . x of every choice by a plain loop over coordinates; (rows, K, d) -> (rows, K)."""
    z = np.zeros(blocks.shape[:2])
    for axis, factor in enumerate(theta):
        z += blocks[:, :, axis] * factor
    return z


def softmax(z: Floats, sizes: NDArray[np.int32]) -> tuple[Floats, Floats]:
    """Probabilities of choices, zero for absent ones, (rows, K); and log sum exp(z_k), (rows,)."""
    present = np.arange(z.shape[1]) < sizes[:, None]
    top = np.where(present, z, -np.inf).max(axis=1)
    weight = np.where(present, np.exp(np.where(present, z - top[:, None], 0.0)), 0.0)
    total = weight.sum(axis=1)
    return weight / total[:, None], top + np.log(total)


def choice_curvature(problem: Problem, theta: Floats, seed: int) -> Floats:
    """E[Cov_p(v)], p at theta, over a fixed draw of rows in reduced coordinates, shape (p, p)."""
    x, sizes = fresh_blocks(problem, seed, _ORACLE_ROWS, repetition=1)
    chance = softmax(dots(x, theta), sizes)[0]
    v = reduce_blocks(problem, x)
    most, p = v.shape[1:]
    mean = np.zeros((len(v), p))
    for k in range(most):
        mean += chance[:, k : k + 1] * v[:, k]
    spread: Floats = most * gram(v.reshape(-1, p), chance.ravel()) - gram(mean)
    return spread


SCORERS: dict[str, Callable[[Study, Floats, FeatureStore | None], Scorer]] = {
    "pairwise": Scorer,
    "choice": ChoiceScorer,
    "records": RecordScorer,
}
