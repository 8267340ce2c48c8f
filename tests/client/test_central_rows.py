"""A curator is trusted with exact sums: single rows leave only where a node's own policy says so."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client.labeler import Node, answer
from client.ledger import DiskLedger
from client.ledger_view import read_entries
from client.policy import Policy
from client.sources.record_columns import RecordColumns
from client.sources.record_table import read_record_table
from protocol.codec import decode_reply, encode_task
from protocol.messages import Code, Kind, Mechanism, Refusal, Task
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.record_terms import Bounded, sum_exponent
from protocol.store import FeatureStore
from protocol.strict import StudyError
from protocol.trust import Trust

POLICY = Policy(trusts=frozenset({Trust.CENTRAL}), units=frozenset({Unit.RECORD}), label_cap=Decimal(100))
SAID = {"label_cap": 1, "trust": ["central"], "units": ["record"]}


def node(folder: Path, policy: Policy) -> Node:
    path = folder / "records.csv"
    path.write_text("id,x\nr0,1.5\nr1,-3\nr2,0.25\nr3,400\n", "utf-8")
    table = read_record_table(path, False, RecordColumns(("x",), "mean", id="id"))
    return Node(table, policy, DiskLedger(folder / "ledger.sqlite"), "os", FeatureStore(None))


def task(rows: bool) -> Task:
    flag = {"rows": Decimal(1)} if rows else {}
    level = {"epsilon": Decimal(1), "delta": Decimal("1e-5")}
    mechanism = Mechanism.of("gaussian", threshold=Decimal(2), **level, **flag)
    problem = Problem(1, "records", False, None, kind="records", model="mean")
    asked = Task(bytes(32), Trust.CENTRAL, Unit.RECORD, problem, (mechanism,), 4, *level.values(), 0, 1)
    return asked if rows else replace(asked, exponent=sum_exponent(asked, Bounded(2.0)))


def reply(folder: Path, policy: Policy, rows: bool) -> Any:
    found = decode_reply(answer(encode_task(task(rows)), node(folder, policy)))
    return found.code if isinstance(found, Refusal) else found[0].report.payload


def test_rows_are_refused_before_anything_is_paid(tmp_path: Path) -> None:
    assert reply(tmp_path, POLICY, rows=True) is Code.MECHANISM_NOT_ALLOWED
    assert read_entries(tmp_path / "ledger.sqlite") == []
    assert reply(tmp_path, POLICY, rows=False).kind is Kind.EXACT_SUMS
    assert [entry.labels for entry in read_entries(tmp_path / "ledger.sqlite")] == [4]


def test_rows_leave_bounded_and_paid_where_a_policy_says_so(tmp_path: Path) -> None:
    payload = reply(tmp_path, replace(POLICY, central_rows=True), rows=True)
    assert payload.kind is Kind.ROWS
    assert sorted(payload.values.ravel().tolist()) == [-2.0, -1.5, -0.25, 2.0]
    assert np.abs(payload.values).max() <= 2
    assert [entry.labels for entry in read_entries(tmp_path / "ledger.sqlite")] == [4]


def test_a_node_file_says_it_with_a_word_of_its_own() -> None:
    assert not Policy.parse(SAID).central_rows and not Policy().central_rows and Policy.simulation().central_rows
    assert Policy.parse({**SAID, "central_rows": True}).central_rows
    with pytest.raises(StudyError, match="central_rows"):
        Policy.parse({**SAID, "central_rows": "yes"})
