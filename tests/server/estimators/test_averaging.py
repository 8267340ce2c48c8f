"""Means of descent's iterates against the recursion written out, and their steps."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from server.estimators import ESTIMATORS, Workspace
from server.estimators.base import Evidence, Options
from server.kernels_descent import fifth_root

Draw = Callable[..., Any]


def iterates(evidence: Evidence, bound: float) -> Any:
    """Normalised de-biased gradients, steps 4 / lambda_max t^-0.6."""
    c, u, found = evidence.contrast, np.zeros(evidence.rows.shape[1]), []
    largest = np.linalg.eigvalsh(evidence.rows.T @ evidence.rows / len(evidence.rows))[-1]
    for t, (v, symbol) in enumerate(zip(evidence.rows, evidence.symbols, strict=True), start=1):
        gradient = 1 / (1 + math.exp(-u @ v)) - (symbol - evidence.flip) / c
        u = u - 4 / largest * t**-0.6 * gradient * v
        u = u * min(1.0, bound / max(np.linalg.norm(u), 1e-300))
        found.append(u)
    return np.array(found)


@pytest.mark.parametrize("n", [1, 2, 7, 401])
@pytest.mark.parametrize("epsilon", [None, 0.5, 2.0])
@pytest.mark.parametrize("bound", [math.inf, 0.8])
def test_means_are_those_of_the_recursion(drawn: Draw, n: int, epsilon: float | None, bound: float) -> None:
    evidence = drawn([1, n], n, epsilon=epsilon).evidence
    path = iterates(evidence, bound)
    for averaging, kept in (("all", path), ("half", path[n // 2 :])):
        found = ESTIMATORS["debiased-sgd"](Workspace(evidence), Options(bound, averaging=averaging))
        np.testing.assert_allclose(found.u, kept.mean(axis=0), rtol=1e-8, atol=1e-12)
        assert found.covariance is None
        assert found.warnings == ("interval-not-valid: a mean of iterates is too far from its limit",)


def test_more_rows_bring_the_mean_to_the_minimiser(drawn: Draw) -> None:
    gaps = []
    for n in (2_000, 200_000):
        known = Workspace(drawn(2, n, epsilon=4.0).evidence)
        best = ESTIMATORS["debiased"](known, Options(5.0)).u
        gaps.append(np.linalg.norm(ESTIMATORS["debiased-sgd"](known, Options(5.0, averaging="all")).u - best))
    assert gaps[1] < 0.2 * gaps[0]


def test_fifth_roots_are_accurate_to_two_ulp() -> None:
    t = np.concatenate([np.arange(1.0, 2_000.0), np.geomspace(2e3, 1e15, 3_000)])
    ours = np.array([fifth_root(value) for value in t])
    exact = t.astype(np.longdouble) ** (np.longdouble(1) / 5)
    assert np.max(np.abs(ours - exact) / np.spacing(ours)) <= 2
    assert [fifth_root(float(k**5)) for k in (1, 2, 3, 10)] == pytest.approx([1, 2, 3, 10], rel=4e-16)


def test_features_that_are_all_zero_have_no_step() -> None:
    nothing = Evidence(np.zeros((9, 2)), None, np.ones(9, np.uint8), np.zeros(2), 1.0, 0.0, 0.0)
    with pytest.raises(ValueError, match="expected features that are not all zero"):
        ESTIMATORS["sgd"](Workspace(nothing), Options(3.0, averaging="all"))
