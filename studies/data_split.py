"""`halftruth data split`: a file becomes the files of several nodes, each with the whole of its labelers."""

import argparse
import csv
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from protocol import strict
from protocol.decimals import canonical, decimal
from protocol.strict import StudyError
from protocol.trust import SIGHT, Trust
from studies.holder_file import FORMATS, add_column_arguments, read_file, tell, wanted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from client.sources.table import Table

EXAMPLES = f"""\
examples:
  halftruth data split votes.csv --nodes 4 --out nodes
  halftruth data split matches.csv --nodes 2 --out nodes --labeler none --label-cap 2
  halftruth node --config nodes/node-0/node.toml        once its [superlink] says where the server is

{FORMATS}

DIR/node-0, node-1, ... get votes.csv, the rows of the node's labelers with their numbers in the whole file; items.csv,
the public list of items; and node.toml, whose policy answers randomised labels only. DIR/server gets design.npy, the
public pairs of all rows: what a server needs to ask. Give each node its own folder, and nobody the others'. Where nodes
answer in clear, rows without a winner are left out: a run that insists on every row (strict) then fails."""

NODE, SERVER = "node-{}", "server"
VOTES, ITEMS, NODE_FILE, DESIGN = "votes.csv", "items.csv", "node.toml", "design.npy"
HEADER = ("row", "labeler", "item_a", "item_b", "winner", "question")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `halftruth data split`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("file", metavar="FILE", help="comparisons")
    parser.add_argument("--nodes", metavar="K", type=int, required=True, help="how many nodes")
    parser.add_argument("--out", metavar="DIR", required=True, help="a folder that is not there yet, or empty")
    trusts = [trust.label for trust in SIGHT]
    parser.add_argument("--trust", choices=trusts, default=Trust.LOCAL.label, help="what nodes answer (local)")
    parser.add_argument("--label-cap", metavar="E", default="1", help="epsilon of a label in total, or unlimited (1)")
    parser.add_argument("--public-data", action="store_true", help="the labels are no secret")
    add_column_arguments(parser, features=False)


def main(args: argparse.Namespace) -> int:
    """Run `halftruth data split`: exit code 0 done; StudyError is wrong use or a file that does not read."""
    out, cap = strict.folder(Path(args.out), "--out"), _cap(args.label_cap)
    if out.exists() and any(out.iterdir()):
        raise StudyError(f"--out: expected a new or empty folder, got {out}")
    table = read_file(args)
    if not 1 <= args.nodes <= len(table.labelers):
        raise StudyError(f"--nodes: expected 1..{len(table.labelers)}, the number of labelers, got {args.nodes}")
    tell(table, wanted(args))
    node = node_toml(args.trust, cap, args.public_data)
    for index, rows in enumerate(split(table, args.nodes)):
        folder = out / NODE.format(index)
        _write_node(folder, table, rows, node)
        print(f"{folder}: {len(rows)} rows")
    _write_server(out / SERVER, table)
    print(f"{out / SERVER}: the public pairs")
    return 0


def split(table: "Table", nodes: int) -> "list[NDArray[np.int64]]":
    """Positions of the rows of each node, increasing: labelers with most rows first, each to the node with fewest.

    A labeler lives on one node: on two, one label would be answered for, and paid, twice.
    """
    import numpy as np

    rows = np.bincount(table.owners, minlength=len(table.labelers))
    load, home = [0] * nodes, np.zeros(len(table.labelers), dtype=np.int64)
    for labeler in np.argsort(-rows, kind="stable").tolist():
        node = load.index(min(load))
        home[labeler] = node
        load[node] += int(rows[labeler])
    return [np.flatnonzero(home[table.owners] == node) for node in range(nodes)]


def node_toml(trust: str, label_cap: str, public: bool) -> str:
    """A node file for the files beside it."""
    return f"""\
[node]
entropy = "os"
ledger = "ledger.sqlite"        # what was spent, and what was answered: keep it

[source]
kind = "table"
file = {json.dumps(VOTES)}
items = {json.dumps(ITEMS)}
row = "row"
labeler = "labeler"
item_a = "item_a"
item_b = "item_b"
winner = "winner"
coding = "sides"
questions = ["question"]
public = {json.dumps(public)}

[policy]
trust = {json.dumps([trust])}
label_cap = {label_cap}

# [superlink]                   # where the server is
# address = "halftruth.example.org:8443"
# root_certificates = "ca.crt"
# key = "node.key"
"""


def _write_node(folder: Path, table: "Table", rows: "NDArray[np.int64]", node: str) -> None:
    from client.sources.outcomes import MISSING, WRITTEN

    folder.mkdir(mode=0o700, parents=True)
    values, missing = table.values.reveal(), table.missing.reveal()
    lines = []
    for place in rows.tolist():
        a, b = (table.items[item] for item in table.pairs[place].tolist())
        winner = WRITTEN[MISSING if missing[place] else int(values[place])]
        row, labeler = int(table.rows_held[place]), table.labelers[table.owners[place]]
        lines.append((row, labeler, a, b, winner, table.questions[place]))
    _write_csv(folder / VOTES, HEADER, lines)
    _write_csv(folder / ITEMS, ("item",), [(item,) for item in table.items])
    with _open_private(folder / NODE_FILE) as file:
        file.write(node)


def _write_server(folder: Path, table: "Table") -> None:
    import numpy as np

    folder.mkdir(mode=0o700, parents=True)
    np.save(folder / DESIGN, table.pairs, allow_pickle=False)
    _write_csv(folder / ITEMS, ("item",), [(item,) for item in table.items])


def _write_csv(path: Path, header: Sequence[str], lines: Iterable[Sequence[object]]) -> None:
    with _open_private(path) as file:
        # Quoted all: before Python 3.13 a lone carriage return in a name would end the line.
        writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL)
        writer.writerow(header)
        writer.writerows(lines)


def _open_private(path: Path) -> Any:
    """A new file that only its owner reads."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    return os.fdopen(handle, "w", encoding="utf-8", newline="")


def _cap(text: str) -> str:
    """A label cap as TOML writes it."""
    if text == "unlimited":
        return json.dumps(text)
    try:
        value = decimal(text, "--label-cap")
    except ValueError as error:
        raise StudyError(str(error)) from None
    if value <= 0:
        raise StudyError(f"--label-cap: expected a number > 0 or unlimited, got {text!r}")
    return canonical(value)
