"""What carries bytes to nodes and back, and who is there to be asked. Nothing here knows Flower."""

import logging
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from protocol.counting import counted
from server.listening import RoundFailed
from server.register import Register

SHORTEST, LONGEST, GROWTH = 0.05, 0.5, 1.3  # seconds between two looks at the post
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
    post: Post,
    clients: int,
    deadline: float,
    clock: Clock | None = None,
    register: Register | None = None,
    least: int | None = None,
) -> list[int]:
    """Wait until exactly `clients` nodes are there (0: at least one), and return them in order. Raises RoundFailed.

    With `least`, so many are enough at the deadline. With a register, nodes that are not in it, or whose keys are
    revoked, are not waited for, not asked, and named.
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
        if nodes and len(nodes) == (clients or len(nodes)) >= (least or 0):
            return nodes
        if clock.now() >= end:
            if least and len(nodes) >= least:
                return nodes
            wanted = counted(clients, "client") if clients else "some clients"
            enough = f", or at least {least}," if least else ""
            raise RoundFailed(f"expected {wanted}{enough} within {deadline:g} s, got {len(nodes)} (deadline)")
        clock.sleep(pause)
        pause = min(LONGEST, pause * GROWTH)
