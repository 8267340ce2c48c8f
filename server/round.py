"""What one exchange has met so far."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from protocol.codec import decode_task, encode_bundle, identity
from protocol.secure.codec import decode_ask
from protocol.secure.messages import of_session
from server.longest import longest_to
from server.register import Known
from server.secure.faults import session_fault
from server.sent import Addressed, fault_of, for_client
from server.signatures import SignTasks

NO_MESSAGE, LOST = -1, 3  # errors: one of our own, and Flower's where a message or its reply is nowhere
ERRORS = {
    NO_MESSAGE: "what it sent is no message",
    1: "its code does not load",
    2: "its code raised",
    LOST: "the task was not there any more",
    4: "the reply was not there any more",
    5: "the node is gone",
    7: "it does not accept the bundle of code: another version of halftruth, or one that its policy does not pin",
    8: "its process died",
}


@dataclass
class Round:
    """What one round has met: what is asked, messages to their nodes, those without a reply, replies by node.

    What is `server.sent.Addressed` goes to those that it names, all else to everybody; `sign` puts it under the
    server's key. Of nodes that are asked again: why their last message brought nothing, when the next one is due, and
    how often each was asked and its process died.
    """

    asked: Sequence[bytes]
    name: Callable[[int], str]
    sign: SignTasks | None = None
    sent: dict[str, int] = field(default_factory=dict)
    waiting: dict[str, int] = field(default_factory=dict)
    answers: dict[int, list[bytes]] = field(default_factory=dict)
    lost: dict[int, str] = field(default_factory=dict)
    due: dict[int, float] = field(default_factory=dict)
    times: Counter[int] = field(default_factory=Counter)
    deaths: Counter[int] = field(default_factory=Counter)
    _longest: dict[tuple[bytes, int | None], int] = field(default_factory=dict)
    _of: dict[int, list[bytes]] = field(default_factory=dict)
    _shared: bytes | None = None

    @cached_property
    def addressed(self) -> bool:
        """Whether some of it is for some nodes only: then no other one can answer in a node's place."""
        return any(isinstance(raw, Addressed) for raw in self.asked)

    @cached_property
    def names(self) -> dict[bytes, bytes]:
        """All that is asked, by id."""
        return {identity(raw): raw for raw in self.asked}

    def of(self, node: int) -> list[bytes]:
        """What a node is asked."""
        if not self.addressed:
            return list(self.asked)
        if node not in self._of:  # each poll asks
            self._of[node] = for_client(self.asked, self.name(node))
        return self._of[node]

    def bundle(self, node: int) -> bytes:
        """The message to a node; the same one for all where nothing is for some only."""
        if self.addressed:
            return self._bundle(self.of(node))
        if self._shared is None:
            self._shared = self._bundle(self.asked)
        return self._shared

    def longest(self, node: int, rows: int | None = None) -> int:
        """The most bytes that a message in answer has, of a node that answers for so many rows."""
        return sum(self._most(identity(raw), rows) for raw in self.of(node))

    def fault(self, known: Known | None, name: bytes, raw: bytes) -> str:
        """Why a node's reply to what has this id may not count; empty where nothing speaks against it."""
        if of_session(self.names[name]):
            return session_fault(known, raw, decode_ask(self.names[name]))
        return fault_of(known, raw, {name: decode_task(self.names[name])})

    def _bundle(self, asked: Sequence[bytes]) -> bytes:
        return encode_bundle(asked, self.sign(asked) if self.sign else b"")

    def _most(self, name: bytes, rows: int | None) -> int:
        if (name, rows) not in self._longest:
            self._longest[name, rows] = longest_to(self.names[name], rows)
        return self._longest[name, rows]
