"""A run at a moment as a person reads it, and as JSON."""

import math
from collections.abc import Iterator
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from protocol.counting import counted
from protocol.trust import Trust
from studies.summary import Moments, Setting
from studies.terminal import printable
from studies.watch.look import FINISHED, RUNS, Seen

STILL = 60.0  # seconds without a sign of life that are worth a sentence
FOUND = "mean L2 error so far, 95 % interval"
LOOKING = "These intervals are for one look: a run that is stopped when they please says too much."
MEANT = {
    "answered": "answered",
    "refused": "refused a task",
    "late": "came too late",
    "rejected": "did not count",
    "missing": "did not come",
    "failed": "failed, and asked again",
}


def shown(seen: Seen) -> RenderableType:
    """All of it for a terminal: state, units by n, errors by arm, messages of nodes."""
    parts: list[RenderableType] = [Text(head(seen), style="bold"), _units(seen)]
    if seen.errors:
        parts += [_errors(seen), Text(LOOKING, style="dim")]
    parts += [Text(printable(line)) for line in lines(seen)]
    return Group(*parts)


def document(seen: Seen) -> dict[str, Any]:
    """All of it as plain JSON values; None where a number is not known."""
    return {
        "study": seen.loaded.study.name,
        "fingerprint": seen.loaded.study.fingerprint.hex(),
        "runtimes": list(seen.runtimes),
        "state": seen.state,
        "seconds_left": seen.left,
        "seconds_since_a_sign": seen.quiet,
        "units": [
            {
                "n": each.n,
                "finished": each.done,
                "units": each.units,
                "repetitions_finished": each.repetitions,
                "repetitions": each.all_repetitions,
            }
            for each in seen.counts
        ],
        "errors": [_error(setting, arm, moments) for (setting, arm), moments in seen.errors.items()],
        "rounds": seen.messages.rounds,
        "messages": dict(seen.messages.counts),
        "blamed": seen.messages.blamed,
        "unread": list(seen.unread),
    }


def duration(seconds: float) -> str:
    """Seconds as people say them.

    >>> duration(7.4), duration(192), duration(7500)
    ('7 s', '3 min', '2 h 5 min')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


def head(seen: Seen) -> str:
    """The study, and whether it runs, in a line."""
    where = f" ({', '.join(seen.runtimes)})" if seen.runtimes else ""
    name = printable(seen.loaded.study.name)
    if seen.state == FINISHED:
        return f"{name}{where}: finished"
    if seen.state != RUNS:
        return f"{name}{where}: stopped {duration(seen.quiet)} ago"
    left = "the time left is not known yet" if seen.left is None else f"about {duration(seen.left)} left"
    left = "should end soon" if seen.left is not None and seen.left < 1 else left
    return f"{name}{where}: runs, {left}"


def _units(seen: Seen) -> Table:
    table = _table("n", "", "units", "repetitions")
    for each in seen.counts:
        bar = ProgressBar(total=each.units, completed=each.done, width=30)
        repetitions = f"{each.repetitions:,} of {each.all_repetitions:,}"
        table.add_row(f"{each.n:,}", bar, f"{each.done:,} of {each.units:,}", repetitions)
    return table


def _errors(seen: Seen) -> Table:
    """Arms by privacy level, at the largest n of which something is finished."""
    n = max(setting.n for setting, _ in seen.errors)
    levels = dict.fromkeys((s.epsilon, s.delta) for s, _ in sorted(seen.errors, key=_by_level) if s.n == n)
    claims = [level for level in levels if level[0] is not None] or [(None, None)]
    table = _table(f"n = {n:,}", *(_level(level, claims) for level in claims))
    table.caption, table.caption_justify = FOUND, "left"
    for arm in seen.loaded.study.arms:
        open_ = arm.trust in (None, Trust.CLEAR)
        keys = [(Setting(n, None, None) if open_ else Setting(n, *level), arm.name) for level in claims]
        table.add_row(Text(printable(arm.name)), *(_cell(seen.errors.get(key)) for key in keys))
    return table


def _by_level(key: tuple[Setting, str]) -> tuple[float, float]:
    return key[0].delta or 0.0, key[0].epsilon or 0.0


def _level(level: tuple[float | None, float | None], levels: list[tuple[float | None, float | None]]) -> str:
    epsilon, delta = level
    several = len({other for _, other in levels}) > 1
    words = "no claim" if epsilon is None else f"ε = {epsilon:g}"
    return f"{words}, δ = {delta:g}" if several and delta is not None else words


def _cell(moments: Moments | None) -> str:
    if moments is None:
        return "-"
    interval = f"[{moments.low:.3g}, {moments.high:.3g}]" if moments.count > 1 else "[one repetition]"
    return f"{moments.mean:.3g} {interval}"


def lines(seen: Seen) -> Iterator[str]:
    """What came of messages, and what there is to say or to do."""
    told = seen.messages
    if told.rounds:
        words = [f"{MEANT.get(name, name)}: {count:,}" for name, count in sorted(told.counts.items())]
        yield f"{counted(told.rounds, 'round')} asked; messages of nodes: {', '.join(words) or 'none'}."
    if told.blamed:
        yield f"Not counted: {told.blamed}."
    for name in seen.unread:
        yield f"{name} does not read: it is left out."
    if seen.state == RUNS and seen.quiet > STILL:
        yield f"Nothing was written for {duration(seen.quiet)}: a unit takes long, or the run was killed."
    if seen.state not in (RUNS, FINISHED):
        logs = f"; logs of its processes: {seen.folder.logs}" if seen.folder.logs.is_dir() else ""
        yield f"Go on with the same halftruth run and --resume{logs}."
    if seen.state == FINISHED:
        yield f"Tables and plots: halftruth report {seen.folder.path}"


def _table(first: str, *heads: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(first, justify="right" if first == "n" else "left", overflow="fold")
    for head in heads:
        table.add_column(head, justify="right", overflow="fold")
    return table


def _error(setting: Setting, arm: str, moments: Moments) -> dict[str, Any]:
    place = {"n": setting.n, "epsilon": setting.epsilon, "delta": setting.delta, "arm": arm}
    low, high = (value if math.isfinite(value) else None for value in (moments.low, moments.high))
    return {**place, "repetitions": moments.count, "mean": moments.mean, "low": low, "high": high}
