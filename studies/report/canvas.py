"""What all plots share: quiet axes, one way to draw an arm, labels that do not overlap, files with fixed bytes."""

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from matplotlib.typing import LineStyleType
from scipy.optimize import isotonic_regression

from studies.files import write_atomically
from studies.report.arms import GREY, Look
from studies.summary import Summary

INK = "#333333"
_BACKENDS = frozenset({"backend", "backend_fallback"})
SOLID: LineStyleType = "-"
DASHES: LineStyleType = (0, (4, 2))
DOTS: LineStyleType = (0, (1, 1.5))
SETTINGS: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.7,
    "svg.fonttype": "path",
    "svg.hashsalt": "halftruth",
}


def prepare(axes: Axes, xs: Sequence[float]) -> None:
    """Log-log axes with plain numbers, a light grid, and ticks at the measured values."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.grid(True, which="major")
    axes.set_axisbelow(True)
    axes.set_xticks(list(xs), [plain(x) for x in xs])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.tick_params(length=3)
    if min(xs) == max(xs):  # roundings of curves through one place would be the axis
        axes.set_xlim(xs[0] / 2, xs[0] * 2)


def plain(x: float) -> str:
    """A number with thousands separated by commas.

    >>> plain(100000), plain(0.5)
    ('100,000', '0.5')
    """
    return f"{x:,.0f}" if x >= 1000 else f"{x:g}"


def draw(axes: Axes, look: Look, xs: Sequence[float], summaries: Sequence[Summary], joined: bool) -> None:
    """Means with their 95 % intervals; `joined` by a dashed line where no theory runs through them."""
    means = np.array([one.moments.mean for one in summaries])
    low = np.array([means[i] if math.isnan(one.moments.low) else one.moments.low for i, one in enumerate(summaries)])
    high = np.array([means[i] if math.isnan(one.moments.high) else one.moments.high for i, one in enumerate(summaries)])
    low = np.maximum(low, means / 10)  # an interval that reaches zero has no end on a log axis
    axes.errorbar(
        xs,
        means,
        yerr=np.vstack((means - low, high - means)),
        color=look.colour,
        marker=look.marker,
        markersize=5.5,
        markerfacecolor="white" if look.hollow else look.colour,
        markeredgewidth=1.1,
        linestyle=DASHES if joined else "none",
        linewidth=1.1,
        elinewidth=1.0,
        capsize=2,
        zorder=3,
    )


def theory_line(axes: Axes, name: str, look: Look, xs: Sequence[float], errors: Sequence[float]) -> None:
    """An arm's predicted curve; its id in the SVG file is `theory NAME`."""
    axes.plot(xs, errors, color=look.colour, linewidth=1.1, zorder=2, gid=f"theory {name}")


def bound_line(axes: Axes, name: str, look: Look, xs: Sequence[float], errors: Sequence[float]) -> None:
    """A lower bound whose constant is fitted: dotted; its id in the SVG file is `lower bound NAME`."""
    axes.plot(xs, errors, color=look.colour, linewidth=1.2, linestyle=DOTS, zorder=2, gid=f"lower bound {name}")


def zero_line(axes: Axes, height: float) -> None:
    """The error of the trivial answer."""
    axes.axhline(height, color=GREY, linewidth=1.3, linestyle=DOTS, zorder=1)


def picture(look: Look, xs: Sequence[float], ys: Sequence[float], marked: int, style: LineStyleType) -> Line2D:
    """A piece of an arm's line for legends and labels; point number `marked` carries the marker."""
    return Line2D(
        xs,
        ys,
        color=look.colour,
        linewidth=1.1,
        linestyle=style,
        marker=look.marker,
        markevery=[marked],
        markersize=5.5,
        markerfacecolor="white" if look.hollow else look.colour,
        clip_on=False,
    )


def label_ends(axes: Axes, ends: Sequence[tuple[float, Look, LineStyleType]], gap: float) -> None:
    """Names of arms at the right border, at the heights of their ends, moved apart as little as possible.

    `gap` is the least distance of two names as a share of the axes' height.
    """
    low, high = (math.log(limit) for limit in axes.get_ylim())
    order = sorted(ends, key=lambda end: end[0])
    wanted = np.array([(math.log(height) - low) / (high - low) for height, _, _ in order])
    steps = gap * np.arange(len(order))
    placed = isotonic_regression(wanted - steps).x + steps
    for (_, look, style), start, end in zip(order, wanted, placed, strict=True):
        line = picture(look, [1.0, 1.035, 1.065], [start, end, end], marked=2, style=style)
        axes.add_line(line).set_transform(axes.transAxes)
        axes.text(1.08, end, look.label, transform=axes.transAxes, va="center", fontsize=9)


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write PNG and SVG beside each other; the same figure gives the same bytes."""
    paths: list[Path] = []
    for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None, "Creator": None})):
        path = stem.with_name(f"{stem.name}.{kind}")
        if paths:
            figure.set_layout_engine("none")  # keep the layout of the first
        write_atomically(path, partial(figure.savefig, format=kind, dpi=160, metadata=metadata))
        paths.append(path)
    return paths


def settings() -> Any:
    """Matplotlib's defaults with this product's changes, whatever the user's own file says."""
    return {key: value for key, value in (mpl.rcParamsDefault | SETTINGS).items() if key not in _BACKENDS}
