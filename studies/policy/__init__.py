"""`halftruth policy`: what a learned reward is worth to whoever acts on it."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from protocol.failure import RunFailed
from protocol.strict import StudyError
from studies.load import Loaded

EXAMPLES = """\
examples:
  halftruth policy studies/toml/downstream.toml --out out/downstream
  halftruth policy studies/toml/pessimism.toml --out out/pessimism --set bandit.worlds=10
  halftruth policy studies/toml/downstream.toml --out out/virtual --on simulation --clients 3

It plays a contextual bandit's comparisons under every trust model, and measures what policies lose that are learned
from them. It writes OUT/policies.parquet, OUT/losses.csv and OUT/figures/policies_by_n.*; each world is the folder of
an ordinary run in OUT/worlds, for halftruth report. docs/POLICIES.md has the keys and the formulas."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `halftruth policy`."""
    parser.formatter_class, parser.epilog = argparse.RawDescriptionHelpFormatter, EXAMPLES
    parser.add_argument("study", metavar="STUDY", help="a policy study (TOML)")
    parser.add_argument("--out", metavar="DIR", required=True, help="folder for the results")
    parser.add_argument(
        "--on",
        choices=["in-process", "simulation", "deployment"],
        default="in-process",
        help="runtime: in-process (default); simulation and deployment are Flower's",
    )
    parser.add_argument("--clients", metavar="K", type=int, default=1, help="clients that share the rows (1)")
    parser.add_argument("--resume", action="store_true", help="go on where an earlier run stopped")
    parser.add_argument("--overwrite", action="store_true", help="delete earlier results in DIR and start again")
    parser.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], dest="overrides", help="change a key"
    )


def main(args: argparse.Namespace) -> int:
    """Run a policy study: exit code 0 done, 1 the run failed, 130 interrupted; StudyError is wrong use."""
    from studies.policy.run import run_policies
    from studies.policy.study_file import load_policy_study
    from studies.run import Interrupted

    if args.resume and args.overwrite:
        raise StudyError("expected --resume or --overwrite, got both")
    out = Path(args.out)
    study = load_policy_study(Path(args.study), args.overrides)
    try:
        table = run_policies(study, out, _player(args))
    except Interrupted as stopped:
        print(f"Stopped: finished worlds are kept in {out}. Go on with --resume.", file=sys.stderr)
        return stopped.code
    except RunFailed as error:
        print(f"halftruth: the run failed: {error}\nFinished worlds are kept in {out}.", file=sys.stderr)
        return 1
    from studies.policy.report import report

    report(study, table, out)
    return 0


def _player(args: argparse.Namespace) -> Callable[[Loaded, Path], pa.Table]:
    kept = {"resume": args.resume, "overwrite": args.overwrite}
    if args.on == "in-process":
        from studies.run import run

        return lambda loaded, folder: run(loaded, folder, jobs=1, clients=args.clients, **kept)
    from studies.flower import run as flower

    return lambda loaded, folder: flower.run(loaded, folder, flower.Flower(args.on, args.clients), **kept)
