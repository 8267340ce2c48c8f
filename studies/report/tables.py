"""Tables for the terminal: mean error with its standard error, best arms in bold, useless ones dim."""

from rich import box
from rich.markup import escape
from rich.table import Table

from protocol.arms import Arm
from studies.report.view import Level, View
from studies.summary import Moments, Summary

_NOTE = "mean ± standard error over {repetitions}; bold: best of its kind; dim: no better than the answer 0"

_DETAILS = (
    "boundary: estimates on the ball; coverage: truth in its 95 % interval; "
    "behind best: paired difference to the best of its kind ± its own standard error"
)


def by_count(view: View, level: Level) -> Table:
    """Arms x n at one privacy level."""
    title = f"L2 error of the {view.wording.truth}, {view.title(level)}"
    table = _table(view, title, [f"n = {n:,}" for n in view.counts])
    _fill(table, view, [(n, level) for n in view.counts])
    return table


def by_epsilon(view: View) -> Table:
    """Arms x privacy levels at the largest n: the short summary after a run."""
    n = view.counts[-1]
    title = f"L2 error of the {view.wording.truth}, n = {n:,}"
    table = _table(view, title, [view.title(level) for level in view.levels])
    _fill(table, view, [(n, level) for level in view.levels])
    return table


def details(view: View, level: Level) -> Table:
    """Spread, boundary hits, interval coverage, and paired distance to the best arm of its kind, at the largest n."""
    n = view.counts[-1]
    heads = ["median", "quartiles", "boundary", "coverage", "behind best"]
    table = _table(view, f"More about n = {n:,}, {view.title(level)}", heads, _DETAILS)
    for trust, arms in view.sections():
        table.add_row(f"[italic]{view.wording.headings[trust]}[/]")
        present = [(arm, found) for arm in arms if (found := view.at(arm, n, level)) is not None]
        best = min(present, key=lambda pair: pair[1].moments.mean, default=None)
        for arm, summary in present:
            assert best is not None
            table.add_row(_name(view, arm), *_detail(view, level, arm, best[0], summary))
        table.add_section()
    return table


def _table(view: View, title: str, heads: list[str], note: str = _NOTE) -> Table:
    note = note.format(repetitions=view.repetitions())
    table = Table(title=title, caption=note, box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.title_justify = table.caption_justify = "left"
    table.add_column("", no_wrap=True)
    for head in heads:
        table.add_column(head, justify="right")
    return table


def _fill(table: Table, view: View, columns: list[tuple[int, Level]]) -> None:
    for trust, arms in view.sections():
        rows = {arm.name: [view.at(arm, n, level) for n, level in columns] for arm in arms}
        best = [_least(column) for column in zip(*rows.values(), strict=True)]
        table.add_row(f"[italic]{view.wording.headings[trust]}[/]")
        for arm in arms:
            cells = (
                _cell(summary, view.zero(), summary is not None and len(arms) > 1 and summary.moments.mean == least)
                for summary, least in zip(rows[arm.name], best, strict=True)
            )
            table.add_row(_name(view, arm), *cells)
        table.add_section()


def _name(view: View, arm: Arm) -> str:
    """An arm's label, whose options stand in brackets, which are no markup."""
    return f"  {escape(view.looks[arm.name].label)}"


def _least(column: tuple[Summary | None, ...]) -> float | None:
    return min((summary.moments.mean for summary in column if summary is not None), default=None)


def _cell(summary: Summary | None, zero: float, best: bool) -> str:
    if summary is None:
        return ""
    moments = summary.moments
    text = _with_error(moments)
    if moments.mean >= zero:
        return f"[dim]{text}[/]"
    return f"[bold]{text}[/]" if best else text


def _detail(view: View, level: Level, arm: Arm, best: Arm, summary: Summary) -> tuple[str, ...]:
    gap = None if arm == best else view.gap(arm, best, view.counts[-1], level)
    return (
        _number(summary.median),
        f"{_number(summary.lower_quartile)} - {_number(summary.upper_quartile)}",
        f"{summary.boundary_rate:.0%}",
        "" if summary.coverage is None else f"{summary.coverage:.1%}",
        "" if gap is None else _with_error(gap),
    )


def _with_error(moments: Moments) -> str:
    """Mean ± standard error with as many digits as the error needs; a constant has no error."""
    if not moments.se > 1e-12:
        return _number(moments.mean)
    digits = 3 if moments.se >= 5e-4 and abs(moments.mean) >= 0.1 else 4
    return f"{moments.mean:.{digits}f} ± {moments.se:.{digits}f}"


def _number(value: float) -> str:
    return f"{value:.3f}" if value >= 0.1 else f"{value:.4f}"
