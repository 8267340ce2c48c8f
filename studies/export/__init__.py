"""`halftruth export`: private preferences for alignment training, or a study's results for trackers of experiments."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from protocol.strict import StudyError, told
from studies.holder_file import FORMATS, add_column_arguments
from studies.terminal import printable

TRL, MLFLOW, TENSORBOARD = "trl", "mlflow", "tensorboard"
FILES = ("jsonl", "parquet")
EXAMPLES = f"""\
examples:
  halftruth export pairs.jsonl --for trl --epsilon 2 --out private
  halftruth export pairs.jsonl --for trl --prompt prompt --epsilon 2 --out private --format parquet
  halftruth export out/figure1 --for mlflow                          the store that MLflow's own settings name
  halftruth export out/figure1 --for mlflow --to http://127.0.0.1:5000
  halftruth export out/figure1 --for tensorboard                     then: tensorboard --logdir out/figure1/tensorboard

Of a file for TRL: it writes OUT/train.jsonl (or .parquet) with prompt, chosen and rejected, where which of the two is
chosen is what the labeler's process reported; and OUT/README.md, a card with the guarantee and the one setting of TRL's
robust loss that takes the noise out again. Names of models, scores, labelers and the order of lines stay here.

Of the folder of a run, finished or not: settings of study and arm, mean errors over n with their intervals by level,
and for MLflow report.html, summary.csv, paired.csv and study.json. A run that has gone on is exported again.

{FORMATS}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `halftruth export`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument(
        "file", metavar="FILE", help="comparisons of texts: JSONL, Parquet, CSV, also as gz or zst; or a run's folder"
    )
    parser.add_argument(
        "--for", dest="target", choices=list(TARGETS), required=True, help="what is to read it: trl wants a file"
    )
    parser.add_argument("--epsilon", metavar="E", help="trl: level for each label")
    parser.add_argument("--out", metavar="DIR", help="a new folder (of tensorboard: FILE/tensorboard)")
    parser.add_argument("--to", metavar="URI", help="mlflow: the tracking URI (MLFLOW_TRACKING_URI, or MLflow's own)")
    parser.add_argument("--experiment", metavar="NAME", help="mlflow: the experiment (halftruth)")
    parser.add_argument("--format", choices=FILES, default=FILES[0], help="of trl's data (jsonl)")
    parser.add_argument("--prompt", metavar="NAME", help="the column of prompts (prompt, where there is one)")
    parser.add_argument("--state", metavar="DIR", help="folder of the ledger (the user's state folder)")
    parser.add_argument("--public-data", action="store_true", help="the labels are no secret: allows addressed coins")
    parser.add_argument("--coins", choices=["os", "addressed"], default="os", help="addressed: the same at every run")
    parser.add_argument("--seed", metavar="N", help="of addressed coins")
    add_column_arguments(parser, features=False)


def main(args: argparse.Namespace) -> int:
    """Write what a target reads: 0 done, 1 it did not get there; StudyError is wrong use."""
    run, known = TARGETS[args.target]
    if known is not None:
        _refuse_others(args, known)
    return run(args)


def _refuse_others(args: argparse.Namespace, known: frozenset[str]) -> None:
    """Raise StudyError for a flag that says anything and is not one of `known`."""
    bare = argparse.ArgumentParser()
    add_arguments(bare)
    usual = vars(bare.parse_args([args.file, "--for", args.target]))
    for name, value in usual.items():
        if name not in {"file", "target", *known} and getattr(args, name) != value:
            flag = f"--{name.replace('_', '-')}"
            takes = ", ".join(f"--{each}" for each in sorted(known))
            raise StudyError(f"{flag}: --for {args.target} does not take it, but {takes}")


def _to_trl(args: argparse.Namespace) -> int:
    from studies.export.private import write_private

    return write_private(args)


def _to_mlflow(args: argparse.Namespace) -> int:
    from studies.export.mlflow import EXPERIMENT, StoreFailed, client_of, log_runs
    from studies.export.runs import tracked

    try:
        found = tracked(Path(args.file))
        client = client_of(args.to)
        name = args.experiment or EXPERIMENT
        key, new = log_runs(client, found, name)
    except StoreFailed as error:
        print(printable(f"halftruth: {error}"), file=sys.stderr)
        return 1
    said = f"{len(found.runs)} runs below run {key}" if new else f"there already, as run {key}"
    print(printable(f"{found.name} ({found.state}): {said}, in experiment {name} of {client.tracking_uri}"))
    return 0


def _to_tensorboard(args: argparse.Namespace) -> int:
    from studies.export.runs import tracked
    from studies.export.tensorboard import check_installed, write_runs

    check_installed()
    found = tracked(Path(args.file))
    out = Path(args.out) if args.out else found.folder.path / TENSORBOARD
    try:
        count = write_runs(found, out)
    except OSError as error:
        print(printable(f"halftruth: {told(error)}"), file=sys.stderr)
        return 1
    print(printable(f"{found.name} ({found.state}): {count} runs. Look at them: tensorboard --logdir {out}"))
    return 0


# What writes it, and the flags that it takes (None: it says itself which it does not).
TARGETS: dict[str, tuple[Callable[[argparse.Namespace], int], frozenset[str] | None]] = {
    TRL: (_to_trl, None),
    MLFLOW: (_to_mlflow, frozenset({"to", "experiment"})),
    TENSORBOARD: (_to_tensorboard, frozenset({"out"})),
}
