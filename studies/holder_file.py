"""A holder's file on the command line: flags that name its columns, and what its holder is told about it."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from protocol.strict import StudyError
from studies.terminal import printable

if TYPE_CHECKING:  # a command's --help need not wait for numpy
    from client.sources.columns import Wanted
    from client.sources.table import Table

FORMATS = """\
FILE is CSV, TSV, JSONL or Parquet, as it is or as gz or zst. Columns are guessed by their names, and the guess is
shown: who answered (labeler, worker, judge, ...), two items (item_a item_b, model_a model_b, left right, home away,
...) and the winner: item_a or item_b, left or right and the like, the name of one of them, a tie (tie, draw, same,
both_bad, ...), or nothing where the answer is missing. Numbers and other codes mean what --winner-coding says: 1/0 that
1 is a win of the first item and 0 one of the second, 1/0/-1 that 0 is a tie, likewise 0/1, 1/2, H/D/A, ... Or who lost
and who won (loser winner, bottom_item top_item, rejected chosen). Answers of one labeler about one pair are one label,
unless a question tells them apart (question, question_id, prompt, turn, ...). Items and the order of lines are public:
a file sorted by answers tells them. With --labeler none a row is known by its place: add new ones at the end."""


def add_column_arguments(parser: argparse.ArgumentParser, features: bool = True) -> None:
    """Flags that say which column is which, and with `features` what describes the items."""
    group = parser.add_argument_group("columns (guessed where they are not named)")
    group.add_argument("--labeler", metavar="NAME", help="who answered; none: every row is somebody else's")
    group.add_argument("--item-a", metavar="NAME", help="the first item of a pair")
    group.add_argument("--item-b", metavar="NAME", help="the second item of a pair")
    group.add_argument("--winner", metavar="NAME", help="what was answered")
    coding = "what that column holds: names, sides, or codes: FIRST/SECOND or FIRST/TIE/SECOND, such as 1/0/-1"
    group.add_argument("--winner-coding", metavar="CODING", help=coding)
    group.add_argument("--loser", metavar="NAME", help="the item that lost; --winner then names the one that won")
    group.add_argument("--question", metavar="NAMES", help="what was asked, NAME or NAME,NAME; none: always the same")
    if not features:
        parser.set_defaults(features=None, features_columns=None)
        return
    group.add_argument(
        "--features", metavar="FILE", help="numbers that describe the items, public: a table with id, or .npz"
    )
    group.add_argument(
        "--features-columns", metavar="NAMES", help="which of their columns to use, NAME or NAME,NAME (all)"
    )


def wanted(args: argparse.Namespace) -> "Wanted":
    """What the flags say of the columns."""
    from client.sources.columns import NONE, Wanted

    questions = () if args.question == NONE else _names(args.question)
    named = (args.labeler, args.item_a, args.item_b, args.winner, args.loser)
    return Wanted(*named, questions, coding=args.winner_coding)


def read_file(args: argparse.Namespace) -> "Table":
    """Read FILE as the flags say. Raises StudyError for a file that does not read, naming the place."""
    from client.sources.item_features import read_item_features
    from client.sources.loading import read_table
    from client.sources.reading import SourceError

    path = Path(args.file)
    if not path.is_file():
        raise StudyError(f"{path}: expected a file of comparisons, found none")
    chosen = _names(args.features_columns)
    if chosen is not None and args.features is None:
        raise StudyError("--features-columns: expected --features with it")
    try:
        features = None if args.features is None else read_item_features(Path(args.features), chosen)
        return read_table(path, args.public_data, wanted(args), features=features)
    except SourceError as error:
        raise StudyError(printable(str(error))) from None


def tell(table: "Table", wanted: "Wanted", private: bool = True) -> None:
    """Say on the error stream what was read as what, and if `private` what nobody but the holder may know."""
    print(printable(f"Columns: {table.columns.describe(wanted)}"), file=sys.stderr)
    if table.homonyms:
        print(printable(f"Read as items, not as answers: {', '.join(table.homonyms)}"), file=sys.stderr)
    if table.dropped:
        print(f"Left out: {table.dropped} rows that compare an item with itself", file=sys.stderr)
    if not private:
        return
    counts = table.private_counts()
    said = {
        "ties": counts.ties,
        "rows without a winner": counts.missing,
        "labels whose rows contradict each other": counts.contradictions,
    }
    if any(said.values()):
        words = ", ".join(f"{count} {what}" for what, count in said.items())
        print(f"For you alone, it depends on answers: {words}", file=sys.stderr)


def _names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(name.strip() for name in text.split(","))
