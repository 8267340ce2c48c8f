"""`halftruth data split`: a file becomes the files of several nodes, each with the whole of its labelers."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from client.sources.outcomes import MISSING, WRITTEN
from client.sources.ranking_columns import RankingColumns
from client.sources.ranking_labels import RankingAs
from client.sources.record_table import RecordTable
from client.sources.table import Table
from protocol import strict
from protocol.counting import counted
from protocol.decimals import canonical, decimal
from protocol.privacy import Unit
from protocol.problem import MODELS, RECORDS
from protocol.strict import StudyError
from protocol.terms import share
from protocol.trust import SIGHT, Trust
from studies.federate.facts import Terms, facts_of
from studies.federate.folder import FEATURES, ITEMS, open_private, write_csv, write_facts, write_items
from studies.federate.record_split import BOUNDS
from studies.fit.claim import UNITS, read_unit
from studies.fit.ranking import check_asked
from studies.holder_file import (
    COLUMN_FLAGS,
    FORMATS,
    RANKING_FLAGS,
    RANKINGS,
    add_column_arguments,
    add_ranking_arguments,
    read_file,
    tell,
    wanted,
)
from studies.own_flags import refuse_flags
from studies.records.columns import REFUSE, add_record_arguments
from studies.records.columns import UNITS as RECORD_UNITS
from studies.split_rankings import HEADER as RANKING_HEADER
from studies.split_rankings import RANKINGS as RANKINGS_FILE
from studies.split_rankings import SOURCE as RANKING_COLUMNS
from studies.split_rankings import ranking_lines
from studies.split_records import split_records

EXAMPLES = f"""\
examples:
  halftruth data split votes.csv --nodes 4 --out nodes
  halftruth federate nodes/server --nodes nodes --trust local --epsilon 1
  halftruth data split votes.csv --nodes 4 --out nodes --trust central --unit labeler --cap 20
  halftruth data split matches.csv --nodes 2 --out nodes --labeler none --label-cap 2
  halftruth data split rankings.csv --nodes 4 --out nodes --ranking wide --ranking-as pairs:3
  halftruth data split losses.csv --records --columns loss --id claim --nodes 4 --out nodes --trust central
  halftruth node --config nodes/node-0/node.toml        once its [superlink] says where the server is

{FORMATS}

{RANKINGS}

DIR/node-0, node-1, ... get votes.csv, the rows of the node's labelers with their numbers in the whole file; items.csv,
the public list of items, and features.csv where they are described; and node.toml, whose policy answers what --trust
and --unit say and nothing else. DIR/server gets public facts, all that halftruth federate has to know: server.toml, the
list of items, design.npy with the pairs of all rows, rows.npy with the rows that nodes send (under a claim one of each
label, within the cap; in clear those with a winner), and with --unit labeler groups.npy, numbers that tell whose a row
is. With --ties-public, and in clear, ties.npy says which rows are ties. Of rankings a node gets rankings.csv, the whole
rankings of its labelers, and answers what --ranking-as says; a label's cap is then a ranking's, and its comparisons
share it. Of records (--records; columns as with halftruth records) a node gets records.csv, the columns that are used
of its holders' records, and the server one file, server.toml: how many rows each node has, what the model and its
columns are, and bounds that were known beforehand. Give each node its own folder, and nobody the others'."""

