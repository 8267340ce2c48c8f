"""One task's account inside the ledger's transaction: who pays, what is remembered, what is drawn anew."""

import hashlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal, Inexact, localcontext
from sqlite3 import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from client.ledger_store import channel_number, find_channel, keep_answers, look_up, look_up_labelers, set_totals
from client.policy import Policy
from client.sources import Facts
from protocol.choice_law import Channel
from protocol.decimals import add, canonical
from protocol.group_privacy import group_delta
from protocol.messages import Coins, Mechanism
from protocol.privacy import Unit
from protocol.trust import Trust

Total = tuple[Decimal, Decimal]  # epsilon and delta
Caps = tuple[Decimal | None, Decimal | None]
Paying = tuple[int, int]  # (kind of total, how many labels pay)
Fresh = slice | NDArray[np.intp]  # positions of the rows that need a new answer
Symbols = NDArray[np.unsignedinteger[Any]]  # reports; a set of choices is a number with bit k for choice k
Draw = Callable[[Fresh], Symbols]  # new symbols, shape (repetitions, fresh rows)


class BudgetExhausted(Exception):
    """A label or a labeler asked for cannot pay; nothing was charged."""


@dataclass(frozen=True)
class Charge:
    """What one task costs each label: the asked decimals; `epsilon` None makes no claim and costs nothing.

    `channel` is the table that a local answer goes through, None for clear and exact contributions. `place` names the
    study, n and block of repetitions. At the unit LABELER a local answer costs its share, so that a labeler's labels
    add up to the claim; an exact contribution costs each label and each labeler the claim, once. A `run` is paid for
    whole, at the first of its rounds that is asked; `round` tells them apart. An `anew` one draws new answers in every
    task, and remembers none: what a shuffled group hides, the same answer in another group would show. A `session`
    gets a vector with noise and masks of its own, 32 bytes name it and the task: what was kept for another is not for
    it, and a round that another has got is one of a further copy of its run, see `in_copy`.
    """

    task: bytes
    place: bytes
    trust: Trust
    unit: Unit
    mechanism: Mechanism
    epsilon: Decimal | None
    delta: Decimal | None
    channel: Channel | None
    coins: Coins
    run: bytes | None = None
    round: int = 0
    anew: bool = False
    session: bytes | None = None

    @property
    def name(self) -> bytes:
        """What the reply is kept under: the task, or the round of its run, whatever else is asked in it."""
        return self.task if self.run is None else round_name(self.run, self.round)

    @property
    def mark(self) -> bytes:
        """What stands before a kept reply: the session that it is for, where its name does not tell."""
        return b"" if self.run is None else self.session or b""

    def in_copy(self, number: int) -> "Charge":
        """The same in a copy of its run: sessions that ask for the same round are in different ones, each paid whole.

        Guarantee: copies that hold at most one answer to each round cost what so many runs do, in whatever order they
        are asked (concurrent composition; of Gaussian claims adaptive composition says it already).
        """
        assert self.run is not None
        return replace(self, run=hashlib.sha256(self.run + f" in sessions {number}".encode()).digest())

    def of_label(self) -> Total:
        """What one label pays, (epsilon, delta)."""
        assert self.epsilon is not None
        return self.epsilon, self.delta or Decimal(0)

    def of_labeler(self, count: int) -> Total:
        """What a labeler pays, `count` of whose labels do.

        Guarantee: (epsilon, delta) of this release; unit: one labeler; neighbours: replace all labels of one labeler.
        """
        epsilon, delta = self.of_label()
        if self.unit is Unit.LABELER and self.channel is None:
            return epsilon, delta  # one sum protects all of them together
        return times(epsilon, count), group_delta(epsilon, delta, count)


class _Purses:
    """Totals of many, kept as small numbers: most labels have spent the same."""

    def __init__(self, count: int) -> None:
        self.ids = np.zeros(count, dtype=np.int64)
        self.kinds = np.zeros(count, dtype=np.int64)
        self.totals: dict[tuple[str, str], int] = {}

    def put(self, position: int, key: int, total: tuple[str, str]) -> None:
        self.ids[position] = key
        self.kinds[position] = self.totals.setdefault(total, len(self.totals))

    def after(
        self, paying: Iterable[Paying], cost: Callable[[int], Total], caps: Caps
    ) -> dict[Paying, tuple[str, str]]:
        """The total after for each kind of total and count of labels that pay, or raise BudgetExhausted."""
        kinds, found = list(self.totals), {}
        for kind, count in paying:
            total = [add(Decimal(spent), part) for spent, part in zip(kinds[kind], cost(count), strict=True)]
            if any(cap is not None and spent > cap for spent, cap in zip(total, caps, strict=True)):
                raise BudgetExhausted("expected a budget that lasts for every label and labeler asked for")
            found[kind, count] = canonical(total[0]), canonical(total[1])
        return found

    def able(self, paying: Iterable[Paying], cost: Callable[[int], Total], caps: Caps) -> set[Paying]:
        """Those out of `paying` that stay within the caps."""
        found = set()
        for each in paying:
            with suppress(BudgetExhausted):
                found |= set(self.after([each], cost, caps))
        return found


