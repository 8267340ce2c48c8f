"""The Gaussian profile against 60-digit arithmetic, oracle values and the output of objective perturbation itself."""

import math
import random
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy.special import expit

from server.mechanisms import CENTRAL
from server.mechanisms.gaussian import (
    analytic_noise_multiplier,
    gaussian_delta,
    gaussian_delta_bound,
    gaussian_mu,
    paper_noise_multiplier,
)

mp.dps = 60


def exact_delta(epsilon: float, mu: float) -> mpf:
    e, m = mpf(epsilon), mpf(mu)
    return mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m)


@pytest.mark.parametrize(
    ("epsilon", "delta", "mu"),
    [
        ("1", "1e-5", 0.2680511232112942),
        ("0.1", "1e-5", 0.03252078405620391),
        ("0.5", "1e-3", 0.21691371924765263),
        ("4", "1e-6", 0.837858757089998),
    ],
)
def test_oracle_analytic_mu(epsilon: str, delta: str, mu: float) -> None:
    assert gaussian_mu(Decimal(epsilon), Decimal(delta)) == pytest.approx(mu, rel=1e-9)


def test_oracle_noise_of_the_paper_and_of_the_analytic_gaussian() -> None:
    one, tenth, delta = Decimal(1), Decimal("0.1"), Decimal("1e-5")
    paper = paper_noise_multiplier(one, delta)
    assert 2 * paper == pytest.approx(10.08209210254704, rel=1e-9)  # L = 1: sensitivity 2
    assert 2 * analytic_noise_multiplier(one, delta) == pytest.approx(7.461263269631884, rel=1e-9)
    assert paper / analytic_noise_multiplier(one, delta) == pytest.approx(1.3512580562037264, rel=1e-9)
    tenths = paper_noise_multiplier(tenth, delta) / analytic_noise_multiplier(tenth, delta)
    assert tenths == pytest.approx(1.6100956204436057, rel=1e-9)
    assert gaussian_delta(1.0, 1 / paper) == pytest.approx(1.3955416026498281e-08, rel=1e-9)


@pytest.mark.parametrize(("epsilon", "oracle"), [(0.2, 0.24468374145108654), (1.0, 0.06318515053963417)])
def test_objective_perturbation_is_the_gaussian_mechanism(epsilon: float, oracle: float) -> None:
    """The hockey-stick divergence of the output theta, by quadrature, for labels that differ in the third place."""
    x, sigma, alpha = np.array([1.3, -0.7, 2.0, 0.4]), 2.5, 0.3
    theta = np.linspace(-60, 60, 1_200_001)
    score = sum(xi * expit(xi * theta) for xi in x)
    slope = 4 * alpha + sum(xi**2 * expit(xi * theta) * expit(-xi * theta) for xi in x)

    def density(labels: list[int]) -> np.ndarray:
        noise = x @ np.array(labels) - score - 4 * alpha * theta  # the b whose minimiser is theta
        return np.exp(-((noise / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi)) * slope

    gap = np.maximum(density([1, 0, 1, 1]) - math.exp(epsilon) * density([1, 0, 0, 1]), 0)
    measured = np.trapezoid(gap, theta)
    assert measured == pytest.approx(oracle, abs=2e-5)
    assert gaussian_delta(epsilon, 2.0 / sigma) == pytest.approx(oracle, rel=1e-8)


def test_rounding_stays_within_a_quarter_of_its_allowance() -> None:
    rng = random.Random(1)
    for _ in range(500):
        epsilon, tail = 10 ** rng.uniform(-9.3, 3), rng.uniform(-30, 38)
        root = math.sqrt(tail * tail + 2 * epsilon)
        mu = root - tail if tail < 0 else 2 * epsilon / (root + tail)  # epsilon / mu - mu / 2 = tail
        exact = exact_delta(epsilon, mu)
        value, bound = gaussian_delta(epsilon, mu), gaussian_delta_bound(epsilon, mu)
        assert abs(value - exact) <= (bound - value) / 4 or bound == 1.0
        assert bound >= exact


@pytest.mark.parametrize("epsilon", ["1e-9", "0.1", "0.5", "1", "5", "10", "20", "40", "1000"])
@pytest.mark.parametrize("delta", ["1e-60", "1e-12", "1e-5", "1e-3", "0.9"])
def test_every_multiplier_keeps_its_claim(epsilon: str, delta: str) -> None:
    for mechanism in CENTRAL.values():
        multiplier = mechanism.noise_multiplier(Decimal(epsilon), Decimal(delta))
        assert exact_delta(float(epsilon), 1 / multiplier) <= mpf(delta)


@pytest.mark.parametrize(("epsilon", "true_delta"), [(10.0, 2.3e-5), (20.0, 1.5e-3)])
def test_the_classical_formula_fails_above_epsilon_one(epsilon: float, true_delta: float) -> None:
    classical = math.sqrt(2 * math.log(1.25 / 1e-5)) / epsilon
    assert gaussian_delta(epsilon, 1 / classical) == pytest.approx(true_delta, rel=0.05)
    assert analytic_noise_multiplier(Decimal(epsilon), Decimal("1e-5")) > classical


@pytest.mark.parametrize("epsilon", ["0.1", "1", "4"])
def test_the_analytic_multiplier_wastes_nothing(epsilon: str) -> None:
    mu = gaussian_mu(Decimal(epsilon), Decimal("1e-5"))
    assert exact_delta(float(epsilon), mu * (1 + 1e-11)) > mpf("1e-5") * (1 - mpf("1e-11"))


@settings(max_examples=200)
@given(st.floats(1e-6, 50), st.floats(1e-3, 50), st.floats(1.001, 3))
def test_profile_rises_with_mu_and_falls_with_epsilon(epsilon: float, mu: float, factor: float) -> None:
    here = gaussian_delta(epsilon, mu)
    assert gaussian_delta_bound(epsilon, mu * factor) >= here
    assert gaussian_delta(epsilon * factor, mu) <= gaussian_delta_bound(epsilon, mu)
    assert 0 <= here <= 1


@pytest.mark.parametrize("text", ["0", "-1", "NaN", "Infinity", "1e-10", "1001"])
def test_bad_epsilon_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected epsilon"):
        gaussian_mu(Decimal(text), Decimal("1e-5"))


@pytest.mark.parametrize("text", ["0", "1", "-0.1", "2", "NaN", "1e-61"])
def test_bad_delta_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected .*delta"):
        gaussian_mu(Decimal(1), Decimal(text))


def test_doubles_are_refused_as_claims() -> None:
    with pytest.raises(TypeError, match=r"expected epsilon as decimal\.Decimal, got float"):
        gaussian_mu(1.0, Decimal("1e-5"))  # type: ignore[arg-type]


@pytest.mark.parametrize(("epsilon", "mu"), [(0.0, 1.0), (1.0, 0.0), (math.nan, 1.0), (1.0, math.inf), (-1.0, 1.0)])
def test_profile_refuses_what_is_not_positive(epsilon: float, mu: float) -> None:
    with pytest.raises(ValueError, match="> 0 and finite"):
        gaussian_delta(epsilon, mu)
