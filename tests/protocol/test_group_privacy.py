"""Group privacy: a sum of a geometric series, rounded towards more delta."""

from decimal import Decimal, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.group_privacy import group_delta

EPSILONS = st.decimals("1e-9", "40", allow_nan=False, places=9)
DELTAS = st.integers(1, 60).map(lambda power: Decimal(10) ** -power)


@given(EPSILONS, DELTAS, st.integers(1, 60))
def test_it_is_never_below_the_series_and_hardly_above(epsilon: Decimal, delta: Decimal, count: int) -> None:
    """One step after the other: e^epsilon times what was promised before, and delta once more."""
    with localcontext() as context:
        context.prec = 120
        total, factor = Decimal(0), epsilon.exp()
        for _ in range(count):
            total = factor * total + delta
        assert min(Decimal(1), total) <= group_delta(epsilon, delta, count) <= total * (1 + Decimal("1e-11"))


@given(EPSILONS, DELTAS, st.integers(1, 60))
def test_more_labels_have_no_smaller_delta(epsilon: Decimal, delta: Decimal, count: int) -> None:
    assert group_delta(epsilon, delta, count) <= group_delta(epsilon, delta, count + 1) <= 1


def test_one_is_its_own_group_and_crowds_have_no_promise() -> None:
    odd = Decimal("0.000012345678901234567")
    assert group_delta(Decimal(1), odd, 1) == odd
    assert group_delta(Decimal(1), Decimal(0), 10**9) == 0
    assert group_delta(Decimal("1e-9"), Decimal("1e-60"), 10**12) == 1
    assert group_delta(Decimal(1000), Decimal("1e-60"), 2) == 1


@pytest.mark.parametrize(
    ("epsilon", "delta", "count"),
    [("0", "0.1", 2), ("NaN", "0.1", 2), ("Infinity", "0.1", 2), ("1", "-0.1", 2), ("1", "NaN", 2), ("1", "0.1", 0)],
)
def test_nonsense_is_refused(epsilon: str, delta: str, count: int) -> None:
    with pytest.raises(ValueError, match=r"^expected"):
        group_delta(Decimal(epsilon), Decimal(delta), count)
