"""The table of figures: ours, each peer with its ratio, what was asked, and the share of the limit."""

from collections.abc import Mapping, Sequence

from studies.bench.figure import Asked, Figure, installed
from studies.bench.row import LIMIT, OURS, PEER, Row
from studies.terminal import print_entries, print_line

COLUMNS = ("figure", "ours", "peer", "peer's", "ratio", "asked", "reached", "limit", "limit's", "share")
LEFT = ("figure", "peer", "asked", "limit")


def show(rows: Sequence[Row], figures: Mapping[str, Figure]) -> None:
    """Print the table, and which peers are missing."""
    names = list(dict.fromkeys(row.figure for row in rows))
    cells = [line for name in names for line in lines(figures[name], [row for row in rows if row.figure == name])]
    print_entries(COLUMNS, cells, LEFT)
    for name in names:
        print_line(f"{name}: {figures[name].what}")
        for module in figures[name].needs:
            if not installed(module):
                print_line(f"{name}: no {module}, which is not installed (pip install halftruth[bench])")


def lines(figure: Figure, rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """Lines of a figure: one a peer, the first of them with everything about ours."""
    (ours,) = (row for row in rows if row.role == OURS)
    limit = next((row for row in rows if row.role == LIMIT), None)
    bound = ("-", "-", "-") if limit is None else (limit.side, number(limit.value), f"{limit.ratio:.0%}")
    first = (figure.name, spread(ours))
    verdict = (wording(figure.asked, ours.unit), {True: "yes", False: "no", None: "-"}[reached(figure.asked, rows)])
    peers = [(row.side, number(row.value), f"{row.ratio:.3g}") for row in rows if row.role == PEER] or [("-",) * 3]
    return [
        (*(first if place == 0 else ("", "")), *peer, *((*verdict, *bound) if place == 0 else ("",) * 5))
        for place, peer in enumerate(peers)
    ]


def spread(row: Row) -> str:
    """A median with the least and the most."""
    return f"{number(row.value)} {row.unit} ({number(row.least)} to {number(row.most)})"


def number(value: float) -> str:
    """Three digits, large numbers whole.

    >>> number(0.04567), number(312.4), number(41234.5)
    ('0.0457', '312', '41,234')
    """
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def wording(asked: Asked, unit: str) -> str:
    """What was asked, for people.

    >>> wording(Asked(least=300), "M labels/s"), wording(Asked(times=10), "s"), wording(Asked(), "s")
    ('>= 300 M labels/s', '>= 10 x any peer', '-')
    >>> wording(Asked(times=10, share=0.8), "s")
    '>= 10 x any peer, or 80% of the limit'
    """
    if asked.least is not None:
        return f">= {number(asked.least)} {unit}"
    if asked.most is not None:
        return f"<= {number(asked.most)} {unit}"
    enough = "" if asked.share is None else f", or {asked.share:.0%} of the limit"
    return "-" if asked.times is None else f">= {asked.times:g} x {asked.peer or 'any peer'}{enough}"


def reached(asked: Asked, rows: Sequence[Row]) -> bool | None:
    """Whether the median is as asked; None where nothing is, or its peer is missing."""
    (ours,) = (row for row in rows if row.role == OURS)
    if asked.least is not None:
        return ours.value >= asked.least
    if asked.most is not None:
        return ours.value <= asked.most
    if asked.share is not None and any(row.role == LIMIT and row.ratio >= asked.share for row in rows):
        return True
    ratios = [row.ratio for row in rows if row.role == PEER and asked.peer in ("", row.side)]
    return None if asked.times is None or not ratios else min(ratios) >= asked.times
