"""Tables and plots of a policy study."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.typing import LineStyleType
from rich import box
from rich.markup import escape
from rich.table import Table

from protocol.arms import Arm
from studies.files import write_sheet
from studies.policy.score import Baseline
from studies.policy.summary import Loss
from studies.report.arms import GREY, Look, looks
from studies.report.canvas import DASHES, DOTS, SOLID, plain, prepare, save, settings

_STYLES: dict[str, LineStyleType] = {
    "greedy": SOLID,
    "pessimistic": DASHES,
    "pessimistic-in-ball": DOTS,
    "pessimistic-by-state": (0, (4, 1, 1, 1)),
}
_NOTE = (
    "mean ± standard error over worlds of J(best policy) - J(policy); gain: greedy - policy, paired, bold beyond 2 "
    "standard errors;\nbound: the theorem's, mean; coverage: regions that hold the parameter"
)
COLUMNS = (
    *("shown", "n", "epsilon", "delta", "arm", "policy", "worlds"),
    *("loss", "loss_se", "gain", "gain_se", "bound", "coverage"),
)


def losses_table(losses: Sequence[Loss], arms: Sequence[Arm], shown: str, n: int) -> Table:
    """What each policy loses at one n, for pairs chosen in one way."""
    named = looks(arms)
    title = f"Loss of policies, pairs: {shown}, n = {n:,}"
    table = Table(title=title, caption=_NOTE, box=box.SIMPLE_HEAD, pad_edge=False)
    table.title_justify = table.caption_justify = "left"
    for head in ("ε", "arm", "policy"):
        table.add_column(head, no_wrap=True)
    for head in ("loss", "gain", "bound", "coverage"):
        table.add_column(head, justify="right")
    for one in losses:
        if (one.place.shown, one.place.n) == (shown, n):
            table.add_row(*_cells(one, named[one.place.arm]))
    return table


def write_losses(path: Path, losses: Sequence[Loss]) -> None:
    """All losses as CSV; what does not exist is empty."""
    write_sheet(path, COLUMNS, (_line(one) for one in losses))


def _line(one: Loss) -> tuple[object, ...]:
    gain = (None, None) if one.gain is None else (one.gain.mean, one.gain.se)
    loss = (one.loss.count, one.loss.mean, one.loss.se)
    return (*astuple(one.place), one.policy, *loss, *gain, one.bound, one.coverage)


def draw_losses(
    losses: Sequence[Loss], arms: Sequence[Arm], baselines: Mapping[str, Baseline], folder: Path
) -> list[Path]:
    """Loss against n as PNG and SVG: a row of panels for each choice of pairs, a column for each level.

    `baselines`: by choice of pairs, mean over worlds.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(settings()):
        return save(_figure(losses, arms, baselines), folder / "policies_by_n")


def _figure(losses: Sequence[Loss], arms: Sequence[Arm], baselines: Mapping[str, Baseline]) -> Figure:
    shown = list(dict.fromkeys(one.place.shown for one in losses))
    claimed = sorted({one.place.epsilon for one in losses if one.place.epsilon is not None})
    levels: list[float | None] = [*claimed] or [None]
    figure = Figure(figsize=(3.9 * len(levels) + 0.6, 3.4 * len(shown) + 1.6), layout="constrained")
    grid = figure.subplots(len(shown), len(levels), squeeze=False, sharex=True, sharey=True)
    for line, name in zip(grid, shown, strict=True):
        for axes, epsilon in zip(line, levels, strict=True):
            here = [one for one in losses if one.place.shown == name and one.place.epsilon in (None, epsilon)]
            _panel(axes, here, looks(arms), baselines[name])
            axes.set_title(f"pairs: {name}" + ("" if epsilon is None else f", ε = {epsilon:g}"))
        line[0].set_ylabel("loss J(π*) − J(π)")
    for axes in grid[-1]:
        axes.set_xlabel("labels n")
    random = max(one.random for one in baselines.values())
    low = min((one.loss.mean for one in losses if one.loss.mean > 0), default=random)
    grid[0, 0].set_ylim(max(low / 1.5, random / 1e4), random * 2)
    handles = _legend(losses, arms)
    figure.legend(handles=handles, loc="outside lower left", ncols=4, frameon=False, fontsize=8.5)
    figure.suptitle("What a policy loses to the best one", x=0.01, ha="left", fontsize=12.5, fontweight="bold")
    return figure


def _panel(axes: Axes, losses: Sequence[Loss], named: dict[str, Look], known: Baseline) -> None:
    prepare(axes, sorted({one.place.n for one in losses}))
    axes.axhline(known.random, color=GREY, linewidth=1.3, linestyle=DOTS, zorder=1)
    if abs(known.shown - known.random) > 1e-9:
        axes.axhline(known.shown, color=GREY, linewidth=1.3, linestyle=DASHES, zorder=1)
    for arm, policy in dict.fromkeys((one.place.arm, one.policy) for one in losses):
        own = [one for one in losses if (one.place.arm, one.policy) == (arm, policy)]
        heights = np.array([one.loss.mean if one.loss.mean > 0 else np.nan for one in own])
        look = named[arm]
        fill = look.colour if policy == "greedy" else "white"
        axes.plot(
            [one.place.n for one in own], heights, color=look.colour, linestyle=_STYLES[policy], linewidth=1.2,
            marker=look.marker, markersize=5, markerfacecolor=fill, markeredgewidth=1.0,
        )  # fmt: skip


def _legend(losses: Sequence[Loss], arms: Sequence[Arm]) -> list[Line2D]:
    named = looks(arms)
    used = dict.fromkeys(one.place.arm for one in losses)
    lines = [Line2D([], [], color=named[arm].colour, marker=named[arm].marker, label=named[arm].label) for arm in used]
    for policy in dict.fromkeys(one.policy for one in losses):
        lines.append(Line2D([], [], color="black", linestyle=_STYLES[policy], label=policy))
    lines.append(Line2D([], [], color=GREY, linestyle=DOTS, label="actions at random"))
    return [*lines, Line2D([], [], color=GREY, linestyle=DASHES, label="actions as shown")]


def _cells(one: Loss, look: Look) -> list[str]:
    gain = ""
    if one.gain is not None:
        gain = f"{one.gain.mean:+.4f} ± {one.gain.se:.4f}"
        gain = f"[bold]{gain}[/]" if abs(one.gain.mean) > 2 * one.gain.se else gain
    return [
        "" if one.place.epsilon is None else plain(one.place.epsilon),
        f"{one.place.arm.split('/')[0]}: {escape(look.label)}",
        one.policy,
        f"{one.loss.mean:.4f} ± {one.loss.se:.4f}",
        gain,
        f"{one.bound:.3f}",
        "" if one.coverage is None else f"{one.coverage:.1%}",
    ]
