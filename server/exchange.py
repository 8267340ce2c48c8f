"""One message to every node and its replies, over any post that can push and pull: deadlines, and what did not fit.

Nothing here knows Flower, and nothing trusts what comes back.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from protocol.codec import decode_bundle, encode_bundle, identity
from protocol.counting import counted
from protocol.errors import WireError
from server.listening import RoundFailed
from server.register import Register
from server.sent import Sent, fault_of
from server.signatures import SignTasks

SHORTEST, LONGEST, GROWTH = 0.05, 0.5, 1.3  # seconds between two looks at the post
MOST_BLAMED = 20  # of nodes and reasons, in a summary
ERRORS = {
    1: "its code does not load",
    2: "its code raised",
    3: "the task was not there any more",
    4: "the reply was not there any more",
    5: "the node is gone",
    7: "it does not accept the bundle of code",
    8: "its process died",
}
_log = logging.getLogger("flwr.halftruth")  # below Flower's logger, whose lines reach whoever reads the run's log


@dataclass(frozen=True)
class Letter:
    """What arrived: from which node, in answer to which message, its bytes, and a code where it is an error."""

    node: int
    reply_to: str
    raw: bytes = field(repr=False)
    error: int | None = None


class Post(Protocol):
    """Carries bytes to nodes and back."""

    def nodes(self) -> Collection[int]:
        """The nodes that are there now."""

    def push(self, nodes: Sequence[int], raw: bytes) -> Sequence[str | None]:
        """Send the bytes to each node; an id for each message, None where it could not be sent."""

    def pull(self, ids: Collection[str]) -> Sequence[Letter]:
        """The letters that arrived in answer to any of these messages."""


@dataclass(frozen=True)
class Clock:
    """Seconds that only grow, and a way to let them pass."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def gather(
    post: Post, clients: int, deadline: float, clock: Clock | None = None, register: Register | None = None
) -> list[int]:
    """Wait until exactly `clients` nodes are there (0: at least one), and return them in order. Raises RoundFailed.

    With a register, nodes that are not in it, or whose keys are revoked, are not waited for, not asked, and named.
    """
    clock = clock or Clock()
    end, pause = clock.now() + deadline, SHORTEST
    strangers: set[int] = set()
    while True:
        there = set(post.nodes())
        nodes = sorted(node for node in there if register is None or register.welcome(node))
        for node in sorted(there - set(nodes) - strangers):
            known = register.of(node) if register else None
            why = "is not in the register" if known is None else f"has a revoked key ({known.name})"
            _log.warning("node %d %s: not asked", node, why)
        strangers |= there - set(nodes)
        if nodes and len(nodes) == (clients or len(nodes)):
            return nodes
        if clock.now() >= end:
            wanted = counted(clients, "client") if clients else "some clients"
            raise RoundFailed(f"expected {wanted} within {deadline:g} s, got {len(nodes)} (deadline)")
        clock.sleep(pause)
        pause = min(LONGEST, pause * GROWTH)


