"""One task's account inside the ledger's transaction: who pays, what is remembered, what is drawn anew."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, Inexact, localcontext
from sqlite3 import Connection

import numpy as np
from numpy.typing import NDArray

from client.ledger_store import channel_number, keep_answers, look_up, look_up_labelers, set_totals
from client.policy import Policy
from client.sources import Facts
from protocol.channel import DiscreteChannel
from protocol.decimals import add, canonical
from protocol.messages import Coins, Mechanism
from protocol.privacy import Unit
from protocol.trust import Trust

Fresh = slice | NDArray[np.intp]  # positions of the rows that need a new answer
Draw = Callable[[Fresh], NDArray[np.uint8]]  # new symbols, shape (repetitions, fresh rows)


class BudgetExhausted(Exception):
    """A label or a labeler asked for cannot pay; nothing was charged."""


@dataclass(frozen=True)
class Charge:
    """What one task costs each label: the asked decimals; `epsilon` None makes no claim and costs nothing.

    `channel` is the table that a local answer goes through, None for clear and exact contributions. `place` names the
    study, n and block of repetitions. At the unit LABELER a local answer costs its share, so that a labeler's labels
    add up to the claim; an exact contribution costs each label and each labeler `epsilon`, once.
    """

    task: bytes
    place: bytes
    trust: Trust
    unit: Unit
    mechanism: Mechanism
    epsilon: Decimal | None
    delta: Decimal | None
    channel: DiscreteChannel | None
    coins: Coins


class _Purses:
    """Totals of many, kept as small numbers: most labels have spent the same."""

    def __init__(self, count: int) -> None:
        self.ids = np.zeros(count, dtype=np.int64)
        self.kinds = np.zeros(count, dtype=np.int64)
        self.totals: dict[tuple[str, ...], int] = {}

    def put(self, position: int, key: int, total: tuple[str, ...]) -> None:
        self.ids[position] = key
        self.kinds[position] = self.totals.setdefault(total, len(self.totals))


@dataclass(frozen=True)
class Account:
    """The labels asked for, as the ledger holds them; position i is the i-th row of the task.

    `symbols` (1, rows): remembered answers; `fresh`: positions without one, which pay; `owners`: positions in `payers`.
    """

    channel: int | None
    labels: _Purses
    payers: _Purses
    owners: NDArray[np.int64]
    symbols: NDArray[np.uint8]
    fresh: NDArray[np.intp]

    @classmethod
    def open(cls, connection: Connection, charge: Charge, facts: Facts) -> "Account":
        """Look all labels up, entering new ones. Raises ValueError where one label is asked for twice."""
        channel = None
        if charge.channel is not None:
            channel = channel_number(connection, charge.channel.digest, int(charge.coins))
        used, owners = np.unique(facts.labelers, return_inverse=True)
        payers, labels = _Purses(len(used)), _Purses(len(facts.identities))
        for position, key, epsilon in look_up_labelers(connection, [facts.names[i] for i in used.tolist()]):
            payers.put(position, key, (epsilon,))
        symbols = np.zeros((1, len(owners)), dtype=np.uint8)
        fresh = np.ones(len(owners), dtype=np.bool_)
        found = look_up(connection, facts.identities, payers.ids[owners].tolist(), channel)
        for position, key, epsilon, delta, symbol in found:
            labels.put(position, key, (epsilon, delta))
            if symbol is not None:
                symbols[0, position], fresh[position] = symbol, False
        if len(np.unique(labels.ids)) != len(owners):
            raise ValueError("expected each label at most once in a task")
        return cls(channel, labels, payers, owners, symbols, np.flatnonzero(fresh))

    def pay(self, connection: Connection, charge: Charge, policy: Policy) -> tuple[int, int]:
        """Charge every fresh label and its labeler, or raise BudgetExhausted. Returns how many of each paid."""
        assert charge.epsilon is not None
        kinds = list(self.labels.totals)
        after: dict[int, tuple[str, str]] = {}
        for kind in np.unique(self.labels.kinds[self.fresh]).tolist():
            epsilon = add(Decimal(kinds[kind][0]), charge.epsilon)
            delta = add(Decimal(kinds[kind][1]), charge.delta or Decimal(0))
            _within(epsilon, policy.label_cap)
            _within(delta, policy.delta_cap)
            after[kind] = canonical(epsilon), canonical(delta)
        counts = np.bincount(self.owners[self.fresh], minlength=len(self.payers.ids))
        if charge.unit is Unit.LABELER and charge.channel is None:
            counts = np.minimum(counts, 1)  # one sum protects all labels of a labeler together
        paying = np.flatnonzero(counts)
        sums = self._owner_sums(charge.epsilon, counts, policy.labeler_cap)
        order = self.fresh[np.argsort(self.labels.ids[self.fresh])]
        ids, kind_of = self.labels.ids[order].tolist(), self.labels.kinds[order].tolist()
        totals = ((*after[kind], key) for key, kind in zip(ids, kind_of, strict=True))
        pairs = zip(self.payers.kinds[paying].tolist(), counts[paying].tolist(), strict=True)
        owners = zip((sums[pair] for pair in pairs), self.payers.ids[paying].tolist(), strict=True)
        set_totals(connection, totals, owners)
        return len(order), len(paying)

    def answer(self, connection: Connection, draw: Draw) -> NDArray[np.uint8]:
        """All symbols, shape (1, rows): remembered ones, and fresh ones drawn now and kept."""
        assert self.channel is not None
        symbols = self.symbols.copy()
        if len(self.fresh):
            symbols[:, self.fresh] = draw(self.fresh)
        order = self.fresh[np.argsort(self.labels.ids[self.fresh])]
        keep_answers(connection, self.channel, self.labels.ids[order].tolist(), symbols[0, order].tolist())
        return symbols

    def _owner_sums(
        self, epsilon: Decimal, counts: NDArray[np.int64], cap: Decimal | None
    ) -> dict[tuple[int, int], str]:
        """(kind of total, labels that pay) -> the total after, checked against the cap."""
        kinds = list(self.payers.totals)
        paying = np.flatnonzero(counts)
        sums = {}
        for kind, count in set(zip(self.payers.kinds[paying].tolist(), counts[paying].tolist(), strict=True)):
            total = add(Decimal(kinds[kind][0]), times(epsilon, count))
            _within(total, cap)
            sums[kind, count] = canonical(total)
        return sums


def _within(total: Decimal, cap: Decimal | None) -> None:
    if cap is not None and total > cap:
        raise BudgetExhausted("expected a budget that lasts for every label asked for")


def times(epsilon: Decimal, count: int) -> Decimal:
    """epsilon * count, exactly: raises decimal.Inexact rather than round a budget."""
    with localcontext() as context:
        context.prec = 256
        context.traps[Inexact] = True
        return epsilon * count
