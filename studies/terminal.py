"""Plain tables and lines on a terminal, safe for text that came out of a file."""

from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, Context, Decimal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from protocol.decimals import canonical

WIDEST = 10_000  # a table's natural width is measured below this


class Terminal(Console):
    """rich's console, where all commands print: whoever reads may go, and the command does all its work.

    >>> Terminal(width=20).print("read by nobody yet")
    read by nobody yet
    """

    def on_broken_pipe(self) -> None:
        """Print no more; rich's own ends the process with exit code 1, before files are written."""
        self.quiet = True


def printable(text: str) -> str:
    """Text without characters that could steer a terminal.

    >>> printable("naïve\\x1b[31m")
    'naïve\\\\x1b[31m'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def rounded_up(level: Decimal | None) -> str:
    """A level to twelve digits, never below it; "-" for none.

    >>> rounded_up(Decimal("0.99999999999999999997")), rounded_up(Decimal("43.66827237527655"))
    ('1', '43.6682723753')
    """
    return "-" if level is None else canonical(Context(prec=12, rounding=ROUND_CEILING).plus(level))


def small(level: Decimal | None) -> str:
    """A delta to three digits, never below it, as people write small numbers; "-" for none.

    >>> small(Decimal("0.00001")), small(Decimal("0.0000838905609894")), small(Decimal("0.25"))
    ('1e-5', '8.39e-5', '0.25')
    """
    if level is None:
        return "-"
    value = Context(prec=3, rounding=ROUND_CEILING).plus(level)
    if value == 0 or value >= Decimal("0.001"):
        return canonical(value)
    return f"{canonical(value.scaleb(-value.adjusted()))}e{value.adjusted()}"


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], left: Iterable[str]) -> None:
    """A table of text: columns named in `left` start at the left, the others end at the right.

    Nothing is cut where the terminal is narrow: long cells go on in the next line.
    """
    _console().print(_table(columns, rows, left))


def print_entries(columns: Sequence[str], rows: Sequence[Sequence[object]], left: Iterable[str]) -> None:
    """A table of many columns, as wide as it is; where a terminal is narrower, a paragraph for each row."""
    console, table = _console(), _table(columns, rows, left)
    wide = console.measure(table, options=console.options.update(max_width=WIDEST)).maximum
    if not console.is_terminal:
        Terminal(highlight=False, width=max(console.width, wide)).print(table)
    elif wide <= console.width:
        console.print(table)
    else:
        for row in rows:
            cells = (f"{name}: {printable(str(cell))}" for name, cell in zip(columns, row, strict=True))
            console.print(Text("; ".join(cells)))


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]], left: Iterable[str]) -> Table:
    table, starts = Table(), frozenset(left)
    for name in columns:
        table.add_column(name, justify="left" if name in starts else "right", overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(str(cell))) for cell in row))
    return table


def print_line(text: str, style: str = "") -> None:
    """One line, however long; the terminal may wrap it."""
    _console().print(Text(text, style=style), soft_wrap=True)


def _console() -> Terminal:
    console = Terminal(highlight=False)
    return console if console.is_terminal else Terminal(highlight=False, width=max(console.width, 120))
