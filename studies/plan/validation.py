"""The table of docs/PLANNING.md: predicted beside measured root mean square errors of a finished run.

`python -m studies.plan.validation OUT` prints it for the results folder OUT of a run of studies/toml/planning.toml.
"""

import math
import sys
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from protocol.coins import Floats
from protocol.trust import Trust
from studies.folder import Folder
from studies.plan.ways import WAYS, Prediction, Setting, predict
from studies.report.view import View


@dataclass(frozen=True)
class Comparison:
    """One way at one setting: `measured` is the root mean square error of all repetitions, `se` its standard error.

    `boundary_rate` is the share of estimates on the ball.
    """

    predicted: Prediction
    measured: float
    se: float
    boundary_rate: float

    @property
    def ratio(self) -> float:
        """measured / predicted."""
        return self.measured / self.predicted.error


def compare(view: View) -> list[Comparison]:
    """Every way that the study has an arm for, at every setting; smallest predicted error of scores first."""
    table, study = view.table, view.loaded.study
    errors, balls = table["error_l2"].to_numpy(), table["hit_boundary"].to_numpy()
    arms, counts = np.array(table["arm"].to_pylist()), table["n"].to_numpy()
    levels = table["epsilon"].fill_null(-1.0).to_numpy()
    found = []
    for way, n in product(WAYS.values(), study.grid.n):
        for epsilon in (None,) if way.arm.trust is Trust.CLEAR else study.grid.epsilon:
            level = -1.0 if epsilon is None else float(epsilon)
            chosen = (arms == way.arm.name) & (counts == n) & (levels == level)
            if chosen.any():
                predicted = predict(view.theory, way, Setting(n, epsilon, study.grid.delta[0]))
                found.append(Comparison(predicted, *_root_mean_square(errors[chosen]), float(balls[chosen].mean())))
    return sorted(found, key=lambda one: one.predicted.score_error)


def _root_mean_square(errors: Floats) -> tuple[float, float]:
    """sqrt(mean of squares), and its standard error to first order in that of the mean."""
    squares = errors * errors
    size = math.sqrt(float(squares.mean()))
    return size, float(squares.std(ddof=1)) / math.sqrt(len(squares)) / (2 * size)


def main(folder: str) -> None:
    """Print the table in Markdown."""
    print("| way | n | ε | scores off by | predicted | measured | ratio | on the ball | plan says |")
    print("|---|---|---|---|---|---|---|---|---|")
    for one in compare(View.open(Folder(Path(folder)))):
        at, said = one.predicted.setting, "doubt" if one.predicted.doubts else "sound"
        level = "-" if at.epsilon is None else str(at.epsilon.normalize())
        print(
            f"| {one.predicted.way.name} | {at.n:,} | {level} | {one.predicted.score_error:.2f} "
            f"| {one.predicted.error:.4f} | {one.measured:.4f} ± {one.se:.4f} | {one.ratio:.2f} "
            f"| {one.boundary_rate:.0%} | {said} |"
        )


if __name__ == "__main__":
    main(sys.argv[1])
