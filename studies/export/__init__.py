"""`halftruth export`: preference data for alignment training, each label randomised by its labeler first."""

import argparse
import sys
from pathlib import Path

from protocol.strict import StudyError
from studies.holder_file import FORMATS, add_column_arguments, new_ledger, read_file, tell, wanted
from studies.own_flags import seed_of, state_of
from studies.terminal import printable

TRL = "trl"
FILES = ("jsonl", "parquet")
EXAMPLES = f"""\
examples:
  halftruth export pairs.jsonl --for trl --epsilon 2 --out private
  halftruth export pairs.jsonl --for trl --prompt prompt --epsilon 2 --out private --format parquet

It writes OUT/train.jsonl (or .parquet) with prompt, chosen and rejected, where which of the two is chosen is what the
labeler's process reported; and OUT/README.md, a card with the guarantee and the one setting of TRL's robust loss that
takes the noise out again. Names of models, scores, labelers and the order of lines stay here.

{FORMATS}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `halftruth export`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("file", metavar="FILE", help="comparisons of texts: JSONL, Parquet, CSV, also as gz or zst")
    parser.add_argument("--for", dest="target", choices=[TRL], required=True, help="what is to read it")
    parser.add_argument("--epsilon", metavar="E", required=True, help="level for each label")
    parser.add_argument("--out", metavar="DIR", required=True, help="a new folder")
    parser.add_argument("--format", choices=FILES, default=FILES[0], help="of the data (jsonl)")
    parser.add_argument("--prompt", metavar="NAME", help="the column of prompts (prompt, where there is one)")
    parser.add_argument("--state", metavar="DIR", help="folder of the ledger (the user's state folder)")
    parser.add_argument("--public-data", action="store_true", help="the labels are no secret: allows addressed coins")
    parser.add_argument("--coins", choices=["os", "addressed"], default="os", help="addressed: the same at every run")
    parser.add_argument("--seed", metavar="N", help="of addressed coins")
    add_column_arguments(parser, features=False)


def main(args: argparse.Namespace) -> int:
    """Ask the labels, and write what they report: 0 done, 1 no answer; StudyError is wrong use."""
    if (args.coins == "addressed") != (args.seed is not None) or (args.seed is not None and not args.public_data):
        raise StudyError("--coins addressed: protects nobody, so it needs --public-data, and --seed N")
    from client.ledger_store import LedgerUnavailable
    from protocol.decimals import epsilon
    from server.listening import RoundFailed
    from studies.export.reports import reported
    from studies.export.texts import prompt_column
    from studies.export.trl import check_columns, write_trl
    from studies.fit.state import LEDGER

    try:
        out, level, state = Path(args.out), epsilon(args.epsilon, "--epsilon"), state_of(args.state)
    except ValueError as error:
        raise StudyError(str(error)) from None
    if out.exists():
        raise StudyError(f"--out: {out}: expected a new folder, got one that is there")
    args.prompt = prompt_column(Path(args.file), args.prompt)
    table = read_file(args)
    tell(table, wanted(args))
    check_columns(table)
    seed = None if args.seed is None else seed_of(args.seed)
    if seed is None and (note := new_ledger(state / LEDGER, "folder")):
        print(printable(note), file=sys.stderr)
    try:
        found = reported(table, level, state, seed)
    except (LedgerUnavailable, RoundFailed) as error:
        print(f"halftruth: {error}", file=sys.stderr)
        return 1
    count = write_trl(out, table, found, args.format)
    said = f"{out}: {count:,} preferences, each label at epsilon = {args.epsilon}"
    print(printable(f"{said}. How to train: {out / 'README.md'}"))
    return 0
