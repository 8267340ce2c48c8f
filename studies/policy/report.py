"""What a finished policy study says to a person: tables in the terminal, a plot, a CSV file."""

from pathlib import Path
from statistics import fmean

import pyarrow as pa

from studies.policy.run import RESULTS
from studies.policy.score import Baseline, baseline
from studies.policy.show import draw_losses, losses_table, write_losses
from studies.policy.study_file import PolicyStudy
from studies.policy.summary import summarise_policies
from studies.policy.worlds import worlds
from studies.terminal import Terminal
from studies.told import told

WIDE = 130


def report(study: PolicyStudy, table: pa.Table, out: Path) -> None:
    """Print a table for the smallest and the largest n of each choice of pairs; write OUT/losses.csv and the plot."""
    every = list(worlds(study))
    losses, arms = list(summarise_policies(table)), every[0].loaded.study.arms
    known = {shown: [baseline(world) for world in every if world.shown == shown] for shown in study.law.shown}
    means = {
        shown: Baseline(*(fmean(getattr(one, name) for one in ones) for name in ("best", "random", "shown")))
        for shown, ones in known.items()
    }
    console = Terminal()
    console = console if console.is_terminal else Terminal(width=WIDE)
    counts = every[0].loaded.study.grid.n
    for shown in study.law.shown:
        for n in dict.fromkeys((counts[0], counts[-1])):
            console.print(losses_table(losses, arms, shown, n))
        console.print(
            f"The best policy earns {means[shown].best:.3f}; actions at random lose {means[shown].random:.3f}, actions "
            f"as they were shown {means[shown].shown:.3f}.\n"
        )
    for line in told(table["warnings"].to_pylist(), "policies"):
        console.print(line, style="yellow", markup=False)
    write_losses(out / "losses.csv", losses)
    figures = draw_losses(losses, arms, means, out / "figures")
    for path in (out / RESULTS, out / "losses.csv", figures[0]):
        console.print(str(path), highlight=False, soft_wrap=True)
