"""Processes that release from one ledger, to be raced and killed by test_release.py.

Usage: release_worker.py MODE LEDGER [NUMBERS]. Every release that a process saw is printed as "task values", after the
call has returned.
"""

import itertools
import os
import random
import resource
import signal
import sqlite3
import sys
import time
from decimal import Decimal
from pathlib import Path

from protocol.privacy import Unit
from server.release import ReleaseLedger
from server.release_file import LedgerError
from server.release_record import ReleaseRequest


def show(ledger: ReleaseLedger, number: int, own: int) -> None:
    """Release task `number` for a process whose sum and reports are its own, and print it in one write."""
    request = ReleaseRequest(
        task=number.to_bytes(8, "big"),
        repetition=0,
        accepted=(bytes([own]),),
        count=own,
        exponent=-40,
        sensitivity_squared=1 << 60,
        mechanism="gaussian-statistic",
        epsilon=Decimal(1),
        delta=Decimal("1e-5"),
        unit=Unit.LABEL,
        cap=0,
    )
    release = ledger.release(request, [own << 40, -own << 40])
    os.write(1, f"{number} {','.join(map(str, release.values))}\n".encode())


def race(path: Path, own: int, tasks: int) -> None:
    with ReleaseLedger(path) as ledger:
        for number in range(tasks):
            show(ledger, number, own)


def crash(path: Path, kills: int, seed: int) -> None:
    """Start a child that opens the ledger and releases for ever, kill it at a random moment; again and again."""
    rng = random.Random(seed)
    for own in range(1, kills + 1):
        delay = rng.uniform(0, 0.25)
        child = os.fork()
        if child == 0:
            try:
                with ReleaseLedger(path) as ledger:
                    for number in itertools.count():
                        show(ledger, number, own % 256)
            finally:
                os._exit(1)
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert os.WTERMSIG(status) == signal.SIGKILL, "the child ended before it was killed"


def fill(path: Path, room: int) -> None:
    """Release until a disk of limited size is full."""
    with ReleaseLedger(path) as ledger:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
        for number in itertools.count():
            try:
                show(ledger, number, 1)
            except LedgerError:
                return


def fork(path: Path) -> None:
    """Exit with 7 if a fork of the process that opened the ledger is refused."""
    with ReleaseLedger(path) as ledger:
        child = os.fork()
        if child == 0:
            try:
                show(ledger, 0, 1)
            except LedgerError:
                os._exit(7)
            os._exit(0)
        _, status = os.waitpid(child, 0)
    sys.exit(os.waitstatus_to_exitcode(status))


def tear(path: Path) -> None:
    """Die in the middle of a transaction that has already reached the file, leaving its journal behind."""
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA cache_size = 1")
    database.execute("BEGIN IMMEDIATE")
    for number in range(100):
        database.execute("INSERT INTO release VALUES (?, 0, ?, ?)", (b"torn%d" % number, "x" * 5000, b""))
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    mode, ledger_path, *numbers = sys.argv[1:]
    modes = {"race": race, "crash": crash, "fill": fill, "fork": fork, "tear": tear}
    modes[mode](Path(ledger_path), *map(int, numbers))
