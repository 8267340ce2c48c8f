"""The published notebook's experiment: what it plots beside the true error. `python -m studies.notebook OUT`."""

import argparse
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from protocol import strict
from protocol.coins import Address, Stream, normal, words
from protocol.strict import StudyError
from protocol.study import Cell
from studies.in_process import run_cell
from studies.load import Loaded, build, tables
from studies.report.arms import BLACK, GREY, ORANGE, SKY, Look
from studies.report.canvas import prepare, save, settings
from studies.summary import Moments

TOML = Path(__file__).parent / "toml" / "notebook-replica.toml"
TITLE = "REPLICA of a published notebook's experiment: not a result of halftruth"
HOW = (
    "Steps of one length, a ball with the radius of the truth, noise in every step. Mean over {repetitions} "
    "repetitions with 95 % interval.\n"
    "The arm of noisy steps makes no privacy claim. Dotted: the answer 0, which falls as well once it is divided."
)
PANELS = (
    ("what the notebook plots: error / √n", "error / √n", True),
    ("the true error", "error", False),
)
NOTHING = Look("no privacy", BLACK, "o")
FLIPPED = Look("flipped labels", ORANGE, "s")
NOISY = Look("noise in every step, no claim", SKY, "^")
ZERO = Look("answer 0", GREY, "")
DASHED = ((0, (4, 2)), (0, (2, 2)), "-")  # by epsilon, increasing


@dataclass(frozen=True)
class Line:
    """One line of the plot: how it looks, and the epsilon that it has or is named after; None without any."""

    look: Look
    epsilon: float | None


Found = Mapping[tuple[Line, int], Sequence[float]]


def drawn_anew(content: Mapping[str, Any], repetition: int) -> Loaded:
    """The study with another truth: standard normal numbers of the repetition, and its norm as the bound."""
    seed, problem = content["study"]["seed"], content["problem"]
    theta = normal(words(Address(seed, Stream.TRUTH, 0, repetition), 0, problem["dimension"]))
    bound = math.nextafter(float(np.sqrt((theta * theta).sum())), math.inf)
    truth = {"theta": [Decimal(repr(value)) for value in theta.tolist()], "bound": Decimal(repr(bound))}
    return build({**content, "problem": {**problem, **truth}}, TOML.parent)


def measure(content: Mapping[str, Any], anew: bool) -> dict[tuple[Line, int], list[float]]:
    """Errors ||estimate - theta|| by line and n, one a repetition; `anew` draws a truth for each."""
    found: dict[tuple[Line, int], list[float]] = {}
    fixed = build(dict(content), TOML.parent)
    for repetition in range(fixed.study.repetitions):
        loaded = drawn_anew(content, repetition) if anew else fixed
        for n in loaded.study.grid.n:
            for outcome in run_cell(loaded.study, loaded.truth, Cell(n, repetition, 1)):
                error = float(np.sqrt(((outcome.theta - loaded.theta) ** 2).sum()))
                line = _line(outcome.arm.trust_name, outcome.arm.get("nominal"), outcome.epsilon)
                found.setdefault((line, n), []).append(error)
    return found


def table(found: Found) -> Iterator[str]:
    """Lines of a Markdown table: what the notebook plots, and the true error."""
    yield "| arm | epsilon | n | plotted: error / sqrt(n) | true error |"
    yield "|---|---|---|---|---|"
    for (line, n), errors in found.items():
        moments, root = Moments.of(np.array(errors)), math.sqrt(n)
        level = "-" if line.epsilon is None else f"{line.epsilon:g}"
        plotted = f"{moments.mean / root:.4f} ± {moments.se / root:.4f}"
        yield f"| {line.look.label} | {level} | {n} | {plotted} | {moments.mean:.3f} ± {moments.se:.3f} |"


def draw(found: Found) -> Figure:
    """Both plots side by side: the same numbers, divided by sqrt(n) and as they are, on axes of one scale."""
    figure = Figure(figsize=(11.5, 5.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for axes, (title, name, divided) in zip((left, right), PANELS, strict=True):
        _panel(axes, found, divided)
        axes.set(title=title, xlabel="labels n", ylabel=name)
    bottom, top = left.get_ylim()
    right.set_ylim(bottom=right.get_ylim()[1] * bottom / top)
    right.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    repetitions = max(map(len, found.values()))
    figure.suptitle(TITLE, x=0.01, ha="left", fontsize=12.5, fontweight="bold")
    figure.supxlabel(HOW.format(repetitions=repetitions), x=0.01, ha="left", fontsize=8.5)
    return figure


def main() -> int:
    """Measure, print the table, and draw both plots into a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="a folder for the plots")
    parser.add_argument("--once", action="store_true", help="one truth for all repetitions, as in the notebook")
    parser.add_argument("--set", action="append", default=[], metavar="TABLE.KEY=VALUE", help="change the study")
    args = parser.parse_args()
    try:
        out, content = strict.make_folder(args.out, "OUT"), tables(TOML, args.set)
    except StudyError as error:
        parser.error(str(error))
    found = measure(content, anew=not args.once)
    print("\n".join(table(found)))
    with mpl.rc_context(settings()):
        for path in save(draw(found), out / "notebook_replica"):
            print(path, file=sys.stderr)
    return 0


def _line(trust: str, nominal: Any, epsilon: Decimal | None) -> Line:
    if nominal is not None:
        return Line(NOISY, float(nominal))
    if epsilon is not None:
        return Line(FLIPPED, float(epsilon))
    return Line(ZERO if trust == "none" else NOTHING, None)


def _panel(axes: Axes, found: Found, divided: bool) -> None:
    sizes = list(dict.fromkeys(n for _, n in found))
    levels = sorted({line.epsilon for line, _ in found if line.epsilon is not None})
    for line in dict.fromkeys(line for line, _ in found):
        scales = [math.sqrt(n) if divided else 1.0 for n in sizes]
        moments = [Moments.of(np.array(found[line, n])) for n in sizes]
        means = [one.mean / scale for one, scale in zip(moments, scales, strict=True)]
        halves = [(one.high - one.mean) / scale for one, scale in zip(moments, scales, strict=True)]
        style = ":" if line.look is ZERO else "-" if line.epsilon is None else DASHED[levels.index(line.epsilon) % 3]
        look, named = line.look, " named" if line.look is NOISY else ""
        name = look.label + ("" if line.epsilon is None else f",{named} ε = {line.epsilon:g}")
        kind: dict[str, Any] = {
            "color": look.colour,
            "marker": look.marker,
            "linestyle": style,
            "markersize": 5,
            "capsize": 2,
        }
        axes.errorbar(sizes, means, yerr=halves, label=name, **kind)
    prepare(axes, sizes)


if __name__ == "__main__":
    sys.exit(main())
