"""The flags of `halftruth data split`: those of comparisons and rankings, and those of records."""

import argparse

from protocol.problem import MODELS, RECORDS
from protocol.strict import StudyError
from protocol.trust import Trust
from studies.federate.record_split import BOUNDS
from studies.fit.claim import UNITS
from studies.fit.request import WAYS
from studies.holder_file import (
    COLUMN_FLAGS,
    FORMATS,
    RANKING_FLAGS,
    RANKINGS,
    add_column_arguments,
    add_embed_argument,
    add_ranking_arguments,
)
from studies.own_flags import refuse_flags
from studies.records.columns import REFUSE, add_record_arguments
from studies.records.columns import UNITS as RECORD_UNITS

EXAMPLES = f"""\
examples:
  halftruth data split votes.csv --nodes 4 --out nodes
  halftruth federate nodes/server --nodes nodes --trust local --epsilon 1
  halftruth data split votes.csv --nodes 4 --out nodes --trust central --unit labeler --cap 20
  halftruth data split votes.csv --nodes 4 --out nodes --trust distributed
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
share it. With --trust distributed each node also gets a key, node.key, and members, the list of all public ones: with
these it hides in sums under masks what it adds. Of records (--records; columns as with halftruth records) a node gets
records.csv, the columns that are used of its holders' records, and the server one file, server.toml: how many rows each
node has, what the model and its columns are, and bounds that were known beforehand. Give each node its own folder, and
nobody the others'."""

OF_LABELS = ("cap", "ties_public", *COLUMN_FLAGS, *RANKING_FLAGS)
OF_RECORDS = (
    *("columns", "model", "response", "id", "holder", "missing", "intercept", "centre", "scale"),
    *(*BOUNDS, "central_rows", "coins", "seed"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `halftruth data split`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("file", metavar="FILE", help="comparisons, rankings, or with --records numbers")
    parser.add_argument("--nodes", metavar="K", type=int, required=True, help="how many nodes")
    parser.add_argument("--out", metavar="DIR", required=True, help="a folder that is not there yet, or empty")
    trusts = [trust.label for trust in WAYS]
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
    add_embed_argument(parser)
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


def check_kind(args: argparse.Namespace) -> None:
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
