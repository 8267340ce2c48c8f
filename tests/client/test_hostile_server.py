"""A server that asks odd questions learns nothing that a plain question would not have told, and pays for it."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from client.labeler import answer
from client.ledger_view import read_entries, read_labelers
from client.policy import Policy
from client.sources.table import Table
from protocol.codec import decode_reply, encode_task, identity
from protocol.halftruth_pb2 import Task as WireTask
from protocol.messages import Code, Mechanism, Refusal, Report, Runs, Task, Ties
from protocol.privacy import Unit
from protocol.trust import Trust

Ask, Refuse = Callable[..., Report], Callable[..., Code]
TRUSTS = frozenset({Trust.CLEAR, Trust.LOCAL, Trust.CENTRAL})


def rr(epsilon: str) -> Mechanism:
    return Mechanism.of("randomized-response", epsilon=Decimal(epsilon))


def krr(epsilon: str, outcomes: int) -> Mechanism:
    return Mechanism.of("k-randomized-response", epsilon=Decimal(epsilon), outcomes=Decimal(outcomes))


def labels_charged(desk: Any) -> list[int]:
    return [entry.labels for entry in read_entries(desk.ledger_path)]


# Averaging: the same label asked again in another guise


def test_no_guise_of_a_task_gives_a_second_answer(desk: Any, votes: Table, ask: Ask, bits: Any) -> None:
    node = desk.node(votes, Policy(trusts=TRUSTS, max_attempt=100, label_cap=Decimal(1)))
    task = desk.task(votes)
    first = bits(ask(node, task))
    guises: list[dict[str, Any]] = [
        {"study": b"\xff" * 32},
        {"attempt": 1},
        {"attempt": 99},
        {"n": 3},
        {"rows": Runs.of([0, 1, 2, 3, 4, 5])},
        {"rows": Runs.of([4])},
        {"menu": (krr("1", 2),)},
        {"menu": (krr("1", 2), rr("1"))},
        {"menu": (Mechanism.of("piecewise", epsilon=Decimal(1)), rr("1"))},
        {"problem": replace(task.problem, bound=Decimal(7))},
        {"problem": replace(task.problem, sum_zero=False)},
        {"exponent": -50},
    ]
    for guise in guises:
        report = ask(node, task, **guise)
        rows = np.arange(guise.get("n", 6)) if report.rows is None else report.rows.numbers()
        places = [[0, 1, 2, 4, 5].index(row) for row in rows.tolist()]
        assert bits(report).tolist() == first[places].tolist(), guise
    assert labels_charged(desk) == [5] + [0] * len(guises)


def test_epsilons_that_give_one_table_are_one_channel(desk: Any, votes: Table, ask: Ask, bits: Any) -> None:
    node = desk.node(votes, Policy(label_cap=Decimal(200), max_epsilon=None))
    first = bits(ask(node, desk.task(votes, epsilon="60.1")))
    assert (bits(ask(node, desk.task(votes, epsilon="61"))) == first).all()
    assert labels_charged(desk) == [5, 0]


def test_many_epsilons_end_at_the_cap(desk: Any, votes: Table, ask: Ask, refusal: Refuse) -> None:
    node = desk.node(votes, Policy(label_cap=Decimal(1)))
    for step in range(1, 10):
        ask(node, desk.task(votes, epsilon=f"0.10{step}"), rows=Runs.of([0]))
    assert refusal(node, desk.task(votes, epsilon="0.11"), rows=Runs.of([0])) is Code.BUDGET_EXHAUSTED
    (ann,) = (spent for spent in read_labelers(desk.ledger_path) if spent.labeler == "ann")
    assert ann.epsilon == Decimal("0.945")


def test_the_other_row_of_a_label_is_not_sent(desk: Any, votes: Table, ask: Ask, refusal: Refuse) -> None:
    node = desk.node(votes)
    for trust in (Trust.LOCAL, Trust.CENTRAL):
        assert refusal(node, desk.task(votes, trust), rows=Runs.of([3])) is Code.TASK_INVALID
        report = ask(node, desk.task(votes, trust), rows=Runs.of([0, 3]))
        assert report.rows == Runs.of([0])


def test_every_exact_sum_is_charged(desk: Any, votes: Table, ask: Ask, refusal: Refuse) -> None:
    """Two sums that differ in one row give that label to the curator: each is paid for, and the curator is trusted."""
    node = desk.node(votes, Policy(trusts=TRUSTS, label_cap=Decimal(2)))
    task = desk.task(votes, Trust.CENTRAL, "1")
    ask(node, task)
    ask(node, task, rows=Runs.of([0, 1, 2, 4]))
    assert refusal(node, task, exponent=task.exponent + 1) is Code.BUDGET_EXHAUSTED
    assert refusal(node, task, attempt=0, study=b"x" * 32) is Code.BUDGET_EXHAUSTED
    assert labels_charged(desk) == [5, 4]


# Tasks that do not say one thing


@pytest.mark.parametrize(
    "changes",
    [
        {"round": 1},
        {"theta": np.zeros(3)},
        {"ties": Ties.HALF},
        {"ties": Ties.DROP},
        {"ties": Ties.RANDOMIZED, "menu": (krr("1", 2),)},
        {"ties": Ties.RANDOMIZED, "menu": (Mechanism("randomized-response"),)},
        {"cap": 1},
        {"cohort": b"c"},
        {"modulus": 97},
        {"first_repetition": 1},
        {"repetitions": 2},
        {"repetitions": (1 << 32) - 1},
        {"rows": Runs(((0, 1, 7),))},
        {"rows": Runs(((6, 1, 1),))},
        {"rows": Runs(((0, 1, 1 << 50),))},
        {"epsilon": Decimal(2)},
        {"epsilon": None},
        {"epsilon": Decimal("1e-10"), "menu": (rr("1e-10"),)},
        {"epsilon": Decimal(0), "menu": (rr("0"),)},
        {"epsilon": Decimal(-1), "menu": (rr("-1"),)},
        {"delta": Decimal("1e-6")},
        {"menu": (rr("2"),)},
        {"menu": (rr("1"), rr("2"))},
        {"menu": (rr("1"), Mechanism("none"))},
        {"menu": (Mechanism.of("randomized-response", epsilon=Decimal(1), keep=Decimal(1)),)},
        {"menu": (Mechanism("randomized-response"),)},
    ],
)
def test_a_local_task_that_contradicts_itself_is_invalid(
    desk: Any, votes: Table, refusal: Refuse, changes: dict[str, Any]
) -> None:
    node = desk.node(votes)
    assert refusal(node, desk.task(votes), **changes) is Code.TASK_INVALID
    assert read_entries(desk.ledger_path) == []


@pytest.mark.parametrize(
    "menu",
    [(krr("1", 3),), (krr("1", 4096),), (Mechanism.of("laplace", epsilon=Decimal(1)),), (krr("1", 256), krr("1", 5))],
)
def test_a_menu_without_a_mechanism_for_two_outcomes_is_refused(
    desk: Any, votes: Table, refusal: Refuse, menu: tuple[Mechanism, ...]
) -> None:
    assert refusal(desk.node(votes), desk.task(votes), menu=menu) is Code.MECHANISM_NOT_ALLOWED


def central(**parameters: str) -> Mechanism:
    name = "gaussian-statistic-clipped" if "radius" in parameters else "gaussian-statistic"
    return Mechanism.of(name, **{key: Decimal(value) for key, value in parameters.items()})


@pytest.mark.parametrize(
    "changes",
    [
        {"exponent": None},
        {"exponent": -53},
        {"exponent": -1000},
        {"exponent": 901},
        {"delta": None},
        {"delta": Decimal("1e-5")},
        {"delta": Decimal(0)},
        {"delta": Decimal(1)},
        {"menu": (central(epsilon="1"),)},
        {"menu": (central(epsilon="1", delta="1e-7"),)},
        {"menu": (central(epsilon="1", delta="1e-6", noise="0"),)},
        {"menu": (central(epsilon="1", delta="1e-6", radius="0"),)},
        {"menu": (central(epsilon="1", delta="1e-6", radius="-1"),)},
        {"menu": (Mechanism.of("gaussian-statistic-clipped", epsilon=Decimal(1), delta=Decimal("1e-6")),)},
        {"menu": (Mechanism.of("gaussian-statistic", epsilon=Decimal(1), delta=Decimal("1e-6"), radius=Decimal(1)),)},
    ],
)
def test_a_central_task_that_contradicts_itself_is_invalid(
    desk: Any, votes: Table, refusal: Refuse, changes: dict[str, Any]
) -> None:
    node = desk.node(votes)
    assert refusal(node, desk.task(votes, Trust.CENTRAL, delta="1e-6"), **changes) is Code.TASK_INVALID
    assert read_entries(desk.ledger_path) == []


@pytest.mark.parametrize(
    "changes", [{"epsilon": Decimal(1)}, {"delta": Decimal("1e-6")}, {"menu": (rr("1"),)}, {"repetitions": 2}]
)
def test_a_clear_task_with_a_claim_is_invalid(
    desk: Any, votes: Table, refusal: Refuse, changes: dict[str, Any]
) -> None:
    assert refusal(desk.node(votes), desk.task(votes, Trust.CLEAR), **changes) is Code.TASK_INVALID


def test_a_clear_task_cannot_come_in_a_local_one_s_clothes(desk: Any, votes: Table, refusal: Refuse) -> None:
    node, clear = desk.node(votes, Policy()), desk.task(votes, Trust.CLEAR)
    assert refusal(node, clear) is Code.TRUST_NOT_ALLOWED
    assert refusal(node, clear, trust=Trust.LOCAL) is Code.TASK_INVALID
    assert refusal(node, clear, trust=Trust.LOCAL, epsilon=Decimal(1)) is Code.TASK_INVALID


@pytest.mark.parametrize("trust", [Trust.DISTRIBUTED, Trust.SHUFFLED])
def test_a_task_does_not_change_its_trust_model(desk: Any, votes: Table, refusal: Refuse, trust: Trust) -> None:
    alone = Code.TASK_INVALID if trust is Trust.DISTRIBUTED else Code.TRUST_NOT_ALLOWED  # sums under masks: in sessions
    assert refusal(desk.node(votes), desk.task(votes), trust=trust) is alone
    every = Policy(trusts=frozenset(Trust), units=frozenset(Unit))
    assert refusal(desk.node(votes, every), desk.task(votes), trust=trust) is Code.TASK_INVALID


@pytest.mark.parametrize("unit", [Unit.LABELER, Unit.RECORD])
def test_a_claim_for_another_unit_is_refused(desk: Any, votes: Table, refusal: Refuse, unit: Unit) -> None:
    assert refusal(desk.node(votes), desk.task(votes), unit=unit) is Code.UNIT_NOT_ALLOWED
    every = Policy(units=frozenset(Unit))
    assert refusal(desk.node(votes, every), desk.task(votes), unit=unit) is Code.TASK_INVALID


def test_another_design_is_another_problem(desk: Any, votes: Table, refusal: Refuse) -> None:
    """A turned pair would turn the label's meaning; another item would attach it to another question."""
    task: Task = desk.task(votes)
    turned, other = np.array(votes.pairs), np.array(votes.pairs)
    turned[0] = turned[0, ::-1]
    other[5] = [1, 2]
    for design in (turned, other, votes.pairs[:5]):
        problem = replace(task.problem, design=design)
        assert refusal(desk.node(votes), task, problem=problem) is Code.PROBLEM_UNKNOWN
    for problem in (
        replace(task.problem, dimension=9),
        replace(task.problem, features="values", design=np.ones((6, 3))),
    ):
        assert refusal(desk.node(votes), task, problem=problem) is Code.PROBLEM_UNKNOWN


