"""What a session of secure aggregation costs, by stage: time of clients and of the server, bytes of each client.

`python -m studies.bench.sessions --clients 100 --dimension 1000` prints a table; `--flower` measures Flower's SecAgg+
on the same vectors beside it, both with all clients in one process, and holds both sums to the plain one.
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from client.secure.membership import Membership, simulated
from client.secure.stages import Mask, Member, answered
from protocol.codec import decode_task, encode_reply, encode_report, identity
from protocol.coins import Address, Stream, words
from protocol.messages import Coins, Kind, Mechanism, Payload, Report, Runs, Task
from protocol.numerics import fingerprint
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.secure.codec import decode_ask
from protocol.secure.graph import terms
from protocol.secure.masks import bits_of
from protocol.secure.messages import SessionAsk
from protocol.trust import Trust
from server.secure.session import securely
from server.sent import Sent, for_client

SEED, MODULUS = 20261201, 1 << 32
Vectors = NDArray[np.uint64]


@dataclass
class Stage:
    """One exchange: seconds of clients together and of the server before it, bytes to and from all clients."""

    name: str
    server: float = 0.0
    clients: float = 0.0
    sent: int = 0
    came: int = 0


@dataclass
class Clients:
    """Clients with a vector each, in one process; every exchange is timed."""

    vectors: Vectors
    stages: list[Stage] = field(default_factory=list)
    _owns: list[Membership] = field(default_factory=list)
    _since: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        count = len(self.vectors)
        self._owns = [simulated(SEED, client, count) for client in range(count)]
        self._since = time.perf_counter()

    def ask(self, asked: list[bytes]) -> list[bytes]:
        """Carry an exchange."""
        begin = time.perf_counter()
        stage = Stage(decode_ask(asked[0]).stage.name.lower(), server=begin - self._since)
        replies = list[bytes]()
        for client, own in enumerate(self._owns):
            for raw in for_client(asked, f"client {client}"):
                reply = answered(decode_ask(raw), raw, Member(own, _one_row, self._input(client)))
                stage.sent, stage.came = stage.sent + len(raw), stage.came + len(reply)
                replies.append(Sent(reply, f"client {client}", identity(raw)))
        self._since = time.perf_counter()
        stage.clients = self._since - begin
        self.stages.append(stage)
        return replies

    def end(self) -> float:
        """Seconds of the server since the last exchange: masks come off."""
        return time.perf_counter() - self._since

    def _input(self, client: int) -> "_Input":
        return _Input(self.vectors[client : client + 1], client)


@dataclass(frozen=True)
class _Input:
    vector: Vectors
    client: int

    def __call__(self, ask: SessionAsk, mask: Mask, statement: bytes) -> bytes:
        (raw,) = ask.tasks
        task = decode_task(raw)
        payload = Payload(Kind.RESIDUES, mask(0, self.vector, task.modulus), bits=bits_of(task.modulus))
        rows = Runs(((self.client, 1, 1),))
        made = Report(identity(raw), rows, payload, task.menu[0], b"", Coins.ADDRESSED, fingerprint())
        return encode_reply([(encode_report(made), b"")], statement)


def _one_row(ask: SessionAsk) -> Sequence[int]:
    return [1]


def vectors_of(clients: int, dimension: int) -> Vectors:
    """Integers below 2^22 for each client, from a fixed sequence."""
    drawn = words(Address(SEED, Stream.NUMBERS, clients, 0), 0, clients * dimension)
    return drawn.reshape(clients, dimension) & np.uint64((1 << 22) - 1)


def task_of(clients: int, dimension: int) -> Task:
    """A task about one row of each client, most of whom have to stay."""
    honest = Decimal(-(-7 * clients // 10))
    return Task(
        study=bytes(32),
        trust=Trust.DISTRIBUTED,
        unit=Unit.LABEL,
        problem=Problem(dimension, "gaussian", False, None),
        menu=(Mechanism.of("skellam", epsilon=Decimal(1), honest=honest, least=honest),),
        n=clients,
        epsilon=Decimal(1),
        delta=Decimal("0.00001"),
        first_repetition=0,
        repetitions=1,
        exponent=0,
        modulus=MODULUS,
    )


def measured(clients: int, dimension: int) -> tuple[list[Stage], float, Vectors]:
    """Stages of one session, seconds in which its masks come off, and its sum."""
    room, task = Clients(vectors_of(clients, dimension)), task_of(clients, dimension)
    heard = securely([task], room.ask)[task]
    after = room.end()
    if heard.collected.residues is None:
        raise RuntimeError(f"expected a session that opens its sum: {heard.collected.rejected}")
    return room.stages, after, heard.collected.residues[0]


def table(stages: Sequence[Stage], after: float, clients: int) -> str:
    """A table of text: per client, but for the server's seconds."""
    lines = [f"{'stage':10} {'server s':>9} {'ms a client':>12} {'bytes to':>10} {'bytes from':>10}"]
    whole = [*stages, Stage("masks off", after)]
    whole.append(
        Stage("together", *(sum(getattr(one, name) for one in whole) for name in ("server", "clients", "sent", "came")))
    )
    for one in whole:
        ms, sent, came = 1000 * one.clients / clients, one.sent // clients, one.came // clients
        lines.append(f"{one.name:10} {one.server:9.2f} {ms:12.2f} {sent:10d} {came:10d}")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--dimension", type=int, default=1000)
    parser.add_argument("--flower", action="store_true", help="Flower's SecAgg+ on the same vectors, too")
    args = parser.parse_args()
    size = (args.clients, args.dimension)
    vectors, needs = vectors_of(*size), terms(args.clients)
    expected = vectors.sum(axis=0) & np.uint64(MODULUS - 1)
    begin, cpu = time.perf_counter(), time.process_time()
    stages, after, total = measured(*size)
    wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
    same = "the plain sum" if (total == expected).all() else "NOT the plain sum"
    print(f"halftruth, {size[0]} clients, {size[1]} numbers, {needs}: {same}; {wall:.1f} s, {cpu:.1f} s of processor")
    print(table(stages, after, args.clients))
    if args.flower:
        from studies.flower.secagg import compared

        shares = min(2 * needs.holders + 1, args.clients)
        print(compared(vectors, shares, min(needs.threshold, shares - 1)))


if __name__ == "__main__":
    main()
