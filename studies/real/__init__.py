"""`halftruth real`: studies of real files, what privacy costs where nobody drew the labels; none of them is private."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from protocol.strict import StudyError
from studies.terminal import printable

if TYPE_CHECKING:  # --help need not wait for numpy
    from studies.real.study import RealStudy

HEADS = "| accuracy | log-loss |"
EXAMPLES = """\
examples:
  halftruth real data                          the studies that come along, all of them: an hour
  halftruth real data --only parties --seeds 3
  halftruth real data --study mine.toml

FOLDER holds the files that studies name. A study is a TOML file such as studies/toml/real-parties.toml, and
docs/REAL_STUDIES.md has its keys. Clear answers are needed to compare with, and coins are addressed: nothing of it is
private."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `halftruth real`."""
    parser.formatter_class, parser.epilog = argparse.RawDescriptionHelpFormatter, EXAMPLES
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="the folder of the data")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--only", metavar="NAME", action="append", help="some of the studies that come along (all)")
    which.add_argument("--study", metavar="FILE", type=Path, action="append", help="a study of your own (TOML)")
    parser.add_argument("--json", action="store_true", help="print JSON, with the warnings of every fit")
    parser.add_argument("--seeds", metavar="N", type=int, help="splits and coins of each cell (as the study says)")


def main(args: argparse.Namespace) -> int:
    """Print one Markdown table a study: exit code 0 done, 1 a fit failed; StudyError is wrong use."""
    from server.estimators.newton import EstimationError
    from studies.real.files import require_files
    from studies.real.study_file import load_real_study, shipped
    from studies.real.tables import as_json, measured

    known = shipped()
    if unknown := [name for name in args.only or [] if name not in known]:
        raise StudyError(f"--only: expected one of {', '.join(known)}, got {unknown[0]!r}")
    if args.seeds is not None and args.seeds < 2:
        raise StudyError(f"--seeds: expected at least 2, for a standard error, got {args.seeds}")
    paths = args.study or [known[name] for name in args.only or known]
    studies = [load_real_study(path, args.folder) for path in paths]
    for study in studies:
        require_files(study)
    documents = []
    for study in studies:
        try:
            if args.json:
                documents.append(as_json(study, dict(measured(study, args.seeds or study.seeds))))
            else:
                _print(study, args.seeds or study.seeds)
        except EstimationError as error:
            print(printable(f"halftruth: {study.name}: {error}"), file=sys.stderr)
            return 1
    if args.json:
        print(json.dumps(documents, indent=2, ensure_ascii=False))
    return 0


def _print(study: "RealStudy", seeds: int) -> None:
    """A table in Markdown, line by line, then what was expected, and what may mislead."""
    from studies.real.evaluate import line
    from studies.real.tables import measured, verdict
    from studies.told import told

    heads = study.heads
    print(f"\n{printable(study.name)}\n\n| {' | '.join(heads)} {HEADS}\n" + "|---" * (len(heads) + 2) + "|")
    found = {}
    for cells, guesses in measured(study, seeds):
        found[cells] = guesses
        print(printable(line(cells, guesses)), flush=True)
    for expected in study.expected:
        print(f"\n{printable(verdict(expected, found))}")
    for said in told((one.warnings for guesses in found.values() for one in guesses), "fits"):
        print(f"\n{printable(said)}")
