"""zCDP conversions against 40-digit arithmetic and oracle values; never rounded in the claim's favour."""

import math
from collections.abc import Callable
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from server.mechanisms.zcdp import (
    epsilon_of,
    gaussian_rho,
    renyi_epsilon,
    rho_of,
    simple_zcdp_delta_bound,
    zcdp_delta_bound,
    zcdp_noise_multiplier,
)

Oracle = Callable[[str], float]
FIVE = Decimal("1e-5")
LEVELS = st.sampled_from([Decimal(text) for text in ("0.001", "0.1", "0.5", "1", "4", "40")])
DELTAS = st.sampled_from([Decimal(text) for text in ("0.2", "1e-3", "1e-5", "1e-12", "1e-40")])


def exact_infimum(rho: float, epsilon: float) -> mpf:
    """The least over alpha in 40 digits, at the root of the derivative."""
    with mp.workdps(40):
        r, e = mpf(rho), mpf(epsilon)
        low, high = mpf("1e-15"), mpf("1e15")
        for _ in range(64):
            middle = mp.sqrt(low * high)
            if (1 + 2 * middle) * r - mp.log1p(1 / middle) < e:
                low = middle
            else:
                high = middle
        excess = high
        return mp.exp(excess * ((1 + excess) * r - e) - (1 + excess) * mp.log1p(1 / excess)) / excess


def test_oracles(heavy_oracle: Oracle) -> None:
    assert epsilon_of(0.1, FIVE) == pytest.approx(heavy_oracle("zCDP tight: eps"), rel=1e-11)
    assert epsilon_of(0.1, FIVE, tight=False) == pytest.approx(heavy_oracle("zCDP simple: eps"), rel=1e-12)
    assert rho_of(Decimal(1), FIVE, tight=False) == pytest.approx(heavy_oracle("rho simple inverse"), rel=1e-12)
    back = epsilon_of(rho_of(Decimal(1), FIVE), FIVE)
    assert back == pytest.approx(heavy_oracle("rho tight inverse"), rel=1e-12)


@settings(max_examples=40)
@given(st.floats(1e-6, 50), st.floats(1e-4, 100))
def test_the_tight_bound_is_the_infimum_rounded_up(rho: float, epsilon: float) -> None:
    exact, bound = exact_infimum(rho, epsilon), zcdp_delta_bound(rho, epsilon)
    if exact < mpf("1e-300"):
        assert bound < 1e-290
    else:
        assert min(mpf(1), exact) <= bound
        assert bound <= min(mpf(1), exact * (1 + mpf("1e-7"))) or bound == 1


@settings(max_examples=20)
@given(LEVELS, DELTAS)
def test_rho_is_rounded_down_and_epsilon_up(epsilon: Decimal, delta: Decimal) -> None:
    rho = rho_of(epsilon, delta)
    with mp.workdps(40):
        limit = mpf(str(delta))
        assert exact_infimum(rho, float(epsilon)) <= limit
        assert exact_infimum(rho * (1 + 1e-7), float(epsilon)) > limit
        simple = mpf(rho_of(epsilon, delta, tight=False))
        assert simple + 2 * mp.sqrt(simple * mp.log(1 / limit)) <= mpf(str(epsilon))
        assert exact_infimum(rho, epsilon_of(rho, delta)) <= limit
        assert epsilon_of(float(simple), delta, tight=False) >= simple + 2 * mp.sqrt(simple * mp.log(1 / limit))
    assert simple < rho
    assert epsilon_of(rho, delta) <= float(epsilon) * (1 + 1e-9)


@settings(max_examples=40)
@given(LEVELS, LEVELS, DELTAS, DELTAS)
def test_more_privacy_costs_more_noise(e: Decimal, f: Decimal, d: Decimal, c: Decimal) -> None:
    assert rho_of(min(e, f), min(c, d)) <= rho_of(max(e, f), max(c, d))
    assert zcdp_noise_multiplier(e, d, 2) > zcdp_noise_multiplier(e, d, 1)
    assert zcdp_noise_multiplier(e, d) <= zcdp_noise_multiplier(e, d, tight=False)


def test_the_simple_bound() -> None:
    assert simple_zcdp_delta_bound(0.1, 0.1) == 1
    assert simple_zcdp_delta_bound(0.1, 1.1) == pytest.approx(math.exp(-1 / 0.4), rel=1e-12)
    assert simple_zcdp_delta_bound(0.1, 1.1) >= math.exp(-1 / 0.4)


def test_figures_of_gaussian_rounds() -> None:
    assert gaussian_rho(10, 2.0) == pytest.approx(1.25, rel=1e-15)
    assert gaussian_rho(10, 2.0) > 1.25
    for rounds, multiplier in ((1, 3.7), (100, 37.3)):
        tight = epsilon_of(gaussian_rho(rounds, multiplier), FIVE)
        assert tight <= renyi_epsilon(rounds, multiplier, FIVE) <= 1.01 * tight


def test_nonsense_is_refused() -> None:
    for rho, epsilon in ((0.0, 1.0), (1.0, 0.0), (math.nan, 1.0), (1.0, math.inf)):
        for bound in (zcdp_delta_bound, simple_zcdp_delta_bound):
            with pytest.raises(ValueError, match="expected"):
                bound(rho, epsilon)
    assert math.isinf(epsilon_of(1e6, FIVE))
    for call in (lambda: gaussian_rho(0, 1.0), lambda: gaussian_rho(1, 0.0)):
        with pytest.raises(ValueError, match="expected"):
            call()
    with pytest.raises(ValueError, match="rounds"):
        zcdp_noise_multiplier(Decimal(1), FIVE, 0)
