"""How fast errors fall with n, against the exponents of theory. `python -m studies.slopes FOLDER`.

Runs what is not in the folder yet.
"""

import argparse
import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from protocol.strict import StudyError
from protocol.trust import Trust
from studies.heavy_runs import LAWS, of_tail, results
from studies.report.view import Level, View
from studies.theory.heavy import central_exponent, local_exponent

QUANTILE = 1.959964  # of the normal law, for 95 %
FEWEST = 3


@dataclass(frozen=True)
class Slope:
    """d log(mean error) / d log(n) of an arm at a level: least squares over the grid, weighted by precision.

    `se`: its standard error. `expected`: what theory says of the worst law with a (1+v)-th moment, and of noise.
    `own`: how fast the bias falls under the study's own law, whose tail index is above 1 + v: errors are between both.
    """

    arm: str
    trust: Trust
    level: Level
    slope: float
    se: float
    expected: float
    own: float

    @property
    def interval(self) -> tuple[float, float]:
        """95 %."""
        return self.slope - QUANTILE * self.se, self.slope + QUANTILE * self.se


def slopes(view: View) -> list[Slope]:
    """Slopes of all arms of a study about means of records that make a claim, in its order.

    The mean error at n has the standard error se, its logarithm se / mean; different n have different records, so
    errors of the fit are independent. Raises ValueError for other studies, and fewer than three n.
    """
    law, problem = view.loaded.study.records, view.loaded.study.problem
    if law is None or law.tail is None or problem.model != "mean":
        raise ValueError("expected a study about means of records, with a tail")
    if len(view.counts) < FEWEST:
        raise ValueError(f"expected at least {FEWEST} n in the grid, got {len(view.counts)}")
    tail, index, found = float(law.tail), law.features.index, []
    for level in view.levels:
        for arm in view.arms:
            if arm.trust not in (Trust.CENTRAL, Trust.LOCAL) or level.epsilon is None:
                continue
            moments = [summary.moments for n in view.counts if (summary := view.at(arm, n, level)) is not None]
            slope, se = fit(list(view.counts), [one.mean for one in moments], [one.se for one in moments])
            expected = -(central_exponent if arm.trust is Trust.CENTRAL else local_exponent)(tail)
            found.append(Slope(arm.name, arm.trust, level, slope, se, expected, expected * (index - 1) / tail))
    return found


def fit(counts: list[int], means: list[float], errors: list[float]) -> tuple[float, float]:
    """Slope and its standard error of log(mean) against log(n), weights (mean / error)^2.

    >>> round(fit([100, 1000, 10000], [1.0, 0.1, 0.01], [0.1, 0.01, 0.001])[0], 12)
    -1.0
    """
    x, y = np.log(counts), np.log(means)
    weights = np.square(np.array(means) / np.array(errors))
    centre = math.fsum(weights * x) / math.fsum(weights)
    spread = math.fsum(weights * (x - centre) ** 2)
    return math.fsum(weights * (x - centre) * y) / spread, 1 / math.sqrt(spread)


def markdown(views: Iterable[View]) -> Iterator[str]:
    """Lines of a table: one for each study, level and arm."""
    yield "| v | epsilon | arm | slope, 95 % interval | theory | bias of this law |"
    yield "|---" * 6 + "|"
    for view in views:
        law = view.loaded.study.records
        for one in slopes(view):
            low, high = one.interval
            measured = f"{one.slope:.3f} [{low:.3f}, {high:.3f}]"
            cells = (law and law.tail, one.level.epsilon, one.arm, measured, f"{one.expected:.3f}", f"{one.own:.3f}")
            yield "| " + " | ".join(map(str, cells)) + " |"


def main() -> int:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where results of studies/toml/heavy-slopes.toml are, or go")
    folder = parser.parse_args().folder
    try:
        print("\n".join(markdown(results("heavy-slopes", of_tail(v), folder / f"slopes-{v}") for v in LAWS)))
    except (StudyError, ValueError) as error:
        print(f"studies.slopes: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
