"""What `halftruth bench` does: measures figures one after the other, shows them, writes them, compares them."""

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from protocol.failure import RunFailed
from protocol.strict import StudyError
from studies.bench.alone import alone
from studies.bench.figure import Figure
from studies.bench.figures import FIGURES
from studies.bench.machine import facts, load, told
from studies.bench.regression import compared, fallen
from studies.bench.row import OURS, Row, dump, parse
from studies.bench.show import show, spread
from studies.terminal import print_line


def run(args: argparse.Namespace) -> int:
    """The table: exit code 0, or 1 where a figure failed or a ratio fell. Raises StudyError for wrong use."""
    figures, before = _chosen(args.names), load()
    recorded = [] if args.against is None else parse(args.against)
    _check_folder(args.out)
    rows, failed = _measured(figures, args.runs, args.small)
    if rows:
        show(rows, FIGURES)
    command = _again(args)
    where = facts(before, command)
    print_line(f"{told(where)}\n{command}")
    if args.out is not None:
        dump(rows, where, args.out)
    slower = fallen(rows, recorded, args.margin)
    if args.against is not None:
        print_line(f"{compared(rows, recorded)} ratios compared with {args.against}, {len(slower)} fell")
    for words in (*failed, *slower):
        print(f"halftruth: {words}", file=sys.stderr)
    return 1 if failed or slower else 0


def _chosen(names: Sequence[str]) -> list[Figure]:
    unknown = sorted(set(names) - set(FIGURES))
    if unknown:
        raise StudyError(f"expected figures out of {', '.join(FIGURES)}, got {', '.join(unknown)}")
    return [figure for name, figure in FIGURES.items() if not names or name in names]


def _check_folder(out: Path | None) -> None:
    if out is not None and (out.is_dir() or not out.parent.is_dir()):
        raise StudyError(f"--out: expected a file in a folder that is there, got {out}")


def _measured(figures: Sequence[Figure], runs: int, small: bool) -> tuple[list[Row], list[str]]:
    """Rows of all figures that could be measured, and why others could not."""
    rows: list[Row] = []
    failed = []
    for figure in figures:
        try:
            found = alone(figure, runs, small)
        except RunFailed as error:
            failed.append(str(error))
            continue
        except KeyboardInterrupt:  # what was measured is shown, and kept
            failed.append(f"{figure.name}: interrupted")
            break
        rows += found
        print_line(f"{figure.name}: {', '.join(spread(row) for row in found if row.role == OURS)}", style="dim")
    return rows, failed


def _again(args: argparse.Namespace) -> str:
    """The command that repeats it."""
    words = ["halftruth", "bench", *args.names, *(["--small"] if args.small else []), "--runs", str(args.runs)]
    return shlex.join(words)
