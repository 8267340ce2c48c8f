"""What shuffling amplifies: oracles, the table of exact levels, and no claim below the exact law."""

import math
from collections import defaultdict
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from protocol.shuffling import (
    EXACT,
    blanket_delta,
    closed_2021,
    closed_2023,
    exact_delta,
    keeps,
    kept_and_other,
    local_level,
    shuffled_delta,
    worst_delta,
)

# level of a report, m, delta; exact where all others agree, blanket, clones of 2021, closed forms of 2023 and 2021.
TABLE = [
    (0.5, 1000, 1e-5, 0.046511, 0.051632, 0.058267, 0.230069, 0.253842),
    (1.0, 1000, 1e-6, 0.126614, 0.148671, 0.182412, 0.487586, 0.566201),
    (1.0, 10_000, 1e-6, 0.035659, 0.043206, 0.053005, 0.180006, 0.214026),
    (2.0, 1000, 1e-6, 0.323279, 0.397087, 0.545498, 0.941598, None),
    (4.0, 10_000, 1e-6, 0.314643, 0.410812, 0.600909, 0.958143, None),
    (4.0, 100_000, 1e-6, None, 0.118153, 0.169770, 0.407793, 0.534634),
]
MORE_OUTCOMES = [(1.0, 5, 1000, 1e-6, 0.196795), (2.0, 5, 10_000, 1e-6, 0.132082)]


def level_at(delta: float, of: Callable[[float], float], most: float) -> float:
    """The epsilon at which a falling curve is delta."""
    return float(brentq(lambda epsilon: math.log(max(of(epsilon), 1e-300) / delta), 1e-3, most, xtol=1e-10))


def test_oracles(oracle: dict[int, float], heavy_oracle: Callable[[str], float]) -> None:
    assert blanket_delta(1.0, 50, 0.5) == pytest.approx(oracle[49], rel=2e-9)
    assert exact_delta(1.0, 50, 0.5, 0) == pytest.approx(oracle[50], rel=2e-9)
    assert exact_delta(1.0, 50, 0.5, 25) == pytest.approx(oracle[51], rel=2e-9)
    assert closed_2023(1.0, 10_000, 1e-6) == pytest.approx(oracle[52], rel=1e-13)
    assert closed_2021(1.0, 10_000, 1e-6) == pytest.approx(heavy_oracle("shuffle FMT eps(e0=1"), rel=1e-13)


@pytest.mark.parametrize(("local", "group", "delta", "exact", "blanket", "clones", "new", "old"), TABLE)
def test_the_table(
    local: float,
    group: int,
    delta: float,
    exact: float | None,
    blanket: float,
    clones: float,
    new: float,
    old: float | None,
) -> None:
    assert level_at(delta, lambda e: blanket_delta(local, group, e), local * 0.99) == pytest.approx(blanket, abs=6e-7)
    by_clones = level_at(delta, lambda e: blanket_delta(local, group, e, clone=math.exp(-local)), local * 0.99)
    assert by_clones == pytest.approx(clones, abs=6e-7)
    assert closed_2023(local, group, delta) == pytest.approx(new, abs=6e-7)
    if old is None:
        with pytest.raises(ValueError, match="more reports"):
            closed_2021(local, group, delta)
    else:
        assert closed_2021(local, group, delta) == pytest.approx(old, abs=6e-7)
    if exact is None:
        return
    alike = level_at(delta, lambda epsilon: exact_delta(local, group, epsilon, 0), local * 0.99)
    assert alike == pytest.approx(exact, abs=6e-7)


@pytest.mark.parametrize(
    ("local", "delta", "level", "ones"), [(0.5, 1e-5, 0.046529, 2), (1.0, 1e-6, 0.126614, 0), (2.0, 1e-6, 0.323324, 2)]
)
def test_the_worst_of_the_table(local: float, delta: float, level: float, ones: int) -> None:
    """Of 1,000 reports: the table is where all other labels agree, and two rows of it are a little worse elsewhere."""
    below, above = worst_delta(local, 1000, level + 1e-6), worst_delta(local, 1000, level - 1e-6)
    assert below[0] <= delta <= above[0]
    assert min(below[1], 999 - below[1]) == ones


