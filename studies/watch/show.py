"""A run at a moment as a person reads it, and as JSON."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from protocol.trust import Trust
from studies.federate.progress import RESULT
from studies.summary import Moments, Setting
from studies.terminal import printable
from studies.watch.budgets import Budget, budgets_as_json
from studies.watch.look import FINISHED, RUNS, Seen
from studies.watch.nodes import BUDGETS, budget_notes, budget_table, message_table, messages_as_json, table_of

STILL = 60.0  # seconds without a sign of life that are worth a sentence
FOUND = "mean L2 error so far, 95 % interval"
LOOKING = "These intervals are for one look: a run that is stopped when they please says too much."


def shown(seen: Seen | None, budgets: Sequence[Budget] = ()) -> RenderableType:
    """All of it for a terminal: state, units by n, errors by arm, messages of nodes, budgets."""
    parts: list[RenderableType] = []
    if seen is not None:
        parts += [Text(head(seen), style="bold"), _units(seen)]
        if seen.errors:
            parts += [_errors(seen), Text(LOOKING, style="dim")]
        if seen.messages.rounds:
            parts.append(message_table(seen.messages))
        parts += [Text(printable(line)) for line in lines(seen)]
    if budgets:
        parts += [Text(BUDGETS, style="bold"), budget_table(budgets)]
        parts += [Text(printable(line)) for line in budget_notes(budgets)]
    return Group(*parts)


def document(seen: Seen | None, budgets: Sequence[Budget] = ()) -> dict[str, Any]:
    """All of it as plain JSON values; None where a number is not known, or no run is looked at."""
    return {**({"state": None} if seen is None else _run(seen)), "budgets": budgets_as_json(budgets)}


def _run(seen: Seen) -> dict[str, Any]:
    return {
        "study": seen.name,
        "fingerprint": seen.fingerprint,
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
        **messages_as_json(seen.messages),
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
    return f"{printable(seen.name)}{where}: {standing(seen)}"


def standing(seen: Seen) -> str:
    """Whether the run runs, and how long still."""
    if seen.state == FINISHED:
        return "finished"
    if seen.state != RUNS:
        return f"stopped {duration(seen.quiet)} ago"
    if seen.left is None:
        return "runs, the time left is not known yet"
    return "runs, should end soon" if seen.left < 1 else f"runs, about {duration(seen.left)} left"


def _units(seen: Seen) -> Table:
    table = table_of("n", "", "units", "repetitions")
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
    table = table_of(f"n = {n:,}", *(_level(level, claims) for level in claims))
    table.caption, table.caption_justify = FOUND, "left"
    for arm in seen.arms:
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
    if seen.messages.blamed:
        yield f"Not counted: {seen.messages.blamed}."
    if seen.runtimes == ("in-process",) and not seen.messages.rounds:
        yield "Clients are called in the run's own processes: each of them answers, or the run fails."
    for name in seen.unread:
        yield f"{name} does not read: it is left out."
    if seen.state == RUNS and seen.quiet > STILL:
        yield f"Nothing was written for {duration(seen.quiet)}: a unit takes long, or the run was killed."
    if seen.from_files:
        yield from _of_federation(seen)
        return
    if seen.state not in (RUNS, FINISHED):
        logs = f"; logs of its processes: {seen.folder.logs}" if seen.folder.logs.is_dir() else ""
        yield f"Go on with the same halftruth run and --resume{logs}."
    if seen.state == FINISHED:
        yield f"Tables and plots: halftruth report {seen.folder.path}"


def _of_federation(seen: Seen) -> Iterator[str]:
    """What came of a federation from files."""
    if seen.failed:
        yield f"No estimate: {seen.failed}."
    if seen.state not in (RUNS, FINISHED):
        yield "Ask again with the same halftruth federate: what nodes have answered costs nothing."
    if seen.state == FINISHED:
        yield f"The estimate: {seen.folder.path / RESULT}"


def _error(setting: Setting, arm: str, moments: Moments) -> dict[str, Any]:
    place = {"n": setting.n, "epsilon": setting.epsilon, "delta": setting.delta, "arm": arm}
    low, high = (value if math.isfinite(value) else None for value in (moments.low, moments.high))
    return {**place, "repetitions": moments.count, "mean": moments.mean, "low": low, "high": high}
