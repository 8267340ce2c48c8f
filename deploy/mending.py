"""Looks after the processes of a run while it goes on: nodes that end are started again, and the server never knows."""

import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from deploy.ending import PROC
from deploy.flwr_command import SuperLink
from deploy.nodes import Nodes
from deploy.processes import FlowerFailed, Processes
from deploy.restarts import Restarts, SuperLinkLost
from deploy.superlink import SUPERLINK

GLANCE = 1.0  # seconds between two looks at all processes of the system
GRACE = 5.0  # seconds until the first of them: a SuperLink starts its executor before it listens
NUMBER = re.compile(r"SuperNode ID: (\d+)")
EXECUTOR, PARENT = b"flower-superexec", b"--parent-pid"


@dataclass
class Executors:
    """The processes that Flower starts for a SuperLink or a stock node: without its own such a child is of no use."""

    processes: Processes
    _glanced: float = field(default_factory=lambda: time.monotonic() + GRACE)
    _seen: set[str] = field(default_factory=lambda: {SUPERLINK})  # whose executors were there, or should be

    def gone(self) -> set[str]:
        """Living children whose executors were there and are not."""
        now = time.monotonic()
        if now - self._glanced < GLANCE or not PROC.is_dir():
            return set()
        self._glanced = now
        there = _executors(self.processes)
        gone = {name for name in self._seen - there if self.processes.lives(name)}
        self._seen |= there
        return gone

    def forget(self, name: str) -> None:
        """A child was started again: its executor is yet to come."""
        self._seen.discard(name)


@dataclass
class Mending:
    """`check` is called again and again. A SuperLink that ended, or whose executor did, takes its runs with it."""

    processes: Processes
    link: SuperLink
    nodes: Nodes | None
    restarts: Restarts
    executors: Executors = field(init=False)

    def __post_init__(self) -> None:
        self.executors = Executors(self.processes)

    def check(self) -> None:
        """Start nodes again that ended.

        Raises SuperLinkLost where the SuperLink is of no use any more, FlowerFailed where something ended too often.
        """
        if not self.processes.lives(SUPERLINK):
            raise SuperLinkLost(self.processes.ended(SUPERLINK))
        gone = self.executors.gone()
        if SUPERLINK in gone:
            raise SuperLinkLost(f"the SuperLink's executor ended; its log: {self.processes.log(SUPERLINK)}")
        for name in self.nodes.words if self.nodes is not None else ():
            if name in gone:
                self.processes.kill(name)
            if not self.processes.lives(name):
                self._start_again(name)

    def _start_again(self, name: str) -> None:
        assert self.nodes is not None
        self.restarts.wait(name, self.processes.ended(name), self.processes.since(name))
        number = NUMBER.findall(self.processes.log(name).read_text("utf-8", errors="replace"))
        self.nodes.start_again(name)
        self.executors.forget(name)
        if number:  # or Flower takes the node that ended for there for another minute
            with suppress(FlowerFailed):
                self.link.unregister(number[-1])


def _executors(processes: Processes) -> set[str]:
    """Names of children that have a living executor of Flower's, told by its words: it hides its environment."""
    names: Mapping[int, str] = processes.names()
    found = set()
    for process in filter(str.isdecimal, os.listdir(PROC)):
        with suppress(OSError, ValueError, IndexError):  # it has just ended, or is another program
            words = (PROC / process / "cmdline").read_bytes().split(b"\0")
            if any(word.endswith(EXECUTOR) for word in words[:2]):
                parent = int(words[words.index(PARENT) + 1])
                found.add(names.get(parent, ""))
    return found - {""}
