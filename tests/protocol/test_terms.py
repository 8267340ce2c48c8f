"""What client and server derive alike from a task: channels with ties, shares of a labeler, finer grids."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.channel import TOTAL
from protocol.mechanisms.randomized_response import k_randomized_response, randomized_response
from protocol.messages import Mechanism, Task, Ties
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.terms import computed_level, label_epsilon, law, only_mechanism, row_exponent, share, three_way, with_coin
from protocol.trust import Trust

ITEMS = Problem(3, "items", True, None, np.array([[0, 1], [2, 1], [0, 2]], dtype=np.int32))
LEVELS = st.decimals(Decimal("1e-9"), Decimal(100), allow_nan=False, places=9)


def task(epsilon: str = "1", **changes: object) -> Task:
    level = Decimal(epsilon)
    plain = Task(
        b"s" * 32,
        Trust.LOCAL,
        Unit.LABEL,
        ITEMS,
        (Mechanism.of("randomized-response", epsilon=level),),
        3,
        level,
        None,
        0,
        1,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


@given(LEVELS.filter(lambda level: level > 0))
def test_a_row_for_ties_costs_nothing(epsilon: Decimal) -> None:
    """The tie's row is the mean of the two others, exactly: a fair coin and then the channel."""
    two = randomized_response(epsilon)
    three = with_coin(two)
    assert three.table[:2] == two.table
    assert all(2 * tie == one + other for one, other, tie in zip(*three.table, strict=True))
    assert sum(three.table[2]) == TOTAL
    assert three.level == two.level
    assert three.digest != two.digest


def test_a_channel_of_more_values_has_no_coin() -> None:
    with pytest.raises(ValueError, match="two values"):
        with_coin(k_randomized_response(Decimal(1), 3))
    with pytest.raises(ValueError, match="two values"):
        with_coin(with_coin(randomized_response(Decimal(1))))


def test_a_task_says_whether_ties_have_a_row() -> None:
    plain, coin = task(), task(ties=Ties.COIN)
    assert len(law(plain, plain.menu[0]).table) == 2
    assert len(law(coin, coin.menu[0]).table) == 3


@given(LEVELS.filter(lambda level: level > 0))
def test_randomised_ties_never_exceed_their_level_and_say_nothing_of_the_winner(epsilon: Decimal) -> None:
    """In whole numbers: of y = 0, 1 and 1/2 the report's y has the mean 1/2 + (p - q) (y - 1/2)."""
    three = three_way(Mechanism.of("randomized-response", epsilon=epsilon))
    assert three.table == k_randomized_response(epsilon, 3).table
    assert three.level <= epsilon
    y = [Fraction(0), Fraction(1), Fraction(1, 2)]
    contrast = three.probability(0, 0) - three.probability(0, 1)
    for value in range(3):
        mean = sum(three.probability(value, symbol) * y[symbol] for symbol in range(3))
        assert mean - Fraction(1, 2) == contrast * (y[value] - Fraction(1, 2))


def test_randomised_ties_are_asked_by_the_task() -> None:
    asked = task(ties=Ties.RANDOMIZED)
    assert law(asked, asked.menu[0]).table == k_randomized_response(Decimal(1), 3).table
    level = share(Decimal(1), 3)
    part = Mechanism.of("randomized-response", epsilon=level)
    capped = replace(asked, unit=Unit.LABELER, cap=3, menu=(part,))
    assert Fraction(computed_level(capped, part)) == 3 * Fraction(k_randomized_response(level, 3).level)
    for other in (Mechanism.of("k-randomized-response", epsilon=Decimal(1), outcomes=Decimal(3)), Mechanism("none")):
        with pytest.raises(ValueError, match="randomised ties"):
            law(asked, other)


@given(LEVELS.filter(lambda level: level > 0), st.integers(1, 10_000))
def test_shares_never_add_up_to_more(epsilon: Decimal, cap: int) -> None:
    part = Fraction(share(epsilon, cap))
    assert part * cap <= Fraction(epsilon)
    assert part * cap >= Fraction(epsilon) * (1 - Fraction(1, 10**39))


def test_a_labeler_s_level_is_that_of_the_table_times_the_cap() -> None:
    level = share(Decimal(1), 3)
    capped = task(unit=Unit.LABELER, cap=3, menu=(Mechanism.of("randomized-response", epsilon=level),))
    assert label_epsilon(capped) == level
    computed = computed_level(capped, capped.menu[0])
    assert Fraction(computed) == 3 * Fraction(law(capped, capped.menu[0]).level)
    assert Decimal("0.99") < computed <= 1
    central = replace(capped, trust=Trust.CENTRAL)
    assert label_epsilon(central) == 1


def test_a_menu_of_several_mechanisms_has_no_one_law() -> None:
    one = task()
    assert only_mechanism(one) == one.menu[0]
    for menu in ((), one.menu * 2):
        with pytest.raises(ValueError, match=f"got {len(menu)}"):
            only_mechanism(replace(one, menu=menu))


def test_half_wins_need_a_grid_twice_as_fine() -> None:
    assert row_exponent(task(exponent=-40)) == -40
    assert row_exponent(task(exponent=-40, ties=Ties.HALF)) == -39
    with pytest.raises(ValueError, match="exponent"):
        row_exponent(task())
