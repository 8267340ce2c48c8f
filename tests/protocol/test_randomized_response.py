"""Integer tables of randomised response against oracles and against the law they have to keep."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.channel import TOTAL, DiscreteChannel
from protocol.mechanisms import LOCAL, channel
from protocol.mechanisms.randomized_response import k_randomized_response, randomized_response

levels = st.decimals(min_value=Decimal("1e-9"), max_value=40, allow_nan=False, places=9).filter(lambda e: e > 0)


def test_binary_oracles(oracle: dict[int, float]) -> None:
    one, tenth = randomized_response(Decimal(1)), randomized_response(Decimal("0.1"))
    assert float(one.probability(0, 0)) == pytest.approx(oracle[1], rel=1e-12)
    assert float(tenth.probability(1, 1)) == pytest.approx(oracle[2], rel=1e-12)
    # At 40 the table has 40 counts of 2^63 where the formula has 39.18: never below, and within one count.
    assert oracle[3] <= float(randomized_response(Decimal(40)).probability(0, 1)) <= oracle[3] + 2.0**-63
    tiny = randomized_response(Decimal("1e-9"))
    assert float(tiny.probability(0, 0) - tiny.probability(0, 1)) == pytest.approx(oracle[4], rel=1e-9)


def test_debiasing_oracles(oracle: dict[int, float]) -> None:
    for epsilon, factor, kappa in (("1", 5, 7), ("0.1", 6, 8)):
        law = randomized_response(Decimal(epsilon))
        contrast = law.probability(0, 0) - law.probability(0, 1)
        assert float(1 / contrast) == pytest.approx(oracle[factor], rel=1e-9)
        product = law.probability(0, 0) * law.probability(0, 1) / contrast**2
        assert float(product) == pytest.approx(oracle[kappa], rel=1e-9)


def test_k_oracles(oracle: dict[int, float]) -> None:
    law = k_randomized_response(Decimal(1), 5)
    assert float(law.probability(2, 2)) == pytest.approx(oracle[9], rel=1e-12)
    assert float(law.probability(2, 4)) == pytest.approx(oracle[10], rel=1e-12)
    assert float(1 / (law.probability(2, 2) - law.probability(2, 4))) == pytest.approx(oracle[11], rel=1e-9)
    assert float(k_randomized_response(Decimal(8), 10).probability(0, 0)) == pytest.approx(oracle[12], rel=1e-12)


@given(levels, st.integers(2, 50))
def test_level_is_kept_and_not_wasted(epsilon: Decimal, outcomes: int) -> None:
    law = k_randomized_response(epsilon, outcomes)
    assert Decimal("0.99") * epsilon <= law.level <= epsilon
    assert all(sum(row) == TOTAL for row in law.table)
    # The level is an upper bound of the exact logarithm: checked in integers at 200 digits.
    worst = max(Fraction(max(column), min(column)) for column in zip(*law.table, strict=True))
    with localcontext(prec=200):
        assert law.level.exp() >= Decimal(worst.numerator) / Decimal(worst.denominator)


@given(levels)
def test_two_outcomes_are_the_binary_mechanism(epsilon: Decimal) -> None:
    assert k_randomized_response(epsilon, 2).table == randomized_response(epsilon).table


@given(levels, st.integers(2, 50))
def test_debiased_indicator_is_unbiased_exactly(epsilon: Decimal, outcomes: int) -> None:
    law = k_randomized_response(epsilon, outcomes)
    keep, other = law.probability(0, 0), law.probability(0, 1)
    for value in range(min(outcomes, 3)):
        for target in range(min(outcomes, 3)):
            mean = sum(
                law.probability(value, symbol) * ((symbol == target) - other) / (keep - other)
                for symbol in range(outcomes)
            )
            assert mean == (value == target)


@pytest.mark.parametrize("epsilon", ["0", "-1", "1e-10", "NaN", "Infinity"])
def test_no_level_is_refused(epsilon: str) -> None:
    with pytest.raises(ValueError, match="epsilon"):
        randomized_response(Decimal(epsilon))


@pytest.mark.parametrize("epsilon", [64, 700, 5000])
def test_huge_levels_keep_one_count(epsilon: int) -> None:
    law = randomized_response(Decimal(epsilon))
    assert law.table[0][1] == 1
    assert float(law.level) == pytest.approx(63 * math.log(2), rel=1e-9)


@pytest.mark.parametrize("outcomes", [1, 0, -3, 4097])
def test_outcomes_out_of_range(outcomes: int) -> None:
    with pytest.raises(ValueError, match="outcomes"):
        k_randomized_response(Decimal(1), outcomes)


def test_registry_refuses_other_parameters() -> None:
    with pytest.raises(ValueError, match="expected parameters"):
        channel("randomized-response", {"epsilon": Decimal(1), "outcomes": Decimal(2)})
    with pytest.raises(ValueError, match="local mechanism"):
        channel("randomised", {"epsilon": Decimal(1)})
    with pytest.raises(ValueError, match="integer"):
        channel("k-randomized-response", {"epsilon": Decimal(1), "outcomes": Decimal("2.5")})


@pytest.mark.parametrize("name", sorted(LOCAL))
def test_every_mechanism_names_its_guarantee(name: str) -> None:
    function = {"randomized-response": randomized_response, "k-randomized-response": k_randomized_response}[name]
    assert "Guarantee:" in (function.__doc__ or "")


@pytest.mark.parametrize("table", [((TOTAL, 0), (1, TOTAL - 1)), ((TOTAL - 1, 2), (1, TOTAL - 1)), ((TOTAL,),)])
def test_a_table_that_is_no_law_is_refused(table: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(ValueError, match="expected"):
        DiscreteChannel(table)
