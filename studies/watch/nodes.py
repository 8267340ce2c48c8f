"""What came of nodes' messages, and what nodes have left of their budgets, as tables of a terminal and as JSON."""

from collections.abc import Iterator, Sequence
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Any

from rich import box
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from protocol.decimals import canonical
from studies.terminal import printable, rounded_up, small
from studies.watch.budgets import Budget, Left
from studies.watch.messages import Messages

MEANT = {  # kind of message -> what it is in words; the first five are always told
    "answered": "nodes that answered",
    "refused": "tasks refused",
    "late": "replies that came too late",
    "rejected": "reports that do not count",
    "missing": "nodes that did not answer",
    "failed": "messages lost, and sent again",
    "unreadable": "replies that cannot be read",
    "duplicate": "replies that came twice",
    "foreign": "messages that nobody asked for",
}
ALWAYS = 5
BUDGETS = "Budgets of nodes: totals under caps"


def message_rows(messages: Messages) -> Iterator[tuple[str, str, int, int]]:
    """(kind, what it is, how many in the last round, and in all) of messages."""
    kinds = [*MEANT, *sorted(messages.all.keys() - MEANT.keys())]
    for at, kind in enumerate(kinds):
        if at < ALWAYS or messages.all[kind]:
            yield kind, MEANT.get(kind, kind), messages.last[kind], messages.all[kind]


def message_table(messages: Messages) -> Table:
    """Replies by what came of them."""
    table = table_of("messages", "last round", f"{messages.rounds:,} rounds" if messages.rounds > 1 else "1 round")
    for kind, words, last, total in message_rows(messages):
        of = f" of {messages.nodes:,}" if kind == "answered" else ""
        style = "bold" if total and kind != "answered" else ""
        table.add_row(words, f"{last:,}{of}", f"{total:,}", style=style)
    return table


def messages_as_json(messages: Messages) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "rounds": messages.rounds,
        "nodes": messages.nodes,
        "messages": dict(messages.all),
        "last_round": dict(messages.last),
        "blamed": messages.blamed,
    }


def budget_table(budgets: Sequence[Budget]) -> Table:
    """A line for each total of each node that has a ledger; nothing that names a labeler."""
    table = table_of("node", "total of", "most spent", "", "cap", "left", "used up", "tasks answered")
    for one in budgets:
        for at, each in enumerate(one.lefts):
            node, told = (Text(printable(one.node)), f"{one.tasks:,}, by {one.owners}") if at == 0 else (Text(), "")
            spent, *rest = words_of(each)
            table.add_row(node, f"a {each.whose}, {each.total}", spent, _bar(each), *rest, told)
    return table


def budget_notes(budgets: Sequence[Budget]) -> Iterator[str]:
    """What there is to say of nodes without a ledger, or of whom not all is known."""
    yield from (f"{one.node}: {one.note}." for one in budgets if one.note)


def words_of(each: Left) -> tuple[str, str, str, str]:
    """Most spent, cap, least left, and how many have nothing left: amounts spent rounded up, what is left down."""
    word = rounded_up if each.total == "ε" else small
    spent, cap = word(each.spent), "no bound" if each.cap is None else word(each.cap)
    return spent, cap, "-" if each.left is None else _down(each.left), "-" if each.cap is None else f"{each.used_up:,}"


def _down(value: Decimal) -> str:
    """To six digits, never above it.

    >>> _down(Decimal("0.99999999")), _down(Decimal("0.0000012"))
    ('0.999999', '1.2e-6')
    """
    found = Context(prec=6, rounding=ROUND_FLOOR).plus(value)
    if found == 0 or found >= Decimal("0.001"):
        return canonical(found)
    return f"{canonical(found.scaleb(-found.adjusted()))}e{found.adjusted()}"


def table_of(first: str, *heads: str) -> Table:
    """An empty table: the first column starts at the left unless it is a number."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(first, justify="right" if first == "n" else "left", overflow="fold")
    for head in heads:
        table.add_column(head, justify="right", overflow="fold")
    return table


def _bar(each: Left) -> ProgressBar | str:
    return "" if each.cap is None else ProgressBar(total=float(each.cap), completed=float(each.spent), width=16)
