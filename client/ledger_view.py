"""A look at a ledger: what was charged for which task, and what is spent. Answers and replies are never read."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path

from client.account import round_name, times
from client.ledger_store import APPLICATION_ID, LedgerUnavailable, reading
from protocol.decimals import add
from protocol.messages import Coins
from protocol.privacy import Unit
from protocol.sqlite_header import application_id
from protocol.trust import Trust


@dataclass(frozen=True)
class Entry:
    """One task that was answered: what it charged each label. `level` is that of the table used, never above epsilon.

    At the unit LABELER a local task charges each label a share of its claim; a central one charges each label its
    claim, and each labeler once. A run is one entry, with the `rounds` of it that were answered: it paid for them all.
    """

    task: bytes
    trust: Trust
    unit: Unit
    mechanism: str
    epsilon: Decimal | None
    delta: Decimal | None
    level: Decimal | None
    labels: int
    labelers: int
    coins: Coins
    rounds: tuple[int, ...] = ()


@dataclass(frozen=True)
class Spent:
    """What one labeler has spent. `most` and `most_delta` are of one label.

    Guarantee: (epsilon, delta) for all that has left; unit: one labeler; neighbours: replace all labels of one labeler.
    At a delta of 1 or more nothing is promised.
    """

    labeler: str = field(repr=False)
    labels: int
    epsilon: Decimal
    delta: Decimal
    most: Decimal
    most_delta: Decimal


def is_label_ledger(path: Path) -> bool:
    """Whether a file is a labeler's ledger, by its header."""
    return application_id(path) == APPLICATION_ID


def read_entries(path: Path) -> list[Entry]:
    """All tasks and runs that were answered, oldest first. Raises LedgerUnavailable where the file is no ledger."""
    with reading(path) as connection:
        rows = connection.execute(
            "SELECT id, trust, unit, mechanism, epsilon, delta, level, labels, labelers, coins FROM task "
            "ORDER BY number"
        ).fetchall()
    return _runs(
        Entry(
            task=bytes(task),
            trust=Trust(trust),
            unit=Unit(unit),
            mechanism=mechanism,
            epsilon=_decimal(epsilon),
            delta=_decimal(delta),
            level=_decimal(level),
            labels=labels,
            labelers=labelers,
            coins=Coins(coins),
        )
        for task, trust, unit, mechanism, epsilon, delta, level, labels, labelers, coins in rows
    )


def read_labelers(path: Path) -> list[Spent]:
    """Every labeler with a label in the ledger, by name. Raises LedgerUnavailable, also where totals disagree."""
    with reading(path) as connection:
        groups = connection.execute(
            "SELECT name, labeler.epsilon, labeler.delta, label.epsilon, label.delta, count(*) FROM label "
            "JOIN labeler ON labeler.id = label.labeler GROUP BY labeler.id, label.epsilon, label.delta ORDER BY name"
        ).fetchall()
    found: dict[str, Spent] = {}
    sums: dict[str, Decimal] = {}
    for name, *totals, count in groups:
        spent, failed, epsilon, delta = map(Decimal, totals)
        before = found.get(name, Spent(name, 0, spent, failed, Decimal(0), Decimal(0)))
        most, most_delta = max(before.most, epsilon), max(before.most_delta, delta)
        found[name] = Spent(name, before.labels + count, spent, failed, most, most_delta)
        sums[name] = add(sums.get(name, Decimal(0)), times(epsilon, count))
    wrong = [
        spent
        for name, spent in found.items()
        if not spent.most <= spent.epsilon <= sums[name] or spent.most_delta > spent.delta
    ]
    if wrong:
        raise LedgerUnavailable(
            f"{path}: expected totals of labelers between the most of a label and the sum over labels, "
            f"{len(wrong)} are not"
        )
    return list(found.values())


def _runs(entries: Iterable[Entry]) -> list[Entry]:
    """The same without the rounds of runs, which stand in the entries of their runs: names tell which they are of."""
    found = {entry.task: entry for entry in entries}
    for name, entry in list(found.items()):
        said = re.search(r"\brounds=(\d+)", entry.mechanism)
        names = [round_name(name, round) for round in range(int(said[1]))] if said else []
        answered = tuple(round for round, one in enumerate(names) if one in found)
        for round in answered:
            del found[names[round]]
        if answered:
            found[name] = replace(entry, rounds=answered)
    return list(found.values())


def _decimal(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)
