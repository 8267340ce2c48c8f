"""Minimisers and excess risks of records against quadrature and first-order conditions; drawn sparse weights."""

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import nquad

from protocol.laws import Law
from studies.truth_records import ROWS, RecordTruth, sparse_weights

NOISE = Law.parse("centred pareto(1.6)")
WEIGHTS = np.array([0.5, -1.0])


def records(model: str, features: str, **parts: Any) -> RecordTruth:
    given: dict[str, Any] = {"weights": WEIGHTS, **parts}
    if model in ("linear", "ridge"):
        given.setdefault("noise", NOISE)
    return RecordTruth(model, len(given["weights"]), Law.parse(features), **given)


def test_means() -> None:
    truth = RecordTruth("mean", 3, Law.parse("pareto(1.6)"))
    assert truth.minimiser == pytest.approx(np.full(3, 1.6 / 0.6))
    assert truth.excess_risk(truth.minimiser + np.array([0.0, 3.0, 4.0])) == pytest.approx(12.5)


@pytest.mark.parametrize("features", ["uniform(0, 1.5)", "uniform(-1, 1)", "centred uniform(0, 2) + 0.5"])
def test_linear_excess_is_the_mean_of_half_a_square(features: str) -> None:
    """E <gap, x>^2 / 2 by quadrature over both coordinates, though E e^2 is infinite."""
    truth, estimate = records("linear", features), np.array([1.25, 0.5])
    gap, law = estimate - WEIGHTS, truth.features
    low, high = (law.offset + float(law.parameters[i][1]) for i in (0, 1))
    found = nquad(lambda a, b: (gap[0] * a + gap[1] * b) ** 2 / 2, [(low, high)] * 2)[0] / (high - low) ** 2
    assert truth.excess_risk(estimate) == pytest.approx(found, rel=1e-12)
    assert truth.excess_risk(estimate) == pytest.approx(gap @ truth.second_moments @ gap / 2, rel=1e-12)
    assert truth.excess_risk(WEIGHTS) == 0
    assert truth.noise is not None and truth.noise.variance == math.inf


def test_second_moments_are_those_of_the_rows() -> None:
    """Within 6 standard deviations: false alarm 2e-9 for each of 3."""
    truth = records("linear", "uniform(0, 1.7320508075688772)")
    assert truth.second_moments == pytest.approx(0.75 * np.ones((2, 2)) + 0.25 * np.eye(2))
    for i, j in ((0, 0), (0, 1), (1, 1)):
        product = truth.rows[:, i] * truth.rows[:, j]
        assert abs(product.mean() - truth.second_moments[i, j]) < 6 * product.std() / math.sqrt(ROWS)


def test_ridge() -> None:
    truth = records("ridge", "uniform(0, 2)", penalty=0.5)
    w = truth.minimiser
    assert truth.second_moments @ (w - WEIGHTS) + 0.5 * w == pytest.approx(np.zeros(2), abs=1e-15)

    def risk(at: NDArray[np.float64]) -> float:
        gap = at - WEIGHTS
        return float(gap @ truth.second_moments @ gap + 0.5 * at @ at) / 2

    estimate = np.array([2.0, 1.0])
    assert truth.excess_risk(estimate) == pytest.approx(risk(estimate) - risk(w), rel=1e-12)


def exact_log_loss(mean: float, deviation: float, estimate: NDArray[np.float64]) -> float:
    """One-dimensional integrals alone: E[sigma(z*) (z - z*)] by Stein's identity for normal scores."""
    with mp.workdps(20):
        w, v = ([mp.mpf(float(c)) for c in vector] for vector in (WEIGHTS, estimate))

        def score(u: list[mp.mpf]) -> tuple[mp.mpf, mp.mpf]:
            return mean * sum(u), deviation * mp.sqrt(sum(c * c for c in u))

        def expect(function: Any, u: list[mp.mpf]) -> mp.mpf:
            centre, spread = score(u)
            return mp.quad(lambda a: function(centre + spread * a) * mp.npdf(a), mp.linspace(-10, 10, 11))

        def chance(z: mp.mpf) -> mp.mpf:
            return 1 / (1 + mp.exp(-z))

        covariance = deviation**2 * (sum(a * b for a, b in zip(w, v, strict=True)) - sum(a * a for a in w))
        shift = score(v)[0] - score(w)[0]
        slope = shift * expect(chance, w) + covariance * expect(lambda z: chance(z) * chance(-z), w)
        losses = [expect(lambda z: mp.log(1 + mp.exp(z)), u) for u in (v, w)]
        return float(losses[0] - losses[1] - slope)


