"""The state folder of fits: a ledger that got lost is missed, and labelers whom another file named are told of."""

import hashlib
import json
import os
from pathlib import Path

from client.ledger_store import LedgerUnavailable
from client.ledger_view import read_labelers
from client.sources.ranking_columns import LONG, RankingColumns
from client.sources.record_table import RecordTable
from client.sources.table import Table

LEDGER, CURATOR, FILES = "ledger.sqlite", "curator.sqlite", "files.json"
MOST_NAMED = 3
Files = dict[str, list[object]]  # path of a file -> how many rows it had, and a hash of whose labels these were about


def require_ledger(state: Path) -> None:
    """Raise LedgerUnavailable where files have paid in this folder and their ledger is gone: all would be forgotten."""
    ledger = state / LEDGER
    if _read(state) and not (ledger.is_file() and ledger.stat().st_size):
        raise LedgerUnavailable(
            f"{ledger}: expected the ledger of what was spent and answered in this folder, found none: bring it back. "
            "Another --state forgets all of it, and everybody would be asked, and charged, anew"
        )


def note_file(state: Path, table: Table) -> str:
    """Note that this file pays here; says what is odd about it, empty where nothing is.

    That is where labelers of this file are in the ledger already and this file is not known: what names them is the
    same, so they are taken for the same people. Where a file names no labelers their names are places in it, and the
    first rows of a file that grew have to be those that it had. All of it is public but paths, which stay here.
    Raises LedgerUnavailable.
    """
    known, path = _read(state), str(table.path.resolve())
    before = known.get(path)
    others = [name for name in known if name != path]
    said = ""
    if before is None or (_by_place(table) and before != _print_of(table, before[0])):
        shared = {one.labeler for one in read_labelers(state / LEDGER)} & set(table.labelers)
        said = _taken_for_others(table, len(shared), others) if shared else ""
    _write(state, known | {path: _print_of(table, len(table.pairs))})
    return said


def note_records(state: Path, table: RecordTable) -> str:
    """Note that a file of records pays here; says whose records the folder knows already, empty where it knows none.

    Raises LedgerUnavailable.
    """
    known, path = _read(state), str(table.path.resolve())
    shared = {one.labeler for one in read_labelers(state / LEDGER)} & set(table.labelers) if path not in known else ()
    _write(state, known | {path: _print_of(table, len(table.identities))})
    if not shared:
        return ""
    return (
        f"{len(shared)} of {len(table.labelers)} holders or records of this file have answered in this folder before, "
        f"in other files ({_named(list(known))}): who has one name is taken for one, and pays for all together. For "
        "other people take another --state"
    )


def _taken_for_others(table: Table, shared: int, others: list[str]) -> str:
    files = _named(others)
    counted = f"{shared} of {len(table.labelers)} labelers"
    if table.columns.labeler is None:
        return (
            f"{counted} of this file, which are only named by their places in it, have answered in this folder before, "
            f"in another file or before this one changed{f' ({files})' if files else ''}: where items and questions "
            "are the same, labels get the answers of those, and these rows are not looked at. Unless they are the "
            "same people, take another --state"
        )
    return (
        f"{counted} of this file have answered in this folder before, in other files{f' ({files})' if files else ''}: "
        "who has one name is taken for one person, whose labels about the same items and question are one label with "
        "one answer. For other people take another --state, for other questions name their columns: --question"
    )


def _named(files: list[str]) -> str:
    return ", ".join(files[:MOST_NAMED]) + (" and others" if len(files) > MOST_NAMED else "")


def _by_place(table: Table) -> bool:
    """Whether labelers are named by their places; rankings of long files are named by their questions."""
    columns = table.columns
    return columns.labeler is None and not (isinstance(columns, RankingColumns) and columns.form == LONG)


def _print_of(table: Table | RecordTable, rows: object) -> list[object]:
    identities = table.identities[: rows if isinstance(rows, int) else 0]
    return [len(identities), hashlib.sha256(b"".join(identities)).hexdigest()]


def _read(state: Path) -> Files:
    path = state / FILES
    try:
        found = json.loads(path.read_bytes()) if path.exists() else {}
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict) or not all(isinstance(one, list) and len(one) == 2 for one in found.values()):
        raise LedgerUnavailable(f"{path}: expected the list of files that paid here, got something else: restore it")
    return found


def _write(state: Path, known: Files) -> None:
    path = state / FILES
    fresh = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump(known, file, indent=1)
        fresh.replace(path)
    except OSError as error:
        raise LedgerUnavailable(f"{path}: expected to write which files paid here: {error}") from error
