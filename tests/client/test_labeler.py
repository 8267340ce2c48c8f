"""What an answer holds, that it never raises, and that nothing else leaves."""

import logging
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.labeler import Node, answer
from client.labels import Labels
from client.ledger import DiskLedger, MemoryLedger
from client.ledger_store import LedgerUnavailable
from client.policy import Policy
from client.sources.loading import read_table
from client.sources.synthetic import Synthetic
from client.sources.table import Table
from protocol.codec import decode_reply, encode_refusal, encode_task, identity
from protocol.features import reduced_rows, rounded
from protocol.mechanisms.randomized_response import randomized_response
from protocol.messages import Code, Coins, Kind, Mechanism, Refusal, Report, Runs, Task
from protocol.numerics import fingerprint
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.store import FeatureStore
from protocol.trust import Trust

Ask, Refuse = Callable[..., Report], Callable[..., Code]
PRIVATE = ["Xanthippe", "Eulenspiegel", "Quetzalcoatl", "Zwetschgenmus", "streng-geheim", "sehr/privat", "votes.csv"]


def test_a_local_report_says_what_was_used(desk: Any, votes: Table, ask: Ask) -> None:
    task = desk.task(votes)
    report = ask(desk.node(votes), task)
    assert report.task == identity(encode_task(task))
    assert report.rows == Runs(((0, 1, 3), (4, 1, 2)))
    assert (report.payload.kind, report.payload.values.shape, report.payload.outcomes) == (Kind.SYMBOLS, (1, 5), 2)
    assert (report.mechanism, report.table) == (task.menu[0], randomized_response(Decimal(1)).digest)
    assert (report.coins, report.numerics, report.groups) == (Coins.OS, fingerprint(), None)


def test_a_clear_report_holds_every_row_in_the_order_of_the_file(desk: Any, votes: Table, ask: Ask, bits: Any) -> None:
    report = ask(desk.node(votes), desk.task(votes, Trust.CLEAR))
    assert bits(report).tolist() == [0, 0, 1, 1, 0, 1]
    assert (report.rows, report.table, report.mechanism) == (None, b"", Mechanism("none"))


def test_an_exact_sum_is_over_one_row_of_each_label(desk: Any, votes: Table, ask: Ask) -> None:
    task = desk.task(votes, Trust.CENTRAL)
    report = ask(desk.node(votes), task)
    assert report.payload.kind is Kind.EXACT_SUMS
    assert report.payload.counts is not None
    assert report.payload.counts.tolist() == [5]
    rows, y = [0, 1, 2, 4, 5], np.array([0, 0, 1, 0, 1])
    v = rounded(reduced_rows(task.problem, 0, 6, 0, 0, 6), task.exponent, None).rows[rows]
    assert report.payload.values.tolist() == [[(y[:, None] * v).sum(axis=0).tolist()]]
    clipped = Mechanism.of("gaussian-statistic-clipped", **dict(task.menu[0].parameters), radius=Decimal("0.5"))
    sums = ask(desk.node(votes), task, menu=(clipped,)).payload.values
    v = rounded(reduced_rows(task.problem, 0, 6, 0, 0, 6), task.exponent, 0.5).rows[rows]
    assert sums.tolist() == [[(y[:, None] * v).sum(axis=0).tolist()]]


def test_a_sum_of_nothing_is_a_positive_zero(desk: Any, votes: Table, ask: Ask) -> None:
    losers = replace(votes, values=Labels(np.zeros(6, dtype=np.uint8)))
    assert ask(desk.node(losers), desk.task(votes, Trust.CENTRAL)).payload.values.tobytes() == bytes(16)


def test_almost_no_privacy_gives_the_labels(desk: Any, votes: Table, ask: Ask, bits: Any) -> None:
    """Flips at epsilon 40 have probability 4e-18 each."""
    report = ask(desk.node(votes), desk.task(votes, epsilon="40"))
    assert bits(report).tolist() == [0, 0, 1, 0, 1]


