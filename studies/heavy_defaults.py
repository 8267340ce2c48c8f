"""The tables of docs/HEAVY_DEFAULTS.md: algorithms for heavy tails as printed against the defaults, over a grid.

`python -m studies.heavy_defaults FOLDER` runs what is not in the folder yet.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from protocol.arms import Arm
from protocol.strict import StudyError
from studies.defaults import Compared, Pair, cell, compare, counts
from studies.heavy_runs import LAWS, of_tail, results
from studies.report.view import View

DIMENSIONS = (1, 5, 20)
GRADIENT_MOMENTS = {"0.5": "18.22", "0.9": "39.61"}  # v -> u of regression in heavy-descent.toml
PRINTED = "gaussian-classical"
Named = tuple[str, str]  # mechanism, estimator
# What is compared, by a study's model: a heading, the arm as printed, the default.
MEANS: tuple[tuple[str, Named, Named], ...] = (
    ("Algorithm 1 / clipped mean", (PRINTED, "algorithm-1"), ("gaussian", "mean")),
    ("Algorithm 3 / clipped mean", (PRINTED, "algorithm-3"), ("gaussian", "mean")),
)
DESCENTS: tuple[tuple[str, Named, Named], ...] = (
    ("Algorithm 2, convex / descent", (PRINTED, "algorithm-2-convex"), ("gaussian", "descent")),
    ("Algorithm 2, strongly convex / descent", (PRINTED, "algorithm-2-strong"), ("gaussian", "descent")),
    ("printed / exact composition", (PRINTED, "descent"), ("gaussian", "descent")),
)


def compared(view: View) -> list[Compared]:
    """All comparisons of a study about records: mean errors of means, mean excess risks of other models.

    Raises ValueError where there are none.
    """
    problem = view.loaded.study.problem
    whole = problem.model == "mean"
    wanted = (MEANS if problem.dimension == 1 else MEANS[1:]) if whole else DESCENTS  # Algorithm 1 is for one number
    pairs = list(_pairs(view.arms, wanted))
    return compare(view.table, pairs, "error_l2" if whole else "excess_risk")


def _pairs(arms: Iterable[Arm], wanted: Iterable[tuple[str, Named, Named]]) -> Iterator[Pair]:
    names = {(arm.mechanism, arm.estimator): arm.name for arm in arms}
    for heading, paper, default in wanted:
        if paper in names and default in names:
            yield heading, names[paper], names[default]


def markdown(views: Iterable[View]) -> Iterator[str]:
    """Lines of one table for studies of one model, then how the comparisons came out."""
    found = [(view, compared(view)) for view in views]
    everything = [one for _, own in found for one in own]
    headings = list(dict.fromkeys(one.heading for one in everything))
    yield "| v | d | n | epsilon | " + " | ".join(headings) + " |"
    yield "|---" * (4 + len(headings)) + "|"
    for view, own in found:
        law = view.loaded.study.records
        for setting in dict.fromkeys(one.setting for one in own):
            cells = {one.heading: cell(one) for one in own if one.setting == setting}
            place = (law and law.tail, view.loaded.study.problem.dimension, setting.n, f"{setting.epsilon:g}")
            yield "| " + " | ".join([*map(str, place), *(cells.get(heading, "-") for heading in headings)]) + " |"
    yield ""
    yield counts(everything)


def means(out: Path, overrides: Sequence[str] = ()) -> list[View]:
    """Results about means at every tail and dimension, in folders of `out`."""
    grid = [(tail, dimension) for dimension in DIMENSIONS for tail in LAWS]
    return [
        results("heavy-defaults", [*of_tail(v), f"problem.dimension={d}", *overrides], out / f"mean-{v}-{d}")
        for v, d in grid
    ]


def descents(out: Path, overrides: Sequence[str] = ()) -> list[View]:
    """Results about descents at every tail, in folders of `out`."""
    found = []
    for tail, moment in GRADIENT_MOMENTS.items():
        law = [f"records.tail={tail}", f'records.noise="centred {LAWS[tail][0]}"', f"records.moment={moment}"]
        found.append(results("heavy-descent", [*law, *overrides], out / f"descent-{tail}"))
    return found


def main() -> int:
    """Print a table about means, and one about descents, as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where results are, or go")
    folder = parser.parse_args().folder
    try:
        for views in (means(folder), descents(folder)):
            print("\n".join(markdown(views)), end="\n\n")
    except (StudyError, ValueError) as error:
        print(f"studies.heavy_defaults: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
