"""What a report costs and where it is kept: charged on a node's ledger, and on disk, before it leaves."""

import hashlib
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import numpy as np
from flwr.app import Array, ConfigRecord, Context, Message

from client.account import BudgetExhausted, Charge, Fresh, Symbols
from client.draws import SecretDraws
from client.ledger import DiskLedger, Part
from client.ledger_store import reading, reply_to
from client.ledger_view import read_labelers
from client.policy import Policy
from client.sources import Facts
from client.vector_randomizer import randomize_vectors
from protocol.decimals import add
from protocol.messages import Coins, Mechanism
from protocol.numeric.channel import Floats, NumericChannel
from protocol.privacy import Unit
from protocol.trust import Trust

MARK = "halftruth"  # in the context's state: this run has seen the ledger
PARTITION = "partition-id"
_ROW = np.zeros(1, dtype=np.int64)


@dataclass(frozen=True)
class Purse:
    """A ledger file and the most that one holder's reports may cost over all questions."""

    path: Path
    total: Decimal

    def answer(
        self, message: Message, context: Context, channel: NumericChannel, learn: Callable[[], Floats]
    ) -> Floats:
        """The report (d,) to a question: the one it got before, or a new one of what `learn` returns (d,), charged.

        `learn` is not called where the ledger has an answer or can't pay. Its numbers are within the channel's bound.

        Guarantee: the channel's level for each question that is not asked again, `total` over all of them; unit: one
        holder, the node or, in a simulation, its partition; neighbours: replace all data of the holder.
        Raises BudgetExhausted and LedgerUnavailable; then nothing was charged, whatever the data are.
        """
        holder = holder_of(context)
        name = question(message, context, channel, holder)
        ledger = DiskLedger(self.path, start=MARK not in context.state)
        context.state[MARK] = ConfigRecord({"ledger": True})
        with reading(self.path) as connection:
            kept = reply_to(connection, name)
        if kept is None:
            self._check(holder, channel.terms.epsilon)
            kept = self._paid(ledger, name, holder, channel, learn())
        return np.frombuffer(zlib.decompress(kept), dtype="<f8").astype(np.float64)

    def _check(self, holder: str, epsilon: Decimal) -> None:
        """Raise BudgetExhausted before anybody trains in vain; the ledger decides when it charges."""
        spent = next((one.epsilon for one in read_labelers(self.path) if one.labeler == holder), Decimal(0))
        if add(spent, epsilon) > self.total:
            raise BudgetExhausted("expected a budget that lasts for another report")

    def _paid(self, ledger: DiskLedger, name: bytes, holder: str, channel: NumericChannel, row: Floats) -> bytes:
        """A new report, charged and kept; or the one that another process has kept meanwhile."""

        def write(_: Sequence[Part]) -> bytes:
            report = randomize_vectors(row[None], channel, SecretDraws(), _ROW)
            return zlib.compress(report.astype("<f8").tobytes(), 1)

        facts = Facts([hashlib.sha256(b"halftruth holder\n" + holder.encode()).digest()], _ROW, [holder])
        policy = Policy(labeler_cap=self.total, units=frozenset({Unit.HOLDER}))
        allowed = np.ones((1, 1), dtype=np.bool_)
        return ledger.settle([charge(name, channel)], allowed, policy, facts, _no_symbols, write)


def charge(name: bytes, channel: NumericChannel) -> Charge:
    """What one report costs its holder: the epsilon that was asked for."""
    terms = channel.terms
    parameters = {"threshold": terms.threshold, "dimension": Decimal(terms.dimension)}
    if terms.coordinates:
        parameters["coordinates"] = Decimal(terms.coordinates)
    mechanism = Mechanism.of(terms.name, epsilon=terms.epsilon, **parameters)
    return Charge(name, b"", Trust.LOCAL, Unit.HOLDER, mechanism, terms.epsilon, None, None, Coins.OS)


def holder_of(context: Context) -> str:
    """Who pays: the node, or the partition that its own configuration names."""
    partition = context.node_config.get(PARTITION)
    return "node" if partition is None else f"partition {partition}"


def question(message: Message, context: Context, channel: NumericChannel, holder: str) -> bytes:
    """SHA-256 of all that training is told: two messages with one name get one answer.

    Type and records of the message, the run's configuration, the holder, the channel. Which run or message it is does
    not count: a run that starts again repeats its answers.
    """
    named = hashlib.sha256(b"halftruth update v1\n")

    def put(part: bytes) -> None:
        named.update(len(part).to_bytes(8, "big") + part)

    for text in (holder, message.metadata.message_type, repr(sorted(context.run_config.items()))):
        put(text.encode())
    put(channel.digest)
    for key, record in sorted(message.content.items(), key=lambda item: item[0]):
        put(f"{type(record).__name__} {key} {len(record)}".encode())
        for entry, value in record.items():
            put(entry.encode())
            if isinstance(value, Array):
                put(f"{value.dtype} {tuple(value.shape)} {value.stype}".encode())
                put(value.data)
            else:
                put(repr(value).encode())
    return named.digest()


def _no_symbols(way: int, places: Fresh, fresh: Fresh) -> Symbols:
    raise TypeError("expected no symbols of numbers")
