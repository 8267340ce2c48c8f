"""Plots: error against n for every privacy level, and the price of privacy at the largest n."""

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.typing import LineStyleType

from protocol.arms import Arm
from protocol.decimals import canonical
from protocol.trust import Trust
from studies.report.arms import ZERO, Look
from studies.report.bounds import lower_bounds
from studies.report.canvas import (
    DASHES,
    DOTS,
    SOLID,
    bound_line,
    draw,
    label_ends,
    picture,
    prepare,
    save,
    settings,
    theory_line,
    zero_line,
)
from studies.report.view import Level, View, short
from studies.summary import Summary

TITLE = "L2 error of the {truth} (true error, not divided by √n)"
HOW = (
    "Markers: mean over {repetitions} with 95 % interval; dashed lines join them where there is no formula.\n"
    "{theory}"
    "Dotted lines: the error of the answer 0, and {bounds} up to a constant, which is fitted where they say."
)
THEORY = "Solid lines: theory with nothing fitted (root mean square error, slightly above the mean).\n"
PRIVATE = "privacy level ε  (more private →)"
CURVE_POINTS = 25
BETWEEN = {Trust.DISTRIBUTED, Trust.SHUFFLED}  # where there are such, one picture is of both n and epsilon

Point = tuple[float, int, Level]  # x on the axis, and where in the grid it is


def draw_all(view: View, folder: Path) -> list[Path]:
    """All plots as PNG and SVG into `folder`; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(settings()):
        paths = save(overview(view), folder / "error_by_n")
        for level in view.levels:
            paths += save(by_count(view, level), folder / f"error_by_n_{_stem(view, level)}")
        for delta in dict.fromkeys(level.delta for level in view.levels):
            levels = [level for level in view.levels if level.delta == delta]
            if len(levels) > 1:
                paths += save(by_epsilon(view, levels), folder / f"error_by_epsilon{_suffix(view, delta)}")
            if len(levels) > 1 and len(view.counts) > 1 and _between(view):
                paths += save(by_both(view, levels), folder / f"error_by_both{_suffix(view, delta)}")
    return paths


def overview(view: View) -> Figure:
    """Small multiples: error against n, one panel a privacy level, common axes, and a legend by trust model."""
    levels = view.levels
    cells = len(levels) + 1
    columns = 2 if cells in (2, 4) else 3
    lines = -(-cells // columns)
    figure = Figure(figsize=(4.1 * columns, 3.6 * lines + 0.8), layout="constrained")
    grid = figure.subplots(lines, columns, squeeze=False).ravel()
    limits = _limits(view, [point for level in levels for point in _counts(view, level)])
    for axes, level in zip(grid, levels, strict=False):
        _panel(axes, view, _counts(view, level), _fine_counts(view, level))
        axes.set(title=view.title(level), xlabel=f"{view.wording.rows} n", ylim=limits)
    for axes in grid[len(levels) :]:
        axes.axis("off")
    _legend(grid[len(levels)], view)
    _head(figure, view)
    return figure


def by_count(view: View, level: Level) -> Figure:
    """Error against n at one privacy level, every line named at its end."""
    figure, axes = _alone(view)
    points = _counts(view, level)
    _panel(axes, view, points, _fine_counts(view, level))
    axes.set(title=view.title(level), xlabel=f"{view.wording.rows} n", ylim=_limits(view, points))
    _name_ends(axes, view, view.counts[-1], level)
    return figure


def by_epsilon(view: View, levels: Sequence[Level]) -> Figure:
    """The price of privacy: error against epsilon at the largest n, more private to the right."""
    figure, axes = _alone(view)
    n = view.counts[-1]
    points, fine = _levels(view, levels)
    _panel(axes, view, points, fine)
    delta = levels[0].delta
    several = "" if delta is None or len(view.loaded.study.grid.delta) < 2 else f", δ = {short(delta)}"
    axes.set(title=f"n = {n:,}{several}", xlabel=PRIVATE, ylim=_limits(view, points))
    axes.invert_xaxis()
    _name_ends(axes, view, n, levels[0])
    return figure


def by_both(view: View, levels: Sequence[Level]) -> Figure:
    """Error against n at epsilon = 1, or next to it, and against epsilon at the largest n, at one height."""
    figure = Figure(figsize=(12.4, 5.4), layout="constrained")
    _head(figure, view)
    left, right = figure.subplots(1, 2, sharey=True)
    usual = min(levels, key=lambda level: abs(math.log(level.epsilon or 1)))
    along = _levels(view, levels)
    _panel(left, view, _counts(view, usual), _fine_counts(view, usual))
    _panel(right, view, *along)
    left.set(title=view.title(usual), xlabel=f"{view.wording.rows} n")
    right.set(title=f"n = {view.counts[-1]:,}", xlabel=PRIVATE)
    right.invert_xaxis()
    right.set_ylim(_limits(view, [*_counts(view, usual), *along[0]]))
    _name_ends(right, view, view.counts[-1], levels[0])
    return figure


def _between(view: View) -> bool:
    return any(trust in BETWEEN for trust, _ in view.sections())


def _levels(view: View, levels: Sequence[Level]) -> tuple[list[Point], list[Point]]:
    """Measured points and finer ones along epsilon at the largest n."""
    n = view.counts[-1]
    points = [(float(level.epsilon or 0), n, level) for level in levels]
    between = np.geomspace(points[0][0], points[-1][0], CURVE_POINTS)
    return points, [(x, n, replace(levels[0], epsilon=Decimal(repr(x)))) for x in between.tolist()]


def _alone(view: View) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(8.6, 5.4), layout="constrained")
    _head(figure, view)
    return figure, figure.subplots()


def _counts(view: View, level: Level) -> list[Point]:
    return [(n, n, level) for n in view.counts]


def _fine_counts(view: View, level: Level) -> list[Point]:
    between = np.geomspace(view.counts[0], view.counts[-1], CURVE_POINTS)
    return [(x, round(x), level) for x in between.tolist()]


def _measured(view: View, arm: Arm, points: Sequence[Point]) -> list[tuple[float, Summary]]:
    return [(x, summary) for x, n, level in points if (summary := view.at(arm, n, level)) is not None]


def _limits(view: View, points: Sequence[Point]) -> tuple[float, float]:
    """Limits of the error's axis: what was measured, and the zero line; theory may leave the picture."""
    heights = [summary.moments.mean for arm in view.arms for _, summary in _measured(view, arm, points)]
    heights += [error for bound in lower_bounds(view) for _, n, level in points if (error := bound.at(n, level))]
    return 0.7 * min(*heights, view.zero()), 1.4 * max(*heights, view.zero())


