"""The curator's ledger as a SQLite file. A release or a choice is one row, written in one transaction."""

import hashlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from protocol.sqlite_header import application_id
from protocol.strict import told
from server.choice_record import Choice, decode_choice, encode_choice
from server.release_record import Release, decode, encode

Entry = Release | Choice

APPLICATION_ID = 0x48544355  # "HTCU"
VERSION = 2  # a record names the unit of its claim; a ledger has a name of its own
PATIENCE = 60.0  # seconds to wait for another process that is releasing
SCHEMA = (
    "CREATE TABLE release (task BLOB NOT NULL, repetition INTEGER NOT NULL, record TEXT NOT NULL,"
    " digest BLOB NOT NULL, PRIMARY KEY (task, repetition))"
)
NAMES = "CREATE TABLE name (identity BLOB NOT NULL)"


class LedgerError(RuntimeError):
    """The curator's ledger can't be read, written or trusted; nothing was released."""


def open_ledger(path: Path | None, identity: bytes) -> sqlite3.Connection:
    """A connection to the ledger at `path`, None for one in memory; a missing file is made for its owner only.

    `identity` names a ledger that is made; another keeps its own.
    Raises LedgerError for a file that is damaged, newer, not writable, or not a curator's ledger.
    """
    with failing_closed():
        place = ":memory:"
        if path is not None:
            place = str(path.resolve())
            os.close(os.open(place, os.O_RDWR | os.O_CREAT, 0o600))
        database = sqlite3.connect(place, timeout=PATIENCE, isolation_level=None)
        try:
            # EXTRA also syncs the folder when the journal goes: a power cut can't bring it back and undo a release.
            database.execute("PRAGMA synchronous = EXTRA")
            with transaction(database):
                _create_or_check(database, identity)
        except BaseException:
            database.close()
            raise
        return database


@contextmanager
def failing_closed() -> Iterator[None]:
    """Turn every error of SQLite and of files into a LedgerError."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise LedgerError(f"expected a curator's ledger that can be read and written, got: {told(error)}") from error


@contextmanager
def transaction(database: sqlite3.Connection) -> Iterator[None]:
    """One transaction that no other writer shares, from its first read to its commit."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


def find(database: sqlite3.Connection, task: bytes, repetition: int) -> Entry | None:
    """What (task, repetition) released or chose before, or None; raises LedgerError for a damaged record."""
    row = database.execute(
        "SELECT task, repetition, record, digest FROM release WHERE task = ? AND repetition = ?", (task, repetition)
    ).fetchone()
    return _checked(*row) if row else None


def insert(database: sqlite3.Connection, entry: Entry) -> None:
    """Write an entry, within the caller's transaction; a second one for its (task, repetition) is an error."""
    record = encode_choice(entry) if isinstance(entry, Choice) else encode(entry)
    row = (entry.request.task, entry.request.repetition, record, _digest(record))
    database.execute("INSERT INTO release VALUES (?, ?, ?, ?)", row)


def is_release_ledger(path: Path) -> bool:
    """Whether a file is a curator's ledger, by its header."""
    return application_id(path) == APPLICATION_ID


def read_releases(path: Path) -> list[Entry]:
    """All releases and choices of a ledger, oldest first.

    Changes nothing, except that SQLite undoes a commit that a crash cut short.
    Raises LedgerError for a file that is missing, damaged, newer, or not a curator's ledger.
    """
    address = f"{path.resolve().as_uri()}?mode=rw"
    with failing_closed(), closing(sqlite3.connect(address, uri=True, timeout=PATIENCE)) as database:
        database.execute("PRAGMA query_only = ON")
        return _check(database)


def read_identity(database: sqlite3.Connection) -> bytes:
    """What a ledger was named when it was made. Raises LedgerError."""
    with failing_closed():
        row = database.execute("SELECT identity FROM name").fetchone()
    if row is None or not isinstance(row[0], bytes):
        raise LedgerError("expected an undamaged ledger, got one without its name")
    return row[0]


def _create_or_check(database: sqlite3.Connection, identity: bytes) -> None:
    if _pragma(database, "application_id") or database.execute("SELECT 1 FROM sqlite_master").fetchone():
        _check(database)
        return
    database.execute(SCHEMA)
    database.execute(NAMES)
    database.execute("INSERT INTO name VALUES (?)", (identity,))
    database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    database.execute(f"PRAGMA user_version = {VERSION}")


def _check(database: sqlite3.Connection) -> list[Entry]:
    """Every entry of an existing ledger, after checking the whole file."""
    if _pragma(database, "application_id") != APPLICATION_ID:
        raise LedgerError("expected a curator's ledger, got another SQLite file")
    if (version := _pragma(database, "user_version")) != VERSION:
        raise LedgerError(f"expected a ledger of version {VERSION}, got {version}: use the program that wrote it")
    if (verdict := _pragma(database, "integrity_check")) != "ok":
        raise LedgerError(f"expected an undamaged ledger, got: {verdict}")
    rows = database.execute("SELECT task, repetition, record, digest FROM release ORDER BY rowid").fetchall()
    return [_checked(*row) for row in rows]


def _pragma(database: sqlite3.Connection, name: str) -> int | str:
    value: int | str = database.execute(f"PRAGMA {name}").fetchone()[0]
    return value


def _checked(task: object, repetition: object, record: object, digest: object) -> Entry:
    """An entry from its row; raises LedgerError unless digest and key belong to the record."""
    if not isinstance(record, str) or _digest(record) != digest:
        raise LedgerError("expected an undamaged ledger, got a record that does not match its digest")
    try:
        entry = decode_choice(record) if '"places"' in record else decode(record)
    except (ValueError, LookupError, TypeError, ArithmeticError) as error:  # a decimal that is none: the last
        raise LedgerError(f"expected a record of this version, got one that does not read: {error}") from error
    if (entry.request.task, entry.request.repetition) != (task, repetition):
        raise LedgerError("expected an undamaged ledger, got a record under another's key")
    return entry


def _digest(record: str) -> bytes:
    """Recognises damage, not malice: who can write the file can also compute this."""
    return hashlib.sha256(record.encode()).digest()
