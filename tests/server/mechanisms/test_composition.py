"""Noise of T rounds: printed tables, 60-digit arithmetic, another accountant where it is installed."""

import math
import sys
from collections.abc import Callable
from decimal import Decimal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from server.mechanisms.composition import (
    account,
    advanced_epsilon,
    classical_noise_multiplier,
    exact_epsilon,
    exact_noise_multiplier,
    split,
    split_noise_multiplier,
)
from server.mechanisms.gaussian import analytic_noise_multiplier, gaussian_delta
from server.mechanisms.loss_distributions import gaussian_epsilon
from server.mechanisms.zcdp import zcdp_noise_multiplier

Oracle = Callable[[str], float]
FIVE = Decimal("1e-5")
LEVELS = st.sampled_from([Decimal(text) for text in ("0.01", "0.1", "0.5", "1", "4", "30")])
DELTAS = st.sampled_from([Decimal(text) for text in ("0.2", "1e-3", "1e-5", "1e-12")])
ROUNDS = st.integers(1, 5000)

# epsilon, T, multipliers: printed, zCDP simple, zCDP tight, exact; what Renyi accounting makes of the exact one
TABLE_A = (
    ("0.5", 10, 339.239, 30.675, 24.246, 22.237, 0.5491),
    ("0.5", 100, 1153.563, 97.001, 76.672, 70.318, 0.5491),
    ("0.5", 1000, 3886.621, 306.745, 242.457, 222.366, 0.5491),
    ("1.0", 10, 169.620, 15.497, 12.792, 11.797, 1.0922),
    ("1.0", 100, 576.781, 49.006, 40.451, 37.306, 1.0922),
    ("1.0", 1000, 1943.310, 154.969, 127.918, 117.973, 1.0922),
)
# epsilon, multipliers: classical, analytic; ratio of variances, true delta of the classical one
TABLE_B = (
    ("0.1", 48.448053, 30.749566, 2.4824, 2.636e-09),
    ("0.5", 9.689611, 7.031827, 1.8988, 1.608e-08),
    ("1.0", 4.844805, 3.730632, 1.6865, 4.114e-08),
    ("2.0", 2.422403, 1.993812, 1.4761, 1.336e-07),
    ("4.0", 1.211201, 1.081162, 1.2550, 6.845e-07),
    ("8.0", 0.605601, 0.600229, 1.0180, 7.971e-06),
)


def exact_delta(epsilon: Decimal, mu: mpf) -> mpf:
    e = mpf(str(epsilon))
    return mp.ncdf(mu / 2 - e / mu) - mp.exp(e) * mp.ncdf(-mu / 2 - e / mu)


@pytest.mark.parametrize(("epsilon", "rounds", "paper", "simple", "tight", "exact", "renyi"), TABLE_A)
def test_table_of_compositions(
    epsilon: str, rounds: int, paper: float, simple: float, tight: float, exact: float, renyi: float
) -> None:
    level = Decimal(epsilon)
    assert split_noise_multiplier(level, FIVE, rounds) == pytest.approx(paper, abs=5.1e-4)
    assert zcdp_noise_multiplier(level, FIVE, rounds, tight=False) == pytest.approx(simple, abs=5.1e-4)
    assert zcdp_noise_multiplier(level, FIVE, rounds) == pytest.approx(tight, abs=5.1e-4)
    found = exact_noise_multiplier(level, FIVE, rounds)
    assert found == pytest.approx(exact, abs=5.1e-4)
    assert account(rounds, found, FIVE).renyi == pytest.approx(renyi, abs=5.1e-5)


@pytest.mark.parametrize(("epsilon", "classical", "analytic", "ratio", "delta"), TABLE_B)
def test_table_of_single_releases(epsilon: str, classical: float, analytic: float, ratio: float, delta: float) -> None:
    level = Decimal(epsilon)
    found = classical_noise_multiplier(level, FIVE)
    assert found == pytest.approx(classical, abs=5.1e-7)
    assert analytic_noise_multiplier(level, FIVE) == pytest.approx(analytic, abs=5.1e-7)
    assert (found / analytic_noise_multiplier(level, FIVE)) ** 2 == pytest.approx(ratio, abs=5.1e-5)
    assert gaussian_delta(float(epsilon), 1 / found) == pytest.approx(delta, rel=5.1e-4)


def test_oracles(heavy_oracle: Oracle) -> None:
    classical = classical_noise_multiplier(Decimal("0.5"), FIVE) * 2 * 100 / 1e4
    assert classical == pytest.approx(heavy_oracle("A1 noise sigma"), rel=1e-12)
    one = exact_noise_multiplier(Decimal(1), FIVE)
    assert one == pytest.approx(heavy_oracle("analytic sigma(D=1"), rel=1e-12)
    half = exact_noise_multiplier(Decimal("0.5"), Decimal("1e-6"))
    assert half == pytest.approx(heavy_oracle("analytic sigma(1,.5"), rel=1e-12)
    assert gaussian_delta(1.0, 1 / 4.8448) == pytest.approx(heavy_oracle("delta of N(0,4.8448^2)"), rel=1e-3)
    groups = classical_noise_multiplier(Decimal(1), FIVE) * 2 * 5 * math.sqrt(10) * 24 / 1e4
    assert groups == pytest.approx(heavy_oracle("A3 sigma"), rel=1e-12)
    share, rest = split(Decimal(1), FIVE, 100)
    assert share == pytest.approx(heavy_oracle("eps' (eps=1"), rel=1e-12)
    assert rest == pytest.approx(heavy_oracle("delta' same"), rel=1e-12)


