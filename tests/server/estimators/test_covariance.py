"""Plug-in covariances: their formulas, and how often their regions cover the truth."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from server.estimators import ESTIMATORS, Workspace
from server.estimators.base import Estimate, Evidence, Options

Draw = Callable[..., Any]


def estimate(name: str, evidence: Evidence, options: Options) -> Estimate:
    return ESTIMATORS[name](Workspace(evidence), options)


@pytest.mark.parametrize("kind", [{}, {"epsilon": 1.0}, {"noise": 4.0}, {"noise": 4.0, "clipped": True}])
def test_minimisers_have_the_sandwich(drawn: Draw, kind: dict[str, Any]) -> None:
    n = 600
    case = drawn(1, n, **kind)
    found = estimate("debiased", case.evidence, Options(10.0, ridge=1e-7))
    x, w, c, b = case.x, case.weights, case.evidence.contrast, case.evidence.flip
    s = 1 / (1 + np.exp(-x @ found.u))
    variance, kappa = s * (1 - s), b * (1 - b) / c**2
    bread = np.linalg.inv((x.T * (w * variance)) @ x / n)
    meat = (x.T * (w**2 * (variance + kappa))) @ x / n + case.evidence.noise_stddev**2 / (n * c**2) * np.eye(4)
    np.testing.assert_allclose(found.covariance, bread @ meat @ bread / n, rtol=1e-4)
    np.testing.assert_array_equal(found.covariance, found.covariance.T)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 40.0])
def test_likelihoods_have_the_inverse_information(drawn: Draw, epsilon: float) -> None:
    n = 3_000
    case = drawn(2, n, epsilon=epsilon)
    c, b = case.evidence.contrast, case.evidence.flip
    for name, prior in (("rr-mle", 0.0), ("rr-map", 1 / 0.36)):
        found = estimate(name, case.evidence, Options(10.0, tau=0.6))
        s = 1 / (1 + np.exp(-case.x @ found.u))
        information = (s * (1 - s)) ** 2 / (s * (1 - s) + b * (1 - b) / c**2)
        expected = np.linalg.inv((case.x.T * information) @ case.x + prior * np.eye(4))
        np.testing.assert_allclose(found.covariance, expected, rtol=1e-6)


def test_a_ridge_that_counts_has_no_interval(drawn: Draw) -> None:
    evidence = drawn(3, 2_000, epsilon=1.0).evidence
    for name in ("debiased", "rr-mle"):
        assert estimate(name, evidence, Options(10.0, ridge=1e-6)).covariance is not None
        biased = estimate(name, evidence, Options(10.0, ridge=1.0))
        assert biased.covariance is None
        assert biased.warnings == (
            "interval-not-valid: the ridge shifts the estimate by more than a quarter of a standard error",
        )


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("mle", {}),
        ("debiased", {"epsilon": 2.0}),
        ("rr-mle", {"epsilon": 2.0}),
        ("mle", {"noise": 15.0}),
        ("mle", {"noise": 15.0, "clipped": True}),
    ],
)
def test_regions_cover_as_often_as_they_say(drawn: Draw, name: str, kind: dict[str, Any]) -> None:
    """200 repetitions at n = 2000, seeds fixed before the first look.

    Squared distances to the truth in units of the covariance follow chi^2(4) up to 10 % at this n, so their sum follows
    chi^2(800): outside the limits below with probability below 2e-9, and too few covered below 4e-9, a case.
    """
    squares = []
    for repetition in range(200):
        case = drawn([4, repetition], 2_000, **kind)
        found = estimate(name, case.evidence, Options(math.inf))
        off = found.u - case.truth
        squares.append(off @ np.linalg.solve(found.covariance, off))
    assert 0.9 * chi2.ppf(1e-9, 800) < sum(squares) < 1.1 * chi2.isf(1e-9, 800)
    assert sum(np.array(squares) < chi2.ppf(0.95, 4)) > 164  # of Bin(200, 0.94): below 4e-9