@pytest.mark.parametrize(
    "spoil",
    [
        lambda wire: setattr(wire, "epsilon", "1.0"),
        lambda wire: setattr(wire, "epsilon", "1e0"),
        lambda wire: setattr(wire, "epsilon", " 1"),
        lambda wire: setattr(wire, "epsilon", "NaN"),
        lambda wire: setattr(wire.menu[0].parameters[0], "value", "1.0"),
        lambda wire: setattr(wire.menu[0], "name", ""),
        lambda wire: wire.rows.add(start=2, step=1, count=2) and wire.rows.add(start=2, step=1, count=2),
        lambda wire: wire.rows.add(start=0, step=0, count=3),
        lambda wire: setattr(wire, "study", b"short"),
        lambda wire: setattr(wire, "n", 0),
        lambda wire: setattr(wire, "unit", 0),
        lambda wire: wire.ClearField("menu"),
    ],
)
def test_bytes_that_are_not_canonical_are_refused(desk: Any, votes: Table, spoil: Callable[[Any], Any]) -> None:
    wire = WireTask.FromString(encode_task(desk.task(votes)))
    spoil(wire)
    raw = wire.SerializeToString(deterministic=True)
    assert decode_reply(answer(raw, desk.node(votes))) == Refusal(identity(raw), Code.TASK_INVALID)
    assert read_entries(desk.ledger_path) == []


def test_a_refusal_does_not_depend_on_labels(desk: Any, votes: Table, refusal: Refuse) -> None:
    codes = []
    for flip in (0, 1):
        values = type(votes.values)(votes.values.reveal() ^ np.uint8(flip))
        node = desk.node(replace(votes, values=values), Policy(trusts=TRUSTS, label_cap=Decimal("0.5")))
        codes.append([refusal(node, desk.task(votes, trust)) for trust in (Trust.LOCAL, Trust.CENTRAL)])
    assert codes[0] == codes[1] == [Code.BUDGET_EXHAUSTED] * 2


def test_pairs_answer_no_task_about_top_choices(desk: Any, votes: Table, refusal: Refuse) -> None:
    """Two choices have the design of pairs, and know neither of ties nor of missing winners."""
    task = desk.task(votes)
    choices = replace(task.problem, kind="choice", model="plackett-luce")
    menu = (Mechanism.of("k-randomized-response", epsilon=Decimal(1)),)
    assert refusal(desk.node(votes), task, problem=choices, menu=menu) is Code.PROBLEM_UNKNOWN
    assert labels_charged(desk) == []
