"""What a node allows."""

import math
import tomllib
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.policy import Policy
from client.sources.table import Table
from protocol.messages import Code, Mechanism, Runs, Task
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.strict import StudyError
from protocol.trust import SIGHT, Trust

RR, KRR = (
    Mechanism.of("randomized-response", epsilon=Decimal(1)),
    Mechanism.of("k-randomized-response", epsilon=Decimal(1)),
)


def test_the_default_answers_local_tasks_only(desk: Any, votes: Table) -> None:
    policy = Policy()
    assert policy.check(desk.task(votes)) is None
    assert policy.check(desk.task(votes, Trust.CLEAR)) is Code.TRUST_NOT_ALLOWED
    assert policy.check(desk.task(votes, Trust.CENTRAL)) is Code.TRUST_NOT_ALLOWED


def test_bounds_of_one_task(desk: Any, votes: Table) -> None:
    task, policy = desk.task(votes, epsilon="1.5"), Policy(max_epsilon=Decimal("1.5"))
    assert policy.check(task) is None
    assert policy.check(replace(task, epsilon=Decimal("1.50001"))) is Code.EPSILON_ABOVE_CAP
    assert policy.check(replace(task, unit=Unit.LABELER)) is Code.UNIT_NOT_ALLOWED
    assert policy.check(replace(task, attempt=1)) is Code.ATTEMPT_NOT_ALLOWED
    assert Policy(max_attempt=1).check(replace(task, attempt=1)) is None


def test_the_simulation_allows_every_trust_model(desk: Any, votes: Table) -> None:
    for trust in SIGHT:
        assert Policy.simulation().check(desk.task(votes, trust)) is None
    assert Policy.simulation().check(desk.task(votes, epsilon="1000")) is None
    assert not Policy.simulation().capped


@given(
    n=st.integers(1, 10**6),
    left=st.fractions(0, 1),
    cheats=st.decimals(0, 1, places=3).filter(lambda share: share < 1),
)
def test_a_masked_sum_that_a_policy_allows_leaves_as_many_honest_rows_as_its_noise_is_sized_for(
    n: int, left: Fraction, cheats: Decimal
) -> None:
    """Whatever the share of cheats, of the least rows: what remains without them is enough exactly where it allows."""
    problem = Problem(5, "gaussian", sum_zero=True, bound=Decimal(3))
    least = 1 + int(left * (n - 1))
    remaining = least - math.floor(Fraction(cheats) * least)
    policy = Policy(trusts=frozenset({Trust.DISTRIBUTED}), colluding=cheats)
    for honest in {max(1, remaining - 1), remaining, min(remaining + 1, least)}:
        item = Mechanism.of("skellam", epsilon=Decimal(1), honest=Decimal(honest), least=Decimal(least))
        task = Task(bytes(32), Trust.DISTRIBUTED, Unit.LABEL, problem, (item,), n, Decimal(1), Decimal("1e-5"), 0, 1)
        allowed = policy.check(task) is None
        assert allowed == (Fraction(honest) <= (1 - Fraction(cheats)) * least)
        assert not allowed or remaining >= honest


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1", "from 0 to below 1, got 1"),
        ("-0.1", "from 0"),
        ("nan", "finite"),
        ('"0.1"', "a number"),
        ("true", "number"),
    ],
)
def test_a_share_of_cheats_that_is_none_is_refused(text: str, message: str) -> None:
    with pytest.raises(StudyError, match=rf"\[policy\] colluding: .*{message}|\[policy\] colluding .*{message}"):
        Policy.parse(tomllib.loads(f"label_cap = 1\ncolluding = {text}", parse_float=Decimal))
    with pytest.raises(ValueError, match="colluding"):
        Policy(colluding=Decimal("NaN"))
    assert Policy.parse({"label_cap": 1}).colluding == Decimal("0.1") and Policy.simulation().colluding == 0


def test_the_default_refuses_a_level_that_hides_little(desk: Any, votes: Table) -> None:
    assert Policy().check(desk.task(votes, epsilon="10")) is None
    assert Policy().check(desk.task(votes, epsilon="10.000000001")) is Code.EPSILON_ABOVE_CAP
    assert Policy.parse({"label_cap": 1}).max_epsilon == 10
    assert Policy.parse({"label_cap": 1, "max_epsilon": "unlimited"}).max_epsilon is None


def test_the_order_of_a_menu_is_by_level_and_of_what_is_allowed() -> None:
    half = Mechanism.of("randomized-response", epsilon=Decimal("0.5"))
    assert Policy().order((half, RR, KRR)) == (RR, KRR, half)
    assert Policy(pick="lowest").order((RR, KRR, half)) == (half, RR, KRR)
    only = Policy(mechanisms=frozenset({"k-randomized-response"}))
    assert only.order((RR, KRR)) == (KRR,)
    assert only.order((RR,)) == Policy().order(()) == ()


def test_the_level_of_a_labeler_is_within_that_of_the_node() -> None:
    levels = (("ann", Decimal("0.5")), ("bob", Decimal(20)))
    policy = Policy(levels=levels, max_epsilon=Decimal(4))
    assert [policy.level_of(name) for name in ("ann", "bob", "cem")] == [Decimal("0.5"), 4, 4]
    unbounded = replace(policy, max_epsilon=None)
    assert [unbounded.level_of(name) for name in ("ann", "bob", "cem")] == [Decimal("0.5"), 20, None]
    assert "ann" not in repr(policy)
    read = Policy.parse({"label_cap": 1, "pick": "lowest", "levels": {"ann": Decimal("0.5"), "cem": "unlimited"}})
    assert (read.levels, read.pick) == ((("ann", Decimal("0.5")),), "lowest")