NODE, SERVER = "node-{}", "server"
VOTES, NODE_FILE = "votes.csv", "node.toml"
OF_LABELS = ("cap", "ties_public", *COLUMN_FLAGS, *RANKING_FLAGS)
OF_RECORDS = (
    *("columns", "model", "response", "id", "holder", "missing", "intercept", "centre", "scale"),
    *(*BOUNDS, "central_rows", "coins", "seed"),
)
SAID = {
    "label_cap": "  # epsilon of a label over all tasks: halftruth data split --label-cap",
    "labeler_cap": "  # the same of a labeler: --labeler-cap",
}
HEADER = ("row", "labeler", "item_a", "item_b", "winner", "question")
COLUMNS = """\
row = "row"
labeler = "labeler"
item_a = "item_a"
item_b = "item_b"
winner = "winner"
coding = "sides"
questions = ["question"]
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `halftruth data split`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("file", metavar="FILE", help="comparisons, rankings, or with --records numbers")
    parser.add_argument("--nodes", metavar="K", type=int, required=True, help="how many nodes")
    parser.add_argument("--out", metavar="DIR", required=True, help="a folder that is not there yet, or empty")
    trusts = [trust.label for trust in SIGHT]
    parser.add_argument("--trust", choices=trusts, default=Trust.LOCAL.label, help="what nodes answer (local)")
    units = [*UNITS, *RECORD_UNITS]
    parser.add_argument("--unit", choices=units, help="what a claim protects (label; of records record)")
    parser.add_argument("--cap", metavar="M", help="for --unit labeler: M labels of each labeler count")
    parser.add_argument(
        "--label-cap", metavar="E", help="epsilon of a label, ranking or row in total, or unlimited (1)"
    )
    parser.add_argument(
        "--labeler-cap", metavar="E", help="for --unit labeler: the same of a labeler (1); of a holder's records"
    )
    parser.add_argument("--public-data", action="store_true", help="the labels, or records, are no secret")
    parser.add_argument("--ties-public", action="store_true", help="it is no secret which answers are ties")
    add_column_arguments(parser)
    add_ranking_arguments(parser)
    _add_record_arguments(parser)


def _add_record_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("records")
    group.add_argument("--records", action="store_true", help="the file holds numbers: see halftruth records --help")
    group.add_argument("--model", choices=MODELS[RECORDS], help="what is estimated (mean)")
    group.add_argument("--threshold", metavar="B", help="known beforehand: a bound of a coordinate of what is sent")
    group.add_argument("--tail", metavar="V", help="known beforehand: v in (0, 1], with E|g|^(1+v) <= u")
    group.add_argument("--moment", metavar="U", help="the u of --tail")
    group.add_argument("--bound", metavar="R", help="known beforehand: estimates of norm at most R")
    group.add_argument(
        "--central-rows", action="store_true", help="a curator may see each row's bounded value: for a trimmed mean"
    )
    group.add_argument("--coins", choices=["os", "addressed"], default="os", help="with --public-data: nodes' coins")
    group.add_argument("--seed", metavar="N", help="of addressed coins")
    add_record_arguments(parser, alone=False)


def main(args: argparse.Namespace) -> int:
    """Run `halftruth data split`: exit code 0 done; StudyError is wrong use or a file that does not read."""
    out, trust = strict.folder(Path(args.out), "--out"), Trust.parse(args.trust)
    if out.exists() and any(out.iterdir()):
        raise StudyError(f"--out: expected a new or empty folder, got {out}")
    _check_kind(args)
    if args.records:
        return split_records(args, split, _cap)
    unit = read_unit(args, trust)
    table = read_file(args)
    terms = Terms(trust, *unit, args.ties_public, _asked(args, table, trust, unit[0]))
    policy = _policy(args, terms)
    if not 1 <= args.nodes <= len(table.labelers):
        raise StudyError(f"--nodes: expected 1..{len(table.labelers)}, the number of labelers, got {args.nodes}")
    tell(table, wanted(args))
    facts = facts_of(table, terms, args.nodes)
    node = node_toml(policy, args.public_data, table.features is not None, terms.asked)
    strict.make_folder(out, "--out")
    for index, rows in enumerate(split(table, args.nodes)):
        folder = out / NODE.format(index)
        _write_node(folder, table, rows, node, terms.asked)
        print(f"{folder}: {counted(len(rows), 'row')}")
    write_facts(out / SERVER, facts)
    print(f"{out / SERVER}: public facts about {counted(len(table.pairs), 'row')}")
    print(spending(args, terms))
    return 0


def _check_kind(args: argparse.Namespace) -> None:
    """Flags have to be those of what the file holds; those left out get their usual values. Raises StudyError."""
    if args.records:
        refuse_flags(args, OF_LABELS, "a file of records has none: leave it out")
    else:
        refuse_flags(args, OF_RECORDS, "only a file of records has one: add --records, or leave it out", (REFUSE, "os"))
    units = RECORD_UNITS if args.records else tuple(UNITS)
    args.unit, args.model = args.unit or units[0], args.model or MODELS[RECORDS][0]
    if args.unit not in units:
        raise StudyError(f"--unit: expected one of {', '.join(units)}, got {args.unit}")
    if args.records and args.columns is None:
        raise StudyError("--columns: expected the features of --records, NAME,NAME")


def split(table: Table | RecordTable, nodes: int) -> list[NDArray[np.int64]]:
    """Positions of the rows of each node, increasing: labelers with most rows first, each to the node with fewest.

    A labeler lives on one node: on two, one label would be answered for, and paid, twice.
    """
    rows = np.bincount(table.owners, minlength=len(table.labelers))
    load, home = [0] * nodes, np.zeros(len(table.labelers), dtype=np.int64)
    for labeler in np.argsort(-rows, kind="stable").tolist():
        node = load.index(min(load))
        home[labeler] = node
        load[node] += int(rows[labeler])
    return [np.flatnonzero(home[table.owners] == node) for node in range(nodes)]


def _asked(args: argparse.Namespace, table: Table, trust: Trust, unit: Unit) -> RankingAs | None:
    """What each ranking answers; None for comparisons. Raises StudyError where that cannot be protected."""
    if not isinstance(table.columns, RankingColumns):
        return None
    asked = RankingAs.parse(args.ranking_as or "top")
    check_asked(asked, trust, unit, table)
    return asked


def node_toml(policy: str, public: bool, described: bool, asked: RankingAs | None = None) -> str:
    """A node file for the files beside it, with these lines of a policy."""
    features = f"features = {json.dumps(FEATURES)}\n" if described else ""
    file = VOTES if asked is None else RANKINGS_FILE
    columns = COLUMNS if asked is None else f"ranking_as = {json.dumps(str(asked))}\n{RANKING_COLUMNS}"
    return f"""\
