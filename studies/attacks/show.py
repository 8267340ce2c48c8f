"""Tables and plots of an attack study."""

from collections.abc import Callable, Sequence
from dataclasses import astuple
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter
from rich import box
from rich.markup import escape
from rich.table import Table

from protocol.arms import Arm
from studies.attacks.summary import Curve, Point
from studies.files import write_sheet
from studies.report.arms import GREY, Look, looks
from studies.report.canvas import DOTS, plain, save, settings
from studies.summary import Moments

COLUMNS = (
    *("liars", "n", "epsilon", "delta", "arm", "fraction", "error", "error_se"),
    *("angle", "angle_se", "kendall", "kendall_se", "measured_breakdown", "predicted_breakdown"),
)
_NOTE = (
    "mean error by share of liars; breakdown: measured, the share from which on the answer 0 is better "
    "(-: none here);\nby theory in brackets, see docs/ATTACKS.md"
)
Value = Callable[[Point], Moments | None]
MEASURES: dict[str, tuple[str, Value]] = {
    "errors": ("error ||estimate - theta||", lambda point: point.error),
    "ranks": ("Kendall's tau with the true order", lambda point: point.kendall),
    "angles": ("angle to theta, degrees", lambda point: point.angle),
}


def curves_table(curves: Sequence[Curve], arms: Sequence[Arm], liars: str, n: int) -> Table:
    """The errors of all arms under one kind of liars."""
    here = [curve for curve in curves if (curve.place.liars, curve.place.n) == (liars, n)]
    table = Table(title=f"Liars: {liars}; n = {n:,}", caption=_NOTE, box=box.SIMPLE_HEAD, pad_edge=False)
    table.title_justify = table.caption_justify = "left"
    for head in ("ε", "arm"):
        table.add_column(head, no_wrap=True)
    for point in here[0].points:
        table.add_column(f"{point.fraction:.0%}", justify="right")
    table.add_column("breakdown", justify="right")
    named = looks(arms)
    for curve in here:
        trust = curve.place.arm.split("/")[0]
        level = "" if curve.place.epsilon is None else plain(curve.place.epsilon)
        errors = [f"{point.error.mean:.2f}" for point in curve.points]
        table.add_row(level, f"{trust}: {escape(named[curve.place.arm].label)}", *errors, _breakdown(curve))
    return table


def write_curves(path: Path, curves: Sequence[Curve]) -> None:
    """All curves as CSV; what does not exist is empty."""
    write_sheet(path, COLUMNS, (_record(curve, point) for curve in curves for point in curve.points))


def _record(curve: Curve, point: Point) -> tuple[object, ...]:
    pairs = [_pair(one) for one in (point.error, point.angle, point.kendall)]
    found = (value for pair in pairs for value in pair)
    return (*astuple(curve.place), point.fraction, *found, curve.measured, curve.predicted)


def draw_curves(curves: Sequence[Curve], arms: Sequence[Arm], n: int, size: float, folder: Path) -> list[Path]:
    """Errors, and changes of ranks and of direction, against the share of liars, as PNG and SVG.

    `size`: ||theta||, the error of the answer 0, a dotted line. A cross marks a measured breakdown, a tick on the axis
    one by theory.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    with mpl.rc_context(settings()):
        for name, (label, value) in MEASURES.items():
            figure = _figure([curve for curve in curves if curve.place.n == n], arms, label, value)
            for axes in figure.axes if name == "errors" else ():
                axes.axhline(size, color=GREY, linewidth=1.3, linestyle=DOTS, zorder=1)
            paths += save(figure, folder / f"{name}_by_liars")
    return paths


def _figure(curves: Sequence[Curve], arms: Sequence[Arm], label: str, value: Value) -> Figure:
    liars = list(dict.fromkeys(curve.place.liars for curve in curves))
    levels = [level for level in sorted({curve.place.epsilon or 0.0 for curve in curves}) if level] or [0.0]
    panels = [(trust, level) for trust in ("local", "central") for level in levels]
    figure = Figure(figsize=(2.6 * len(panels) + 0.6, 2.3 * len(liars) + 1.4), layout="constrained")
    grid = figure.subplots(len(liars), len(panels), squeeze=False, sharex=True, sharey=True)
    named = looks(arms)
    for line, who in zip(grid, liars, strict=True):
        for axes, (trust, level) in zip(line, panels, strict=True):
            for curve in curves:
                own = curve.place.arm.startswith(f"{trust}/") and (curve.place.epsilon or 0.0) == level
                if curve.place.liars == who and (own or curve.place.arm.startswith("clear/")):
                    _line(axes, curve, named[curve.place.arm], value)
            axes.set_title(f"{who}\n{trust}, ε = {level:g}", fontsize=8)
            axes.grid(True)
            axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    used = [arm for arm in dict.fromkeys(curve.place.arm for curve in curves) if not arm.startswith("none/")]
    handles = [Line2D([], [], color=named[a].colour, marker=named[a].marker, label=named[a].label) for a in used]
    figure.legend(handles=handles, loc="outside lower left", ncols=3, frameon=False, fontsize=8)
    figure.supylabel(label, fontsize=9.5)
    figure.supxlabel("share of liars", fontsize=9.5)
    return figure


def _line(axes: Axes, curve: Curve, look: Look, value: Value) -> None:
    found = [(point.fraction, moments.mean) for point in curve.points if (moments := value(point)) is not None]
    if not found:
        return
    xs, ys = np.array(found).T
    axes.plot(
        xs, ys, color=look.colour, marker=look.marker, markersize=3.5, linewidth=1.0,
        markerfacecolor="white" if look.hollow else look.colour,
    )  # fmt: skip
    if curve.predicted is not None and curve.predicted <= xs[-1]:
        axes.plot([curve.predicted], [0], color=look.colour, marker="|", markersize=12, clip_on=False,
                  transform=axes.get_xaxis_transform())  # fmt: skip
    if curve.measured is not None:
        axes.plot([curve.measured], [np.interp(curve.measured, xs, ys)], color=look.colour, marker="x", markersize=8)


def _breakdown(curve: Curve) -> str:
    measured = "-" if curve.measured is None else f"{curve.measured:.0%}"
    return measured if curve.predicted is None else f"{measured} ({curve.predicted:.0%})"


def _pair(moments: Moments | None) -> tuple[float | None, float | None]:
    return (None, None) if moments is None else (moments.mean, moments.se)
