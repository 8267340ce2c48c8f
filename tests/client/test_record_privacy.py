"""What a hostile server may try with tasks about records of a file: what it is told, and what its holder is charged."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client.labeler import Node, answer
from client.ledger import DiskLedger
from client.ledger_view import read_labelers
from client.policy import Policy
from client.sources.record_columns import RecordColumns
from client.sources.record_table import read_record_table
from protocol.codec import Signed, decode_reply, encode_task
from protocol.grid import to_integers
from protocol.messages import Code, Mechanism, Refusal, Report, Task
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.record_terms import Bounded, squared_sensitivity, sum_exponent
from protocol.store import FeatureStore
from protocol.trust import Trust

TRUSTS = frozenset({Trust.LOCAL, Trust.CENTRAL})
POLICY = Policy(trusts=TRUSTS, units=frozenset({Unit.RECORD}), label_cap=Decimal(100))


@pytest.fixture
def node(tmp_path: Path) -> Node:
    path = tmp_path / "records.csv"
    path.write_text("id,x\n" + "".join(f"r{row},{value}\n" for row, value in enumerate([1.5, -3, 0.25, 400])), "utf-8")
    table = read_record_table(path, False, RecordColumns(("x",), "mean", id="id"))
    return Node(table, POLICY, DiskLedger(tmp_path / "ledger.sqlite"), "os", FeatureStore(None))


def sum_task(round: int = 0, theta: float | None = None, *, delta: str | None = "1e-5", **parameters: int) -> Task:
    failing = {} if delta is None else {"delta": Decimal(delta)}
    mechanism = Mechanism.of(
        "gaussian",
        epsilon=Decimal(1),
        threshold=Decimal(2),
        **failing,
        **{name: Decimal(value) for name, value in parameters.items()},
    )
    task = Task(
        study=bytes(32),
        trust=Trust.CENTRAL,
        unit=Unit.RECORD,
        problem=Problem(1, "records", False, None, kind="records", model="mean"),
        menu=(mechanism,),
        n=4,
        epsilon=Decimal(1),
        delta=failing.get("delta"),
        first_repetition=0,
        repetitions=1,
        round=round,
        theta=None if theta is None else np.array([[theta]]),
    )
    return replace(task, exponent=sum_exponent(task, Bounded(2.0)))


def reply(node: Node, task: Task) -> Report | Code:
    found: Any = decode_reply(answer(encode_task(task), node))
    if isinstance(found, Refusal):
        return found.code
    (signed,) = found
    assert isinstance(signed, Signed)
    return signed.report


def spent(tmp_path: Path) -> set[Decimal]:
    return {each.epsilon for each in read_labelers(tmp_path / "ledger.sqlite")}


def test_a_run_of_one_round_is_no_way_to_ask_again_for_nothing(node: Node, tmp_path: Path) -> None:
    """It would be paid at its first round, and has no last one."""
    replies = [reply(node, sum_task(round, float(round), rounds=1)) for round in range(3)]
    assert replies == [Code.TASK_INVALID] * 3
    assert spent(tmp_path) == set()


def test_a_run_pays_once_and_answers_each_of_its_rounds_once(node: Node, tmp_path: Path) -> None:
    first = reply(node, sum_task(0, 0.0, rounds=3))
    assert isinstance(first, Report)
    again = reply(node, sum_task(0, 1.0, rounds=3))  # another theta for the same round: the first answer
    assert isinstance(again, Report)
    assert (again.task, again.payload.values) == (first.task, first.payload.values)
    others = [reply(node, sum_task(round, 2.0, rounds=3)) for round in (2, 1, 3)]
    assert [isinstance(each, Report) for each in others] == [True, True, False]
    assert others[2] is Code.TASK_INVALID
    assert spent(tmp_path) == {Decimal(1)}


def test_noise_that_needs_a_delta_is_not_asked_for_without_one(node: Node, tmp_path: Path) -> None:
    """A ledger would charge delta = 0 for a release that costs some."""
    assert reply(node, sum_task(delta=None)) is Code.TASK_INVALID
    assert spent(tmp_path) == set()


WILD = [(1e100, -1e100), (-1e100, 1e-300), (0.0, 0.0), (1e99, 1e100), (5e-324, -5e-324)]
TAME = [(1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.5, 0.0), (0.25, 1.0)]
THETA = np.array([[1e100, -1e100]])


def linear_node(folder: Path, records: list[tuple[float, float]], model: str, policy: Policy) -> Node:
    folder.mkdir()
    lines = [f"r{row},{x!r},{-x!r},{y!r}" for row, (x, y) in enumerate(records)]
    (folder / "records.csv").write_text("\n".join(["id,x,z,y", *lines]) + "\n", "utf-8")
    columns = RecordColumns(("x", "z"), model, response=None if model == "mean" else "y", id="id")
    table = read_record_table(folder / "records.csv", False, columns)
    return Node(table, policy, DiskLedger(folder / "ledger.sqlite"), "os", FeatureStore(None))


def every_task(model: str) -> list[Task]:
    plain = sum_task()
    problem = Problem(2, "records", False, None, kind="records", model=model)
    level, failing = {"epsilon": Decimal(1)}, {"delta": Decimal("1e-5")}
    ways: list[tuple[Trust, Mechanism, int | None]] = [
        (Trust.CENTRAL, Mechanism.of("gaussian", **level, **failing, threshold=Decimal(bound), **more), exponent)
        for bound, exponent in (("3", -40), ("1e-60", -230), ("1e60", 160))
        for more in ({}, {"l2": Decimal(1)}, {"truncate": Decimal(1)}, {"rows": Decimal(1), "l2": Decimal(1)})
    ]
    counted = Mechanism.of("gaussian", **level, **failing, threshold=Decimal(3), counted=Decimal(2), l2=Decimal(1))
    grid = {"lowest": Decimal(-1000), "highest": Decimal(20)}
    ways += [
        (Trust.CENTRAL, counted, -40),
        (Trust.CENTRAL, Mechanism.of("exceedances", **level, threshold=Decimal(1), **grid), -40),
        (Trust.CLEAR, Mechanism("none"), None),
    ]
    for name in ("discrete-laplace", "duchi", "piecewise", "hybrid", "duchi-cube", "unary"):
        for bound in ("3", "1e-60", "1e60"):
            more = {"dimension": Decimal(2), "threshold": Decimal(bound)}
            ways.append((Trust.LOCAL, Mechanism.of(name, **level, **more), None))
    return [
        replace(
            plain,
            trust=trust,
            problem=problem,
            menu=(mechanism,),
            n=len(WILD),
            epsilon=mechanism.get("epsilon"),
            delta=mechanism.get("delta"),
            exponent=exponent,
            theta=THETA,
        )
        for trust, mechanism, exponent in ways
    ]


@pytest.mark.parametrize("model", ["mean", "linear", "logistic"])
def test_no_record_decides_whether_or_in_what_form_it_is_answered(tmp_path: Path, model: str) -> None:
    """Warnings are errors here: an overflow that raised one would be a refusal where somebody's code makes it so."""
    policy = replace(POLICY, trusts=frozenset(Trust) - {Trust.DISTRIBUTED, Trust.SHUFFLED}, central_rows=True)
    wild = [(x, float(y > 0)) for x, y in WILD] if model == "logistic" else WILD
    nodes = [linear_node(tmp_path / str(place), one, model, policy) for place, one in enumerate((wild, TAME))]
    for task in every_task(model):
        forms = []
        for node in nodes:
            found = reply(node, task)
            assert isinstance(found, Report), (task.menu, found)
            payload = found.payload
            assert np.isfinite(payload.values).all()
            counts = None if payload.counts is None else payload.counts.tolist()
            forms.append((payload.kind, payload.values.shape, payload.values.dtype, counts, found.rows))
        assert forms[0] == forms[1], task.menu


