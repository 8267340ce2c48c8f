"""What labels have spent and answered: charged and on disk before anything is released.

A local answer is remembered by (label, channel, coins): asked again in whatever task, it is the same and costs nothing.
Exact contributions are charged for every task. A task seen before gets its first reply again, byte for byte.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import numpy as np

from client.account import Account, Charge, Draw, Symbols
from client.ledger_store import create, keep_task, reading, reply_to, writing
from client.policy import Policy
from client.sources import Facts
from protocol.decimals import canonical
from protocol.messages import Coins

Write = Callable[[Symbols], bytes]  # the reply from all symbols, shape (repetitions, rows)
NOTHING = np.zeros((0, 0), dtype=np.uint8)


class Ledger(Protocol):
    """Where a node keeps its budget."""

    @property
    def durable(self) -> bool:
        """Whether it outlives the process, as budgets of real labels must."""

    def settle(self, charge: Charge, policy: Policy, facts: Facts | None, draw: Draw, write: Write) -> bytes:
        """Charge, draw what is not remembered, write the reply, keep all of it, and only then return the reply.

        Raises BudgetExhausted or LedgerUnavailable; then nothing was charged and nothing may leave.
        """

    def answered(self, coins: Coins) -> frozenset[bytes]:
        """Digests of the channels in which something is remembered."""


class MemoryLedger:
    """Totals of a synthetic study, whose labels protect nobody: no answers, no caps.

    With addressed coins the address is the memory: the same label and table give the same answer. `totals` counts each
    (study, n, block of repetitions, channel) once, and each exact contribution by its task.
    """

    durable = False

    def __init__(self) -> None:
        self.totals: dict[bytes, Charge] = {}

    def settle(self, charge: Charge, policy: Policy, facts: Facts | None, draw: Draw, write: Write) -> bytes:
        """Count the charge once, and answer."""
        self.totals.setdefault(charge.task if charge.channel is None else charge.place + charge.channel.digest, charge)
        return write(NOTHING if charge.channel is None else draw(slice(None)))

    def answered(self, coins: Coins) -> frozenset[bytes]:
        """Nothing is remembered."""
        return frozenset()


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

    def settle(self, charge: Charge, policy: Policy, facts: Facts | None, draw: Draw, write: Write) -> bytes:
        """One transaction: the reply exists outside it only after the charge is on disk."""
        if facts is None:
            raise ValueError("expected to know whose labels are asked for, got synthetic labels without identity")
        with writing(self._path, self._timeout) as connection:
            before = reply_to(connection, charge.task)
            if before is not None:
                return before
            symbols, paid = NOTHING, (0, 0)
            if charge.epsilon is not None:
                account = Account.open(connection, charge, facts)
                paid = account.pay(connection, charge, policy)
                if charge.channel is not None:
                    symbols = account.answer(connection, draw)
            reply = write(symbols)
            keep_task(connection, charge.task, _columns(charge, paid), reply)
            return reply

    def answered(self, coins: Coins) -> frozenset[bytes]:
        """Digests of the channels in which some label has answered."""
        with reading(self._path) as connection:
            found = connection.execute("SELECT digest FROM channel WHERE coins = ?", (int(coins),)).fetchall()
        return frozenset(bytes(digest) for (digest,) in found)


def _columns(charge: Charge, paid: tuple[int, int]) -> tuple[int | str | None, ...]:
    """trust, unit, mechanism, epsilon, delta, level, labels, labelers, coins of a task's entry."""
    parameters = [f"{name}={canonical(value)}" for name, value in charge.mechanism.parameters]
    return (
        int(charge.trust),
        int(charge.unit),
        " ".join((charge.mechanism.name, *parameters)),
        None if charge.epsilon is None else canonical(charge.epsilon),
        None if charge.delta is None else canonical(charge.delta),
        None if charge.channel is None else str(charge.channel.level),
        *paid,
        int(charge.coins),
    )
