"""What a shuffler keeps on disk: sealed reports in the order of their own bytes, and who has been here; never together.

Neither the order of arrival nor any time is written, and what is deleted is overwritten.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from deploy.secret_files import keep_to_owner
from protocol.sealed import Pile

VERSION = 1
TABLES = """
CREATE TABLE IF NOT EXISTS tasks (task BLOB PRIMARY KEY, least INTEGER NOT NULL, closed INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS came (task BLOB, node BLOB, PRIMARY KEY (task, node)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS reports (task BLOB, repetition INTEGER, question INTEGER, sealed BLOB,
  PRIMARY KEY (task, repetition, question, sealed)) WITHOUT ROWID;
"""


class StoreUnusable(RuntimeError):
    """A file that is not a shuffler's, or does not open: names it."""


class Store:
    """One SQLite file; all that is written is on disk when a call returns. Raises StoreUnusable."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            keep_to_owner(path)
            with self._open() as connection:
                (version,) = connection.execute("PRAGMA user_version").fetchone()
                if version not in (0, VERSION):
                    raise StoreUnusable(f"{path}: expected a shuffler's file of version {VERSION}, got {version}")
                connection.executescript(TABLES)
                connection.execute(f"PRAGMA user_version = {VERSION}")
        except (OSError, sqlite3.Error) as error:
            raise StoreUnusable(f"{path}: expected a shuffler's file, but: {error}") from None

    def take(self, task: bytes, node: bytes, least: int, piles: Sequence[Pile]) -> bool:
        """Keep a node's reports, once; whether they were taken: False where the task is closed, and the node is new.

        What a node sends again is not looked at.
        """
        with self._open() as connection:
            if connection.execute("SELECT 1 FROM came WHERE task = ? AND node = ?", (task, node)).fetchone():
                return True
            known = connection.execute("SELECT least, closed FROM tasks WHERE task = ?", (task,)).fetchone()
            if known is not None and known[1]:
                return False
            most = max(least, known[0] if known else 0)
            connection.execute("INSERT OR REPLACE INTO tasks VALUES (?, ?, 0)", (task, most))
            connection.execute("INSERT INTO came VALUES (?, ?)", (task, node))
            rows = ((task, pile.repetition, pile.question, one) for pile in piles for one in pile.sealed)
            connection.executemany("INSERT OR IGNORE INTO reports VALUES (?, ?, ?, ?)", rows)
            return True

    def close(self, task: bytes, least: int) -> tuple[int, list[Pile]]:
        """How many piles of a task are too small, and all piles where none is: then the task is closed for good.

        A pile needs `least` reports, and as many as any of its senders wants.
        """
        with self._open() as connection:
            known = connection.execute("SELECT least FROM tasks WHERE task = ?", (task,)).fetchone()
            if known is None:
                return 0, []
            piles = list(_piles(connection, task))
            small = sum(len(pile.sealed) < max(least, known[0]) for pile in piles)
            if small:
                return small, []
            connection.execute("UPDATE tasks SET closed = 1 WHERE task = ?", (task,))
            return 0, piles

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """A transaction: committed and on disk behind the block, or nothing of it."""
        connection = sqlite3.connect(self._path, timeout=60.0, isolation_level=None)
        try:
            for pragma in ("journal_mode = DELETE", "synchronous = FULL", "secure_delete = ON"):
                connection.execute(f"PRAGMA {pragma}")
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            if connection.in_transaction:
                connection.execute("COMMIT")
        finally:
            connection.close()


def _piles(connection: sqlite3.Connection, task: bytes) -> Iterator[Pile]:
    rows = connection.execute(
        "SELECT repetition, question, sealed FROM reports WHERE task = ? ORDER BY repetition, question, sealed", (task,)
    )
    place, held = None, list[bytes]()
    for repetition, question, sealed in rows:
        if place not in (None, (repetition, question)):
            yield Pile(*place, tuple(held))
            held = []
        place = repetition, question
        held.append(sealed)
    if place is not None:
        yield Pile(*place, tuple(held))
