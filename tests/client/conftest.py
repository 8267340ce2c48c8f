"""Small files of comparisons, tasks about them, and nodes that answer."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from client import kernels
from client.labeler import Node, answer
from client.ledger import DiskLedger
from client.policy import Policy
from client.sources.loading import read_table
from client.sources.table import Table
from protocol.codec import Signed, decode_reply, encode_task
from protocol.features import row_bound
from protocol.grid import exponent
from protocol.messages import Code, Mechanism, Refusal, Report, Task
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.store import FeatureStore
from protocol.trust import Trust

Row = tuple[str, str, str, str]
ALL = Policy(trusts=frozenset({Trust.CLEAR, Trust.LOCAL, Trust.CENTRAL}), max_epsilon=None)


class Desk:
    """One holder at work: a file, its table, a ledger beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ledger_path = folder / "state" / "ledger.sqlite"

    def table(self, rows: Iterable[Row], public: bool = False) -> Table:
        """A file of (labeler, item_a, item_b, winner), read."""
        path = self.folder / "votes.csv"
        lines = ["labeler,item_a,item_b,winner", *(",".join(row) for row in rows)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return read_table(path, public)

    def node(self, table: Table, policy: Policy = ALL, timeout: float = 30.0) -> Node:
        """A live node with the operating system's coins."""
        return Node(table, policy, DiskLedger(self.ledger_path, timeout), "os", FeatureStore(None))

    @staticmethod
    def problem(table: Table) -> Problem:
        """What a server asks about a table."""
        return Problem(len(table.items), "items", True, None, table.pairs)

    def task(
        self,
        table: Table,
        trust: Trust = Trust.LOCAL,
        epsilon: str | None = "1",
        delta: str | None = None,
        study: int = 0,
    ) -> Task:
        """A task about all rows of a table, as a server would write it."""
        problem, n = self.problem(table), len(table.pairs)
        level = None if trust is Trust.CLEAR or epsilon is None else Decimal(epsilon)
        if trust is Trust.CENTRAL:
            failure = Decimal(delta or "1e-6")
            menu = Mechanism.of("gaussian-statistic", epsilon=level or Decimal(1), delta=failure)
            grid = exponent(n, row_bound(problem, None))
        else:
            failure, grid = None, None
            menu = Mechanism("none") if level is None else Mechanism.of("randomized-response", epsilon=level)
        name = study.to_bytes(32, "big")
        return Task(name, trust, Unit.LABEL, problem, (menu,), n, level, failure, 0, 1, exponent=grid)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A holder's desk in a folder of its own."""
    return Desk(tmp_path)


@pytest.fixture(scope="session")
def desk_in() -> type[Desk]:
    """A desk in a folder that is given: for laws, which need one for each example."""
    return Desk


@pytest.fixture
def ask() -> Callable[..., Report]:
    """Ask a node, expecting one report."""

    def asking(node: Node, task: Task, **changes: object) -> Report:
        reply = decode_reply(answer(encode_task(replace(task, **changes)), node))  # type: ignore[arg-type]
        assert not isinstance(reply, Refusal), reply
        (signed,) = reply
        assert isinstance(signed, Signed)
        return signed.report

    return asking


@pytest.fixture
def refusal() -> Callable[..., Code]:
    """Ask a node, expecting a refusal."""

    def asking(node: Node, task: Task, **changes: object) -> Code:
        reply = decode_reply(answer(encode_task(replace(task, **changes)), node))  # type: ignore[arg-type]
        assert isinstance(reply, Refusal), reply
        return reply.code

    return asking


@pytest.fixture
def votes(desk: Desk) -> Table:
    """Six rows, five labels: row 3 repeats row 0 in the other order, and contradicts it."""
    rows = [
        ("ann", "x", "y", "item_a"),
        ("ann", "z", "y", "item_b"),
        ("bob", "y", "x", "item_a"),
        ("ann", "y", "x", "item_a"),
        ("bob", "z", "x", "item_b"),
        ("cem", "x", "z", "item_b"),
    ]
    return desk.table(rows)


@pytest.fixture
def bits() -> Callable[[Report], NDArray[np.uint8]]:
    """The symbols of a report of one repetition."""

    def reading(report: Report) -> NDArray[np.uint8]:
        assert report.payload.values.shape[0] == 1
        return np.asarray(report.payload.values[0], dtype=np.uint8)

    return reading


@pytest.fixture(params=["numpy", "compiled"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Coins and choices by numpy alone, or compiled however few there are."""
    way = kernels if request.param == "compiled" else None
    for module in ("client.draws", "client.randomizer"):
        monkeypatch.setattr(f"{module}.kernels", lambda work: way)
