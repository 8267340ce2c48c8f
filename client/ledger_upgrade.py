"""Ledgers of older versions, brought up to date: totals may become larger than what was spent, never smaller."""

from decimal import Decimal
from sqlite3 import Connection

from protocol.decimals import add, canonical
from protocol.group_privacy import group_delta
from protocol.privacy import Unit


def upgrade(connection: Connection, version: int) -> None:
    """From version 1, which knew claims for labels only, or 2, which knew no delta of labelers, in one transaction."""
    if version == 1:
        connection.execute(f"ALTER TABLE task ADD COLUMN unit INTEGER NOT NULL DEFAULT {Unit.LABEL.value}")
    connection.execute("ALTER TABLE labeler ADD COLUMN delta TEXT NOT NULL DEFAULT '0'")
    tasks = connection.execute("SELECT unit, epsilon, delta, labels FROM task WHERE delta IS NOT NULL").fetchall()
    paid = connection.execute("SELECT labeler, count(*) FROM label WHERE delta <> '0' GROUP BY labeler").fetchall()
    totals = {count: canonical(_most(tasks, count)) for _, count in paid}
    updates = ((totals[count], labeler) for labeler, count in paid)
    connection.executemany("UPDATE labeler SET delta = ? WHERE id = ?", updates)


def _most(tasks: list[tuple[int, str, str, int]], count: int) -> Decimal:
    """The most delta that `count` labels of one labeler can have spent: as if all had been in every task."""
    total = Decimal(0)
    for unit, epsilon, delta, labels in tasks:
        together = 1 if unit == Unit.LABELER else min(count, labels)
        if together:
            total = add(total, group_delta(Decimal(epsilon), Decimal(delta), together))
    return total
