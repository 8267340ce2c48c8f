"""What releases of one pure level cost together: against enumerated outcomes, and against every other count."""

import itertools
import math
from decimal import Decimal, localcontext

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from server.mechanisms.composition import advanced_epsilon
from server.mechanisms.loss_distributions import pure_epsilon as numerical_epsilon
from server.mechanisms.pure_composition import basic_epsilon, pure_delta_bound, pure_epsilon, pure_rho
from server.mechanisms.zcdp import epsilon_of

LEVELS = st.floats(0.01, 3.0)
DELTA = Decimal("1e-5")


@pytest.mark.parametrize(("level", "rounds"), [(0.3, 1), (1.0, 2), (0.7, 5), (2.5, 4), (0.05, 8)])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_delta_is_that_of_enumerated_randomised_responses(level: float, rounds: int, share: float) -> None:
    """max over sets S of P(S) - e^epsilon P'(S), with every outcome of T responses written out."""
    epsilon, right = share * level * rounds, 1 / (1 + math.exp(-level))
    exact = 0.0
    for bits in itertools.product((True, False), repeat=rounds):
        chance = math.prod(right if bit else 1 - right for bit in bits)
        other = math.prod(1 - right if bit else right for bit in bits)
        exact += max(0.0, chance - math.exp(epsilon) * other)
    assert exact <= pure_delta_bound(epsilon, level, rounds) <= exact * (1 + 1e-9)


def test_one_release_at_a_delta_is_worth_a_little_less_than_its_level() -> None:
    """delta = (e^e - e^epsilon) / (1 + e^e), solved for epsilon."""
    expected = math.log(math.exp(1.0) - 1e-5 * (1 + math.exp(1.0)))
    assert expected <= pure_epsilon(DELTA, 1.0, 1) <= expected + 1e-9


@given(LEVELS, st.integers(1, 400))
@settings(max_examples=40)
def test_the_exact_count_is_never_above_another(level: float, rounds: int) -> None:
    exact = pure_epsilon(DELTA, level, rounds)
    if exact == math.inf:
        assert pure_delta_bound(1000, level, rounds) > 1e-5
        return
    assert exact <= basic_epsilon(level, rounds)
    assert exact <= epsilon_of(pure_rho(level, rounds), DELTA)
    assert exact <= advanced_epsilon(level, 1e-5, rounds)
    assert pure_delta_bound(exact, level, rounds) <= 1e-5


@given(LEVELS, st.integers(1, 200))
@settings(max_examples=30)
def test_more_releases_cost_more(level: float, rounds: int) -> None:
    assert pure_epsilon(DELTA, level, rounds) <= pure_epsilon(DELTA, level, rounds + 1)


@pytest.mark.usefixtures("accountant")
@pytest.mark.parametrize(("level", "rounds"), [(0.05, 20), (0.1, 1000), (1.0, 3)])
def test_numerical_accounting_agrees(level: float, rounds: int) -> None:
    exact, numerical = pure_epsilon(DELTA, level, rounds), numerical_epsilon(DELTA, level, rounds)
    assert exact <= numerical * (1 + 1e-6) and numerical <= exact * 1.02 + 1e-3


@pytest.mark.parametrize(("level", "rounds"), [(0.0, 1), (math.nan, 1), (math.inf, 1), (1.0, 0)])
def test_what_is_not_positive_is_refused(level: float, rounds: int) -> None:
    with pytest.raises(ValueError, match="expected rounds >= 1, a level > 0"):
        pure_delta_bound(0.1, level, rounds)


@given(st.floats(0.001, 3.0), st.integers(1, 40), st.decimals("1e-12", "0.1", allow_nan=False, places=15))
@example(0.07355006168975001, 5, Decimal("2.79E-9"))
@example(0.3235677954167461, 5, Decimal("2.83E-12"))
@settings(max_examples=60)
def test_levels_are_rounded_up_where_delta_is_a_small_difference(level: float, rounds: int, delta: Decimal) -> None:
    """Against fifty digits: just below T e what is left is the difference of two nearly equal numbers."""
    found = pure_epsilon(delta, level, rounds)
    with localcontext(prec=50):
        one, whole = Decimal(level), Decimal(found)
        gains = [(k, k * one, whole + (rounds - k) * one) for k in range(rounds + 1)]
        exact = sum(
            math.comb(rounds, k) * (right.exp() - wrong.exp()) for k, right, wrong in gains if right > wrong
        ) / ((1 + one.exp()) ** rounds)
    assert exact <= delta
