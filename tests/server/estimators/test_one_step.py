"""one-step: its formula, its start, and when it has no interval."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from server.estimators import ESTIMATORS, Workspace
from server.estimators.base import Estimate, Evidence, Options
from server.estimators.newton import EstimationError

Draw = Callable[..., Any]


def estimate(name: str, evidence: Evidence, options: Options) -> Estimate:
    return ESTIMATORS[name](Workspace(evidence), options)


def information(evidence: Evidence, u: Any) -> Any:
    """(1/n) sum s'^2 / (s' + flip keep / c^2) x x', from the definition."""
    s = 1 / (1 + np.exp(-evidence.rows @ u))
    kappa = evidence.flip * (evidence.flip + evidence.contrast) / evidence.contrast**2
    return (evidence.rows.T * ((s * (1 - s)) ** 2 / (s * (1 - s) + kappa))) @ evidence.rows / len(s)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
@pytest.mark.parametrize("bound", [math.inf, 3.0, 1.0])
def test_it_is_one_step_of_fisher_scoring(drawn: Draw, epsilon: float, bound: float) -> None:
    evidence = drawn([1, 2], 3_000, epsilon=epsilon).evidence
    start = estimate("debiased", evidence, Options(bound)).u
    sign = 2.0 * evidence.symbols - 1
    s = 1 / (1 + np.exp(-sign * (evidence.rows @ start)))
    q = evidence.flip + evidence.contrast * s
    gradient = -(sign * evidence.contrast * s * (1 - s) / q) @ evidence.rows / 3_000
    there = start - np.linalg.solve(information(evidence, start), gradient)
    there *= min(1.0, bound / np.linalg.norm(there))
    found = estimate("one-step", evidence, Options(bound))
    np.testing.assert_allclose(found.u, there, rtol=1e-9)
    assert found.hit_boundary == (np.linalg.norm(found.u) > bound * (1 - 1e-9))
    if found.covariance is not None:
        np.testing.assert_allclose(found.covariance, np.linalg.inv(information(evidence, found.u)) / 3_000, rtol=1e-8)


def test_it_is_nearly_the_maximum_of_the_likelihood_where_much_is_known(drawn: Draw) -> None:
    evidence = drawn(2, 60_000, epsilon=2.0).evidence
    one, best, start = (estimate(name, evidence, Options(3.0)).u for name in ("one-step", "rr-mle", "debiased"))
    assert np.linalg.norm(one - best) < 0.05 * np.linalg.norm(start - best)


def test_no_interval_where_the_step_begins_on_the_ball(drawn: Draw) -> None:
    evidence = drawn(3, 2_000, epsilon=1.0).evidence
    found = estimate("one-step", evidence, Options(0.9))
    assert found.covariance is None
    assert "interval-not-valid: the ball constraint is active" in found.warnings[0]


def test_clear_labels_are_where_the_step_begins(drawn: Draw) -> None:
    evidence = drawn(4, 2_000).evidence
    found, start = (estimate(name, evidence, Options(5.0)) for name in ("one-step", "debiased"))
    np.testing.assert_allclose(found.u, start.u, rtol=1e-9)


def test_rows_that_do_not_span_the_space_are_refused(drawn: Draw) -> None:
    case = drawn(5, 300, p=1, epsilon=2.0).evidence
    rows = np.column_stack([case.rows, case.rows])
    twice = Evidence(rows, None, case.symbols, (case.symbols - 0.5) @ rows, case.contrast, case.flip, 0.0)
    with pytest.raises(EstimationError, match="expected features that span the space for one-step"):
        estimate("one-step", twice, Options(3.0))
