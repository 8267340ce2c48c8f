"""Exact parameters and claims: what must never pass, and sums that never round."""

from decimal import Decimal, Inexact

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.decimals import add, canonical, decimal, delta, epsilon
from protocol.privacy import NEIGHBOURS, Guarantee, Unit, compose
from protocol.trust import SIGHT, Trust

numbers = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**6), max_value=10**6, places=12)


@pytest.mark.parametrize("bad", [0, 0.0, -1, "1e-10", "nan", "inf", "-inf", "", "one", None, True, [], "1e999999999"])
def test_no_such_epsilon(bad: object) -> None:
    with pytest.raises(ValueError, match="epsilon"):
        epsilon(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [0, 1, 2, -0.5, "nan", "inf", "", None, False])
def test_no_such_delta(bad: object) -> None:
    with pytest.raises(ValueError, match="delta"):
        delta(bad)  # type: ignore[arg-type]


@given(numbers)
def test_canonical_is_one_spelling_of_one_value(value: Decimal) -> None:
    text = canonical(value)
    assert Decimal(text) == value
    assert canonical(Decimal(text)) == text
    assert canonical(value * Decimal("1.0")) == text


@given(st.lists(numbers, max_size=20))
def test_sums_are_exact(values: list[Decimal]) -> None:
    total = Decimal(0)
    for value in values:
        total = add(total, value)
    assert int(total * 10**12) == sum(int(value * 10**12) for value in values)


def test_a_sum_that_would_round_is_an_error() -> None:
    with pytest.raises(Inexact):
        add(Decimal("1e200"), Decimal("1e-200"))


def test_too_long_a_number_is_refused() -> None:
    with pytest.raises(ValueError, match="characters"):
        decimal("0." + "1" * 80, "epsilon")


def test_composition() -> None:
    parts = [Guarantee(Decimal("0.1"), Decimal("1e-6"), Unit.LABEL)] * 10
    assert compose(parts) == Guarantee(Decimal("1.0"), Decimal("1e-5"), Unit.LABEL)
    with pytest.raises(ValueError, match="unit"):
        compose([parts[0], Guarantee(Decimal(1), Decimal(0), Unit.LABELER)])
    with pytest.raises(ValueError, match="at least one"):
        compose([])


@pytest.mark.parametrize(("level", "failure"), [("0", "0"), ("-1", "0"), ("NaN", "0"), ("1", "1"), ("1", "-0.1")])
def test_a_claim_out_of_range_is_refused(level: str, failure: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        Guarantee(Decimal(level), Decimal(failure), Unit.LABEL)


def test_a_claim_says_its_unit_and_neighbours() -> None:
    text = str(Guarantee(Decimal("1.0"), Decimal("1e-5"), Unit.LABEL))
    assert text == "(epsilon = 1, delta = 0.00001) per label; neighbours: replace one label"
    assert set(NEIGHBOURS) == set(Unit)


def test_trust_models_that_can_be_asked_for() -> None:
    assert set(SIGHT) == set(Trust)
    assert all(Trust.parse(trust.label) is trust for trust in Trust)
    for name in ("Local", "clean", ""):
        with pytest.raises(ValueError, match="trust model"):
            Trust.parse(name)
