"""One task's account inside the ledger's transaction: who pays, what is remembered, what is drawn anew."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, Inexact, localcontext
from sqlite3 import Connection

import numpy as np
from numpy.typing import NDArray

from client.ledger_store import channel_number, keep_answers, look_up, owner_totals, set_totals
from client.policy import Policy
from client.sources import Facts
from protocol.channel import DiscreteChannel
from protocol.decimals import add, canonical
from protocol.messages import Coins, Mechanism
from protocol.trust import Trust

Fresh = slice | NDArray[np.intp]  # positions of the rows that need a new answer
Draw = Callable[[Fresh], NDArray[np.uint8]]  # new symbols, shape (repetitions, fresh rows)


class BudgetExhausted(Exception):
    """A label or a labeler asked for cannot pay; nothing was charged."""


@dataclass(frozen=True)
class Charge:
    """What one task costs each label: the asked decimals; `epsilon` None makes no claim and costs nothing.

    `channel` is the table that a local answer goes through, None for clear and exact contributions. `place` names the
    study, n and block of repetitions.
    """

    task: bytes
    place: bytes
    trust: Trust
    mechanism: Mechanism
    epsilon: Decimal | None
    delta: Decimal | None
    channel: DiscreteChannel | None
    coins: Coins


@dataclass(frozen=True)
class Account:
    """The labels asked for, as the ledger holds them; position i is the i-th row of the task.

    `spent` (epsilon, delta) as text, `symbols` (1, rows) remembered answers, `fresh` the positions without one.
    """

    channel: int | None
    ids: NDArray[np.int64]
    spent: list[tuple[str, str]]
    symbols: NDArray[np.uint8]
    fresh: NDArray[np.intp]
    owners: NDArray[np.int64]
    owner_spent: dict[int, str]

    @classmethod
    def open(cls, connection: Connection, charge: Charge, facts: Facts) -> "Account":
        """Look all labels up, entering new ones. Raises ValueError where one label is asked for twice."""
        channel = None
        if charge.channel is not None:
            channel = channel_number(connection, charge.channel.digest, int(charge.coins))
        used, index = np.unique(facts.labelers, return_inverse=True)
        totals = owner_totals(connection, [facts.names[labeler] for labeler in used.tolist()])
        owners = np.array([key for key, _ in totals], dtype=np.int64)[index]
        count = len(facts.identities)
        ids, symbols = np.zeros(count, dtype=np.int64), np.zeros((1, count), dtype=np.uint8)
        spent, fresh = [("0", "0")] * count, np.ones(count, dtype=np.bool_)
        for position, label, epsilon, delta, symbol in look_up(connection, facts.identities, owners.tolist(), channel):
            ids[position], spent[position] = label, (epsilon, delta)
            if symbol is not None:
                symbols[0, position], fresh[position] = symbol, False
        if len(np.unique(ids)) != count:
            raise ValueError("expected each label at most once in a task")
        return cls(channel, ids, spent, symbols, np.flatnonzero(fresh), owners, dict(totals))

    def pay(self, connection: Connection, charge: Charge, policy: Policy) -> tuple[int, int]:
        """Charge every fresh label and its labeler, or raise BudgetExhausted. Returns how many of each paid."""
        assert charge.epsilon is not None
        fresh = self.fresh.tolist()
        after: dict[tuple[str, str], tuple[str, str]] = {}
        for before in {self.spent[position] for position in fresh}:
            epsilon = add(Decimal(before[0]), charge.epsilon)
            delta = add(Decimal(before[1]), charge.delta or Decimal(0))
            _within(epsilon, policy.label_cap)
            _within(delta, policy.delta_cap)
            after[before] = canonical(epsilon), canonical(delta)
        owners = {}
        for owner, count in Counter(self.owners[self.fresh].tolist()).items():
            total = add(Decimal(self.owner_spent[owner]), _times(charge.epsilon, count))
            _within(total, policy.labeler_cap)
            owners[owner] = canonical(total)
        labels = ((*after[self.spent[position]], int(self.ids[position])) for position in fresh)
        set_totals(connection, labels, ((total, owner) for owner, total in owners.items()))
        return len(fresh), len(owners)

    def answer(self, connection: Connection, draw: Draw) -> NDArray[np.uint8]:
        """All symbols, shape (1, rows): remembered ones, and fresh ones drawn now and kept."""
        assert self.channel is not None
        symbols = self.symbols.copy()
        if len(self.fresh):
            symbols[:, self.fresh] = draw(self.fresh)
        new = zip(self.ids[self.fresh].tolist(), symbols[0, self.fresh].tolist(), strict=True)
        keep_answers(connection, self.channel, sorted(new))
        return symbols


def _within(total: Decimal, cap: Decimal | None) -> None:
    if cap is not None and total > cap:
        raise BudgetExhausted("expected a budget that lasts for every label asked for")


def _times(epsilon: Decimal, count: int) -> Decimal:
    """Exact product: raises decimal.Inexact rather than round a budget."""
    with localcontext() as context:
        context.prec = 256
        context.traps[Inexact] = True
        return epsilon * count
