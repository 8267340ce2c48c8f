"""The table of docs/RANKINGS.md: what private rankings of real files are worth. `python -m studies.rankings FOLDER`."""

import argparse
import math
import statistics
import sys
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path

from client.sources.columns import Wanted
from client.sources.loading import read_table
from client.sources.table import Table
from protocol.messages import Ties
from protocol.privacy import Unit
from protocol.trust import Trust
from studies.fit.compare import TRUSTS, Comparison, compare
from studies.fit.request import AUTO, WAYS, Request
from studies.terminal import printable
from studies.told import told

FILES = {
    "german_parties_2009.csv": Wanted(),
    "first_names.csv": Wanted(),
    "mtbench_human_judgments.jsonl": Wanted(),
    "llmfao_crowd_comparisons.csv": Wanted(item_a="left", item_b="right"),
}
CLAIMS = (
    *((Unit.LABEL, 0, epsilon) for epsilon in ("0.5", "1", "2", "4")),
    *((Unit.LABELER, 10, epsilon) for epsilon in ("1", "4", "10")),
)
DELTA = Decimal("1e-5")
NAMES = [trust.label for trust in TRUSTS]  # clear is first: all others are set beside it
HEAD = f"| file | unit | epsilon | accuracy {' | '.join(NAMES)} | rank correlation {' | '.join(NAMES[1:])} |"


def main(arguments: Sequence[str]) -> int:
    """Print the table as Markdown, a file after the other, and then what may mislead in it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder of the files")
    parser.add_argument("--seeds", type=int, default=10, help="splits and coins of each cell (10)")
    args = parser.parse_args(arguments)
    print(HEAD)
    print("|---" * HEAD.count(" | ") + "|---|")
    misleading: list[tuple[str, ...]] = []
    for name, wanted in FILES.items():
        table = read_table(args.folder / name, True, wanted)
        for line in lines(table, args.seeds, misleading):
            print(line, flush=True)
    for said in told(misleading, "fits"):
        print(f"\n{printable(said)}")
    return 0


def lines(table: Table, seeds: int, misleading: list[tuple[str, ...]]) -> Iterator[str]:
    """One line for each claim about a file: mean and standard error over seeds; `misleading` gets every fit's warnings.

    A clear fit counts once for each claim that it stands beside.
    """
    for unit, cap, epsilon in CLAIMS:
        found = [_compared(table, unit, cap, Decimal(epsilon), seed) for seed in range(seeds)]
        misleading += [row.found.warnings for one in found for row in one.rows]
        accuracy = [_mean([one.rows[place].accuracy for one in found]) for place in range(len(TRUSTS))]
        correlation = [_mean([one.rows[place].correlation for one in found]) for place in range(1, len(TRUSTS))]
        name = unit.label + (f", cap {cap}" if cap else "")
        yield "| " + " | ".join((table.path.stem, name, epsilon, *accuracy, *correlation)) + " |"


def _compared(table: Table, unit: Unit, cap: int, epsilon: Decimal, seed: int) -> Comparison:
    request = Request(
        path=table.path,
        trust=Trust.LOCAL,
        epsilon=epsilon,
        delta=DELTA,
        bound=AUTO,
        estimator=WAYS[Trust.LOCAL][1][0],
        state=Path(),
        public=True,
        seed=seed,
        ties=Ties.COIN,
        unit=unit,
        cap=cap,
    )
    return compare(request, table, by_labeler=True)


def _mean(values: list[float]) -> str:
    kept = [value for value in values if not math.isnan(value)]
    if len(kept) < 2:
        return "-"
    return f"{statistics.fmean(kept):.3f} ± {statistics.stdev(kept) / math.sqrt(len(kept)):.3f}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
