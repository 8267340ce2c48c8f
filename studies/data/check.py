"""`halftruth data check`: what is awkward about a holder's file. It runs nothing and writes nothing."""

import argparse
import json
from pathlib import Path

from protocol.strict import StudyError
from studies.holder_file import FORMATS, RANKINGS, add_column_arguments, add_ranking_arguments, instead

EXAMPLES = f"""\
examples:
  halftruth data check votes.csv
  halftruth data check votes.csv --labeler worker --item-a left --item-b right --winner winner
  halftruth data check stories.csv --labeler none --pair options --winner creativity
  halftruth data check rankings.csv --ranking wide
  halftruth data check losses.csv --records
  halftruth data check votes.csv --json

{FORMATS}

{RANKINGS}

Findings depend on answers: they are for the holder's own terminal. Exit code 0: the file can be used as it is read
here; 1: it cannot, and the report says why; 2: wrong use."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `halftruth data check`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("file", metavar="FILE", help="comparisons, rankings, or with --records numbers")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--records", action="store_true", help="the file holds numbers")
    parser.add_argument("--columns", metavar="NAMES", help="which columns of numbers to look at, NAME,NAME (all)")
    add_column_arguments(parser)
    add_ranking_arguments(parser)


def main(args: argparse.Namespace) -> int:
    """Run `halftruth data check`: exit code 0 a file that can be used, 1 one that cannot; StudyError is wrong use."""
    from studies.data.check_show import show
    from studies.data.look import look

    for path in (args.file, args.features):
        if path is not None and not Path(path).is_file():
            raise StudyError(f"{path}: expected a file, {instead(Path(path))}")
    report = look(args)
    if args.json:
        print(json.dumps(report.as_json(), indent=2, ensure_ascii=False))
    else:
        show(report)
    return 0 if report.usable else 1
