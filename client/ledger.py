"""What labels have spent and answered: charged and on disk before anything is released.

A local answer is remembered by (label, channel, coins): asked again in whatever task, it is the same and costs nothing.
Exact contributions and shuffled answers are charged for every task, and the latter drawn anew. A task seen before gets
its first reply again, byte for byte. Where a task offers several channels each labeler takes one, and is charged at its
level. Rounds that share one claim are charged together, at the first; a round is answered once. In sessions each
answer is drawn anew: a round that another session has got is charged as one of another such run.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from sqlite3 import Connection
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from client.account import Account, Charge, Fresh, Symbols
from client.ledger_store import create, keep_task, reply_to, writing
from client.picking import picked
from client.policy import Policy
from client.sources import Facts
from protocol.decimals import canonical

NOTHING = np.zeros((0, 0), dtype=np.uint8)


class Part(NamedTuple):
    """What some rows answer: the place of their charge, their positions in the task, symbols (repetitions, rows)."""

    way: int
    places: Fresh
    symbols: Symbols


Draw = Callable[[int, Fresh, Fresh], Symbols]  # way, positions of its rows, the fresh among these -> new symbols
Write = Callable[[Sequence[Part]], bytes]  # the reply from all parts
Made = TypeVar("Made")
Allowed = NDArray[np.bool_]  # whether a row may be charged so, shape (charges, rows)


class Ledger(Protocol):
    """Where a node keeps its budget."""

    @property
    def durable(self) -> bool:
        """Whether it outlives the process, as budgets of real labels must."""

    def settle(
        self,
        charges: Sequence[Charge],
        allowed: Allowed,
        policy: Policy,
        facts: Facts | None,
        draw: Draw,
        write: Write,
    ) -> bytes:
        """Pick of `charges`, charge, draw what is not remembered, write the reply, keep all, and only then return it.

        Raises BudgetExhausted or LedgerUnavailable; then nothing was charged and nothing may leave.
        """


class MemoryLedger:
    """Totals of a synthetic study, whose labels protect nobody: no answers, no caps. All its clients may share one.

    With addressed coins the address is the memory: the same label and table give the same answer. `totals` counts each
    (study, n, block of repetitions, channel) once, and each exact contribution by its task.
    """

    durable = False

    def __init__(self) -> None:
        self.totals: dict[bytes, Charge] = {}
        self._sessions: dict[bytes, list[bytes]] = {}  # that a round of a run was answered in

    def settle(
        self,
        charges: Sequence[Charge],
        allowed: Allowed,
        policy: Policy,
        facts: Facts | None,
        draw: Draw,
        write: Callable[[Sequence[Part]], Made],
    ) -> Made:
        """Count each charge once, answer each row through the first that is allowed, and return what `write` makes."""
        if charges[0].channel is None:
            first = charges[0] if charges[0].mark == b"" else self._in_copy(charges[0])
            self.totals.setdefault(first.run or first.task, first)
            return write([Part(0, slice(None), NOTHING)])
        parts = []
        ways = _split(allowed.argmax(axis=0)) if len(charges) > 1 else [(0, slice(None))]
        for way, places in ways:
            charge = charges[way]
            assert charge.channel is not None
            self.totals.setdefault(charge.task if charge.anew else charge.place + charge.channel.digest, charge)
            parts.append(Part(way, places, draw(way, places, slice(None))))
        return write(parts)

    def _in_copy(self, charge: Charge) -> Charge:
        """Where sessions ask for the same round of a run each is in a copy of its own."""
        got = self._sessions.setdefault(charge.name, [])
        if charge.mark not in got:
            got.append(charge.mark)
        return charge.in_copy(got.index(charge.mark))


class DiskLedger:
    """Budgets and answers in one SQLite file; several processes may share it.

    Guarantee: what leaves costs a label at most what is recorded for it, also after a crash at any moment; unit: one
    label, and one labeler by what is recorded for them (the sum over their labels, or less where one sum protects them
    all). Raises LedgerUnavailable where the file cannot be made, locked within `timeout` seconds, read or written, is
    newer, or is not a ledger. With `start` a missing file is made and an older one brought up to date; without it,
    both refuse every task: what was spent may be in a file that got lost.
    """

    durable = True

    def __init__(self, path: Path, timeout: float = 60.0, start: bool = True) -> None:
        if start:
            create(path, timeout)
        self._path, self._timeout = path, timeout

    def settle(
        self,
        charges: Sequence[Charge],
        allowed: Allowed,
        policy: Policy,
        facts: Facts | None,
        draw: Draw,
        write: Write,
    ) -> bytes:
        """One transaction: the reply exists outside it only after the charge is on disk."""
        if facts is None:
            raise ValueError("expected to know whose labels are asked for, got synthetic labels without identity")
        with writing(self._path, self._timeout) as connection:
            charges, mark = _in_copies(connection, charges), charges[0].mark
            before = reply_to(connection, charges[0].name)
            if before is not None:
                return before[len(mark) :]
            parts, paid = [Part(0, slice(None), NOTHING)], (0, 0)
            if charges[0].epsilon is not None and not _paid(connection, charges[0]):
                parts, paid = _settled(connection, charges, allowed, policy, facts, draw)
                if charges[0].run is not None:
                    keep_task(connection, charges[0].run, _columns(charges, paid), b"")
                    paid = (0, 0)
            reply = write(parts)
            keep_task(connection, charges[0].name, _columns([charges[part.way] for part in parts], paid), mark + reply)
            return reply


def _in_copies(connection: Connection, charges: Sequence[Charge]) -> Sequence[Charge]:
    """Charges of a round in a session: in the first copy of the run whose round is this session's, or nobody's yet."""
    first = charges[0]
    if first.mark == b"":
        return charges
    for number in count():
        kept = reply_to(connection, first.in_copy(number).name)
        if kept is None or kept.startswith(first.mark):
            break
    return [charge.in_copy(number) for charge in charges]


def _paid(connection: Connection, charge: Charge) -> bool:
    """Whether the task is a round of a run that its rows have paid for: all rounds have the same rows."""
    return charge.run is not None and reply_to(connection, charge.run) is not None


def _settled(
    connection: Connection, charges: Sequence[Charge], allowed: Allowed, policy: Policy, facts: Facts, draw: Draw
) -> tuple[list[Part], tuple[int, int]]:
    """Who answers what, charged; and how many labels and labelers paid. A labeler's rows are all in one part."""
    accounts = [Account.open(connection, charge, facts) for charge in charges]
    parts, labels, labelers = [], 0, 0
    for way, places in _split(picked(charges, accounts, allowed, policy)):
        charge, account, symbols = charges[way], accounts[way], NOTHING
        if not isinstance(places, slice):
            account = Account.open(connection, charge, facts.at(places))
        paid = account.pay(connection, charge, policy)
        if charge.channel is not None:
            symbols = account.answer(connection, charge, partial(draw, way, places))
        parts.append(Part(way, places, symbols))
        labels, labelers = labels + paid[0], labelers + paid[1]
    return parts, (labels, labelers)


def _split(ways: NDArray[np.int64]) -> list[tuple[int, Fresh]]:
    """(way, positions of the rows that take it) of each way that some take."""
    used = np.unique(ways).tolist()
    return [(used[0], slice(None))] if len(used) == 1 else [(way, np.flatnonzero(ways == way)) for way in used]


def _columns(charges: Sequence[Charge], paid: tuple[int, int]) -> tuple[int | str | None, ...]:
    """trust, unit, mechanisms, epsilon, delta, level, labels, labelers, coins of a task's entry: largest levels."""
    first = max(charges, key=lambda charge: charge.epsilon or 0)
    names = []
    for charge in charges:
        parameters = [f"{name}={canonical(value)}" for name, value in charge.mechanism.parameters]
        names.append(" ".join((charge.mechanism.name, *parameters)))
    return (
        int(first.trust),
        int(first.unit),
        " + ".join(names),
        None if first.epsilon is None else canonical(first.epsilon),
        None if first.delta is None else canonical(first.delta),
        None if first.channel is None else str(first.channel.level),
        *paid,
        int(first.coins),
    )
