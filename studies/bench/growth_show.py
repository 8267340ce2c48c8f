"""How cost grows, for people: a panel an axis, and the table of slopes."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from studies.bench.growth import ALL_ARMS, CORES, Point, slopes
from studies.bench.show import number
from studies.report.arms import BLACK, GREEN, GREY, PURPLE, Look
from studies.report.canvas import DOTS, SOLID, picture, prepare, save, settings
from studies.terminal import print_line, print_table

LOOKS = {
    "local, de-biased fit": Look("local, de-biased fit", PURPLE, "s"),
    "local, de-biased SGD": Look("local, de-biased SGD", PURPLE, "s", hollow=True),
    "central, clipped sum": Look("central, clipped sum", GREEN, "P"),
    ALL_ARMS: Look("all three over processes, wall", BLACK, "D"),
}
PROPORTIONAL = Look("in proportion", GREY, "")
TITLE = "What a cell of a study costs: seconds"
HOW = (
    "Medians of CPU seconds of both sides, in one process, from drawing features to estimates; over cores, seconds of "
    "a whole run with its processes' start,\na process and a thread a core. Unless an axis says otherwise: 100,000 "
    "rows, d = 4, one client, one repetition; 10,000 rows over repetitions; 400 repetitions over cores."
)
MOST_TICKS = 5
COLUMNS = ("grows", "arm", "from, to", "seconds", "slope", "at the end")


def line(point: Point) -> str:
    """A point, as soon as it is measured."""
    return f"{point.axis} {point.x:,}, {point.line}: {number(point.seconds)} s"


def show(found: Sequence[Point]) -> None:
    """Print the table of slopes: 1 is in proportion, over cores -1."""
    print_table(COLUMNS, cells(found), COLUMNS[:2])
    print_line("slope of log seconds in log of what grows, over all points and between the last two; 1: in proportion")


def cells(found: Sequence[Point]) -> list[tuple[str, ...]]:
    """A row for each line of a panel."""
    return [
        (
            slope.axis,
            slope.line,
            f"{slope.first.x:,} to {slope.last.x:,}",
            f"{number(slope.first.seconds)} to {number(slope.last.seconds)}",
            f"{slope.over_all:.2f}",
            f"{slope.at_the_end:.2f}",
        )
        for slope in slopes(found)
    ]


def draw(found: Sequence[Point], folder: Path) -> list[Path]:
    """scaling.png and scaling.svg in a folder."""
    with mpl.rc_context(settings()):
        figure = Figure(figsize=(15.5, 8.0), layout="constrained")
        figure.suptitle(TITLE, x=0.01, ha="left", fontsize=12.5, fontweight="bold")
        figure.supxlabel(HOW, x=0.01, ha="left", fontsize=8.5)
        grid = figure.subplots(2, 4).ravel()
        names = list(dict.fromkeys(point.axis for point in found))
        for axes, name in zip(grid, names, strict=False):
            _panel(axes, name, [point for point in found if point.axis == name])
        for axes in grid[len(names) :]:
            axes.axis("off")
        _legend(grid[len(names)])
        return save(figure, folder / "scaling")


def _panel(axes: Axes, name: str, found: Sequence[Point]) -> None:
    xs = sorted({point.x for point in found})
    prepare(axes, xs[::2] if len(xs) > MOST_TICKS else xs)
    axes.set(title=name, ylabel="seconds")
    top = max(found, key=lambda point: point.seconds)
    power = -1 if name == CORES else 1
    least = min(point.seconds for point in found)
    line = top.seconds * (np.array(xs) / top.x) ** power
    axes.plot(xs, line, color=GREY, linewidth=1.2, linestyle=DOTS, zorder=1)
    axes.set_ylim(0.7 * least, 1.4 * top.seconds)
    for title in dict.fromkeys(point.line for point in found):
        look, points = LOOKS[title], [point for point in found if point.line == title]
        axes.add_line(picture(look, [point.x for point in points], [point.seconds for point in points], 0, SOLID))
        axes.lines[-1].set_markevery(1)


def _legend(axes: Axes) -> None:
    for index, look in enumerate((*LOOKS.values(), PROPORTIONAL)):
        y = 0.9 - 0.09 * index
        axes.add_line(picture(look, [0.04, 0.1, 0.16], [y, y, y], 1, DOTS if look is PROPORTIONAL else SOLID))
        axes.text(0.2, y, look.label, va="center", fontsize=9.5)
