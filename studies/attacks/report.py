"""What a finished attack study says to a person: tables in the terminal, plots, a CSV file."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from studies.attacks.folder import RESULTS
from studies.attacks.show import curves_table, draw_curves, write_curves
from studies.attacks.study_file import AttackStudy
from studies.attacks.summary import curves
from studies.terminal import Terminal
from studies.told import told

WIDE = 160


def report(study: AttackStudy, table: pa.Table, out: Path) -> None:
    """Print a table for each kind of liars at the largest n; write OUT/curves.csv and the plots."""
    found, asked = list(curves(study, table)), study.loaded.study
    console = Terminal()
    console = console if console.is_terminal else Terminal(width=WIDE)
    for liars in study.liars:
        console.print(curves_table(found, asked.arms, liars.name, asked.grid.n[-1]))
    for line in told(table["warnings"].to_pylist()):
        console.print(line, style="yellow", markup=False)
    write_curves(out / "curves.csv", found)
    size = float(np.sqrt((study.loaded.theta**2).sum()))
    console.print(f"Answering 0 has the error {size:.2f}.\n")
    figures = draw_curves(found, asked.arms, asked.grid.n[-1], size, out / "figures")
    for path in (out / RESULTS, out / "curves.csv", *figures[::2]):
        console.print(str(path), highlight=False, soft_wrap=True)