def test_a_node_file_is_read_exactly() -> None:
    text = """
    trust = ["local", "central"]
    mechanisms = ["randomized-response"]
    max_epsilon = 0.1
    label_cap = 1.0
    labeler_cap = 20
    delta_cap = 1e-6
    labeler_delta_cap = 1e-5
    units = ["label"]
    max_attempt = 2
    """
    policy = Policy.parse(tomllib.loads(text))
    assert policy == Policy(
        trusts=frozenset({Trust.LOCAL, Trust.CENTRAL}),
        mechanisms=frozenset({"randomized-response"}),
        max_epsilon=Decimal("0.1"),
        label_cap=Decimal(1),
        labeler_cap=Decimal(20),
        delta_cap=Decimal("0.000001"),
        labeler_delta_cap=Decimal("0.00001"),
        max_attempt=2,
    )
    assert policy.capped
    assert Policy.parse({"label_cap": "unlimited"}) == Policy()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "expected the key 'label_cap'"),
        ({"label_cap": 1, "max_epsilom": 1}, "unknown key 'max_epsilom'; did you mean 'max_epsilon'"),
        ({"label_cap": 0}, "label_cap: expected a number > 0"),
        ({"label_cap": float("nan")}, "label_cap to be finite"),
        ({"label_cap": float("inf")}, "label_cap to be finite"),
        ({"label_cap": "1"}, "expected a number or 'unlimited', got '1'"),
        ({"label_cap": True}, "label_cap to be a number"),
        ({"label_cap": 1, "trust": ["locl"]}, "did you mean 'local'"),
        ({"label_cap": 1, "trust": []}, "expected a non-empty list"),
        ({"label_cap": 1, "trust": "local"}, "expected a non-empty list"),
        ({"label_cap": 1, "mechanisms": ["exponential"]}, "mechanisms: expected one of"),
        ({"label_cap": 1, "units": ["row"]}, "units: expected one of"),
        ({"label_cap": 1, "pick": "middle"}, "pick: expected one of"),
        ({"label_cap": 1, "levels": {"ann": 0}}, "a labeler's level: expected a number > 0"),
        ({"label_cap": 1, "levels": 2}, "levels. expected a table"),
        ({"label_cap": 1, "max_attempt": -1}, "max_attempt: expected an integer"),
    ],
)
def test_what_a_node_file_does_not_say_clearly_is_an_error(content: dict[str, Any], message: str) -> None:
    with pytest.raises(StudyError, match=message):
        Policy.parse(content)


@pytest.mark.parametrize("name", ["label_cap", "labeler_cap", "delta_cap", "labeler_delta_cap"])
def test_every_cap_needs_a_ledger_that_stays(name: str) -> None:
    assert Policy(**{name: Decimal(1)}).capped  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [Decimal(0), Decimal(-1), Decimal("NaN"), Decimal("Infinity")])
@pytest.mark.parametrize("name", ["max_epsilon", "label_cap", "labeler_cap", "delta_cap", "labeler_delta_cap"])
def test_a_bound_must_bound(name: str, bad: Decimal) -> None:
    with pytest.raises(ValueError, match=f"expected {name} > 0 and finite"):
        Policy(**{name: bad})  # type: ignore[arg-type]


def test_a_policy_of_mechanisms_is_kept(desk: Any, votes: Table, refusal: Callable[..., Code]) -> None:
    node = desk.node(votes, Policy(mechanisms=frozenset({"k-randomized-response"})))
    assert refusal(node, desk.task(votes)) is Code.MECHANISM_NOT_ALLOWED


# How many an exact sum is about


def test_an_exact_sum_is_over_the_least_group_or_more(desk: Any, ask: Any, refusal: Any, votes: Table) -> None:
    """Of six rows two are about one label."""
    task, trusts = desk.task(votes, Trust.CENTRAL), frozenset({Trust.LOCAL, Trust.CENTRAL})
    five, six = (desk.node(votes, Policy(trusts=trusts, least_group=least)) for least in (5, 6))
    assert refusal(six, task) is Code.GROUP_TOO_SMALL
    assert refusal(five, task, rows=Runs.of(range(4))) is Code.GROUP_TOO_SMALL, "a server asks for what it likes"
    assert ask(five, task).payload.counts.tolist() == [5]
    assert ask(six, desk.task(votes)).payload.values.shape == (1, 5), "a local answer is no sum"


def test_where_labelers_are_protected_a_group_is_of_labelers(desk: Any, ask: Any, refusal: Any) -> None:
    votes = desk.table([("ann", "x", "y", "x"), ("ann", "y", "z", "y"), ("bob", "x", "z", "x")])
    task = replace(desk.task(votes, Trust.CENTRAL), unit=Unit.LABELER, cap=2, groups=np.array([0, 0, 1], np.int32))
    policy = Policy(trusts=frozenset({Trust.CENTRAL}), units=frozenset({Unit.LABELER}), least_group=2)
    assert ask(desk.node(votes, policy), task).payload.counts.tolist() == [3]
    assert refusal(desk.node(votes, replace(policy, least_group=3)), task) is Code.GROUP_TOO_SMALL


def test_a_least_group_is_said_in_the_file_and_not_beside_rows_in_the_open() -> None:
    assert Policy.parse({"label_cap": 1}).least_group == 1
    assert Policy.parse({"label_cap": 1, "least_group": 20}).least_group == 20
    for wrong in (0, True, 2.5, "20"):
        with pytest.raises(StudyError, match="least_group"):
            Policy.parse({"label_cap": 1, "least_group": wrong})
    with pytest.raises(ValueError, match="least_group"):
        Policy.parse({"label_cap": 1, "least_group": 2, "central_rows": True})