@dataclass(frozen=True)
class Account:
    """The labels asked for, as the ledger holds them; position i is the i-th row of the task.

    `symbols` (1, rows): remembered answers; `fresh`: positions without one, which pay; `owners`: positions in `payers`.
    """

    labels: _Purses
    payers: _Purses
    owners: NDArray[np.int64]
    symbols: Symbols
    fresh: NDArray[np.intp]

    @classmethod
    def open(cls, connection: Connection, charge: Charge, facts: Facts) -> "Account":
        """Look all labels up, entering new ones. Raises ValueError where one label is asked for twice."""
        channel = None
        if charge.channel is not None and not charge.anew:
            channel = find_channel(connection, charge.channel.digest, int(charge.coins))
        used, owners = np.unique(facts.labelers, return_inverse=True)
        payers, labels = _Purses(len(used)), _Purses(len(facts.identities))
        for position, key, epsilon, delta in look_up_labelers(connection, [facts.names[i] for i in used.tolist()]):
            payers.put(position, key, (epsilon, delta))
        kind = np.uint8 if charge.channel is None else charge.channel.symbol_type
        symbols: Symbols = np.zeros((1, len(owners)), dtype=kind)
        fresh = np.ones(len(owners), dtype=np.bool_)
        found = look_up(connection, facts.identities, payers.ids[owners].tolist(), channel)
        for position, key, epsilon, delta, symbol in found:
            labels.put(position, key, (epsilon, delta))
            if symbol is not None:
                symbols[0, position], fresh[position] = symbol, False
        if len(np.unique(labels.ids)) != len(owners):
            raise ValueError("expected each label at most once in a task")
        return cls(labels, payers, owners, symbols, np.flatnonzero(fresh))

    def able(self, charge: Charge, policy: Policy) -> NDArray[np.bool_]:
        """Which labelers, by position in `payers`, can pay this for all of their fresh labels."""
        kinds = self.labels.kinds[self.fresh]
        caps = (policy.label_cap, policy.delta_cap)
        paying = self.labels.able({(kind, 1) for kind in np.unique(kinds).tolist()}, lambda _: charge.of_label(), caps)
        poor = self.owners[self.fresh[~np.isin(kinds, [kind for kind, _ in paying])]]
        counts = np.bincount(self.owners[self.fresh], minlength=len(self.payers.ids))
        owed = list(zip(self.payers.kinds.tolist(), counts.tolist(), strict=True))
        caps = (policy.labeler_cap, policy.labeler_delta_cap)
        rich = self.payers.able({each for each in owed if each[1]}, charge.of_labeler, caps)
        found = np.array([not each[1] or each in rich for each in owed], dtype=np.bool_)
        found[poor] = False
        return found

    def remembers(self) -> NDArray[np.bool_]:
        """Which labelers, by position in `payers`, have answered about some of their labels."""
        known = np.ones(len(self.owners), dtype=np.bool_)
        known[self.fresh] = False
        return np.bincount(self.owners[known], minlength=len(self.payers.ids)) > 0

    def pay(self, connection: Connection, charge: Charge, policy: Policy) -> tuple[int, int]:
        """Charge every fresh label and its labeler, or raise BudgetExhausted. Returns how many of each paid."""
        order = self.fresh[np.argsort(self.labels.ids[self.fresh])]
        ids, each = self.labels.ids[order].tolist(), [(kind, 1) for kind in self.labels.kinds[order].tolist()]
        after = self.labels.after(set(each), lambda _: charge.of_label(), (policy.label_cap, policy.delta_cap))

        counts = np.bincount(self.owners[self.fresh], minlength=len(self.payers.ids))
        paying = np.flatnonzero(counts)
        owners = self.payers.ids[paying].tolist()
        owed = list(zip(self.payers.kinds[paying].tolist(), counts[paying].tolist(), strict=True))
        sums = self.payers.after(set(owed), charge.of_labeler, (policy.labeler_cap, policy.labeler_delta_cap))

        labels = ((*after[pays], key) for key, pays in zip(ids, each, strict=True))
        set_totals(connection, labels, ((*sums[pays], key) for key, pays in zip(owners, owed, strict=True)))
        return len(ids), len(owners)

    def answer(self, connection: Connection, charge: Charge, draw: Draw) -> Symbols:
        """All symbols, shape (1, rows): remembered ones, and fresh ones drawn now and kept, unless they are anew."""
        assert charge.channel is not None
        symbols = self.symbols.copy()
        if len(self.fresh):
            symbols[:, self.fresh] = draw(self.fresh)
        if charge.anew:
            return symbols
        order = self.fresh[np.argsort(self.labels.ids[self.fresh])]
        channel = channel_number(connection, charge.channel.digest, int(charge.coins))
        keep_answers(connection, channel, self.labels.ids[order].tolist(), symbols[0, order].tolist())
        return symbols


def round_name(run: bytes, round: int) -> bytes:
    """What the reply of a round of a run is kept under."""
    return hashlib.sha256(run + f" round {round}".encode()).digest()


def times(epsilon: Decimal, count: int) -> Decimal:
    """epsilon * count, exactly: raises decimal.Inexact rather than round a budget."""
    with localcontext() as context:
        context.prec = 256
        context.traps[Inexact] = True
        return epsilon * count
