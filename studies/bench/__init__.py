"""`halftruth bench`: what the machine can do, what others do, and what halftruth does, measured in turn."""

import argparse
from pathlib import Path

EXAMPLES = """\
examples:
  halftruth bench                                 all figures: ours, peers, what the machine can do; many minutes
  halftruth bench help one-pass-sgd --runs 9
  halftruth bench --small                         small forms of all figures, to see that they run
  halftruth bench --out bench.json                pandas.read_json opens it
  halftruth bench --against docs/benchmarks/recorded.json
  halftruth bench --scaling --out out/scaling     how cost grows with rows, dimension, clients, repetitions and cores
  halftruth bench --round --out out/round         what a round over real processes spends, and on what

Each figure has a process of its own. Its sides compute the same (that is checked), are warmed once, and then run in
turn. Figures are medians, a ratio is the median of those of single turns: a busy machine makes both sides slow. Peers
that are not installed are left out; `pip install halftruth[bench]` brings them, into an environment of its own.

--against compares ratios to peers and limits with a recorded run, never seconds: exit code 1 where one fell by more
than the margin."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `halftruth bench`."""
    from studies.cli import count

    parser.formatter_class, parser.epilog = argparse.RawDescriptionHelpFormatter, EXAMPLES
    parser.add_argument("names", metavar="NAME", nargs="*", help="figures (all)")
    parser.add_argument("--small", action="store_true", help="small forms")
    parser.add_argument("--runs", metavar="N", type=count, default=5, help="runs of each side (5)")
    parser.add_argument("--against", metavar="FILE", type=Path, help="compare ratios with a recorded run")
    parser.add_argument("--margin", metavar="X", type=_factor, default=2.0, help="--against: a ratio may fall by X (2)")
    parser.add_argument("--scaling", action="store_true", help="plots of how cost grows, into the folder --out")
    parser.add_argument("--round", action="store_true", help="a plot of what a round spends, into the folder --out")
    parser.add_argument("--out", metavar="PATH", type=Path, help="write the figures as JSON, or plots into a folder")


def _factor(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 1 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a factor >= 1, got {text!r}")
    return value


def main(args: argparse.Namespace) -> int:
    """Run `halftruth bench`: exit code 0 done, 1 a figure failed or a ratio fell; StudyError is wrong use."""
    if args.scaling or args.round:
        from studies.bench.pictures import pictures

        return pictures(args)
    from studies.bench.run import run

    return run(args)