@pytest.mark.parametrize(("local", "outcomes", "group", "delta", "level"), MORE_OUTCOMES)
def test_the_table_of_more_outcomes(local: float, outcomes: int, group: int, delta: float, level: float) -> None:
    found = level_at(delta, lambda epsilon: blanket_delta(local, group, epsilon, outcomes), local * 0.99)
    assert found == pytest.approx(level, abs=6e-7)


def test_the_worst_labels_of_others_are_not_all_alike() -> None:
    """At both settings a look at the ends alone would claim too much."""
    delta, ones = worst_delta(1.0, 50, 0.35996)
    assert min(ones, 49 - ones) == 1
    assert delta == pytest.approx(1e-3, rel=2e-4)
    assert exact_delta(1.0, 50, 0.35703, 0) == pytest.approx(1e-3, rel=2e-4)
    level = level_at(1e-3, lambda epsilon: worst_delta(0.5, 200, epsilon)[0], 0.49)
    ones = worst_delta(0.5, 200, level)[1]
    assert min(ones, 199 - ones) == 2


def counted(local: float, labels: tuple[int, ...], outcomes: int) -> dict[tuple[int, ...], float]:
    """The law of the counts of reports of these labels, report by report, in a plain loop."""
    a, b = kept_and_other(local, outcomes)
    law: dict[tuple[int, ...], float] = {(0,) * outcomes: 1.0}
    for label in labels:
        after: dict[tuple[int, ...], float] = defaultdict(float)
        for counts, chance in law.items():
            for symbol in range(outcomes):
                more = tuple(count + (place == symbol) for place, count in enumerate(counts))
                after[more] += chance * (a if symbol == label else b)
        law = dict(after)
    return law


def divergence(one: dict[tuple[int, ...], float], other: dict[tuple[int, ...], float], epsilon: float) -> float:
    return sum(max(0.0, chance - math.exp(epsilon) * other[key]) for key, chance in one.items())


@given(st.floats(0.05, 5), st.integers(2, 9), st.floats(0.01, 0.99), st.data())
@settings(deadline=None, max_examples=60)
def test_two_outcomes_are_exact(local: float, group: int, share: float, data: st.DataObject) -> None:
    epsilon, ones = share * local, data.draw(st.integers(0, group - 1))
    others = (1,) * ones + (0,) * (group - 1 - ones)
    laws = [counted(local, (label, *others), 2) for label in (0, 1)]
    plain = max(divergence(laws[0], laws[1], epsilon), divergence(laws[1], laws[0], epsilon))
    assert exact_delta(local, group, epsilon, ones) == pytest.approx(plain, rel=1e-8, abs=1e-14)
    assert (
        plain
        <= exact_delta(local, group, epsilon, ones)
        <= worst_delta(local, group, epsilon)[0]
        <= (blanket_delta(local, group, epsilon) * (1 + 1e-6) + 1e-15)
    )


@given(st.floats(0.1, 4), st.integers(2, 5), st.integers(3, 4), st.floats(0.02, 0.98))
@settings(deadline=None, max_examples=25)
def test_no_claim_about_more_outcomes_is_below_the_exact_one(
    local: float, group: int, outcomes: int, share: float
) -> None:
    """Whatever the others' labels are: all of them, up to their order."""
    epsilon, claimed = share * local, shuffled_delta(local, group, share * local, outcomes)
    for others in product(range(outcomes), repeat=group - 1):
        if list(others) == sorted(others):
            one, other = (counted(local, (label, *others), outcomes) for label in (0, 1))
            assert divergence(one, other, epsilon) <= claimed * (1 + 1e-9)


