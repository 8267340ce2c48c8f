"""Rounds of a run in sessions of their own: paid once for all of them, and again for each that is opened again."""

import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.account import BudgetExhausted, Charge
from client.ledger import DiskLedger, Ledger, MemoryLedger
from client.ledger_view import read_entries, read_labelers
from client.policy import Policy
from client.secure.member import of_session
from client.sources import Facts
from protocol.messages import Coins, Mechanism
from protocol.privacy import Unit
from protocol.trust import Trust

ROOT = Path(__file__).resolve().parents[2]
LEVEL, FAILURE, ROUNDS = Decimal("0.5"), Decimal("1e-6"), 3
FACTS = Facts([b"one", b"two"], np.array([0, 1]), ["ann", "bob"])


def charge(round: int, session: bytes, theta: int = 0, run: bytes = b"run") -> Charge:
    """What a round of a run costs in a session."""
    parameters = {"epsilon": LEVEL, "delta": FAILURE, "rounds": Decimal(ROUNDS)}
    plain = Charge(
        task=bytes([round, theta]) * 16,
        place=b"study",
        trust=Trust.DISTRIBUTED,
        unit=Unit.RECORD,
        mechanism=Mechanism.of("skellam", **parameters),
        epsilon=LEVEL,
        delta=FAILURE,
        channel=None,
        coins=Coins.OS,
    )
    return of_session(replace(plain, run=run, round=round), session, plain.task)


def settle(ledger: Ledger, one: Charge, reply: bytes, policy: Policy | None = None) -> bytes:
    """The ledger's answer, `reply` if it is a new one."""

    def write(_: Sequence[Any]) -> bytes:
        return reply

    return ledger.settle([one], np.ones((1, 2), dtype=np.bool_), policy or Policy(), FACTS, none, write)


def none(*_: object) -> Any:
    """Nobody draws symbols of records."""
    raise AssertionError("expected no symbols to be drawn")


def spent(path: Path) -> tuple[Decimal, Decimal]:
    """What each of both people has spent: the same."""
    ((epsilon, delta),) = {(one.epsilon, one.delta) for one in read_labelers(path)}
    return epsilon, delta


def test_all_rounds_of_a_run_pay_once_each_in_a_session_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = DiskLedger(path)
    for t in range(ROUNDS):
        assert settle(ledger, charge(t, b"of round %d" % t), b"%d" % t) == b"%d" % t
    assert spent(path) == (LEVEL, FAILURE)
    (entry,) = read_entries(path)
    assert entry.rounds == tuple(range(ROUNDS)) and entry.labels == 2
    for t in range(ROUNDS):  # asked again in their sessions: the same bytes, for nothing
        assert settle(DiskLedger(path), charge(t, b"of round %d" % t), b"another") == b"%d" % t
    assert spent(path) == (LEVEL, FAILURE)


def test_a_round_that_another_session_opens_pays_a_whole_charge_again(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = DiskLedger(path)
    assert settle(ledger, charge(1, b"first"), b"a") == b"a"
    assert settle(ledger, charge(1, b"second"), b"b") == b"b"
    assert spent(path) == (2 * LEVEL, 2 * FAILURE)
    assert settle(ledger, charge(1, b"second", theta=1), b"c") == b"c"  # another point in one session: another opening
    assert spent(path) == (3 * LEVEL, 3 * FAILURE)
    for t in (0, 2, 0, 2):  # what was paid for has two rounds more, three times
        settle(ledger, charge(t, b"more" + bytes([t])), b"")
    assert spent(path) == (3 * LEVEL, 3 * FAILURE)
    assert settle(ledger, charge(1, b"first"), b"d") == b"a"


def test_other_runs_and_tasks_that_stand_alone_pay_as_before(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = DiskLedger(path)
    settle(ledger, charge(0, b"first"), b"a")
    assert settle(ledger, charge(0, b"first", run=b"another"), b"b") == b"b"
    assert spent(path)[0] == 2 * LEVEL
    alone = replace(charge(0, b"third"), run=None)
    assert settle(ledger, alone, b"c") == settle(ledger, alone, b"d") == b"c"
    assert spent(path)[0] == 3 * LEVEL
    curated = replace(charge(0, b"first"), session=None, trust=Trust.CENTRAL)  # a curator's round of the same name
    assert settle(ledger, curated, b"e") == settle(ledger, curated, b"f") == b"e"
    assert spent(path)[0] == 4 * LEVEL


def test_a_round_that_is_opened_again_is_refused_where_it_cannot_be_paid(tmp_path: Path) -> None:
    path, policy = tmp_path / "ledger", Policy(label_cap=LEVEL)
    ledger = DiskLedger(path)
    settle(ledger, charge(0, b"first"), b"a", policy)
    with pytest.raises(BudgetExhausted):
        settle(ledger, charge(0, b"second"), b"b", policy)
    assert settle(ledger, charge(1, b"second"), b"c", policy) == b"c"
    assert settle(ledger, charge(0, b"first"), b"d", policy) == b"a"
    assert spent(path) == (LEVEL, FAILURE)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, ROUNDS - 1), st.integers(0, 3)), max_size=12))
def test_a_run_pays_as_often_as_its_most_opened_round(asked: list[tuple[int, int]]) -> None:
    """As often as it has to, and no more: so many copies of it hold each round at most once."""
    opened, memory = defaultdict[int, set[int]](set), MemoryLedger()
    for t, session in asked:
        settle(memory, charge(t, bytes([session])), b"")
        opened[t].add(session)
        assert len(memory.totals) == max(map(len, opened.values()))


def test_on_disk_too_it_pays_as_often_as_its_most_opened_round(tmp_path: Path) -> None:
    path, opened, told = tmp_path / "ledger", defaultdict[int, set[int]](set), dict[tuple[int, int], bytes]()
    ledger, rng = DiskLedger(path), np.random.default_rng(7)
    for number, (t, session) in enumerate(rng.integers(0, (ROUNDS, 3), (12, 2)).tolist()):
        first = told.setdefault((t, session), b"%d" % number)
        assert settle(ledger, charge(t, bytes([session])), b"%d" % number) == first
        opened[t].add(session)
        most = max(map(len, opened.values()))
        assert spent(path) == (most * LEVEL, most * FAILURE)


def test_a_member_that_is_killed_has_paid_for_nothing_or_says_the_same(tmp_path: Path) -> None:
    """Killed inside the transaction nothing happened; after it the answer is there, for this session only."""
    path = tmp_path / "ledger"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "error", __file__, str(path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    ledger = DiskLedger(path)
    assert spent(path) == (LEVEL, FAILURE)
    assert settle(ledger, charge(0, b"first"), b"again") == b"of child 1"
    assert spent(path) == (LEVEL, FAILURE)
    assert settle(ledger, charge(0, b"second"), b"another") == b"another"
    assert spent(path) == (2 * LEVEL, 2 * FAILURE)


def die_twice(path: Path) -> None:
    """A child dies inside the ledger's transaction, another one after it, before the answer could leave."""

    def inside(_: Sequence[Any]) -> bytes:
        os.kill(os.getpid(), signal.SIGKILL)
        return b"never"

    for dead in range(2):
        child = os.fork()
        if child == 0:
            ledger, one = DiskLedger(path), charge(0, b"first")
            if dead == 0:
                ledger.settle([one], np.ones((1, 2), dtype=np.bool_), Policy(), FACTS, none, inside)
            settle(ledger, one, f"of child {dead}".encode())
            os.kill(os.getpid(), signal.SIGKILL)
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL


if __name__ == "__main__":
    die_twice(Path(sys.argv[1]))
