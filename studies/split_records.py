"""`halftruth data split --records`: a file of records becomes the files of several nodes, each with whole holders."""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from client.sources.numbers import column_of
from client.sources.reading import read_records
from client.sources.record_columns import DROP, REFUSE, RecordColumns
from client.sources.record_table import RecordTable, record_identity
from protocol import strict
from protocol.counting import counted
from protocol.privacy import Unit
from protocol.strict import StudyError
from protocol.trust import Trust
from studies.data.split_members import NODE_LINE, POLICY, TOLD, check_members, write_members
from studies.federate.folder import open_private, write_csv
from studies.federate.record_split import BOUNDS, RecordSplit, inline, quoted, write_record_split
from studies.own_flags import seed_of
from studies.records.columns import decimal_of, described, read_file
from studies.records.facts import facts_of
from studies.terminal import printable

NODE, SERVER, RECORDS_FILE, NODE_FILE = "node-{}", "server", "records.csv", "node.toml"
SAID = {
    "label_cap": "  # epsilon of a row over all tasks: halftruth data split --label-cap",
    "labeler_cap": "  # the same of a holder: --labeler-cap",
}
Split = Callable[[RecordTable, int], list[NDArray[np.int64]]]
Lines = list[list[list[str]]]  # of each row of a table, by its number: cells


def split_records(args: argparse.Namespace, cut: Split, cap: Callable[[str, str], str]) -> int:
    """Split FILE as the flags say; `cut` gives each node its rows, `cap` reads a cap. Raises StudyError."""
    trust, seed = Trust.parse(args.trust), _seed(args)
    assumed = {name: _bound(args, name) for name in BOUNDS if getattr(args, name) is not None}
    table = read_file(args)
    _check(args, table, trust)
    policy = _policy(args, trust, table.columns, cap, seed)
    print(printable(described(table)), file=sys.stderr)
    parts = cut(table, args.nodes)
    columns = table.columns
    facts, held = facts_of(table), tuple(map(len, parts))
    split = RecordSplit(trust, facts, held, columns.response, columns.scales, assumed, seed, args.central_rows)
    header, lines = lines_of(table)
    strict.make_folder(out := Path(args.out), "--out")
    folders, member = [out / NODE.format(index) for index in range(len(parts))], trust is Trust.DISTRIBUTED
    for folder, rows in zip(folders, parts, strict=True):
        folder.mkdir(mode=0o700)
        write_csv(folder / RECORDS_FILE, header, _lines(lines, rows))
        with open_private(folder / NODE_FILE) as file:
            file.write(node_toml(columns, header[-1], table.public, policy, seed, member))
        print(f"{folder}: {counted(len(rows), columns.unit.label)}")
    if member:
        write_members(folders)
        print(TOLD)
    write_record_split(out / SERVER, split)
    print(f"{out / SERVER}: public facts about {counted(split.facts.rows, columns.unit.label)}")
    print(_spending(args, trust, columns.unit, seed))
    return 0


def lines_of(table: RecordTable) -> tuple[list[str], Lines]:
    """A header with the columns that are used and, last, that of row numbers; and the file's own cells of each row.

    Rows are numbered as the table has them, and records of one row stand as they stood in the file, so that every sum
    has its bits. Raises StudyError for a file that changed since the table was read.
    """
    records, columns = read_records(table.path), table.columns
    numeric = {name for name in (*columns.features, columns.response) if name in records.names}
    names = list(dict.fromkeys(column_of(records, name) for name in columns.named()))
    texts = [records.column(name, name in numeric) for name in names]
    needed = {column_of(records, name) for name in (*columns.features, columns.response) if name is not None}
    number = {identity: row for row, identity in enumerate(table.identities)}
    named = columns.holder if columns.unit is Unit.HOLDER else columns.id
    keys = texts[names.index(named)] if named is not None else [f"row {place}" for place in range(len(records))]
    lines: Lines = [[] for _ in number]
    for place, cells in enumerate(zip(*texts, strict=True)):
        if columns.missing == DROP and any(c is None and name in needed for c, name in zip(cells, names, strict=True)):
            continue
        row = number.get(record_identity(columns.unit, keys[place] or ""))
        if row is not None:
            lines[row].append([cell or "" for cell in cells])
    if not all(lines):
        raise StudyError(f"{table.path}: expected the file as it was a moment ago: try again")
    header = "row"
    while header in names:
        header += "_"
    return [*names, header], lines


