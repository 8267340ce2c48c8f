"""A line for each round that was asked: what went and came, and what came of all messages so far."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from protocol.counting import counted
from protocol.messages import Code
from server.delivery import one_line
from server.evidence import Heard
from server.exchange import Exchange
from server.listening import Ask, Check, RoundFailed
from server.sent import Addressed

# In a log such a line stands behind a logger's level and colours only: what clients say is never at a line's start.
_LOGGED = re.compile(r"(?:\x1b\[[\d;]*m|INFO|[\s:])*(cell-\d+-\d+-\d+: exchange \d+ with .+; messages so far: .+)")


@dataclass
class Telling:
    """Asks, checks, and then tells of the round in a line, also where it failed.

    `tell` takes "CELL: exchange 3 with 4 nodes: 2 tasks, 198 bytes to each, 311 from all; messages so far: ...": the
    number is that of the rounds that this server has asked. A round is told when it has been checked, so what was
    refused or rejected in it is in its own line.
    """

    exchange: Exchange
    carry: Ask
    accept: Check
    tell: Callable[[str], None]
    _asked: int = 0
    _words: str | None = field(default=None, init=False)

    def of(self, cell: str) -> tuple[Ask, Check]:
        """How a cell of this name is asked, and what comes of it checked."""
        return partial(self._ask, cell), self._check

    def _ask(self, cell: str, tasks: list[bytes]) -> list[bytes]:
        self._say()  # of a stage of sessions, which is checked with all the others
        self._asked += 1
        with_whom = f"{cell}: exchange {self._asked} with {counted(len(self.exchange.nodes), 'node')}"
        sent = _sent(tasks)
        self._words = f"{with_whom}: {sent}"
        try:
            replies = list(self.carry(tasks))
        except RoundFailed:
            self._say()
            raise
        self._words += f", {sum(map(len, replies))} from all"
        return replies

    def _check(self, heard: Sequence[Heard], unread: Sequence[str]) -> None:
        """Count what was refused or does not count, and say whether the rest will do. Raises RoundFailed."""
        self.exchange.blame((*(reason for each in heard for reason in each.collected.rejected), *unread))
        for each in heard:
            self.exchange.refused(_refusals(each))
        try:
            self.accept(heard, unread)
        finally:
            self._say()

    def _say(self) -> None:
        """Tell of the round that was asked last; nothing where its answers were in a journal."""
        if self._words is not None:
            self.tell(one_line(f"{self._words}; messages so far: {self.exchange.describe()}"))
            self._words = None


def _sent(tasks: Sequence[bytes]) -> str:
    """What was asked, in words; of what is for some nodes only, the bytes to all of them."""
    if not any(isinstance(raw, Addressed) for raw in tasks):
        return f"{counted(len(tasks), 'task')}, {sum(map(len, tasks))} bytes to each"
    total = sum(len(raw) * (len(raw.to) if isinstance(raw, Addressed) else 1) for raw in tasks)
    return f"a stage of sessions, {total} bytes to all"


def told_in(line: str) -> str | None:
    """What a line of a log tells of a round; None where it tells of none.

    >>> told_in("INFO :      cell-9-0-1: exchange 1 with 2 nodes: 1 task; messages so far: answered: 2")
    'cell-9-0-1: exchange 1 with 2 nodes: 1 task; messages so far: answered: 2'
    """
    found = _LOGGED.match(line.rstrip())
    return None if found is None else found[1].removesuffix("\x1b[0m")


def _refusals(heard: Heard) -> int:
    """Of a task about some rows, nodes that have none of them refuse: that is no news."""
    refusals = heard.collected.refusals
    return refusals.total() - (refusals[Code.TASK_INVALID] if heard.task.rows is not None else 0)
