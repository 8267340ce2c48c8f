"""Widths of priors, the tempered ridge, and starts of the caller's."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad

from server.estimators import Workspace
from server.estimators.base import Evidence, Options
from server.estimators.minimiser import debiased, mle
from server.estimators.prior import evidence as laplace
from server.estimators.prior import ridge_of, tempering
from server.estimators.randomized import rr_map, rr_mle
from server.estimators.workspace import penalised

Draw = Callable[..., Any]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_tempered_ridge_of_randomised_labels(drawn: Draw, epsilon: float) -> None:
    known = Workspace(drawn(1, 500, epsilon=epsilon).evidence)
    ridge, width, notes = ridge_of(known, Options(3.0, ridge="tempered", tau=0.7), known.contrast)
    assert ridge == pytest.approx(1 / (math.tanh(epsilon / 2) ** 2 * 500 * 0.49), rel=1e-12)
    assert (width, notes) == (0.7, ())
    found = debiased(known, Options(3.0, ridge="tempered", tau=0.7))
    np.testing.assert_array_equal(found.u, debiased(known, Options(3.0, ridge=ridge)).u)


def test_the_tempered_ridge_of_a_curators_sum(drawn: Draw) -> None:
    case = drawn(2, 400, noise=7.0, clipped=True)
    known = Workspace(case.evidence)
    mean = float((case.weights * (case.x**2).sum(axis=1)).mean()) / (4 * 4)
    expected = 1 + 7.0**2 / (400 * mean)
    assert tempering(known, 1.0) == pytest.approx(expected, rel=1e-12)
    found = mle(known, Options(3.0, ridge="tempered", tau=2.0))
    np.testing.assert_array_equal(found.u, mle(known, Options(3.0, ridge=expected / 1600)).u)


def test_a_width_by_the_ball(drawn: Draw) -> None:
    known = Workspace(drawn(3, 500, epsilon=1.0).evidence)
    for estimator, more in ((rr_map, {}), (debiased, {"ridge": "tempered"})):
        by_ball, by_number = (estimator(known, Options(3.0, tau=tau, **more)) for tau in ("bound", 1.5))  # type: ignore[operator]
        np.testing.assert_array_equal(by_ball.u, by_number.u)


def test_laplace_is_the_integral_of_a_nearly_normal_likelihood(drawn: Draw) -> None:
    known = Workspace(drawn(4, 4_000, p=1, epsilon=3.0).evidence)
    loss = penalised(known.features, known.mean(known.contrast), 0.0)
    base = known.minimum(known.contrast, 9.0, 0.0).u
    for tau in (0.3, 2.0):
        mode = known.minimum(known.contrast, 9.0, 1 / (4_000 * tau**2)).u

        def integrand(u: float, tau: float = tau) -> float:
            return math.exp(-4_000 * (loss(np.array([u]))[0] - loss(base)[0]) - u * u / (2 * tau * tau)) / tau

        total = quad(integrand, base[0] - 0.5, base[0] + 0.5, epsabs=0, epsrel=1e-10)[0] / math.sqrt(2 * math.pi)
        assert laplace(loss, mode, tau, 4_000.0) + 4_000 * loss(base)[0] == pytest.approx(math.log(total), abs=2e-3)


def test_a_marginal_width_is_said_and_can_be_repeated(drawn: Draw) -> None:
    known = Workspace(drawn(5, 5_000, epsilon=2.0).evidence)
    for estimator, more in ((rr_map, {}), (debiased, {"ridge": "tempered"})):
        found = estimator(known, Options(3.0, tau="marginal", **more))  # type: ignore[operator]
        said, tau = found.warnings[0].removeprefix("prior-width: ").split(" by marginal likelihood")[0].split(" = ")
        assert said == "tau"
        # The coordinates' root mean square is 0.66 here; the estimate's error is some 0.1.
        assert 0.3 < float(tau) <= 1.5
        again = estimator(known, Options(3.0, tau=float(tau), **more))  # type: ignore[operator]
        np.testing.assert_array_equal(found.u, again.u)


def test_a_marginal_width_follows_what_is_there(drawn: Draw) -> None:
    widths = []
    for scale in (0.0, 1.0, 4.0):
        rng = np.random.default_rng(6)
        x = np.round(rng.normal(size=(8_000, 3)) * 2**20) / 2**20
        chance = 1 / (1 + np.exp(-x @ (scale * np.array([0.5, -0.4, 0.3]))))
        y = (rng.random(8_000) < chance).astype(np.uint8)
        reported = np.where(rng.random(8_000) < 0.2, 1 - y, y).astype(np.uint8)
        known = Workspace(Evidence(x, None, reported, (reported - 0.5) @ x, 0.6, 0.2, 0.0))
        widths.append(float(rr_map(known, Options(math.inf, tau="marginal")).warnings[0].split()[3]))
    assert widths == sorted(widths)
    assert widths[0] < 0.2 < widths[1] < 1.0 < widths[2]


def test_intervals_beside_a_prior_that_counts(drawn: Draw) -> None:
    little, much = (Workspace(drawn(7, n, epsilon=1.0).evidence) for n in (300, 200_000))
    reason = "the ridge shifts the estimate by more than a quarter of a standard error"
    for estimator, options in (
        (debiased, Options(9.0, ridge="tempered")),
        (rr_map, Options(9.0, tau="marginal")),
    ):
        assert reason in estimator(little, options).warnings[-1]
        assert estimator(little, options).covariance is None
        assert estimator(much, options).covariance is not None
    assert rr_map(little, Options(9.0)).covariance is not None  # a credible interval


def test_a_start_of_the_callers_saves_steps_and_changes_no_answer(drawn: Draw) -> None:
    """Along ridges, bounds and widths of one release, without a sample to start on: some 2.5 steps a fit for 4."""
    known = Workspace(drawn(8, 8_000, epsilon=1.0).evidence)
    paths = [
        (debiased, [Options(3.0, ridge=2.0**-k / 100) for k in range(8)]),
        (debiased, [Options(bound) for bound in (0.5, 0.75, 1.0, 1.25, 1.5, 3.0)]),
        (rr_map, [Options(3.0, tau=2.0 ** (k / 2) / 4) for k in range(8)]),
    ]
    for estimator, options in paths:
        cold, warm, start = 0, 0, None
        for one in options:
            there, here = estimator(known, one), estimator(known, one, start)
            np.testing.assert_allclose(here.u, there.u, rtol=1e-5, atol=1e-6)
            cold, warm, start = cold + there.iterations, warm + here.iterations, here.u
        assert warm <= 0.85 * cold
    outside = debiased(known, Options(0.5), np.full(4, 3.0))
    np.testing.assert_allclose(outside.u, debiased(known, Options(0.5)).u, rtol=1e-7)
    for bad in (np.zeros(3), np.full(4, math.nan)):
        with pytest.raises(ValueError, match=r"expected a finite start of shape \(4,\)"):
            debiased(known, Options(3.0), bad)
        with pytest.raises(ValueError, match=r"expected a finite start of shape \(4,\)"):
            rr_map(known, Options(3.0), bad)


def test_what_has_no_prior(drawn: Draw) -> None:
    known = Workspace(drawn(9, 50, epsilon=1.0).evidence)
    with pytest.raises(ValueError, match="expected ridge to be a number for rr-mle"):
        rr_mle(known, Options(3.0, ridge="tempered"))
    zeros = Workspace(Evidence(np.zeros((9, 2)), None, None, np.ones(2), 1.0, 0.0, 1.0))
    with pytest.raises(ValueError, match="expected features that are not all zero beside a curator's noise"):
        mle(zeros, Options(3.0, ridge="tempered"))