@pytest.mark.parametrize("model", ["mean", "linear"])
def test_no_replaced_record_moves_a_sum_further_than_its_noise_is_made_for(tmp_path: Path, model: str) -> None:
    """On bytes that leave, for values at and beyond every bound; counts of a grid move by one each."""
    sides = [(2.999999, 3.0), (3.0, -3.0), (-4.0, 1e-9), (1e100, 1e100), (-1e100, 0.0), (0.0, 0.0)]
    nodes = [
        linear_node(tmp_path / str(place), [one, *TAME[1:]], model, replace(POLICY, label_cap=Decimal(1000)))
        for place, one in enumerate(sides)
    ]
    reached = []
    for task in every_task(model):
        if task.trust is not Trust.CENTRAL or task.menu[0].get("rows") is not None:
            continue
        assert task.exponent is not None
        asked = replace(task, theta=np.zeros((1, 2)) if model == "mean" else np.ones((1, 2)))
        reports = [reply(node, asked) for node in nodes]
        sums = [to_integers(one.payload.values[0, 0], task.exponent) for one in reports if isinstance(one, Report)]
        assert len(sums) == len(nodes)
        gaps = [sum(int(v) ** 2 for v in (one - other).tolist()) for one in sums for other in sums]
        if task.menu[0].name == "exceedances":
            assert max(np.abs(one - other).max() for one in sums for other in sums) == 1 << -task.exponent
            continue
        most = squared_sensitivity(Bounded.of(task.menu[0]), task.exponent, 2)
        assert max(gaps) <= most, task.menu
        reached.append(max(gaps) / most)
    assert max(reached) > 0.99