[node]
entropy = "os"
ledger = "ledger.sqlite"        # what was spent, and what was answered: keep it

[source]
kind = "table"
file = {json.dumps(file)}
items = {json.dumps(ITEMS)}
{features}{columns}public = {json.dumps(public)}

[policy]
{policy}
# [superlink]                   # where the server is
# address = "halftruth.example.org:8443"
# root_certificates = "ca.crt"
# key = "node.key"
"""


def _write_node(folder: Path, table: Table, rows: NDArray[np.int64], node: str, asked: RankingAs | None) -> None:
    folder.mkdir(mode=0o700, parents=True)
    if asked is None:
        write_csv(folder / VOTES, HEADER, _votes(table, rows))
    else:
        own = set(rows.tolist())
        lines = (line for start, lines in ranking_lines(table, asked) if start in own for line in lines)
        write_csv(folder / RANKINGS_FILE, RANKING_HEADER, lines)
    write_items(folder, table.items, table.feature_names, table.features)
    with open_private(folder / NODE_FILE) as file:
        file.write(node)


def _votes(table: Table, rows: NDArray[np.int64]) -> Iterator[tuple[object, ...]]:
    """The lines of a node's comparisons."""
    values, missing = table.values.reveal(), table.missing.reveal()
    for place in rows.tolist():
        a, b = (table.items[item] for item in table.pairs[place].tolist())
        winner = WRITTEN[MISSING if missing[place] else int(values[place])]
        row, labeler = int(table.rows_held[place]), table.labelers[table.owners[place]]
        yield row, labeler, a, b, winner, table.questions[place]


def _policy(args: argparse.Namespace, terms: Terms) -> str:
    """Lines of a node's policy: it answers to these terms and to no others."""
    lines = {"trust": json.dumps([terms.trust.label]), "units": json.dumps([terms.unit.label])}
    if terms.unit is Unit.LABEL and args.labeler_cap is not None:
        raise StudyError("--labeler-cap: only --unit labeler has one: leave it out")
    labeler = args.labeler_cap or "1"
    sharing = terms.asked.pairs if terms.asked is not None and terms.unit is Unit.LABEL else 0
    lines["label_cap"] = _cap(args.label_cap or labeler, "--label-cap", max(sharing, 1))
    if terms.unit is Unit.LABELER:
        lines["labeler_cap"] = _cap(labeler, "--labeler-cap")
    lines["ties_public"] = json.dumps(terms.ties_public)
    return "".join(f"{key} = {value}{SAID.get(key, '')}\n" for key, value in lines.items())


def spending(args: argparse.Namespace, terms: Terms) -> str:
    """What nodes of a split let be spent, and what says so."""
    if terms.trust is Trust.CLEAR:
        return "Clear labels have no budget."
    name, flag, most = "label", "--label-cap", args.label_cap or args.labeler_cap or "1"
    if terms.unit is Unit.LABELER:
        name, flag, most = "labeler", "--labeler-cap", args.labeler_cap or "1"
    if terms.asked is not None and terms.unit is Unit.LABEL:
        name = "ranking"
    return f"Over all tasks a {name} spends at most epsilon = {most} ({flag})."


def _cap(text: str, flag: str, sharing: int = 1) -> str:
    """A cap as TOML writes it, or the part of it that each of so many labels has."""
    if text == "unlimited":
        return json.dumps(text)
    try:
        value = decimal(text, flag)
    except ValueError as error:
        raise StudyError(str(error)) from None
    if value <= 0:
        raise StudyError(f"{flag}: expected a number > 0 or unlimited, got {text!r}")
    return canonical(value if sharing == 1 else share(value, sharing))
