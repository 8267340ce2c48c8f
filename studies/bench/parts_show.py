"""What a round spends, for people: a stacked bar a setting, and the table of parts and programs."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from studies.bench.parts import COMPUTE, FLOWER, SERIALISATION, SIGNATURES, Parts
from studies.bench.show import number
from studies.report.arms import BLUE, ORANGE, PURPLE, VERMILLION
from studies.report.canvas import save, settings
from studies.terminal import print_line, print_table

COLOURS = {COMPUTE: VERMILLION, SERIALISATION: ORANGE, SIGNATURES: PURPLE, FLOWER: BLUE}
COLUMNS = ("setting", "nodes", "wall", "CPU", *COLOURS)
TITLE = "What one round over real processes spends: shares of CPU seconds"
HOW = (
    "Private convex optimisation: one sum from each node, noise once. All processes together, read from /proc. "
    "Compute, serialisation and\nsignatures are measured in one process with the same messages; Flower is the rest: "
    "requests, and of stock executors a process for each message."
)
LEAST = 0.0005


def line(one: Parts) -> str:
    """A setting, as soon as it is measured."""
    return f"{one.setting}: {number(one.wall)} s a round"


def show(found: Sequence[Parts]) -> None:
    """Print parts, and programs."""
    print_table(COLUMNS, [cells(one) for one in found], COLUMNS[:1])
    for one in found:
        programs = (f"{name} {seconds:.3f}" for name, seconds in one.programs.items() if seconds >= LEAST)
        print_line(f"{one.setting}, by program: {', '.join(programs)}")
    print_line("seconds a round, on average over all rounds but the first")


def cells(one: Parts) -> tuple[object, ...]:
    """A row: seconds, and the share of each part."""
    shares = (f"{number(one.spent[part])} ({_share(one, part)})" for part in COLOURS)
    return one.setting, one.clients, number(one.wall), number(one.whole), *shares


def draw(found: Sequence[Parts], folder: Path) -> list[Path]:
    """round.png and round.svg in a folder."""
    with mpl.rc_context(settings()):
        figure = Figure(figsize=(9.6, 1.9 + 0.75 * len(found)), layout="constrained")
        figure.suptitle(TITLE, x=0.01, ha="left", fontsize=12.5, fontweight="bold")
        figure.supxlabel(HOW, x=0.01, ha="left", fontsize=8.5)
        axes = figure.subplots()
        for place, one in enumerate(found):
            _bar(axes, place, one)
        axes.set(xlim=(0, 100), xlabel="% of CPU seconds", ylim=(len(found) - 0.5, -0.8))
        names = [f"{one.setting}\n{one.clients} nodes, {number(one.whole)} s" for one in found]
        axes.set_yticks(range(len(found)), names)
        axes.legend(ncols=len(COLOURS), loc="lower left", bbox_to_anchor=(0, 1), frameon=False, fontsize=9)
        return save(figure, folder / "round")


def _bar(axes: Axes, place: int, one: Parts) -> None:
    left = 0.0
    for part, colour in COLOURS.items():
        width = 100 * one.spent[part] / one.whole
        axes.barh(place, width, left=left, height=0.5, color=colour, label=part if place == 0 else None)
        left += width
    words = ", ".join(f"{part} {_share(one, part)}" for part in COLOURS)
    axes.text(99, place, words, ha="right", va="center", fontsize=9, color="white")


def _share(one: Parts, part: str) -> str:
    return f"{one.spent[part] / one.whole:.2%}"
