"""`halftruth attack`: what lying labelers do to estimates, and what helps."""

import argparse
import sys
from pathlib import Path

from protocol.failure import RunFailed
from protocol.strict import StudyError

EXAMPLES = """\
examples:
  halftruth attack studies/toml/attacks.toml --out out/attacks
  halftruth attack studies/toml/attacks.toml --out out/attacks --resume         go on after Ctrl-C
  halftruth attack studies/toml/attacks.toml --out out/few --set study.repetitions=3 --set 'attack.fractions=[0, 0.2]'

It plays a study again and again with more and more liars among the labelers, or among the nodes, and writes
OUT/attacks.parquet, OUT/curves.csv and OUT/figures/*_by_liars.*. docs/ATTACKS.md has the keys and what one sees."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `halftruth attack`."""
    parser.formatter_class, parser.epilog = argparse.RawDescriptionHelpFormatter, EXAMPLES
    parser.add_argument("study", metavar="STUDY", help="an attack study (TOML)")
    parser.add_argument("--out", metavar="DIR", required=True, help="folder for the results")
    parser.add_argument("--clients", metavar="K", type=int, default=1, help="clients that share the rows (1)")
    parser.add_argument("--resume", action="store_true", help="go on where an earlier run stopped")
    parser.add_argument("--overwrite", action="store_true", help="delete earlier results in DIR and start again")
    parser.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], dest="overrides", help="change a key"
    )


def main(args: argparse.Namespace) -> int:
    """Run an attack study: exit code 0 done, 1 the run failed, 130 interrupted; StudyError is wrong use."""
    from studies.attacks.report import report
    from studies.attacks.run import run_attacks
    from studies.attacks.study_file import load_attack_study
    from studies.run import Interrupted

    out = Path(args.out)
    if args.clients < 1:
        raise StudyError(f"--clients: expected at least 1, got {args.clients}")
    if args.resume and args.overwrite:
        raise StudyError("expected --resume or --overwrite, got both")
    study = load_attack_study(Path(args.study), args.overrides)
    try:
        shown = _counted if sys.stderr.isatty() else lambda done, total: None
        table = run_attacks(study, out, args.clients, shown, resume=args.resume, overwrite=args.overwrite)
    except Interrupted as stopped:
        print(f"Stopped: {stopped}, and kept in {out}. Go on with --resume.", file=sys.stderr)
        return stopped.code
    except RunFailed as error:
        print(f"halftruth: the run failed: {error}\nFinished units are kept in {out}.", file=sys.stderr)
        return 1
    report(study, table, out)
    return 0


def _counted(done: int, total: int) -> None:
    print(f"\r{done} of {total}", end="" if done < total else "\n", file=sys.stderr, flush=True)