def _panel(axes: Axes, view: View, points: Sequence[Point], fine: Sequence[Point]) -> None:
    """All arms at the points, theory between them, and the zero line."""
    prepare(axes, [x for x, _, _ in points])
    zero_line(axes, view.zero())
    for arm in view.arms:
        look = view.looks[arm.name]
        curve = [(x, error) for x, n, level in fine if (error := view.predicted(arm, n, level)) is not None]
        if curve:
            theory_line(axes, arm.name, look, [x for x, _ in curve], [error for _, error in curve])
        if look is not ZERO and (found := _measured(view, arm, points)):
            draw(axes, look, [x for x, _ in found], [summary for _, summary in found], joined=not curve)
    for bound in lower_bounds(view):
        least = [(x, error) for x, n, level in fine if (error := bound.at(n, level)) is not None]
        if least:
            bound_line(axes, bound.trust.label, bound.look, [x for x, _ in least], [error for _, error in least])


def _style(view: View, arm: Arm) -> LineStyleType:
    """How an arm's line is drawn: solid where it is a prediction."""
    if view.looks[arm.name] is ZERO:
        return DOTS
    return DASHES if view.predicted(arm, view.counts[-1], view.levels[0]) is None else SOLID


def _name_ends(axes: Axes, view: View, n: int, level: Level) -> None:
    ends: list[tuple[float, Look, LineStyleType]] = [(view.zero(), ZERO, DOTS)]
    for arm in view.arms:
        look, summary = view.looks[arm.name], view.at(arm, n, level)
        if look is not ZERO and summary is not None:
            if _between(view):  # arms of several trust models have one name
                look = replace(look, label=f"{arm.trust_name}: {look.label}")
            ends.append((summary.moments.mean, look, _style(view, arm)))
    for bound in lower_bounds(view):
        if (error := bound.at(n, level)) is not None:
            ends.append((error, bound.look, DOTS))
    label_ends(axes, ends, gap=0.045)


def _legend(axes: Axes, view: View) -> None:
    """Arms by trust model, drawn by hand: matplotlib's legend has no headings."""
    lines: list[tuple[str, tuple[Look, LineStyleType] | None]] = []
    for trust, arms in view.sections():
        drawn = [(view.looks[arm.name], _style(view, arm)) for arm in arms]
        drawn += [(bound.look, DOTS) for bound in lower_bounds(view) if bound.trust is trust]
        lines += [(view.wording.headings[trust], None), *((look.label, (look, style)) for look, style in drawn)]
    for index, (text, line) in enumerate(lines):
        y = 0.97 - index * min(0.062, 1 / len(lines))
        if line is None:
            axes.text(0.02, y, text, va="center", fontweight="bold", fontsize=9.5)
        else:
            axes.add_line(picture(line[0], [0.04, 0.1, 0.16], [y, y, y], 1, line[1]))
            axes.text(0.2, y, text, va="center", fontsize=9.5 * min(1.0, 48 / len(text)))


def _head(figure: Figure, view: View) -> None:
    figure.suptitle(TITLE.format(truth=view.wording.truth), x=0.01, ha="left", fontsize=12.5, fontweight="bold")
    theory = THEORY if view.loaded.study.records is None else ""
    bounds = "lower bounds" if view.loaded.study.records is None else "rates of the worst law"
    lines = [view.describe() + ".", HOW.format(repetitions=view.repetitions(), theory=theory, bounds=bounds)]
    figure.supxlabel("\n".join(lines), x=0.01, ha="left", fontsize=8.5)


def _stem(view: View, level: Level) -> str:
    name = "no_claim" if level.epsilon is None else f"epsilon_{canonical(level.epsilon)}"
    return name + _suffix(view, level.delta)


def _suffix(view: View, delta: Decimal | None) -> str:
    """The part of a file's name that tells deltas apart, where there are several."""
    return f"_delta_{short(delta)}" if delta is not None and len(view.loaded.study.grid.delta) > 1 else ""
