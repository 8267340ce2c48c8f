"""Menus of levels: each labeler at its own, charged at that, and nothing of the choice depends on a label."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.labeler import Node, answer
from client.labels import Labels
from client.ledger_view import read_entries, read_labelers
from client.policy import Policy
from client.sources.table import Table
from protocol.codec import decode_reply, encode_task
from protocol.messages import Code, Mechanism, Refusal, Report, Runs, Task
from protocol.privacy import Unit
from protocol.terms import share
from protocol.trust import Trust

Refuse = Callable[..., Code]
ANN, BOB, CEM = [0, 1], [2, 4], [5]  # rows of labels in `votes`: row 3 repeats row 0


def rr(epsilon: str | Decimal) -> Mechanism:
    return Mechanism.of("randomized-response", epsilon=Decimal(epsilon))


def offering(task: Task, *levels: str, **changes: Any) -> Task:
    """The task with a menu of randomised responses, its epsilon the largest."""
    menu = tuple(rr(level) for level in levels)
    return replace(task, menu=menu, epsilon=max(Decimal(level) for level in levels), **changes)


def reports(node: Node, task: Task) -> list[Report]:
    reply = decode_reply(answer(encode_task(task), node))
    assert not isinstance(reply, Refusal), reply
    return [signed.report for signed in reply]


def levels(found: list[Report]) -> dict[int, Decimal]:
    """Row -> the level at which it was answered."""
    said = {}
    for report in found:
        assert report.rows is not None
        for row in report.rows.numbers().tolist():
            said[row] = report.mechanism.get("epsilon")
    return said


def symbols(found: list[Report]) -> dict[int, int]:
    return {
        row: int(symbol)
        for report in found
        for row, symbol in zip(report.rows.numbers().tolist(), report.payload.values[0], strict=True)  # type: ignore[union-attr]
    }


def spent(desk: Any) -> dict[str, Decimal]:
    return {one.labeler: one.epsilon for one in read_labelers(desk.ledger_path)}


def policy(**how: Any) -> Policy:
    return Policy(levels=(("ann", Decimal("0.5")),), max_epsilon=Decimal(4), **how)


def test_each_labeler_answers_at_its_own_level_and_pays_that(desk: Any, votes: Table) -> None:
    found = reports(desk.node(votes, policy()), offering(desk.task(votes), "8", "4", "2", "0.5"))
    assert levels(found) == {row: Decimal("0.5") for row in ANN} | {row: Decimal(4) for row in BOB + CEM}
    assert spent(desk) == {"ann": 1, "bob": 8, "cem": 4}
    (entry,) = read_entries(desk.ledger_path)
    assert (entry.labels, entry.labelers, entry.epsilon) == (5, 3, 4)
    assert entry.mechanism == "randomized-response epsilon=4 + randomized-response epsilon=0.5"


def test_the_lowest_can_be_wanted(desk: Any, votes: Table) -> None:
    found = reports(desk.node(votes, policy(pick="lowest")), offering(desk.task(votes), "4", "0.25", "0.5"))
    assert set(levels(found).values()) == {Decimal("0.25")}
    assert spent(desk) == {"ann": Decimal("0.5"), "bob": Decimal("0.5"), "cem": Decimal("0.25")}


def test_one_report_where_all_agree_is_that_of_a_task_without_a_menu(desk: Any, votes: Table) -> None:
    (menu,) = reports(desk.node(votes, Policy(max_epsilon=Decimal(1))), offering(desk.task(votes), "2", "1"))
    (alone,) = reports(desk.node(votes), desk.task(votes, epsilon="1"))
    assert menu.rows == alone.rows
    assert (menu.mechanism, menu.table) == (alone.mechanism, alone.table)
    assert np.array_equal(menu.payload.values, alone.payload.values)  # remembered


@pytest.mark.parametrize("offered", [("1",), ("2", "1")])
def test_nothing_is_asked_of_a_labeler_beyond_its_level(
    desk: Any, votes: Table, refusal: Refuse, offered: tuple[str, ...]
) -> None:
    node, task = desk.node(votes, policy()), offering(desk.task(votes), *offered)
    assert refusal(node, task) is Code.EPSILON_ABOVE_CAP
    assert read_entries(desk.ledger_path) == []
    assert set(levels(reports(node, replace(task, rows=Runs.of(BOB + CEM)))).values()) == {Decimal(offered[0])}


def test_levels_and_clear_labels_do_not_go_together() -> None:
    """Clear labels would be above every level, and whom a clear task is refused for would tell who has an answer."""
    with pytest.raises(ValueError, match="expected no trust in clear beside levels"):
        policy(trusts=frozenset({Trust.LOCAL, Trust.CLEAR}))
    with pytest.raises(ValueError, match="expected no trust in clear beside levels"):
        Policy.parse({"trust": ["clear"], "label_cap": "unlimited", "levels": {"ann": Decimal("0.5")}})


def test_a_level_bounds_what_a_labeler_pays_together_where_labelers_are_protected(
    desk: Any, votes: Table, refusal: Refuse
) -> None:
    both = frozenset({Unit.LABEL, Unit.LABELER})
    node = desk.node(votes, policy(units=both))
    half = share(Decimal(4), 2)
    task = replace(desk.task(votes), unit=Unit.LABELER, cap=2, epsilon=Decimal(4))
    low = share(Decimal("0.5"), 2)
    found = reports(node, replace(task, menu=(rr(half), rr(low))))
    assert levels(found) == dict.fromkeys(ANN, low) | dict.fromkeys(BOB + CEM, half)
    assert spent(desk) == {"ann": Decimal("0.5"), "bob": 4, "cem": 2}
    assert refusal(node, replace(task, menu=(rr(half), rr("0.3")))) is Code.EPSILON_ABOVE_CAP  # 0.6 for ann


def test_what_was_answered_is_preferred_and_free(desk: Any, votes: Table) -> None:
    node = desk.node(votes)
    first = reports(node, replace(offering(desk.task(votes), "0.5"), rows=Runs.of(ANN)))
    before = spent(desk)
    found = reports(node, offering(desk.task(votes, study=1), "4", "0.5"))
    assert levels(found) == {row: Decimal("0.5") for row in ANN} | {row: Decimal(4) for row in BOB + CEM}
    assert {row: symbol for row, symbol in symbols(found).items() if row in ANN} == symbols(first)
    assert spent(desk)["ann"] == before["ann"]


def test_what_was_answered_is_not_preferred_where_it_is_no_longer_allowed_or_paid_for(desk: Any, votes: Table) -> None:
    """ann has answered at 4 about one label, and then allows 0.5; bob has, and his other label cannot pay 4."""
    reports(desk.node(votes), replace(offering(desk.task(votes), "4"), rows=Runs.of(ANN[:1])))
    offered = offering(desk.task(votes, study=1), "4", "0.5")
    lowered = reports(desk.node(votes, policy()), replace(offered, rows=Runs.of(ANN)))
    assert set(levels(lowered).values()) == {Decimal("0.5")}
    reports(desk.node(votes), replace(offering(desk.task(votes, study=2), "4"), rows=Runs.of(BOB[:1])))
    capped = desk.node(votes, Policy(labeler_cap=Decimal("4.5")))
    both = replace(offering(desk.task(votes, study=3), "4", "0.25"), rows=Runs.of(BOB))
    assert set(levels(reports(capped, both)).values()) == {Decimal("0.25")}


def test_who_cannot_pay_goes_lower_and_nobody_else(desk: Any, votes: Table, refusal: Refuse) -> None:
    node = desk.node(votes, Policy(label_cap=Decimal(3)))
    reports(node, replace(offering(desk.task(votes), "2.5"), rows=Runs.of([0])))
    found = reports(node, offering(desk.task(votes), "2", "0.5"))
    assert levels(found) == {row: Decimal("0.5") for row in ANN} | {row: Decimal(2) for row in BOB + CEM}
    assert refusal(node, offering(desk.task(votes), "1.5", "0.25")) is Code.BUDGET_EXHAUSTED
    capped = desk.node(votes, Policy(labeler_cap=Decimal("4.5")))  # ann has paid 3.5, bob 4, cem 2
    last = reports(capped, offering(desk.task(votes), "1.5", "0.25"))
    assert levels(last) == {row: Decimal("0.25") for row in ANN + BOB} | {row: Decimal("1.5") for row in CEM}


@pytest.mark.parametrize(
    ("menu", "epsilon"),
    [
        ((rr("1"), rr("0.5")), "2"),  # nothing at the claimed level
        ((rr("2"), rr("4")), "2"),  # something beyond it
        ((rr("2"), Mechanism("randomized-response")), "2"),
        ((rr("2"), rr("0.0000000001")), "2"),
        ((rr("2"), rr("-1")), "2"),
        ((rr("2"), Mechanism.of("randomized-response", epsilon=Decimal(1), more=Decimal(1))), "2"),
        (tuple(rr(f"{step / 100}") for step in range(100, 165)), "1.64"),
    ],
)
def test_a_menu_that_contradicts_itself(
    desk: Any, votes: Table, refusal: Refuse, menu: tuple[Mechanism, ...], epsilon: str
) -> None:
    task = replace(desk.task(votes), menu=menu, epsilon=Decimal(epsilon))
    assert refusal(desk.node(votes), task) is Code.TASK_INVALID
    assert read_entries(desk.ledger_path) == []


def test_an_unknown_mechanism_of_a_menu_is_passed_over(desk: Any, votes: Table) -> None:
    task = offering(desk.task(votes), "2")
    menu = (Mechanism.of("piecewise", epsilon=Decimal(2)), rr("0.5"), Mechanism.of("piecewise", epsilon=Decimal(1)))
    assert set(levels(reports(desk.node(votes), replace(task, menu=menu))).values()) == {Decimal("0.5")}


# What is decided may not depend on labels


def seen(node: Node, desk: Any, tasks: list[Task]) -> Iterator[Any]:
    """All that an answer shows or the ledger keeps, but for symbols."""
    for task in tasks:
        reply = decode_reply(answer(encode_task(task), node))
        if isinstance(reply, Refusal):
            yield reply.code
            continue
        for signed in reply:
            report = signed.report
            yield report.rows, report.mechanism, report.table, report.payload.values.shape, len(signed.raw)
        yield [replace(entry, task=b"") for entry in read_entries(desk.ledger_path)]
        yield sorted((s.labeler, s.labels, s.epsilon, s.most) for s in read_labelers(desk.ledger_path))


@settings(max_examples=25)
@given(data=st.data())
def test_nothing_but_symbols_depends_on_labels(desk_in: Any, tmp_path_factory: Any, data: st.DataObject) -> None:
    """Random tasks, menus, caps and levels, for two files that differ in all labels: the same in everything else."""
    folder: Path = tmp_path_factory.mktemp("levels")
    rows = [("ann", "x", "y"), ("ann", "z", "y"), ("bob", "y", "x"), ("bob", "z", "x"), ("cem", "x", "z")]
    offered = ("0.25", "0.5", "1", "2")
    drawn = st.lists(st.sampled_from(offered), min_size=1, max_size=3, unique=True)
    asked = [
        (data.draw(drawn), data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=5, unique=True)))
        for _ in range(data.draw(st.integers(1, 4)))
    ]
    how: dict[str, Any] = {"pick": data.draw(st.sampled_from(["highest", "lowest"]))}
    for name in ("label_cap", "labeler_cap"):
        how[name] = data.draw(st.sampled_from([None, Decimal("1.5"), Decimal(3)]))
    how["levels"] = tuple((name, Decimal(data.draw(st.sampled_from(offered)))) for name in ("ann", "bob"))
    found = []
    for turn in (0, 1):
        desk = desk_in(folder / str(turn))
        desk.folder.mkdir()
        table = desk.table([(*row, "item_a") for row in rows])
        table = replace(table, values=Labels(np.full(5, turn, dtype=np.uint8)))
        tasks = [
            replace(offering(desk.task(table, study=number), *menu), rows=Runs.of(sorted(some)))
            for number, (menu, some) in enumerate(asked)
        ]
        found.append(list(seen(desk.node(table, Policy(**how)), desk, tasks)))
    assert found[0] == found[1]
