"""A holder's file on the command line: flags that name its columns, and what its holder is told about it."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from protocol.counting import counted
from protocol.strict import StudyError
from studies.terminal import printable

if TYPE_CHECKING:  # a command's --help need not wait for numpy
    from client.sources.columns import Wanted
    from client.sources.item_features import ItemFeatures
    from client.sources.ranking_columns import RankingWanted
    from client.sources.reading import Records
    from client.sources.table import Table

FORMATS = """\
FILE is CSV, TSV, JSONL or Parquet, as it is or as gz or zst. Columns are guessed by their names, and the guess is
shown: who answered (labeler, worker, judge, ...), two items (item_a item_b, model_a model_b, left right, home away,
...; --pair where both stand in one cell, as a,b or a vs b) and the winner: item_a or item_b, left or right and the
like, the name of one of them, a tie (tie, draw, same, both_bad, ...), or nothing where the answer is missing. Numbers
and other codes mean what --winner-coding says: 1/0 that 1 is a win of the first item and 0 one of the second, 1/0/-1
that 0 is a tie, likewise 0/1, 1/2, H/D/A, ... Or how often each won (home_wins away_wins, ...; --wins): each win is a
label. Or who lost and who won (loser winner, bottom_item top_item, rejected chosen); what stands inside a value of
JSONL is named with points, as summaries.0.text. Answers of one labeler about one pair are one label, unless a question
tells them apart (question, question_id, prompt, turn, ...). Items and the order of lines are public: a file sorted by
answers tells them. With --labeler none a row is known by its place: add new ones at the end. halftruth data check FILE
says what is awkward about a file, and runs nothing."""

MOST_ALIKE = 3  # groups of names that are shown
COLUMN_FLAGS = (
    *("labeler", "item_a", "item_b", "pair", "pair_separator", "winner", "winner_coding", "wins", "loser"),
    *("question", "unnamed", "prompt", "features", "features_columns", "embed"),
)


def add_column_arguments(parser: argparse.ArgumentParser, features: bool = True) -> None:
    """Flags that say which column is which, and with `features` what describes the items."""
    group = parser.add_argument_group("columns (guessed where they are not named)")
    group.add_argument("--labeler", metavar="NAME", help="who answered; none: every row is somebody else's")
    group.add_argument("--item-a", metavar="NAME", help="the first item of a pair")
    group.add_argument("--item-b", metavar="NAME", help="the second item of a pair")
    group.add_argument("--pair", metavar="NAME", help="both items in one cell")
    between = "what stands between them, tab for a tab (the one of , ; | / tab vs > ... that parts every cell in two)"
    group.add_argument("--pair-separator", metavar="TEXT", help=between)
    group.add_argument("--winner", metavar="NAME", help="what was answered")
    coding = "what that column holds: names, sides, or codes: FIRST/SECOND or FIRST/TIE/SECOND, such as 1/0/-1"
    group.add_argument("--winner-coding", metavar="CODING", help=coding)
    group.add_argument(
        "--wins", metavar="NAMES", help="how often the first item won, and the second: A,B, or with ties A,B,T"
    )
    group.add_argument("--loser", metavar="NAME", help="the item that lost; --winner then names the one that won")
    group.add_argument("--question", metavar="NAMES", help="what was asked, NAME or NAME,NAME; none: always the same")
    left_out = "rows without one of their items: refuse (default), or drop-public where it is no secret which they are"
    group.add_argument("--unnamed", metavar="WHAT", help=left_out)
    if not features:
        parser.set_defaults(prompt=None, features=None, features_columns=None)
        return
    group.add_argument("--prompt", metavar="NAME", help="items are answers to what this column says")
    group.add_argument(
        "--features", metavar="FILE", help="numbers that describe the items, public: a table with id, or .npz"
    )
    group.add_argument(
        "--features-columns", metavar="NAMES", help="which of their columns to use, NAME or NAME,NAME (all)"
    )


def add_embed_argument(parser: argparse.ArgumentParser) -> None:
    """The flag that describes items by their own texts."""
    said = "items are texts: describe each by K numbers that the model of halftruth data embed makes of it, public (64)"
    parser.add_argument("--embed", metavar="K", nargs="?", const="", help=said)


RANKINGS = """\
Rankings: long (a line for each item, with its rank: rank and item, driver, ...; --question tells a labeler's rankings
apart), wide (a line for each ranking, a column for each item, ranks in the cells), or best-worst (a line for each
ranking, columns such as variety_a variety_b variety_c and best worst: the letter, number or name of an item). Of a
ranking is asked its top choice; or one comparison of two of its items, drawn from its name before anyone looks at it;
or M of them, which share epsilon (--ranking-as). Which items a ranking holds is public."""
RANKING_FLAGS = ("ranking", "ranking_as", "items", "rank", "best", "worst", "unranked")


def add_ranking_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags that say how a file of rankings is read, and what is asked of each ranking."""
    group = parser.add_argument_group("rankings (guessed where the columns tell)")
    group.add_argument("--ranking", metavar="FORMAT", help="the file holds rankings: long, wide or best-worst")
    group.add_argument("--ranking-as", metavar="WHAT", help="what a ranking answers: top (default), pair or pairs:M")
    group.add_argument("--items", metavar="NAMES", help="the column of items (long), or NAME,NAME,... one for each")
    group.add_argument("--rank", metavar="NAME", help="long: the column of ranks, 1 the best")
    group.add_argument("--best", metavar="NAME", help="best-worst: which item is best")
    group.add_argument("--worst", metavar="NAME", help="best-worst: which is worst; none: nobody was asked")
    group.add_argument(
        "--unranked", metavar="WHAT", help="an item without a rank: absent (not offered, public) or last (offered)"
    )