@dataclass
class Exchange:
    """Asks `nodes`: one message each way for each, within `deadline` seconds.

    Strict: every node has to answer, and the first that cannot is named. Not strict: those that answered by the
    deadline count, and replies that come later are only counted. `record` is given every byte string that arrived.
    With a `register` a reply has to be under its node's key and about its node's rows; `sign` puts tasks under the
    server's. `seen` counts what happened over all calls: answered, failed, missing, unreadable, duplicate, late,
    foreign, and what `blame` was told of: rejected; `blamed` the last of these by node and reason.
    """

    post: Post
    nodes: Sequence[int]
    deadline: float
    strict: bool
    record: Callable[[bytes], None] = lambda raw: None
    clock: Clock = field(default_factory=Clock)
    seen: Counter[str] = field(default_factory=Counter)
    register: Register | None = None
    sign: SignTasks | None = None
    blamed: Counter[str] = field(default_factory=Counter)
    _late: dict[str, int] = field(default_factory=dict)

    def ask(self, tasks: list[bytes]) -> list[bytes]:
        """Carry tasks to every node and bring back their replies, in the order of the nodes. Raises RoundFailed.

        Each is a `server.sent.Sent`, which names its sender, or says why it may not count.
        """
        waiting = self._push(encode_bundle(tasks, self.sign(tasks) if self.sign else b""))
        asked = dict(waiting)
        answers: dict[int, list[bytes]] = {}
        end, pause = self.clock.now() + self.deadline, SHORTEST
        while waiting and self.clock.now() < end:
            letters = self.post.pull([*waiting, *self._late])
            for letter in letters:
                self.record(letter.raw)
            for letter in letters:
                self._take(letter, len(tasks), asked, waiting, answers)
            if waiting and not letters:
                self.clock.sleep(pause)
                pause = min(LONGEST, pause * GROWTH)
        self._late |= waiting
        for node in waiting.values():
            self._lost("missing", node, f"no reply within {self.deadline:g} s (deadline)")
        if not answers:
            raise RoundFailed(f"expected replies of {counted(len(self.nodes), 'node')}, got none: {self.describe()}")
        named = {identity(task): task for task in tasks}
        return [reply for node in sorted(answers) for reply in self._checked(node, answers[node], named)]

    def describe(self) -> str:
        """What happened so far, in words."""
        counts = ", ".join(f"{name}: {count}" for name, count in sorted(self.seen.items())) or "nothing"
        blamed = "; ".join(f"{words} x {count}" for words, count in self.blamed.most_common(MOST_BLAMED))
        return f"{counts} ({blamed})" if blamed else counts

    def blame(self, reasons: Iterable[str]) -> None:
        """Count reports that may not count, each by what is wrong with it and whose it is."""
        for reason in reasons:
            self.seen["rejected"] += 1
            self.blamed[reason] += 1

    def name(self, node: int) -> str:
        """What a node is called: by the register, or by Flower's number."""
        known = self.register.of(node) if self.register else None
        return f"node {node if known is None else known.name}"

    def _checked(self, node: int, replies: list[bytes], tasks: dict[bytes, bytes]) -> list[Sent]:
        """One node's replies; those that may not count say why in place of what they say."""
        register, name = self.register, self.name(node)
        return [
            Sent(raw, name, task, "" if register is None else fault_of(register, node, raw, tasks))
            for raw, task in zip(replies, tasks, strict=True)
        ]

    def _push(self, raw: bytes) -> dict[str, int]:
        """Message id -> node."""
        ids = self.post.push(self.nodes, raw)
        sent = {name: node for name, node in zip(ids, self.nodes, strict=False) if name}
        for node in sorted(set(self.nodes) - set(sent.values())):
            self._lost("failed", node, "the message could not be sent")
        return sent

    def _take(
        self,
        letter: Letter,
        count: int,
        asked: dict[str, int],
        waiting: dict[str, int],
        answers: dict[int, list[bytes]],
    ) -> None:
        name, node = letter.reply_to, asked.get(letter.reply_to)
        if name in self._late:
            self._note("late", self._late.pop(name))
        elif node is None or (letter.error is None and letter.node != node):
            self._note("foreign", letter.node)
        elif name not in waiting:
            self._note("duplicate", node)
        else:
            del waiting[name]
            self._read(letter, count, node, answers)

    def _read(self, letter: Letter, count: int, node: int, answers: dict[int, list[bytes]]) -> None:
        if letter.error is not None:  # its text is the other side's, and is not repeated
            why = ERRORS.get(letter.error, "an unknown error")
            self._lost("failed", node, f"Flower's error {letter.error}: {why}")
            return
        try:
            replies = decode_bundle(letter.raw)
        except WireError as error:
            self._lost("unreadable", node, str(error))
            return
        if len(replies) != count:
            self._lost("unreadable", node, f"{counted(len(replies), 'reply')} to {counted(count, 'task')}")
            return
        self.seen["answered"] += 1
        answers[node] = replies

    def _lost(self, what: str, node: int, why: str) -> None:
        self._note(what, node, why)
        if self.strict:
            raise RoundFailed(f"expected a reply of {self.name(node)}, got none: {why}")

    def _note(self, what: str, node: int, why: str = "") -> None:
        self.seen[what] += 1
        _log.warning("%s: %s%s", self.name(node), what, why and f" ({why})")