def node_toml(columns: RecordColumns, row: str, public: bool, policy: str, seed: int | None, member: bool) -> str:
    """A node file for the file beside it, whose column `row` has the rows' numbers, with these lines of a policy."""
    named = {"response": columns.response, "id": columns.id, "holder": columns.holder, "row": row}
    coins = 'entropy = "os"' if seed is None else f'entropy = "addressed"    # protects nobody\nseed = {seed}'
    # Records left out of the split are not here: one that loses a value later is no reason to leave it out in silence.
    missing = REFUSE if columns.missing == DROP else columns.missing
    return f"""\
[node]
{coins}
ledger = "ledger.sqlite"        # what was spent, and what was answered: keep it
{NODE_LINE if member else ""}
[source]
kind = "records"
file = {quoted(RECORDS_FILE)}
features = {quoted(columns.features)}
model = {quoted(columns.model)}
unit = {quoted(columns.unit.label)}
{"".join(f"{key} = {quoted(name)}{chr(10)}" for key, name in named.items() if name is not None)}\
missing = {quoted(missing)}
intercept = {quoted(columns.intercept)}
centre = {inline(columns.scales.centre)}
scale = {inline(columns.scales.scale)}
public = {quoted(public)}

[policy]
{policy}
# [superlink]                   # where the server is
# address = "halftruth.example.org:8443"
# root_certificates = "ca.crt"
# key = "node.key"
"""


def _lines(lines: Lines, rows: NDArray[np.int64]) -> Iterator[Sequence[object]]:
    for row in rows.tolist():
        for cells in lines[row]:
            yield [*cells, row]


def _check(args: argparse.Namespace, table: RecordTable, trust: Trust) -> None:
    check_members(trust, args.nodes)
    if not 1 <= args.nodes <= len(table.labelers):
        what = "holders" if table.columns.holder else "records"
        raise StudyError(f"--nodes: expected 1..{len(table.labelers)}, the number of {what}, got {args.nodes}")
    if trust is not Trust.CLEAR and not (table.lasting or table.public):
        raise StudyError(
            "--id: expected a column of ids that stay with their records, whatever file or line they are in: without "
            "it a ledger cannot know who paid. A file without one can be --trust clear, or --unit holder"
        )


def _policy(
    args: argparse.Namespace, trust: Trust, columns: RecordColumns, cap: Callable[[str, str], str], seed: int | None
) -> str:
    """Lines of a node's policy: it answers under this trust model, for this unit, and to nothing else."""
    usual = "1" if seed is None else "unlimited"  # addressed coins repeat, and protect nobody
    lines = {"trust": quoted([trust.label]), "units": quoted([columns.unit.label])}
    lines["label_cap"] = cap(args.label_cap or usual, "--label-cap")
    if args.labeler_cap is not None:
        if columns.unit is Unit.HOLDER or columns.holder is None:
            raise StudyError("--labeler-cap: only for --unit record with --holder: a row's own is --label-cap")
        lines["labeler_cap"] = cap(args.labeler_cap, "--labeler-cap")
    if args.central_rows:
        if trust is not Trust.CENTRAL:
            raise StudyError("--central-rows: only for --trust central: leave it out")
        lines["central_rows"] = "true"
    if seed is not None:
        lines["max_epsilon"] = quoted(usual)
    named = "".join(f"{key} = {value}{SAID.get(key, '')}\n" for key, value in lines.items())
    return named + (POLICY if trust is Trust.DISTRIBUTED else "")


def _seed(args: argparse.Namespace) -> int | None:
    if args.coins == "addressed" and not (args.public_data and args.seed is not None):
        raise StudyError("--coins addressed: protects nobody, so it needs --public-data, and --seed N")
    if args.coins != "addressed" and args.seed is not None:
        raise StudyError("--seed: the system's coins have none: add --public-data --coins addressed, or leave it out")
    return None if args.seed is None else seed_of(args.seed)


def _bound(args: argparse.Namespace, name: str) -> Decimal:
    value = decimal_of(getattr(args, name), f"--{name}")
    if value <= 0 or (name == "tail" and value > 1):
        raise StudyError(f"--{name}: expected a number {'in (0, 1]' if name == 'tail' else '> 0'}, got {value}")
    return value


def _spending(args: argparse.Namespace, trust: Trust, unit: Unit, seed: int | None) -> str:
    """What nodes of a split let be spent, and what says so."""
    if trust is Trust.CLEAR:
        return "Clear records have no budget."
    if seed is not None:
        return "Coins are addressed: they protect nobody, and nothing bounds what is asked."
    return f"Over all tasks a {unit.label} spends at most epsilon = {args.label_cap or '1'} (--label-cap)."
