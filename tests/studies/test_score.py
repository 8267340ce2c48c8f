"""Scores against direct computation."""

from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit, xlogy

from protocol.coins import Address, Stream
from protocol.features import differences, project
from studies.load import Loaded, load
from studies.moments import BLOCK, gram
from studies.score import TEST_ROWS, Scorer


@pytest.fixture(scope="module")
def loaded(study_path: Path) -> Loaded:
    return load(study_path)


def test_the_truth_scores_zero_and_the_bayes_accuracy(loaded: Loaded) -> None:
    scorer = Scorer(loaded.study, loaded.theta)
    score = scorer.score(loaded.theta, scorer.covariance(150, 3))
    x = differences(loaded.study.problem, Address(11, Stream.METRICS), 0, TEST_ROWS)
    assert (score.error_l2, score.error_sigma, score.excess_log_loss) == (0.0, 0.0, 0.0)
    assert score.accuracy == pytest.approx(expit(np.abs(x @ loaded.theta)).mean(), rel=1e-12)


def test_scores_agree_with_their_definitions(loaded: Loaded) -> None:
    scorer = Scorer(loaded.study, loaded.theta)
    estimate = np.array([0.2, 0.9, -1.0, -0.1])
    score = scorer.score(estimate, scorer.covariance(2000, 7))
    gap = estimate - loaded.theta
    rows = project(differences(loaded.study.problem, Address(11, Stream.PROBLEM, 2000, 7), 0, 2000))
    u = project(gap[None, :])[0]
    x = differences(loaded.study.problem, Address(11, Stream.METRICS), 0, TEST_ROWS)
    p, q = expit(x @ loaded.theta), expit(x @ estimate)
    divergence = xlogy(p, p / q) + xlogy(1 - p, (1 - p) / (1 - q))
    assert score.error_l2 == pytest.approx(np.linalg.norm(gap), rel=1e-12)
    assert score.error_sigma == pytest.approx(np.sqrt(np.mean((rows @ u) ** 2)), rel=1e-12)
    assert score.excess_log_loss == pytest.approx(divergence.mean(), rel=1e-9)
    assert score.accuracy == pytest.approx(np.where(x @ estimate > 0, p, 1 - p).mean(), rel=1e-12)


@pytest.mark.parametrize("bad", [np.zeros(3), np.array([np.nan, 0, 0, 0]), np.array([np.inf, 0, 0, 0])])
def test_what_is_no_estimate_is_refused(loaded: Loaded, bad: np.ndarray) -> None:
    scorer = Scorer(loaded.study, loaded.theta)
    with pytest.raises(ValueError, match="finite estimate"):
        scorer.score(bad, np.eye(3))


@pytest.mark.parametrize("n", [1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 17])
def test_second_moments(n: int) -> None:
    rng = np.random.default_rng(n)
    rows, weights = rng.normal(size=(n, 5)), rng.random(n)
    np.testing.assert_allclose(gram(rows), rows.T @ rows / n, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(gram(rows, weights), (rows.T * weights) @ rows / n, rtol=1e-10, atol=1e-12)
    assert (gram(rows) == gram(rows).T).all()