@pytest.mark.parametrize(("delta", "last"), [("1e-2", "6.77"), ("1e-3", "7.46"), ("1e-5", "8.41"), ("1e-8", "9.37")])
def test_the_classical_noise_is_refused_where_it_fails(delta: str, last: str) -> None:
    classical_noise_multiplier(Decimal(last), Decimal(delta))
    with pytest.raises(ValueError, match="analytic"):
        classical_noise_multiplier(Decimal(last) + Decimal("0.02"), Decimal(delta))


@settings(max_examples=60)
@given(LEVELS, DELTAS, ROUNDS)
def test_exact_noise_keeps_the_claim_and_no_more(epsilon: Decimal, delta: Decimal, rounds: int) -> None:
    with mp.workdps(60):
        multiplier = mpf(exact_noise_multiplier(epsilon, delta, rounds))
        assert exact_delta(epsilon, mp.sqrt(rounds) / multiplier) <= mpf(str(delta))
        assert exact_delta(epsilon, mp.sqrt(rounds) / multiplier * (1 + mpf("1e-9"))) > mpf(str(delta))


@settings(max_examples=60)
@given(LEVELS, DELTAS, ROUNDS)
def test_the_printed_split_keeps_the_claim(epsilon: Decimal, delta: Decimal, rounds: int) -> None:
    """Wherever it is not refused, in exact composition of the classical noise, and in the theorem's own arithmetic."""
    try:
        multiplier, (share, rest) = split_noise_multiplier(epsilon, delta, rounds), split(epsilon, delta, rounds)
    except ValueError:
        assert epsilon > 3
        return
    with mp.workdps(60):
        assert exact_delta(epsilon, mp.sqrt(rounds) / mpf(multiplier)) <= mpf(str(delta))
        e, half = mpf(share), mpf(str(delta)) / 2
        assert mp.sqrt(2 * rounds * mp.log(1 / half)) * e + rounds * e * mp.expm1(e) <= mpf(str(epsilon))
        assert rounds * mpf(rest) <= half


@settings(max_examples=12)
@given(st.floats(0.3, 1e4), DELTAS, st.integers(1, 300))
@example(0.3046875, Decimal("0.2"), 173)  # Rényi's list of orders says 1037.7, where zCDP is infinity: above 1000
@example(0.3046875, Decimal("0.2"), 179)  # and so is what is exact
def test_every_figure_is_a_guarantee(multiplier: float, delta: Decimal, rounds: int) -> None:
    found = account(rounds, multiplier, delta)
    others = (found.zcdp, found.zcdp_simple, found.renyi, found.basic, found.advanced, found.paper)
    assert found.exact == 1e-9 or all(figure >= found.exact * (1 - 1e-12) for figure in others)
    assert found.zcdp <= min(found.zcdp_simple, found.renyi) * (1 + 1e-9)
    if not math.isinf(found.exact) and found.exact > 2e-9:
        with mp.workdps(60):
            mu = mp.sqrt(rounds) / mpf(multiplier)
            assert exact_delta(Decimal(found.exact), mu) <= mpf(str(delta))
            assert exact_delta(Decimal(found.exact * (1 - 1e-6)), mu) > mpf(str(delta))


@settings(max_examples=40)
@given(LEVELS, LEVELS, DELTAS, ROUNDS, ROUNDS)
def test_noise_is_monotone(e: Decimal, f: Decimal, delta: Decimal, t: int, u: int) -> None:
    lots = exact_noise_multiplier(min(e, f), delta, max(t, u))
    assert exact_noise_multiplier(max(e, f), delta, min(t, u)) <= lots
    assert exact_epsilon(delta, min(t, u), 10.0) <= exact_epsilon(delta, max(t, u), 10.0)


def test_the_nominal_level_of_the_paper_is_recovered() -> None:
    for rounds in (1, 20, 500):
        multiplier = split_noise_multiplier(Decimal(1), FIVE, rounds)
        assert account(rounds, multiplier, FIVE).paper == pytest.approx(1, rel=1e-9)


def test_one_round_and_nonsense() -> None:
    assert exact_noise_multiplier(Decimal(1), FIVE) == pytest.approx(analytic_noise_multiplier(Decimal(1), FIVE))
    for rounds in (0, -1, True, 1.0):
        with pytest.raises(ValueError, match="rounds"):
            exact_noise_multiplier(Decimal(1), FIVE, rounds)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="multiplier"):
        exact_epsilon(FIVE, 1, math.inf)
    with pytest.raises(ValueError, match="keep together"):
        split(Decimal(20), Decimal("0.1"), 1)
    with pytest.raises(ValueError, match="delta"):
        split(Decimal(1), Decimal("1e-60"), 10)
    assert math.isinf(advanced_epsilon(1000.0, 0.1, 3))
    assert math.isinf(account(3, 1e-3, FIVE).exact)


@pytest.mark.usefixtures("accountant")
def test_another_accountant_agrees() -> None:
    for rounds, multiplier in ((1, 3.7306316348), (10, 11.797293077), (1000, 117.97293077)):
        found = account(rounds, multiplier, FIVE, numerical=True)
        assert found.numerical is not None
        assert found.exact <= found.numerical <= found.exact * (1 + 1e-4)
    with pytest.raises(ValueError, match="rounds"):
        gaussian_epsilon(FIVE, 0, 1.0)


def test_without_the_extra_only_the_numerical_figure_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("dp_accounting", "dp_accounting.pld", "dp_accounting.pld.privacy_loss_distribution"):
        monkeypatch.setitem(sys.modules, name, None)
    assert account(2, 3.0, FIVE).numerical is None
    with pytest.raises(ImportError):
        account(2, 3.0, FIVE, numerical=True)
