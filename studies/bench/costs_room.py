"""An exchange in one process, as it is between machines: who spends which time, and what one client sends and gets."""

import gc
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import _lru_cache_wrapper, partial

from cryptography.hazmat.primitives.asymmetric import ec

from client.app import signed
from client.labeler import Node
from client.replies import reply
from client.signing import CHECKING, SIGNING
from deploy.shuffler_desk import Desk
from protocol.codec import decode_tasks, encode_bundle
from protocol.sealed import Pile, decode_batch, encode_fetch, fetch_words
from protocol.secure.codec import decode_ask
from protocol.secure.messages import of_session
from protocol.signature import report_words, tasks_words
from server.post import Letter

Key = ec.EllipticCurvePrivateKey


@dataclass
class Meter:
    """Seconds of the processor by who spent them; what is measured inside of something else is not the outer one's."""

    seconds: dict[str, float] = field(default_factory=dict)
    _inside: float = 0.0

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Count what the block takes."""
        before, self._inside = self._inside, 0.0
        begin = time.process_time()
        try:
            yield
        finally:
            spent = time.process_time() - begin
            self.seconds[name] = self.seconds.get(name, 0.0) + spent - self._inside
            self._inside = before + spent


@dataclass
class Clients:
    """A post whose clients answer when they are written to; bytes and time of the first one are counted."""

    people: Sequence[Node]
    keys: Sequence[Key]
    vouch: ec.EllipticCurvePublicKey
    meter: Meter
    up: int = 0
    down: int = 0
    tasks: int = 0
    exchanges: int = 0
    _letters: dict[str, Letter] = field(default_factory=dict)

    def nodes(self) -> Collection[int]:
        """Numbers of all, from 1."""
        return range(1, len(self.people) + 1)

    def push(self, nodes: Sequence[int], raw: bytes) -> Sequence[str | None]:
        """Have each answer."""
        return [self._told(number, raw) for number in nodes]

    def pull(self, ids: Collection[str]) -> Sequence[Letter]:
        """What they answered."""
        return [self._letters.pop(name) for name in ids if name in self._letters]

    def _told(self, number: int, raw: bytes) -> str:
        first = number == 1
        if first:
            with self.meter.of("counting"):
                self._count(raw)
        with self.meter.of("client" if first else "others"):
            made = self._answer(number, raw)
        self.up += len(made) * first
        name = f"{number} {self.exchanges}"
        self._letters[name] = Letter(number, name, made)
        return name

    def _count(self, raw: bytes) -> None:
        self.exchanges, self.down = self.exchanges + 1, self.down + len(raw)
        self.tasks += sum(len(decode_ask(one).tasks) if of_session(one) else 1 for one in decode_tasks(raw)[0])
        if self.exchanges == 1:
            forget()

    def _answer(self, number: int, raw: bytes) -> bytes:
        """What a node's process does with a message: see `client.app:query`."""
        tasks, signature = decode_tasks(raw)
        self.vouch.verify(signature, tasks_words(tasks), CHECKING)
        node, key = self.people[number - 1], self.keys[number - 1]
        return encode_bundle([signed(reply(one, node), partial(sign_report, key)) for one in tasks])


@dataclass
class Link:
    """The way to a shuffler of clients and server, without a network; `count` is told the bytes of a submission."""

    desk: Desk
    server: Key
    meter: Meter
    count: Callable[[int], None] = lambda size: None

    def submit(self, raw: bytes) -> None:
        """Hand over."""
        self.count(len(raw))
        with self.meter.of("shuffler"):
            self.desk.submit(raw)

    def fetch(self, task: bytes) -> tuple[Pile, ...]:
        """All that is there."""
        asked = encode_fetch(task, self.server.sign(fetch_words(task), SIGNING))
        with self.meter.of("shuffler"):
            made = self.desk.fetch(asked)
        return decode_batch(made)


def forget() -> None:
    """Empty what clients and the protocol keep for all of a process: a client's own process works it out."""
    for kept in [one for one in gc.get_objects() if isinstance(one, _lru_cache_wrapper)]:
        if kept.__module__.startswith(("client.", "protocol.")):
            kept.cache_clear()


def sign_words(key: Key, words: bytes) -> bytes:
    """A node's signature of words."""
    return key.sign(words, SIGNING)


def sign_report(key: Key, raw: bytes) -> bytes:
    """A node's signature of a report."""
    return key.sign(report_words(raw), SIGNING)


def sign_tasks(key: Key, tasks: Sequence[bytes]) -> bytes:
    """The server's signature of tasks."""
    return key.sign(tasks_words(tasks), SIGNING)
