"""Members of sessions with plain integer vectors: all of the protocol, and no labels."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from hashlib import sha256

import numpy as np
import pytest
from numpy.typing import NDArray

from client.labeler import refusal
from client.secure.membership import Membership, Memory, simulated
from client.secure.stages import Mask, Member, answered
from protocol.codec import decode_task, encode_reply, encode_report, encode_task, identity
from protocol.messages import Coins, Kind, Mechanism, Payload, Report, Runs, Task
from protocol.numerics import fingerprint
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.secure.codec import decode_ask
from protocol.secure.masks import bits_of
from protocol.secure.messages import SessionAsk
from protocol.trust import Trust
from server.sent import Sent, for_client

MODULUS = 1 << 20
Vectors = NDArray[np.uint64]
Tamper = Callable[[str, bytes], bytes | None]  # a client's name and what it is asked -> what reaches it; None: nothing


def task_of(members: int, least: int, width: int = 5, modulus: int = MODULUS, **changes: object) -> Task:
    """A task about one row of each member."""
    base = Task(
        study=bytes(32),
        trust=Trust.DISTRIBUTED,
        unit=Unit.LABEL,
        problem=Problem(width, "gaussian", False, None),
        menu=(Mechanism.of("skellam", epsilon=Decimal(1), honest=Decimal(least), least=Decimal(least)),),
        n=members,
        epsilon=Decimal(1),
        delta=Decimal("0.00001"),
        first_repetition=0,
        repetitions=2,
        exponent=0,
        modulus=modulus,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


@dataclass
class Plain:
    """A member whose row is its number, and whose vectors are drawn from a fixed generator."""

    client: int
    own: Membership
    seen: list[SessionAsk] = field(default_factory=list)
    says: int = 1  # how many rows it has

    def vector(self, task: Task) -> Vectors:
        """What it adds to a task's sum, modulo M."""
        name = int.from_bytes(sha256(encode_task(task)).digest()[:4], "big")
        rng = np.random.Generator(np.random.Philox(key=(name << 32) + self.client))
        shape = (task.repetitions, task.problem.reduced_dimension)
        return rng.integers(0, task.modulus, shape, dtype=np.uint64)

    def member(self) -> Member:
        """For the stages."""
        return Member(self.own, lambda ask: [self.says] * len(ask.agenda.tasks), self._input)

    def _input(self, ask: SessionAsk, mask: Mask, statement: bytes) -> bytes:
        reports = []
        for place, raw in enumerate(ask.tasks):
            task = decode_task(raw)
            values = mask(place, self.vector(task), task.modulus)
            payload = Payload(Kind.RESIDUES, values, bits=bits_of(task.modulus))
            rows = Runs(((self.client, 1, 1),))
            made = Report(identity(raw), rows, payload, task.menu[0], b"", Coins.ADDRESSED, fingerprint())
            reports.append((encode_report(made), b""))
        return encode_reply(reports, statement)

    def reply(self, raw: bytes) -> bytes:
        """What it answers, as `client.secure.member.respond` does."""
        try:
            ask = decode_ask(raw)
            self.seen.append(ask)
            return answered(ask, raw, self.member())
        except Exception as error:
            return refusal(raw, error)


@dataclass
class Room:
    """Plain members behind the seam of asking; `tamper` stands between, and sees who is asked what."""

    members: Sequence[Plain]
    tamper: Tamper = lambda name, raw: raw
    rounds: int = 0

    def ask(self, asked: list[bytes]) -> list[bytes]:
        """Carry questions, each to those it is for."""
        self.rounds += 1
        replies = list[bytes]()
        for plain in self.members:
            name = f"client {plain.client}"
            for raw in for_client(asked, name):
                there = self.tamper(name, raw)
                if there is not None:
                    replies.append(Sent(plain.reply(there), name, identity(raw)))
        return replies

    def sum(self, task: Task, who: Sequence[int] | None = None) -> Vectors:
        """The plain sum of some members' vectors, modulo M."""
        total = np.zeros((task.repetitions, task.problem.reduced_dimension), dtype=np.uint64)
        for plain in self.members:
            if who is None or plain.client in who:
                total += plain.vector(task)
        return total & np.uint64(task.modulus - 1)


def room_of(
    members: int, seed: int = 5, memory: Callable[[int], Memory] | None = None, least: int = 1, colluding: str = "0"
) -> Room:
    """Members 0, 1, ... of a simulation, or with memories of their own."""
    found = []
    for client in range(members):
        own = replace(simulated(seed, client, members), least=least, colluding=Decimal(colluding))
        found.append(Plain(client, own if memory is None else replace(own, memory=memory(client))))
    return Room(found)


@pytest.fixture(name="task_of")
def _task_of() -> Callable[..., Task]:
    """The maker of tasks: test modules cannot import this file."""
    return task_of


@pytest.fixture(name="room_of")
def _room_of() -> Callable[..., Room]:
    """The maker of members."""
    return room_of
