"""sgd and debiased-sgd against the recursion written out, and the pilot step."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from server.estimators import ESTIMATORS, Workspace
from server.estimators.base import Evidence, Options

Draw = Callable[..., Any]


def path(evidence: Evidence, alpha: float, bound: float, normalised: bool) -> Any:
    """Algorithm 1, iterate by iterate, with un-normalised gradients or with gradients divided by the contrast."""
    c, u, iterates = evidence.contrast, np.zeros(evidence.rows.shape[1]), []
    for t, (v, symbol) in enumerate(zip(evidence.rows, evidence.symbols, strict=True), start=1):
        sigma = 1 / (1 + math.exp(-u @ v))
        if normalised:
            u = u - (sigma - (symbol - evidence.flip) / c) * v / (alpha * t)
        else:
            u = u - (c * sigma - (symbol - evidence.flip)) * v / (alpha * c * t)
        u = u * min(1.0, bound / max(np.linalg.norm(u), 1e-300))
        iterates.append(u)
    return np.array(iterates)


@pytest.mark.parametrize("epsilon", [None, 0.1, 2.0])
@pytest.mark.parametrize("bound", [math.inf, 0.8])
def test_last_iterate_is_the_recursion(drawn: Draw, epsilon: float | None, bound: float) -> None:
    evidence = drawn(1, 400, epsilon=epsilon).evidence
    found = ESTIMATORS["debiased-sgd"](Workspace(evidence), Options(bound, step=0.2))
    un_normalised, normalised = (path(evidence, 0.2, bound, which) for which in (False, True))
    np.testing.assert_allclose(un_normalised, normalised, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.u, un_normalised[-1], rtol=1e-9)
    assert found.covariance is None
    assert math.isnan(found.decrement)
    assert found.hit_boundary == (np.linalg.norm(found.u) > bound * (1 - 1e-9))


def test_clear_sgd_is_the_same_at_contrast_one(drawn: Draw) -> None:
    evidence = drawn(2, 400).evidence
    clear, debiased = (ESTIMATORS[name](Workspace(evidence), Options(3.0)).u for name in ("sgd", "debiased-sgd"))
    np.testing.assert_array_equal(clear, debiased)
    with pytest.raises(ValueError, match=r"expected clear labels for sgd, got contrast .*: use debiased-sgd"):
        ESTIMATORS["sgd"](Workspace(drawn(2, 50, epsilon=1.0).evidence), Options(3.0))


@pytest.mark.parametrize("n", [300, 1_700])
def test_pilot_step_is_the_least_curvature_at_the_minimiser_of_the_first_reports(drawn: Draw, n: int) -> None:
    evidence = drawn(3, n, epsilon=4.0).evidence
    x, y = evidence.rows[:1000], evidence.symbols[:1000]
    corrected = 0.5 + (y - 0.5) / evidence.contrast

    def loss(u: Any) -> tuple[float, Any]:
        z = x @ u
        value = np.mean(np.logaddexp(z / 2, -z / 2)) - (corrected - 0.5) @ z / len(z)
        return float(value), (1 / (1 + np.exp(-z)) - corrected) @ x / len(z)

    pilot = minimize(loss, np.zeros(4), jac=True, method="BFGS", options={"gtol": 1e-9}).x
    assert np.linalg.norm(pilot) < 3.0
    s = 1 / (1 + np.exp(-evidence.rows @ pilot))
    alpha = np.linalg.eigvalsh((evidence.rows.T * (s * (1 - s))) @ evidence.rows / n)[0]
    found, by_hand = (
        ESTIMATORS["debiased-sgd"](Workspace(evidence), Options(3.0, step=step)).u for step in ("pilot", float(alpha))
    )
    np.testing.assert_allclose(found, by_hand, rtol=1e-5)


def test_a_pilot_needs_features_that_span_the_space(drawn: Draw) -> None:
    case = drawn(4, 100, p=1)
    rows = np.column_stack([case.x, case.x])
    evidence = Evidence(rows, None, case.labels, (case.labels - 0.5) @ rows, 1.0, 0.0, 0.0)
    with pytest.raises(ValueError, match=r"expected features that span the space for a pilot step, .*: give a number"):
        ESTIMATORS["sgd"](Workspace(evidence), Options(3.0))
    assert ESTIMATORS["sgd"](Workspace(evidence), Options(3.0, step=0.3)).u[0] != 0.0
