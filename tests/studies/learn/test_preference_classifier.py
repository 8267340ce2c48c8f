"""scikit-learn's interface: its own checks, the same estimates as everywhere else, and a ledger that remembers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from client.ledger_view import read_entries
from studies.learn import PreferenceClassifier

THETA = np.array([1.0, -1.0, 0.5, 0.0])


def _drawn(n: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    coins = np.random.default_rng(seed)
    x = coins.normal(size=(n, len(THETA)))
    return x, (coins.random(n) < 1 / (1 + np.exp(-x @ THETA))).astype(np.int64)


@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [PreferenceClassifier(random_state=0), PreferenceClassifier(trust="clear")],
    expected_failed_checks=lambda _: {"check_array_api_input": "asks for an environment that tests do not set"},
)
def test_the_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def test_in_clear_it_is_logistic_regression() -> None:
    x, y = _drawn(2000)
    ours = PreferenceClassifier(trust="clear").fit(x, y)
    theirs = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10).fit(x, y)
    assert np.abs(ours.coef_ - theirs.coef_).max() < 1e-6
    assert np.abs(ours.predict_proba(x) - theirs.predict_proba(x)).max() < 1e-6
    assert ours.claim_.startswith("no guarantee")


@pytest.mark.parametrize("trust", ["local", "central"])
def test_under_a_claim_it_finds_theta(trust: str) -> None:
    """Six standard errors of rr-mle at epsilon = 2 and 4,000 labels: false alarms below 1e-8 a coordinate."""
    x, y = _drawn(4000)
    found = PreferenceClassifier(2, trust=trust, random_state=1).fit(x, y)
    assert np.abs(found.coef_[0] - THETA).max() < 6 * 0.06
    assert found.claim_ == "no guarantee: coins with addresses protect nobody"
    other = PreferenceClassifier(2, trust=trust, random_state=2).fit(x, y)
    assert np.array_equal(found.coef_, PreferenceClassifier(2, trust=trust, random_state=1).fit(x, y).coef_)
    assert not np.array_equal(found.coef_, other.coef_)


@pytest.mark.parametrize("trust", ["local", "central", "distributed"])
def test_a_ledger_remembers_labels_by_their_ids(trust: str, tmp_path: Path) -> None:
    x, y = _drawn(300)
    ids = [f"answer {place}" for place in range(len(x))]
    private = PreferenceClassifier(1, trust=trust, state=tmp_path)
    first = private.fit(x, y, ids=ids)
    assert first.claim_.startswith(f"{trust}, epsilon = 1")
    again = clone(private).fit(x, 1 - y, ids=ids)  # whatever the labels are now: these have answered
    assert np.array_equal(first.coef_, again.coef_)
    assert sum(entry.labels for entry in read_entries(tmp_path / "ledger.sqlite")) == 300
    clone(private).fit(x, y, ids=[f"another {name}" for name in ids])
    assert sum(entry.labels for entry in read_entries(tmp_path / "ledger.sqlite")) == 600


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    x, y = _drawn(20)
    with pytest.raises(ValueError, match="expected epsilon"):
        PreferenceClassifier(0).fit(x, y)
    with pytest.raises(ValueError, match="expected an estimator out of"):
        PreferenceClassifier(estimator="ridge").fit(x, y)
    with pytest.raises(ValueError, match="expected bound > 0"):
        PreferenceClassifier(bound=-1).fit(x, y)
    with pytest.raises(ValueError, match="exactly where a state folder"):
        PreferenceClassifier().fit(x, y, ids=list(range(20)))
    with pytest.raises(ValueError, match="expected 20 different ids"):
        PreferenceClassifier(state=tmp_path).fit(x, y, ids=[0] * 20)
    with pytest.raises(ValueError, match="expected no random_state beside a state folder"):
        PreferenceClassifier(state=tmp_path, random_state=1).fit(x, y, ids=list(range(20)))
    with pytest.raises(ValueError, match="expected 20 ids"):
        PreferenceClassifier(state=tmp_path).fit(x, y, ids=[0])


def test_it_goes_through_a_search() -> None:
    x, y = _drawn(400)
    search = GridSearchCV(PreferenceClassifier(4, random_state=3), {"estimator": ["rr-mle", "rr-map"]}, cv=2)
    assert search.fit(x, np.where(y, "second", "first")).best_estimator_.score(x, np.where(y, "second", "first")) > 0.6