def wanted(args: argparse.Namespace) -> "Wanted":
    """What the flags say of the columns."""
    from client.sources.columns import NONE, Wanted

    questions = () if args.question == NONE else column_names(args.question)
    named = (args.labeler, args.item_a, args.item_b, args.winner, args.loser)
    between = "\t" if args.pair_separator == "tab" else args.pair_separator
    told = {"coding": args.winner_coding, "both": args.pair, "between": between, "unnamed": args.unnamed}
    told["prompt"] = args.prompt
    return Wanted(*named, questions, wins=column_names(args.wins), **told)


def wanted_ranking(args: argparse.Namespace) -> "RankingWanted":
    """What the flags say of the columns of rankings. Raises StudyError for those of comparisons."""
    from client.sources.columns import NONE
    from client.sources.ranking_columns import RankingWanted

    of_pairs = (
        *("item_a", "item_b", "pair", "pair_separator", "winner", "winner_coding", "wins", "loser", "unnamed"),
        "prompt",
    )
    if any(getattr(args, name) is not None for name in of_pairs):
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in of_pairs)
        raise StudyError(f"{flags}: a file of rankings has none of them")
    questions = () if args.question == NONE else column_names(args.question)
    named = (args.labeler, column_names(args.items), args.rank, args.best, args.worst)
    return RankingWanted(args.ranking, *named, questions, args.unranked)


def holds_rankings(args: argparse.Namespace, names: tuple[str, ...]) -> bool:
    """Whether a file with columns of these names is read as rankings: where a flag or the names say so."""
    from client.sources.ranking_columns import guess_form

    if not hasattr(args, "ranking"):  # not every command reads rankings
        return False
    said = any(getattr(args, flag) is not None for flag in RANKING_FLAGS)
    return said or (args.winner is None and guess_form(names) is not None)


def read_file(args: argparse.Namespace) -> "Table":
    """Read FILE as the flags say. Raises StudyError for a file that does not read, naming the place."""
    from client.sources.columns import NoComparison
    from client.sources.loading import read_table
    from client.sources.ranking_labels import RankingAs, read_ranking_table
    from client.sources.reading import SourceError, read_records

    path = Path(args.file)
    if not path.is_file():
        raise StudyError(f"{path}: expected a file of comparisons, {instead(path)}")
    try:
        records = read_records(path)
        features = described(args, records)
        if holds_rankings(args, records.names):
            asked = RankingAs.parse(args.ranking_as or "top")
            return read_ranking_table(path, args.public_data, wanted_ranking(args), asked, features, records)
        return read_table(path, args.public_data, wanted(args), features=features, records=records)
    except NoComparison as error:
        hint = "; where it holds rankings: --ranking long, wide or best-worst" if hasattr(args, "ranking") else ""
        raise StudyError(printable(f"{error}{hint}")) from None
    except SourceError as error:
        raise StudyError(printable(str(error))) from None