@pytest.mark.parametrize("tie", [0.5])
def test_a_tie_that_is_a_coin_costs_no_more(tie: float) -> None:
    """A label whose report is a fair coin lies between the two others."""
    for others in range(8):
        rest = (1,) * others + (0,) * (7 - others)
        zero, one = (counted(1.2, (label, *rest), 2) for label in (0, 1))
        coin = {key: tie * (zero[key] + one[key]) for key in zero}
        most = worst_delta(1.2, 8, 0.4)[0]
        for first, second in ((zero, coin), (coin, zero), (one, coin), (coin, one)):
            assert divergence(first, second, 0.4) <= most


GRID = [(Decimal(e), Decimal(d), m) for e in ("0.1", "0.5", "1", "4") for d in ("1e-3", "1e-6") for m in (2, 10, 137)]


@pytest.mark.parametrize(("epsilon", "delta", "group"), [*GRID, (Decimal(1), Decimal("1e-5"), 1000)])
def test_levels_from_targets(epsilon: Decimal, delta: Decimal, group: int) -> None:
    """What is found keeps the claim with all labels of the others, and a little more breaks it."""
    found = local_level(epsilon, delta, group)
    assert found >= epsilon
    assert all(exact_delta(float(found), group, float(epsilon), ones) <= delta for ones in range(group))
    if found > epsilon:
        assert not keeps(found * Decimal("1.0001"), group, epsilon, delta)


def test_more_reports_never_cost_more() -> None:
    """Whoever sees the counts of m reports can add one more of any label: the worst of m + 1 is not worse."""
    found = [worst_delta(1.5, group, 0.7)[0] for group in range(2, 60)]
    assert all(more <= fewer * (1 + 3e-9) for fewer, more in pairwise(found))


@pytest.mark.parametrize("outcomes", [2, 5])
def test_levels_grow_with_the_group_the_target_and_delta(outcomes: int) -> None:
    groups = [local_level(Decimal(1), Decimal("1e-5"), group, outcomes) for group in (2, 20, 100, 400, 4000, 10**6)]
    targets = [local_level(Decimal(e), Decimal("1e-5"), 300, outcomes) for e in ("0.1", "0.3", "1", "2")]
    deltas = [local_level(Decimal(1), Decimal(d), 300, outcomes) for d in ("1e-9", "1e-6", "1e-3")]
    for found in (groups, targets, deltas):
        assert found == sorted(found)
        assert found[0] < found[-1]


def test_exact_law_and_bound_meet_safely() -> None:
    """One report more than the exact law is used for: it may be what 1,000 may, and 2,000 more, by the bound."""
    claim = (Decimal(1), Decimal("1e-6"))
    assert local_level(*claim, EXACT + 1) == local_level(*claim, EXACT) < local_level(*claim, 2 * EXACT)
    level = float(local_level(*claim, EXACT))
    assert (
        blanket_delta(level, EXACT + 1, 1.0)
        > shuffled_delta(level, EXACT + 1, 1.0)
        == worst_delta(level, EXACT, 1.0)[0]
    )
    assert keeps(local_level(*claim, EXACT), EXACT + 1, *claim)


@pytest.mark.parametrize(
    "wrong", [(0.0, 10, 1.0, 2), (math.nan, 10, 1.0, 2), (1.0, 1, 0.5, 2), (1.0, 10, 0.0, 2), (1.0, 10, 0.5, 1)]
)
def test_nonsense_is_refused(wrong: tuple[float, int, float, int]) -> None:
    with pytest.raises(ValueError, match="expected"):
        shuffled_delta(*wrong)


def test_nonsense_deltas_and_groups_are_refused() -> None:
    for delta in ("0", "1", "-1"):
        with pytest.raises(ValueError, match="delta"):
            local_level(Decimal(1), Decimal(delta), 10)
    with pytest.raises(ValueError, match="group"):
        worst_delta(1.0, EXACT + 1, 0.5)
    with pytest.raises(ValueError, match="delta"):
        closed_2023(1.0, 1000, float(np.nan))