@pytest.mark.parametrize(
    ("mean", "deviation", "estimate"),
    [(0.0, 1.0, (0.5, -0.99)), (0.0, 1.0, (-6.0, 7.0)), (0.5, 2.0, (1.5, 0.5)), (0.5, 2.0, (0.0, 0.0))],
)
def test_logistic_excess_for_normal_features(mean: float, deviation: float, estimate: tuple[float, ...]) -> None:
    at = np.array(estimate)
    found = records("logistic", f"normal({mean}, {deviation})").excess_risk(at)
    assert found == pytest.approx(exact_log_loss(mean, deviation, at), rel=1e-9, abs=1e-15)


def test_logistic_excess_by_fixed_rows() -> None:
    """A stable law with index 2 is normal. Rows against quadrature within 6 standard deviations: false alarm 2e-9."""
    at = np.array([1.5, 0.5])
    exact = records("logistic", "normal(0, 1)").excess_risk(at)
    found = [records("logistic", "stable(2, 0.70710678118654752)", seed=seed).excess_risk(at) for seed in range(8)]
    spread = np.std(found, ddof=1)
    assert 0 < spread < 0.01 * exact
    rows = records("logistic", "stable(2, 0.70710678118654752)")
    z = rows.rows @ WEIGHTS, rows.rows @ at
    each = np.logaddexp(0, z[1]) - np.logaddexp(0, z[0]) - (z[1] - z[0]) / (1 + np.exp(-z[0]))
    assert abs(found[0] - exact) < 6 * each.std() / math.sqrt(ROWS)
    assert found[0] == pytest.approx(each.mean(), rel=1e-12)
    assert records("logistic", "student-t(2.5)").excess_risk(WEIGHTS) == 0


def test_logistic_without_weights_to_find() -> None:
    truth = records("logistic", "normal", weights=np.zeros(2))
    assert truth.excess_risk(np.zeros(2)) == 0
    even = [truth.excess_risk(np.array(at)) for at in ((3.0, 4.0), (5.0, 0.0), (-5.0, 0.0))]
    assert even == pytest.approx([even[0]] * 3, rel=1e-12)


def test_sparse_weights() -> None:
    """Each index is in the support equally often, and signs are fair: 6 standard deviations, false alarm 2e-9 of 21."""
    drawn = np.array([sparse_weights(5, 20, 4, repetition) for repetition in range(1000)])
    assert ((drawn != 0).sum(axis=1) == 4).all()
    assert set(np.unique(drawn)) == {-0.5, 0.0, 0.5}
    assert (np.abs((drawn != 0).sum(axis=0) - 200) < 6 * math.sqrt(1000 * 0.2 * 0.8)).all()
    assert abs(int(np.sign(drawn).sum())) < 6 * math.sqrt(4000)
    assert (sparse_weights(5, 20, 4, 7) == drawn[7]).all()
    assert (np.abs(sparse_weights(1, 3, 3)) == 1 / math.sqrt(3)).all()


@pytest.mark.parametrize(
    ("model", "features", "parts", "message"),
    [
        ("lasso", "normal", {}, "expected a model out of"),
        ("mean", "normal", {}, "expected weights for every model but the mean"),
        ("linear", "normal", {"noise": None}, "expected noise exactly for linear"),
        ("linear", "normal", {"penalty": 1.0}, "expected a penalty > 0 exactly for ridge"),
        ("ridge", "normal", {}, "expected a penalty > 0 exactly for ridge"),
        ("ridge", "normal", {"penalty": math.nan}, "expected a penalty > 0 exactly for ridge"),
        ("linear", "uniform(0, 1)", {"noise": Law.parse("pareto(1.6)")}, "expected noise or features of mean 0"),
        ("linear", "normal", {"weights": np.array([1.0, math.nan])}, "expected weights of 2 finite numbers"),
    ],
)
def test_what_has_no_truth_is_refused(model: str, features: str, parts: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        records(model, features, **parts)


def test_estimates_and_counts_that_do_not_fit_are_refused() -> None:
    for estimate in (np.zeros(3), np.array([0.0, math.inf])):
        with pytest.raises(ValueError, match="expected an estimate of 2 finite numbers"):
            records("linear", "normal").excess_risk(estimate)
    with pytest.raises(ValueError, match="expected features of finite variance"):
        records("linear", "centred pareto(1.6)").excess_risk(np.zeros(2))
    for nonzeros in (0, 6):
        with pytest.raises(ValueError, match="expected 1 <= nonzeros <= 5"):
            sparse_weights(1, 5, nonzeros)