def described(args: argparse.Namespace, records: "Records") -> "ItemFeatures | None":
    """What describes the items of a file, as the flags say. Raises StudyError, SourceError."""
    from client.sources.item_features import read_item_features

    if getattr(args, "embed", None) is not None:  # not every command reads texts
        if args.features is not None:
            raise StudyError("--embed: makes features of the items' texts: leave it out, or --features")
        from studies.text.command import features_of

        return features_of(args, records)
    chosen = column_names(args.features_columns)
    if chosen is not None and args.features is None:
        raise StudyError("--features-columns: expected --features with it")
    if args.features is None:
        return None
    if not Path(args.features).is_file():
        raise StudyError(f"--features: {args.features}: expected a file, {instead(Path(args.features))}")
    return read_item_features(Path(args.features), chosen)


def instead(path: Path) -> str:
    """What was got in place of a file."""
    return "got a folder: name a file in it" if path.is_dir() else "found none"


def tell(table: "Table", wanted: "Wanted | RankingWanted", private: bool = True) -> None:
    """Say on the error stream what was read as what, and if `private` what nobody but the holder may know."""
    from client.sources.columns import Columns, Wanted
    from studies.data.look_names import alike, told

    columns, pairs = table.columns, isinstance(table.columns, Columns)
    if isinstance(columns, Columns):
        assert isinstance(wanted, Wanted)
        described = columns.describe(wanted)
    else:
        described = columns.describe()
    print(printable(f"Columns: {described}"), file=sys.stderr)
    if table.homonyms:
        print(printable(f"Read as items, not as answers: {', '.join(table.homonyms)}"), file=sys.stderr)
    if near := alike(table.items):
        shown = "; ".join(" / ".join(map(told, group)) for group in near[:MOST_ALIKE])
        more = ", ..." if len(near) > MOST_ALIKE else ""
        print(printable(f"Different items, though their names look alike: {shown}{more}"), file=sys.stderr)
    merged = table.label_count < len(table.pairs)
    if merged and isinstance(columns, Columns) and columns.prompt not in (None, *columns.questions):
        what = f"answers about one pair to several prompts; --question {columns.prompt} parts them"
        print(printable(f"One label of a labeler: {what}"), file=sys.stderr)
    if table.dropped:
        what = "that compare an item with itself" if pairs else "of less than two items"
        print(f"Left out: {counted(table.dropped, 'row')} {what}", file=sys.stderr)
    if table.unnamed:
        print(f"Left out: {counted(table.unnamed, 'row')} without one of two items", file=sys.stderr)
    if not private:
        return
    counts = table.private_counts()
    said = {
        "tie": (counts.ties, ""),
        "row": (counts.missing, " without a winner"),
        "label": (counts.contradictions, " whose rows contradict each other"),
    }
    if any(count for count, _ in said.values()):
        words = ", ".join(f"{counted(count, what)}{more}" for what, (count, more) in said.items())
        print(f"For you alone, it depends on answers: {words}", file=sys.stderr)


def new_ledger(path: Path, whose: str = "node") -> str:
    """What its holder is told where a ledger is about to be made: one that got lost forgets what was spent.

    Empty where there is one. `whose` ledger it is: a node's, or that of a fit's state folder.
    """
    if path.is_file() and path.stat().st_size:
        return ""
    lost = "end it and bring that back" if whose == "node" else "bring that back, and do not use this one"
    return f"New ledger {path}: if this {whose} had one, {lost}"


def column_names(text: str | None) -> tuple[str, ...] | None:
    """Names of columns as a flag lists them; None where it was not given."""
    return None if text is None else tuple(name.strip() for name in text.split(","))
