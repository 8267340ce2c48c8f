"""The ledger's file: SQLite tables and the statements on them. What is charged is decided in `client.account`.

A charge is one row of `task` with the reply that it paid for; totals stand beside labels and labelers. Decimals are
TEXT, added exactly in Python.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from client.ledger_upgrade import upgrade
from client.private_files import open_to_others
from protocol.strict import reason

APPLICATION_ID = int.from_bytes(b"htLB", "big")
VERSION = 3
_SCHEMA = (
    "CREATE TABLE task (number INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, trust INTEGER NOT NULL,"
    " mechanism TEXT NOT NULL, epsilon TEXT, delta TEXT, level TEXT, labels INTEGER NOT NULL,"
    " labelers INTEGER NOT NULL, coins INTEGER NOT NULL, reply BLOB NOT NULL, unit INTEGER NOT NULL DEFAULT 1)",
    "CREATE TABLE labeler (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, epsilon TEXT NOT NULL,"
    " delta TEXT NOT NULL)",
    "CREATE TABLE label (id INTEGER PRIMARY KEY, identity BLOB NOT NULL UNIQUE, labeler INTEGER NOT NULL,"
    " epsilon TEXT NOT NULL, delta TEXT NOT NULL)",
    "CREATE TABLE channel (id INTEGER PRIMARY KEY, digest BLOB NOT NULL, coins INTEGER NOT NULL,"
    " UNIQUE (digest, coins))",
    "CREATE TABLE answer (channel INTEGER NOT NULL, label INTEGER NOT NULL, symbol INTEGER NOT NULL,"
    " PRIMARY KEY (channel, label)) WITHOUT ROWID",
)
# Secrets of sessions, and what was asked and answered at each of their stages. A ledger without them is given them when
# its node starts: a program that knows no sessions has nothing to do with them.
_SESSIONS = (
    "CREATE TABLE IF NOT EXISTS session (number INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, root BLOB NOT NULL)",
    "CREATE TABLE IF NOT EXISTS stage (session INTEGER NOT NULL, stage INTEGER NOT NULL, question BLOB NOT NULL,"
    " subject BLOB NOT NULL, reply BLOB, PRIMARY KEY (session, stage)) WITHOUT ROWID",
)


class LedgerUnavailable(Exception):
    """The ledger cannot be read, written or locked, or is not one: nothing may be answered."""


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """The ledger, for a look: nothing changes, except that SQLite undoes what a crash cut short.

    Raises LedgerUnavailable.
    """
    with _available(path, sqlite3.Error), closing(_open(path, timeout=5.0)) as connection:
        connection.execute("PRAGMA query_only = ON")
        _recognise(connection, path)
        yield connection


@contextmanager
def writing(path: Path, timeout: float) -> Iterator[sqlite3.Connection]:
    """One exclusive transaction: on disk when the block has been left, undone if it raises.

    Raises LedgerUnavailable where the ledger cannot be locked within `timeout` seconds, read or written.
    """
    with _available(path, sqlite3.Error), closing(_open(path, timeout)) as connection:
        # FULL would not sync the folder after the journal is deleted: a power cut could undo a commit already answered.
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA cache_size = -65536")
        connection.execute("BEGIN IMMEDIATE")
        _recognise(connection, path)
        yield connection  # closing without COMMIT undoes everything
        connection.execute("COMMIT")


def create(path: Path, timeout: float) -> None:
    """Make the ledger where there is none, readable by its owner only; check and bring up to date the one there is."""
    with _available(path, sqlite3.Error, OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        if open_to_others(path):
            raise LedgerUnavailable(f"{path}: expected a ledger for its owner only, got one open to others: chmod 600")
        with closing(_open(path, timeout)) as connection:
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("BEGIN IMMEDIATE")
            mark = _mark(connection)
            if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] and not mark:
                for statement in _SCHEMA:
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {VERSION}")
            elif mark in ((APPLICATION_ID, 1), (APPLICATION_ID, 2)):
                upgrade(connection, mark[1])
                connection.execute(f"PRAGMA user_version = {VERSION}")
            if _mark(connection) == (APPLICATION_ID, VERSION):
                for statement in _SESSIONS:
                    connection.execute(statement)
            connection.execute("COMMIT")
            _recognise(connection, path)
            if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
                raise LedgerUnavailable(f"{path}: expected an intact ledger, got a damaged one: restore the file")


def reply_to(connection: sqlite3.Connection, task: bytes) -> bytes | None:
    """The reply that this task got before."""
    found = connection.execute("SELECT reply FROM task WHERE id = ?", (task,)).fetchone()
    return None if found is None else bytes(found[0])


def look_up_labelers(connection: sqlite3.Connection, names: Iterable[str]) -> Iterator[tuple[int, int, str, str]]:
    """(position in `names`, id, epsilon and delta spent) of labelers, in no order; new ones have spent nothing."""
    connection.execute("CREATE TEMP TABLE named (position INTEGER PRIMARY KEY, name TEXT)")
    connection.executemany("INSERT INTO named VALUES (?, ?)", enumerate(names))
    connection.execute(
        "INSERT OR IGNORE INTO labeler (name, epsilon, delta) SELECT name, '0', '0' FROM named ORDER BY name"
    )
    query = "SELECT position, labeler.id, epsilon, delta FROM named CROSS JOIN labeler USING (name)"
    yield from connection.execute(query)
    connection.execute("DROP TABLE named")


def look_up(
    connection: sqlite3.Connection, identities: Sequence[bytes], labelers: Iterable[int], channel: int | None
) -> Iterator[tuple[int, int, str, str, int | None]]:
    """(position asked, id, epsilon and delta spent, symbol answered in the channel) of labels, in no order.

    New labels are entered with nothing spent. Statements go in the order of identities: neighbours in the index.
    """
    connection.execute("CREATE TEMP TABLE asked (position INTEGER PRIMARY KEY, identity BLOB, labeler INTEGER)")
    places = zip(range(len(identities)), identities, labelers, strict=True)
    connection.executemany("INSERT INTO asked VALUES (?, ?, ?)", places)
    connection.execute(
        "INSERT OR IGNORE INTO label (identity, labeler, epsilon, delta) "
        "SELECT identity, labeler, '0', '0' FROM asked ORDER BY identity"
    )
    yield from connection.execute(
        "SELECT position, label.id, epsilon, delta, symbol "
        "FROM (SELECT position, identity FROM asked ORDER BY identity) AS wanted "
        "CROSS JOIN label USING (identity) LEFT JOIN answer ON answer.channel = ? AND answer.label = label.id",
        (channel,),
    )
    connection.execute("DROP TABLE asked")


def set_totals(
    connection: sqlite3.Connection, labels: Iterable[tuple[str, str, int]], labelers: Iterable[tuple[str, str, int]]
) -> None:
    """Totals after a charge: (epsilon, delta, id) of labels and of labelers."""
    connection.executemany("UPDATE label SET epsilon = ?, delta = ? WHERE id = ?", labels)
    connection.executemany("UPDATE labeler SET epsilon = ?, delta = ? WHERE id = ?", labelers)


def keep_answers(connection: sqlite3.Connection, channel: int, labels: Iterable[int], symbols: Iterable[int]) -> None:
    """Remember the symbols of labels that have not answered in this channel."""
    answers = ((channel, *pair) for pair in zip(labels, symbols, strict=True))
    connection.executemany("INSERT INTO answer VALUES (?, ?, ?)", answers)


def keep_task(connection: sqlite3.Connection, task: bytes, columns: Sequence[int | str | None], reply: bytes) -> None:
    """Enter a task: trust, unit, mechanism, epsilon, delta, level, labels, labelers, coins; and its reply."""
    connection.execute(
        "INSERT INTO task (id, trust, unit, mechanism, epsilon, delta, level, labels, labelers, coins, reply) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (task, *columns, reply),
    )


def find_channel(connection: sqlite3.Connection, digest: bytes, coins: int) -> int | None:
    """The number of a channel with its coins; None where nothing has answered in it."""
    query = "SELECT id FROM channel WHERE digest = ? AND coins = ?"
    found = connection.execute(query, (digest, coins)).fetchone()
    return None if found is None else int(found[0])


def channel_number(connection: sqlite3.Connection, digest: bytes, coins: int) -> int:
    """The number of a channel with its coins, entered if new."""
    connection.execute("INSERT OR IGNORE INTO channel (digest, coins) VALUES (?, ?)", (digest, coins))
    found = find_channel(connection, digest, coins)
    assert found is not None
    return found


def _open(path: Path, timeout: float) -> sqlite3.Connection:
    """A file that has gone is not made anew: its budgets would be gone as well."""
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=timeout, isolation_level=None)


def _mark(connection: sqlite3.Connection) -> tuple[int, int] | None:
    """(application id, version) of a file that has one."""
    mark = tuple(connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
    return mark if mark != (0, 0) else None


def _recognise(connection: sqlite3.Connection, path: Path) -> None:
    mark = _mark(connection)
    if mark is None or mark[0] != APPLICATION_ID:
        raise LedgerUnavailable(f"{path}: expected a labeler's ledger, got another file")
    if mark[1] != VERSION:
        remedy = "use a newer program" if mark[1] > VERSION else "a fit, or the start of its node, brings it up to date"
        raise LedgerUnavailable(f"{path}: expected a ledger of version {VERSION}, got {mark[1]}: {remedy}")


@contextmanager
def _available(path: Path, *errors: type[Exception]) -> Iterator[None]:
    try:
        yield
    except errors as error:
        raise LedgerUnavailable(
            f"{path}: expected a ledger that can be read, locked and written: {reason(error)}"
        ) from error
