"""Plain tables and lines on a terminal, safe for text that came out of a file."""

from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, Context, Decimal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from protocol.decimals import canonical


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


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], left: Iterable[str]) -> None:
    """A table of text: columns named in `left` start at the left, the others end at the right."""
    table = Table()
    for name in columns:
        table.add_column(name, justify="left" if name in left else "right")
    for row in rows:
        table.add_row(*(Text(printable(str(cell))) for cell in row))
    _console().print(table)


def print_line(text: str, style: str = "") -> None:
    """One line, however long; the terminal may wrap it."""
    _console().print(Text(text, style=style), soft_wrap=True)


def _console() -> Console:
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=max(console.width, 120))
