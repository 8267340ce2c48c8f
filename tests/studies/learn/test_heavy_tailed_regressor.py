"""Heavy-tailed regression behind scikit-learn's interface: its checks, known answers, and a ledger that remembers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from client.ledger_view import read_entries
from studies.learn import HeavyTailedRegressor

THETA = np.array([1.0, -1.0, 0.5])
INTERCEPT = 2.0


def _drawn(n: int, heavy: bool = True) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Features in (-sqrt 3, sqrt 3), so that E xx' = I, and errors of Student's t with 1.6 degrees, or normal ones."""
    coins = np.random.default_rng(0)
    x = coins.uniform(-(3**0.5), 3**0.5, (n, len(THETA)))
    errors = coins.standard_t(1.6, n) if heavy else 0.1 * coins.normal(size=n)
    return x, x @ THETA + INTERCEPT + errors


def _expected(_: Any) -> dict[str, str]:
    return {"check_array_api_input": "asks for an environment that tests do not set"}


@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [HeavyTailedRegressor(trust="central", threshold=1, rounds=3, random_state=0)], expected_failed_checks=_expected
)
def test_the_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [
        HeavyTailedRegressor(threshold=1, rounds=5, random_state=0),
        HeavyTailedRegressor(trust="clear", bound=100, step=0.01),
    ],
    expected_failed_checks=_expected,
)
def test_the_checks_of_scikit_learn_for_the_other_models(estimator: Any, check: Any) -> None:
    check(estimator)


def test_in_clear_descent_is_least_squares() -> None:
    x, y = _drawn(500, heavy=False)
    ours = HeavyTailedRegressor(trust="clear", rounds=60, step=0.9, more={"average": "last"}).fit(x, y)
    theirs = LinearRegression().fit(x, y)
    assert np.abs(ours.coef_ - theirs.coef_).max() < 1e-9
    assert abs(ours.intercept_ - theirs.intercept_) < 1e-9
    assert np.abs(ours.predict(x) - theirs.predict(x)).max() < 1e-8
    assert ours.claim_.startswith("no guarantee")


def test_a_file_of_the_same_numbers_and_the_class_agree_on_who_pays(tmp_path: Path) -> None:
    """Ids name records: asked the same again, in another order and with other values, they answer what they did."""
    x, y = _drawn(60)
    ids = np.array([f"claim {place}" for place in range(len(x))])
    model = HeavyTailedRegressor(2, trust="central", threshold=3, rounds=2, state=tmp_path)
    first = model.fit(x, y, ids=ids)
    assert first.claim_ == "central, epsilon = 2, delta = 0.00001; unit: record; neighbours: replace one record"
    turned = np.arange(len(x))[::-1]
    again = clone(model).fit(x[turned], -y[turned], ids=ids[turned])
    assert np.array_equal(first.coef_, again.coef_)
    assert first.intercept_ == again.intercept_
    assert sum(entry.labels for entry in read_entries(tmp_path / "ledger.sqlite")) == len(x)


@pytest.mark.parametrize(
    ("trust", "threshold", "n", "away"),
    [("central", 10, 5000, 0.25), pytest.param("local", 5, 20_000, 0.9, marks=pytest.mark.slow)],
)
def test_under_a_claim_it_finds_theta(trust: str, threshold: int, n: int, away: float) -> None:
    """Errors are symmetric, so bounding leaves theta where it is. Over twelve seeds of coins errors have a standard
    deviation of 0.028 of central fits, 0.135 of local ones, beside 0.04 that these data bring: six of them are below
    `away`, so false alarms below 1e-8 of a normal law. The same coins give the same bits.
    """
    x, y = _drawn(n)
    more = {"average": "last"}
    model = HeavyTailedRegressor(4, trust=trust, threshold=threshold, step=0.5, more=more, random_state=1)
    found = model.fit(x, y)
    assert np.abs(np.append(found.coef_ - THETA, found.intercept_ - INTERCEPT)).max() < away
    assert found.claim_ == "no guarantee: coins with addresses protect nobody"
    assert np.array_equal(found.coef_, clone(model).fit(x, y).coef_)


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    x, y = _drawn(20)
    with pytest.raises(ValueError, match="expected epsilon"):
        HeavyTailedRegressor(0, threshold=1).fit(x, y)
    with pytest.raises(ValueError, match="a bound known beforehand"):
        HeavyTailedRegressor(trust="central").fit(x, y)
    with pytest.raises(ValueError, match="expected a trust out of"):
        HeavyTailedRegressor(trust="shuffled", threshold=1).fit(x, y)
    with pytest.raises(ValueError, match="expected tail > 0"):
        HeavyTailedRegressor(trust="central", tail=-1, moment=1).fit(x, y)
    with pytest.raises(ValueError, match="exactly where a state folder"):
        HeavyTailedRegressor(threshold=1, state=tmp_path).fit(x, y)
    with pytest.raises(ValueError, match="n_samples = 20"):
        HeavyTailedRegressor(threshold=1, rounds=21).fit(x, y)
