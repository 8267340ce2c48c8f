"""Intervals from resampled reports."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from protocol.coins import Address, Stream
from protocol.problem import Problem
from server.estimators import ESTIMATORS, Workspace
from server.estimators.base import Evidence, Options
from server.outcome import interval

Draw = Callable[..., Any]
RESAMPLED = Options(3.0, interval="bootstrap")


def with_coins(evidence: Evidence) -> Evidence:
    return replace(evidence, coins=Address(1, Stream.BOOTSTRAP, len(evidence.rows), 2))


@pytest.mark.parametrize("name", ["debiased", "one-step", "rr-mle"])
def test_replicas_spread_as_the_plug_in_covariance_says(drawn: Draw, name: str) -> None:
    """Of 399 resamples within 6 standard errors of 3.5 %, and the formula's own 5 %: false alarms below 1e-8."""
    evidence = with_coins(drawn(1, 2_000, epsilon=3.0).evidence)
    found, wald = (ESTIMATORS[name](Workspace(evidence), options) for options in (RESAMPLED, Options(3.0)))
    np.testing.assert_array_equal(found.u, wald.u)
    assert found.covariance is None
    assert found.warnings == ()
    assert found.replicas is not None and found.replicas.shape == (399, 4)
    assert wald.covariance is not None
    ratio = found.replicas.std(axis=0, ddof=1) / np.sqrt(wald.covariance.diagonal())
    assert (abs(ratio - 1) < 0.26).all()
    again = ESTIMATORS[name](Workspace(evidence), RESAMPLED)
    np.testing.assert_array_equal(found.replicas, again.replicas)  # type: ignore[arg-type]


def test_an_interval_ends_in_the_tenth_of_399_from_either_side(drawn: Draw) -> None:
    found = ESTIMATORS["debiased"](Workspace(with_coins(drawn(2, 900, p=2, epsilon=2.0).evidence)), RESAMPLED)
    theta, low, high = interval(Problem(2, "gaussian", False, Decimal(3)), found)
    assert found.replicas is not None and low is not None and high is not None
    for j in range(2):
        assert (found.replicas[:, j] < low[j]).sum() == (found.replicas[:, j] > high[j]).sum() == 9
    assert ((low < theta) & (theta < high)).all()
    _, low, high = interval(Problem(3, "gaussian", True, Decimal(3)), found)  # of sums of coordinates, not sums of ends
    assert low is not None and high is not None and low.shape == (3,)


def test_an_active_ball_gets_an_interval_that_says_so(drawn: Draw) -> None:
    found = ESTIMATORS["debiased"](
        Workspace(with_coins(drawn(3, 600, epsilon=0.5).evidence)), Options(0.8, interval="bootstrap")
    )
    assert found.hit_boundary
    assert found.warnings == ("interval-approximate: by bootstrap on the border of the ball",)
    assert found.replicas is not None
    assert (np.linalg.norm(found.replicas, axis=1) <= 0.8 * (1 + 1e-12)).all()


def test_what_cannot_be_resampled(drawn: Draw) -> None:
    with pytest.raises(ValueError, match="expected reports in memory and coins"):
        ESTIMATORS["debiased"](Workspace(drawn(4, 50, epsilon=1.0).evidence), RESAMPLED)
    clear = drawn(4, 50).evidence
    tied = replace(with_coins(clear), symbols=np.full(50, 2, np.uint8))
    with pytest.raises(ValueError, match="expected reports without ties"):
        ESTIMATORS["mle"](Workspace(tied), RESAMPLED)
    with pytest.raises(ValueError, match="expected evidence with reported labels"):
        ESTIMATORS["mle"](Workspace(with_coins(drawn(4, 50, noise=1.0).evidence)), RESAMPLED)


def test_resamples_without_a_minimiser_are_no_interval(drawn: Draw) -> None:
    labels = np.array([1] * 11 + [0], np.uint8)
    evidence = with_coins(Evidence(np.ones((12, 1)), None, labels, np.array([5.0]), 1.0, 0.0, 0.0))
    found = ESTIMATORS["mle"](Workspace(evidence), Options(np.inf, interval="bootstrap"))
    assert found.replicas is None
    assert found.warnings == ("interval-not-valid: resampled reports have no minimiser",)
