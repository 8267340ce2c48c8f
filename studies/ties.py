"""The table of ties in docs/RANKINGS.md: a coin against a third value. `python -m studies.ties FOLDER`."""

import argparse
import math
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

import numpy as np

from client.sources.columns import Wanted
from client.sources.loading import read_table
from client.sources.table import Table
from protocol.messages import Ties
from protocol.terms import TIE
from protocol.trust import Trust
from studies.fit.compare import subset
from studies.fit.request import AUTO, BALL, WAYS, Request
from studies.fit.round import Fit, fit
from studies.fit.show import scores
from studies.terminal import printable
from studies.told import told

FILES = {
    "mtbench_human_judgments.jsonl": Wanted(),
    "llmfao_crowd_comparisons.csv": Wanted(item_a="left", item_b="right"),
}
LEVELS = ("0.5", "1", "2", "4")
WAYS_OF_TIES = ((Ties.COIN, WAYS[Trust.LOCAL][1][0]), (Ties.COIN, "debiased"), (Ties.RANDOMIZED, "debiased"))
NAMES = tuple(f"{ties.name.lower()}, {estimator}" for ties, estimator in WAYS_OF_TIES)
HEAD = ("file", "ties", "epsilon", *NAMES, *(f"interval {name}" for name in NAMES))


@dataclass(frozen=True)
class Cell:
    """One way at one level: squared errors of the scores by seed, half widths of their intervals, fits' warnings."""

    errors: tuple[float, ...]
    widths: tuple[float, ...]
    warnings: tuple[tuple[str, ...], ...]


def main(arguments: Sequence[str]) -> int:
    """Print the table as Markdown, a line at a time, and then what may mislead in it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder of the files")
    parser.add_argument("--seeds", type=int, default=20, help="coins of each cell (20)")
    args = parser.parse_args(arguments)
    print(f"| {' | '.join(HEAD)} |\n" + "|---" * len(HEAD) + "|")
    misleading: list[tuple[str, ...]] = []
    for name, wanted in FILES.items():
        table = read_table(args.folder / name, True, wanted)
        table = replace(subset(table, table.first), public=True)
        for line in lines(table, args.seeds, misleading):
            print(line, flush=True)
    for said in told(misleading, "fits"):
        print(f"\n{printable(said)}")
    return 0


def lines(table: Table, seeds: int, misleading: list[tuple[str, ...]]) -> Iterator[str]:
    """A line for each level: errors against the clear fit with half wins, which all of them estimate."""
    right = scores(_fit(table, Trust.CLEAR, None, Ties.HALF, "mle", 0))
    share = f"{float((table.values.reveal() == TIE).mean()):.2f}"
    for level in LEVELS:
        cells = [_cell(table, level, ties, estimator, seeds, right) for ties, estimator in WAYS_OF_TIES]
        misleading += [texts for cell in cells for texts in cell.warnings]
        found = (*(_error(cell) for cell in cells), *(_width(cell) for cell in cells))
        yield f"| {' | '.join((table.path.stem, share, level, *found))} |"


def _cell(
    table: Table,
    level: str,
    ties: Ties,
    estimator: str,
    seeds: int,
    right: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> Cell:
    fits = [_fit(table, Trust.LOCAL, Decimal(level), ties, estimator, seed) for seed in range(seeds)]
    errors = tuple(float(((scores(one) - right) ** 2).mean()) for one in fits)
    ends = [(one.outcome.ci_low, one.outcome.ci_high) for one in fits]
    widths = tuple(float((high - low).mean()) / 2 for low, high in ends if low is not None and high is not None)
    return Cell(errors, widths, tuple(one.warnings for one in fits))


def _fit(table: Table, trust: Trust, level: Decimal | None, ties: Ties, estimator: str, seed: int) -> Fit:
    """With public data and addressed coins, in the ball of a fit under a claim."""
    bound = AUTO if level is not None else BALL
    request = Request(table.path, trust, level, None, bound, estimator, Path(), public=True, seed=seed, ties=ties)
    return fit(request, table)


def _error(cell: Cell) -> str:
    """The root mean square error of a score, and its standard error over coins."""
    root = math.sqrt(statistics.fmean(cell.errors))
    error = statistics.stdev(cell.errors) / math.sqrt(len(cell.errors)) / (2 * root) if len(cell.errors) > 1 else 0.0
    return f"{root:.3f} ± {error:.3f}"


def _width(cell: Cell) -> str:
    """The mean half width, where every coin has an interval."""
    return f"{statistics.fmean(cell.widths):.3f}" if len(cell.widths) == len(cell.errors) else "-"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
