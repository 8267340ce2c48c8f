"""Columns of a file of records on the command line, and what its holder is told about it."""

import argparse
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from protocol.counting import counted
from protocol.privacy import Unit
from protocol.strict import StudyError

if TYPE_CHECKING:  # a command's --help need not wait for numpy
    from client.sources.record_columns import RecordColumns
    from client.sources.record_table import RecordTable

MOST_SHOWN = 20
REFUSE = "refuse"
UNITS = (Unit.RECORD.label, Unit.HOLDER.label)


def add_record_arguments(parser: argparse.ArgumentParser, alone: bool = True) -> None:
    """Flags that say which column is which; not `alone`, beside those of other kinds of files, which say the unit."""
    group = parser.add_argument_group("columns" if alone else "columns of records")
    group.add_argument(
        "--columns",
        metavar="NAMES",
        required=alone,
        help="features, NAME,NAME; NAME=TEXT is 1 at TEXT, else 0; NAME* all that begin so",
    )
    group.add_argument("--response", metavar="NAME", help="what linear and logistic models explain; NAME=TEXT as above")
    group.add_argument("--id", metavar="NAME", help="what names a record, in every file: claims for records need it")
    group.add_argument("--holder", metavar="NAME", help="whose a record is")
    if alone:
        group.add_argument("--unit", choices=UNITS, default=UNITS[0], help="what a claim protects, one row (record)")
    group.add_argument(
        "--missing",
        metavar="WHAT",
        default=REFUSE,
        help="empty cells: refuse (default), drop-public (which records have some is no secret), or zero, of features",
    )
    group.add_argument("--intercept", action="store_true", help="add a feature that is 1")
    for name, text in (("centre", "subtracted"), ("scale", "divided by, after --centre")):
        group.add_argument(
            f"--{name}",
            metavar="NAME=NUMBER",
            action="append",
            default=[],
            help=f"a public number that is {text}; none that was computed from the file",
        )


def columns_of(args: argparse.Namespace) -> "RecordColumns":
    """What the flags say of the columns. Raises StudyError."""
    from client.record_file import parse_columns

    named = {key: getattr(args, key) for key in ("response", "id", "holder") if getattr(args, key) is not None}
    content: dict[str, Any] = {
        "features": [name.strip() for name in args.columns.split(",")],
        "model": args.model,
        "unit": args.unit,
        "missing": args.missing,
        "intercept": args.intercept,
        "centre": _numbers(args.centre, "--centre"),
        "scale": _numbers(args.scale, "--scale"),
        **named,
    }
    return parse_columns(content, "columns")


def read_file(args: argparse.Namespace) -> "RecordTable":
    """Read FILE as the flags say. Raises StudyError for a file that does not read, naming the place."""
    from client.sources.reading import SourceError
    from client.sources.record_table import read_record_table
    from studies.terminal import printable

    path, columns = Path(args.file), columns_of(args)
    if not path.is_file():
        raise StudyError(f"{path}: expected a file of records, {'got a folder' if path.is_dir() else 'found none'}")
    try:
        table = read_record_table(path, args.public_data, columns)
    except SourceError as error:
        raise StudyError(printable(str(error))) from None
    if table.absent:
        wanted, count = table.absent[0]
        flag, name = "--response" if wanted == columns.response else "--columns", wanted.partition("=")[0]
        texts = counted(count, "different text")
        raise StudyError(printable(f"{flag}: expected a text of the column {name}, which has {texts}, got {wanted!r}"))
    return table


def described(table: "RecordTable") -> str:
    """What was read as what, and public counts of it."""
    columns = table.columns
    shown = [*columns.names[:MOST_SHOWN], *(["..."] if len(columns.names) > MOST_SHOWN else [])]
    parts = [f"features {', '.join(shown)}"]
    parts += [f"{what} {name}" for what in ("response", "id", "holder") if (name := getattr(columns, what))]
    dropped = f"; left out: {counted(table.dropped, 'record')} without a value" if table.dropped else ""
    rows = counted(len(table.rows_held), columns.unit.label)
    return f"Columns: {'; '.join(parts)}; {rows}{dropped}"


def _numbers(items: Sequence[str], flag: str) -> dict[str, Decimal]:
    found: dict[str, Decimal] = {}
    for item in items:
        name, equals, text = item.rpartition("=")
        if not equals or not name or name in found:
            raise StudyError(f"{flag}: expected NAME=NUMBER, once for each column, got {item!r}")
        found[name] = decimal_of(text, f"{flag} {name}")
    return found


def decimal_of(text: str, flag: str) -> Decimal:
    """A number of the command line. Raises StudyError."""
    from protocol.decimals import decimal

    try:
        return decimal(text, flag)
    except ValueError as error:
        raise StudyError(f"{flag}: {error}") from None
