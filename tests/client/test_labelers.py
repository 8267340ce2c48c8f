"""Claims for labelers at the client: which labels count, what they pay, and which tasks are refused."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from client.ledger_view import read_labelers
from client.policy import Policy
from client.rows import within_cap
from client.sources.table import Table
from protocol.features import group_weights, reduced_rows, weighted
from protocol.group_privacy import group_delta
from protocol.messages import Code, Mechanism, Report, Runs, Task, Ties
from protocol.privacy import Unit
from protocol.terms import share
from protocol.trust import Trust

Ask, Refuse = Callable[..., Report], Callable[..., Code]
TRUSTS = frozenset({Trust.LOCAL, Trust.CENTRAL})
OPEN = Policy(trusts=TRUSTS, max_epsilon=None, units=frozenset({Unit.LABEL, Unit.LABELER}))
GROUPS = np.array([0, 0, 1, 0, 1, 2], dtype=np.int32)  # ann, ann, bob, ann, bob, cem


def for_labelers(task: Task, cap: int) -> Task:
    """A task about six rows of three labelers, for labelers."""
    if task.trust is Trust.LOCAL:
        assert task.epsilon is not None
        menu = (Mechanism.of("randomized-response", epsilon=share(task.epsilon, cap)),)
        return replace(task, unit=Unit.LABELER, cap=cap, menu=menu, ties=Ties.COIN)
    return replace(task, unit=Unit.LABELER, cap=cap, groups=GROUPS)


def spent(desk: Any) -> dict[str, Decimal]:
    return {spent.labeler: spent.epsilon for spent in read_labelers(desk.ledger_path)}


def test_a_node_has_to_say_that_it_answers_for_labelers(desk: Any, votes: Table, refusal: Refuse) -> None:
    for trust in TRUSTS:
        node = desk.node(votes, replace(OPEN, units=frozenset({Unit.LABEL})))
        assert refusal(node, for_labelers(desk.task(votes, trust), 1)) is Code.UNIT_NOT_ALLOWED


def test_no_sequence_of_tasks_reaches_more_labels_than_the_cap(
    desk: Any, votes: Table, ask: Ask, refusal: Refuse
) -> None:
    """One label each of three labelers, whatever rows and n are asked for: ann and bob have two."""
    node, answered = desk.node(votes, OPEN), set()
    task = for_labelers(desk.task(votes), 1)
    for rows, n in product(([0], [1], [2], [4], [5], [0, 1, 2, 4, 5]), (1, 2, 3, 6)):
        asked = [row for row in rows if row < n]
        if not asked:
            continue
        part = replace(task, rows=Runs.of(asked), n=n, study=bytes([n]) * 32)
        held = set(asked) & set(np.flatnonzero(within(votes, 1)).tolist())
        if not held:
            assert refusal(node, part) is Code.TASK_INVALID
            continue
        report = ask(node, part)
        answered |= set(report.rows.numbers().tolist() if report.rows else range(n))
    assert answered == set(np.flatnonzero(within(votes, 1)).tolist())
    assert len(answered) == 3
    assert set(spent(desk).values()) == {Decimal(1)}


def within(table: Table, cap: int) -> np.ndarray:
    """Whether a row of the file counts."""
    first = np.flatnonzero(table.first)
    facts = table.facts(first)
    assert facts is not None
    chosen = np.zeros(len(table.pairs), dtype=bool)
    chosen[first[within_cap(facts, cap)]] = True
    return chosen


def test_the_choice_does_not_depend_on_the_order_of_the_file(desk: Any) -> None:
    rows = [(f"r{row % 4}", f"i{row % 7}", f"j{row % 5}", "item_a") for row in range(120)]
    names = []
    for listed in (rows, rows[::-1]):
        table = desk.table(listed)
        chosen = within(table, 3)
        names.append({table.identities[row] for row in np.flatnonzero(chosen).tolist()})
        assert np.bincount(table.owners[chosen]).tolist() == [3, 3, 3, 3]
        assert not (within(table, 2) & ~chosen).any()
    assert names[0] == names[1]


@pytest.mark.parametrize("epsilon", ["1", "0.1", "7"])
def test_shares_of_a_labeler_add_up_to_no_more_than_the_claim(desk: Any, votes: Table, ask: Ask, epsilon: str) -> None:
    ask(desk.node(votes, OPEN), for_labelers(desk.task(votes, epsilon=epsilon), 3))
    part = Fraction(share(Decimal(epsilon), 3))
    paid = {labeler: Fraction(total) for labeler, total in spent(desk).items()}
    assert paid == {"ann": 2 * part, "bob": 2 * part, "cem": part}
    assert 3 * part <= Fraction(epsilon)


def test_a_cap_of_the_node_bounds_labelers(desk: Any, votes: Table, ask: Ask, refusal: Refuse) -> None:
    node = desk.node(votes, replace(OPEN, labeler_cap=Decimal(1)))
    ask(node, for_labelers(desk.task(votes), 2))
    assert refusal(node, for_labelers(desk.task(votes, epsilon="0.5"), 2)) is Code.BUDGET_EXHAUSTED
    assert refusal(node, for_labelers(desk.task(votes, Trust.CENTRAL), 2)) is Code.BUDGET_EXHAUSTED


def test_an_exact_sum_costs_a_labeler_its_claim_once(desk: Any, votes: Table, ask: Ask) -> None:
    ask(desk.node(votes, OPEN), for_labelers(desk.task(votes, Trust.CENTRAL), 2))
    assert spent(desk) == {"ann": 1, "bob": 1, "cem": 1}
    assert {labeler.delta for labeler in read_labelers(desk.ledger_path)} == {Decimal("1e-6")}


def test_a_labeler_s_claims_of_both_units_add(desk: Any, votes: Table, ask: Ask, refusal: Refuse) -> None:
    """Two labels pay twice in tasks for labels and in shares, but once for a sum that protects labelers."""
    node = desk.node(votes, replace(OPEN, labeler_delta_cap=Decimal("8.7182818285e-6")))
    ask(node, for_labelers(desk.task(votes, Trust.CENTRAL, "0.5", "5e-6"), 2))
    ask(node, desk.task(votes, Trust.CENTRAL, "1", "1e-6"))
    ask(node, desk.task(votes, epsilon="0.25"))
    ask(node, for_labelers(desk.task(votes, epsilon="0.5"), 2))  # shares of 0.25, in a table with a row for ties
    ann, bob, cem = read_labelers(desk.ledger_path)
    pair = group_delta(Decimal(1), Decimal("1e-6"), 2)
    assert (ann.epsilon, ann.delta, ann.most, ann.most_delta) == (
        Decimal("0.5") + 2 + Decimal("0.5") + Decimal("0.5"),
        Decimal("5e-6") + pair,
        Decimal(2),
        Decimal("6e-6"),
    )
    assert (bob.epsilon, bob.delta) == (ann.epsilon, ann.delta)
    assert (cem.epsilon, cem.delta) == (2, Decimal("6e-6"))
    late = for_labelers(desk.task(votes, Trust.CENTRAL, "0.5", "5e-11"), 2)
    assert refusal(node, late) is Code.BUDGET_EXHAUSTED


def test_contributions_are_clipped_by_labeler(desk: Any, votes: Table, ask: Ask) -> None:
    task = for_labelers(desk.task(votes, Trust.CENTRAL), 2)
    clipped = Mechanism.of("gaussian-statistic-clipped", **dict(task.menu[0].parameters), radius=Decimal("1.5"))
    report = ask(desk.node(votes, OPEN), task, menu=(clipped,))
    rows, y = [0, 1, 2, 4, 5], np.array([0, 0, 1, 0, 1])
    own = reduced_rows(task.problem, 0, 6, 0, 0, 6)[rows]
    weights = group_weights(own, GROUPS[rows], 1.5)
    assert weights[0] == weights[1] < 1
    assert weights[4] == 1  # cem's only label
    assert task.exponent is not None
    v = weighted(own, task.exponent, weights).rows
    assert report.payload.values[0, 0].tolist() == (y[:, None] * v).sum(axis=0).tolist()


@pytest.mark.parametrize(
    "groups",
    [[0, 1, 2, 0, 2, 3], [0, 0, 0, 0, 0, 1], [0, 0, 1, 0, 2, 2]],
    ids=["one labeler in two groups", "two labelers in one", "both"],
)
def test_groups_that_tell_labelers_apart_wrongly_are_refused(
    desk: Any, votes: Table, refusal: Refuse, groups: list[int]
) -> None:
    task = for_labelers(desk.task(votes, Trust.CENTRAL), 2)
    wrong = np.array(groups, dtype=np.int32)
    assert refusal(desk.node(votes, OPEN), task, groups=wrong) is Code.TASK_INVALID


def test_tasks_that_contradict_themselves_are_refused(desk: Any, votes: Table, refusal: Refuse) -> None:
    node = desk.node(votes, OPEN)
    local, central = (for_labelers(desk.task(votes, trust), 2) for trust in (Trust.LOCAL, Trust.CENTRAL))
    for task, changes in (
        (local, {"cap": 0}),
        (local, {"cap": 1}),  # the menu's share is that of another cap
        (local, {"groups": GROUPS}),
        (local, {"menu": desk.task(votes).menu}),  # the whole claim for each label
        (local, {"unit": Unit.LABEL}),
        (central, {"cap": 0}),
        (central, {"groups": None}),
        (central, {"unit": Unit.LABEL}),
    ):
        assert refusal(node, task, **changes) is Code.TASK_INVALID, changes