def test_a_pair_written_the_other_way_round_is_the_same_label(desk: Any, ask: Ask, bits: Any) -> None:
    rows = [("ann", "x", "y", "item_a"), ("bob", "x", "z", "item_a"), ("cem", "z", "y", "item_a")]
    table = desk.table(rows)
    first = bits(ask(desk.node(table), desk.task(table)))
    turned = desk.table([(labeler, b, a, "item_b") for labeler, a, b, _ in rows])
    assert turned.problem.digest == table.problem.digest
    assert bits(ask(desk.node(turned), desk.task(turned, study=1))).tolist() == first.tolist()


def test_rows_of_the_intersection_are_answered_in_order(desk: Any, votes: Table, ask: Ask, bits: Any) -> None:
    node = desk.node(votes)
    whole = bits(ask(node, desk.task(votes)))
    report = ask(node, desk.task(votes), rows=Runs.of([1, 3, 5]))
    assert report.rows == Runs.of([1, 5])
    assert bits(report).tolist() == whole[[1, 4]].tolist()
    once = desk.table([("r", "x", "y", "item_a"), ("r", "x", "z", "item_a"), ("r", "y", "z", "item_b")])
    assert ask(desk.node(once), desk.task(once)).rows is None


def test_addressed_coins_give_the_same_report_anywhere(tmp_path: Any, desk: Any, ask: Ask, bits: Any) -> None:
    table = desk.table([(f"r{row}", "x", "y", "item_a") for row in range(64)], public=True)
    reports = []
    for name in ("one", "two"):
        ledger = DiskLedger(tmp_path / name)
        node = Node(table, Policy(), ledger, "addressed", FeatureStore(None), 5)
        reports.append(ask(node, desk.task(table)))
    assert (bits(reports[0]) == bits(reports[1])).all()
    assert reports[0].coins is Coins.ADDRESSED
    secret = ask(Node(table, Policy(), DiskLedger(tmp_path / "three"), "os", FeatureStore(None)), desk.task(table))
    assert (bits(secret) != bits(reports[0])).any()  # equal by chance: below 1e-14


# Who decides


def test_a_node_must_fit_together(desk: Any, votes: Table) -> None:
    disk, memory, store = DiskLedger(desk.ledger_path), MemoryLedger(), FeatureStore(7)
    problem = Problem(3, "gaussian", True, Decimal(3))
    synthetic = Synthetic(problem, np.array([1.0, 0.0, -1.0]), 7, store)
    public = replace(votes, public=True)
    capped = Policy(label_cap=Decimal(1))
    wrong: list[tuple[tuple[Any, ...], str]] = [
        ((votes, Policy(), disk, "addressed", store, 7), "expected entropy 'os' for labels not declared public"),
        ((votes, Policy(), disk, "addressed", store), "expected a seed exactly for addressed coins"),
        ((public, Policy(), disk, "addressed", store), "expected a seed exactly for addressed coins"),
        ((votes, Policy(), disk, "os", store, 7), "expected a seed exactly for addressed coins"),
        ((votes, Policy(), disk, "numpy", store), "expected entropy out of"),
        ((votes, Policy(), memory, "os", store), "expected a ledger on disk for labels of a file"),
        ((public, Policy(), memory, "addressed", store, 7), "expected a ledger on disk for labels of a file"),
        ((synthetic, Policy(), disk, "os", store), "one in memory for synthetic labels"),
        ((synthetic, capped, memory, "os", store), "expected a ledger on disk for a policy with caps"),
    ]
    for parts, message in wrong:
        with pytest.raises(ValueError, match=message):
            Node(*parts)
    Node(votes, capped, disk, "os", store)
    Node(public, capped, disk, "addressed", store, 7)
    Node(synthetic, Policy.simulation(), memory, "os", store)
    with pytest.raises(TypeError):
        Node(votes, Policy(), disk, features=store)  # type: ignore[call-arg]


def test_the_default_policy_refuses_clear_and_central_tasks(desk: Any, votes: Table, refusal: Refuse) -> None:
    node = desk.node(votes, Policy())
    for trust in (Trust.CLEAR, Trust.CENTRAL):
        assert refusal(node, desk.task(votes, trust)) is Code.TRUST_NOT_ALLOWED


# Nothing else leaves


