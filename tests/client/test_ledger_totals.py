"""Any sequence of tasks leaves the totals of a slow ledger, which follows the definitions step by step."""

import sqlite3
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import mpmath
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from client.labeler import answer
from client.ledger import DiskLedger
from client.ledger_view import read_labelers
from client.policy import Policy
from client.sources.table import Table
from protocol.codec import decode_reply, encode_task
from protocol.messages import Code, Mechanism, Refusal, Runs, Task
from protocol.privacy import Unit
from protocol.terms import share
from protocol.trust import Trust

Step = tuple[str, str, str, frozenset[int]]  # kind of task, epsilon, delta, rows asked for
ROWS = [("ann", "x", "y", "item_a"), ("ann", "z", "y", "item_b"), ("bob", "y", "x", "item_a")]
ROWS += [("ann", "y", "x", "item_a"), ("bob", "z", "x", "item_b"), ("cem", "x", "z", "item_b")]
OWNERS = {0: "ann", 1: "ann", 2: "bob", 4: "bob", 5: "cem"}  # rows that stand for a label; cap 2 keeps all of them
GROUPS = np.array([0, 0, 1, 0, 1, 2], dtype=np.int32)
KINDS = ("local", "local for labelers", "central", "central for labelers")
STEPS = st.tuples(
    st.sampled_from(KINDS),
    st.sampled_from(["0.1", "0.5", "1", "3.7"]),
    st.sampled_from(["1e-6", "1e-3", "1e-40"]),
    st.frozensets(st.sampled_from(sorted(OWNERS)), min_size=1),
)
CLOSE = mpmath.mpf("1e-50")  # of numbers that are equal in decimals
CAPS = st.sampled_from([None, "0.5", "2", "6"]), st.sampled_from([None, "1e-6", "5e-3"])


@dataclass
class Slow:
    """Totals by name, with the deltas of groups as plain series."""

    epsilon_cap: Decimal | None
    delta_cap: Decimal | None
    answered: set[tuple[int, Decimal]] = field(default_factory=set)
    epsilon: dict[str, Decimal] = field(default_factory=lambda: defaultdict(Decimal))
    delta: dict[str, Any] = field(default_factory=lambda: defaultdict(mpmath.mpf))

    def pay(self, step: Step) -> bool:
        """Whether everybody could pay; otherwise nobody did."""
        kind, text, slack, rows = step
        level = Decimal(text) if kind != "local for labelers" else share(Decimal(text), 2)
        fresh = {row for row in rows if kind.startswith("central") or (row, level) not in self.answered}
        epsilon, delta = dict(self.epsilon), dict(self.delta)
        for name in {OWNERS[row] for row in fresh}:
            count = sum(OWNERS[row] == name for row in fresh)
            together, failed = count * level, mpmath.mpf(0)
            if kind == "central":
                factors = [mpmath.exp(others * mpmath.mpf(text)) for others in range(count)]
                failed = min(mpmath.mpf(1), mpmath.mpf(slack) * sum(factors))
            elif kind == "central for labelers":
                together, failed = level, mpmath.mpf(slack)
            epsilon[name] = epsilon.get(name, Decimal(0)) + together
            delta[name] = delta.get(name, mpmath.mpf(0)) + failed
            if self.epsilon_cap is not None and epsilon[name] > self.epsilon_cap:
                return False
            if self.delta_cap is not None and delta[name] > mpmath.mpf(str(self.delta_cap)) * (1 + CLOSE):
                return False
        self.epsilon, self.delta = epsilon, delta
        self.answered |= {(row, level) for row in rows} if kind.startswith("local") else set()
        return True


def task(desk: Any, table: Table, number: int, step: Step) -> Task:
    """The step as a server would ask it. All local tasks have tables of two rows."""
    kind, epsilon, delta, rows = step
    trust = Trust.LOCAL if kind.startswith("local") else Trust.CENTRAL
    asked: Task = replace(desk.task(table, trust, epsilon, delta, study=number), rows=Runs.of(sorted(rows)))
    if kind == "central for labelers":
        return replace(asked, unit=Unit.LABELER, cap=2, groups=GROUPS)
    if kind == "local for labelers":
        menu = (Mechanism.of("randomized-response", epsilon=share(Decimal(epsilon), 2)),)
        return replace(asked, unit=Unit.LABELER, cap=2, menu=menu)
    return asked


@settings(max_examples=15)
@given(st.lists(STEPS, min_size=1, max_size=6), *CAPS)
def test_totals_are_those_of_a_slow_ledger(
    desk_in: Callable[[Path], Any], steps: list[Step], epsilon_cap: str | None, delta_cap: str | None
) -> None:
    caps = [None if cap is None else Decimal(cap) for cap in (epsilon_cap, delta_cap)]
    policy = Policy(
        trusts=frozenset({Trust.LOCAL, Trust.CENTRAL}),
        units=frozenset({Unit.LABEL, Unit.LABELER}),
        labeler_cap=caps[0],
        labeler_delta_cap=caps[1],
    )
    with TemporaryDirectory() as folder, mpmath.workdps(100):
        desk, slow = desk_in(Path(folder)), Slow(*caps)
        table = desk.table(ROWS)
        for number, step in enumerate(steps):
            reply = decode_reply(answer(encode_task(task(desk, table, number, step)), desk.node(table, policy)))
            assert isinstance(reply, Refusal) != slow.pay(step)
            assert not isinstance(reply, Refusal) or reply.code is Code.BUDGET_EXHAUSTED
        check(desk.ledger_path, slow)
        with closing(sqlite3.connect(desk.ledger_path)) as old:  # what an older ledger knew
            old.execute("ALTER TABLE labeler DROP COLUMN delta")
            old.execute("PRAGMA user_version = 2")
            old.commit()
        DiskLedger(desk.ledger_path)
        check(desk.ledger_path, slow, upgraded=True)


def check(path: Path, slow: Slow, upgraded: bool = False) -> None:
    """Epsilon exactly; delta never less, and more by 12 digits' rounding only, or by what an older ledger forgot."""
    found = {spent.labeler: spent for spent in read_labelers(path)}
    assert {name: spent.epsilon for name, spent in found.items()} == dict(slow.epsilon)
    for name, spent in found.items():
        true = slow.delta[name]
        assert mpmath.mpf(str(spent.delta)) >= true * (1 - CLOSE)
        assert upgraded or mpmath.mpf(str(spent.delta)) <= true * (1 + mpmath.mpf("1e-11"))
