"""Several processes, and processes that die: never more released than recorded, never two answers of one label."""

import os
import sqlite3
import subprocess
import sys
from collections import defaultdict
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest

from client.ledger_view import read_entries, read_labelers
from client.sources.loading import read_table
from protocol.codec import decode_reply, decode_task, identity
from protocol.messages import Refusal
from protocol.trust import Trust

ROOT = Path(__file__).resolve().parents[2]


def folder_with_votes(folder: Path) -> Path:
    """24 rows, 4 items, every labeler with several labels, and one label twice."""
    items = "wxyz"
    pairs = [(a, b) for a in items for b in items if a != b]
    rows = [f"r{row % 5},{a},{b},item_{'ab'[row % 2]}" for row, (a, b) in enumerate(pairs * 2)]
    (folder / "votes.csv").write_text("\n".join(["labeler,item_a,item_b,winner", *rows]), encoding="utf-8")
    return folder


def run(*arguments: str) -> None:
    """The worker, with one thread: it forks."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "error", str(Path(__file__).with_name("ledger_worker.py")), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def released(folder: Path) -> list[tuple[bytes, bytes]]:
    """(task, reply) of all that left."""
    lines = (folder / "released").read_text().splitlines()
    return [(bytes.fromhex(raw), bytes.fromhex(reply)) for raw, reply in (line.split() for line in lines)]


def recorded(folder: Path) -> dict[bytes, Decimal]:
    """Epsilon that the ledger holds for each label."""
    with closing(sqlite3.connect(folder / "ledger.sqlite")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        rows = connection.execute("SELECT identity, epsilon FROM label").fetchall()
    return {bytes(identity): Decimal(epsilon) for identity, epsilon in rows}


def check_what_left(folder: Path) -> int:
    """Every released answer is recorded and paid for, and a label has one answer in a channel."""
    table = read_table(folder / "votes.csv", public=False)
    known = {entry.task for entry in read_entries(folder / "ledger.sqlite")}
    paid = recorded(folder)
    answers: dict[tuple[bytes, Decimal], int] = {}
    owed: dict[bytes, Decimal] = defaultdict(Decimal)
    for raw, reply in released(folder):
        task, message = decode_task(raw), decode_reply(reply)
        assert not isinstance(message, Refusal), message
        assert identity(raw) in known
        assert task.epsilon is not None
        report = message[0].report
        if task.trust is Trust.CENTRAL:
            for row in table.rows(task).numbers().tolist():
                owed[table.identities[row]] += task.epsilon * (row in set(task.rows.numbers().tolist()))  # type: ignore[union-attr]
            continue
        assert report.rows is not None
        for row, symbol in zip(report.rows.numbers().tolist(), report.payload.values[0].tolist(), strict=True):
            label = table.identities[row]
            normal = symbol ^ int(table.pairs[row, 0] > table.pairs[row, 1])
            if (label, task.epsilon) not in answers:
                owed[label] += task.epsilon
            assert answers.setdefault((label, task.epsilon), normal) == normal
    assert all(paid[label] >= epsilon for label, epsilon in owed.items())
    read_labelers(folder / "ledger.sqlite")  # raises where totals of labelers and labels disagree
    return len(released(folder))


def test_kill_9_at_twenty_random_moments(tmp_path: Path) -> None:
    run("kill", str(folder_with_votes(tmp_path)), "20")
    assert check_what_left(tmp_path) > 5


@pytest.mark.slow
def test_kill_9_at_two_hundred_random_moments(tmp_path: Path) -> None:
    run("kill", str(folder_with_votes(tmp_path)), "200")
    assert check_what_left(tmp_path) > 50


def test_processes_that_ask_at_once_cannot_overspend(tmp_path: Path) -> None:
    run("race", str(folder_with_votes(tmp_path)), "2", "9")
    assert len(released(tmp_path)) == 10
    assert set(recorded(tmp_path).values()) == {Decimal(1)}
    assert len(read_entries(tmp_path / "ledger.sqlite")) == 10


@pytest.mark.parametrize("moment", ["randomized", "report"])
def test_a_death_before_the_commit_leaves_no_trace(tmp_path: Path, moment: str) -> None:
    """Killed inside the transaction, after coins were drawn: nothing was charged, and nothing had left."""
    run("die", str(folder_with_votes(tmp_path)), moment)
    assert read_entries(tmp_path / "ledger.sqlite") == []
    assert recorded(tmp_path) == {}
    assert not (tmp_path / "released").exists()