def private_node(desk: Any) -> tuple[Node, Table]:
    """A node all of whose surroundings have distinctive names."""
    folder = desk.folder / "streng-geheim" / "sehr" / "privat"
    folder.mkdir(parents=True)
    path = folder / "votes.csv"
    names = ["Xanthippe", "Eulenspiegel"]
    rows = [
        f"{names[row % 2]},Quetzalcoatl-{row},Zwetschgenmus-{row % 3},item_b,remark-Eulenspiegel" for row in range(9)
    ]
    path.write_text("\n".join(["labeler,item_a,item_b,winner,remark", *rows]), encoding="utf-8")
    table = read_table(path, public=False)
    policy = Policy(trusts=frozenset({Trust.CLEAR, Trust.LOCAL, Trust.CENTRAL}))
    return Node(table, policy, DiskLedger(folder / "ledger.sqlite"), "os", FeatureStore(None)), table


def assert_private(raw: bytes) -> None:
    for word in PRIVATE:
        for spelled in (word, word.lower(), word[:6]):
            assert spelled.encode() not in raw
            assert spelled.encode("utf-16-le") not in raw


def test_names_columns_and_paths_are_on_no_reply(desk: Any) -> None:
    node, table = private_node(desk)
    for trust in (Trust.CLEAR, Trust.LOCAL, Trust.CENTRAL):
        reply = answer(encode_task(desk.task(table, trust)), node)
        assert not isinstance(decode_reply(reply), Refusal)
        assert_private(reply)


@pytest.mark.parametrize(
    "error", [ValueError, KeyError, OSError, LedgerUnavailable, RuntimeError, RecursionError, MemoryError]
)
@pytest.mark.parametrize("place", ["check", "rows", "facts", "labels", "settle"])
def test_exception_texts_are_neither_sent_nor_logged(
    desk: Any, error: type[Exception], place: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    node, table = private_node(desk)

    def fail(*_: Any) -> Any:
        raise error("Xanthippe says Zwetschgenmus in /sehr/privat/votes.csv")

    monkeypatch.setattr(DiskLedger if place == "settle" else Table, place, fail)
    raw = encode_task(desk.task(table))
    with caplog.at_level(logging.DEBUG):
        reply = answer(raw, node)
    code = Code.LEDGER_UNAVAILABLE if error is LedgerUnavailable else Code.INTERNAL
    assert reply == encode_refusal(Refusal(identity(raw), code))
    assert_private(reply)
    assert "refused task" in caplog.text
    assert_private(caplog.text.encode())


def test_a_ledger_in_trouble_tells_nothing(desk: Any) -> None:
    node, table = private_node(desk)
    (table.path.parent / "ledger.sqlite").write_bytes(b"Xanthippe" * 1000)
    reply = answer(encode_task(desk.task(table)), node)
    assert decode_reply(reply) == Refusal(identity(encode_task(desk.task(table))), Code.LEDGER_UNAVAILABLE)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> tuple[Node, Task]:
    """A node and a task that it answers, for many bad copies of the task."""
    folder = tmp_path_factory.mktemp("target")
    path = folder / "votes.csv"
    path.write_text("labeler,item_a,item_b,winner\nann,x,y,item_a\nbob,y,z,item_b\n", encoding="utf-8")
    table = read_table(path, public=False)
    node = Node(table, Policy(), DiskLedger(folder / "ledger.sqlite"), "os", FeatureStore(None))
    problem = Problem(3, "items", True, None, table.pairs)
    menu = Mechanism.of("randomized-response", epsilon=Decimal(1))
    return node, Task(b"s" * 32, Trust.LOCAL, Unit.LABEL, problem, (menu,), 2, Decimal(1), None, 0, 1)


@settings(max_examples=200)
@given(data=st.data())
def test_whatever_arrives_the_answer_is_a_reply(target: tuple[Node, Task], data: st.DataObject) -> None:
    node, task = target
    raw = bytearray(encode_task(task))
    if data.draw(st.booleans()):
        raw = bytearray(data.draw(st.binary(max_size=200)))
    else:
        for _ in range(data.draw(st.integers(1, 4))):
            place = data.draw(st.integers(0, len(raw) - 1))
            raw[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    reply = decode_reply(answer(bytes(raw), node))
    if isinstance(reply, Refusal):
        assert reply.task == identity(bytes(raw))
    else:
        assert reply[0].report.task == identity(bytes(raw))
