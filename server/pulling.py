"""A post that is looked at in time: what one sender holds up keeps neither the others waiting nor the round.

Nothing here knows Flower.
"""

import logging
import time
from collections import Counter, deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Thread

from server.post import Letter, Post
from server.round import NO_MESSAGE

SHARE, SHORTEST, LONGEST = 0.1, 1.0, 10.0  # how long a look may take: of a round's deadline, and seconds
AT_ONCE = 16  # letters that are pulled side by side, where each is pulled by itself
MOST_HELD = 4  # pulls that a node holds up before it is sent nothing more
_log = logging.getLogger("flwr.halftruth")


def patience(deadline: float) -> float:
    """Seconds that a look at the post may take, where a round has so many: by no more a deadline is overrun."""
    return min(LONGEST, max(SHORTEST, SHARE * deadline))


@dataclass(eq=False)
class _Pull:
    """A look for the letters that answer some messages, in a thread of its own."""

    names: Sequence[str]
    letters: Sequence[Letter] = ()
    error: BaseException | None = None


@dataclass
class InTime:
    """A post over one whose `pull` may take long, or raise, as a sender likes: a look ends within `patience` seconds.

    Whoever announces a reply and does not upload it holds up the call that asked for it, and all that the same call
    would have brought; what is no message makes it raise. So once one of both has happened, every letter is pulled by
    itself, for the rest of the run: before, one call for all costs less. A call that is held up goes on in its thread,
    and what it brings is taken when it comes. What it took away from later calls is lost to them, they say so, and its
    senders are asked again.
    """

    post: Post
    patience: float
    singly: bool = False
    _ended: SimpleQueue[_Pull] = field(default_factory=SimpleQueue)
    _held: set[str] = field(default_factory=set)  # messages whose letter is being pulled by itself
    _asked: dict[str, int] = field(default_factory=dict)  # messages that may be answered: their nodes

    def nodes(self) -> Collection[int]:
        """The nodes that are there now."""
        return self.post.nodes()

    def push(self, nodes: Sequence[int], raw: bytes) -> Sequence[str | None]:
        """Send the bytes to each node; None where that failed, and for a node that holds up several pulls."""
        holds = Counter(self._asked[name] for name in self._held if name in self._asked)
        free = [node for node in nodes if holds[node] < MOST_HELD]
        sent = dict(zip(free, self.post.push(free, raw) if free else (), strict=False))
        self._asked |= {name: node for node, name in sent.items() if name}
        return [sent.get(node) for node in nodes]

    def pull(self, ids: Collection[str]) -> Sequence[Letter]:
        """The letters that arrived; for what is no message, one with an error. Raises where there is no post."""
        wanted = {*ids, *self._held}
        self._asked = {name: node for name, node in self._asked.items() if name in wanted}
        end, letters = time.monotonic() + self.patience, list[Letter]()
        todo, running = deque(self._looks(ids)), set[_Pull]()
        while True:
            while todo and len(running) < AT_ONCE:
                running.add(self._started(todo.popleft()))
            ended = self._next(end if running else 0.0)
            if ended is None:
                break
            running.discard(ended)
            if not self.singly and ended.error is not None and len(ended.names) > 1:
                self._part(type(ended.error).__name__)
                todo.extend(self._looks(ids))
            letters += self._brought(ended)
        if running and not self.singly:
            self._part("it is announced, and does not come")
        return letters

    def _looks(self, ids: Collection[str]) -> list[list[str]]:
        if self.singly:
            return [[name] for name in ids if name not in self._held]
        return [list(ids)] if ids else []

    def _started(self, names: list[str]) -> _Pull:
        pull = _Pull(names)
        if len(names) == 1:
            self._held |= {*names}
        Thread(target=self._run, args=(pull,), daemon=True).start()
        return pull

    def _run(self, pull: _Pull) -> None:
        try:
            pull.letters = self.post.pull(pull.names)
        except BaseException as error:  # whatever a client makes a reader of messages do, or Flower where a run ends
            pull.error = error
        self._ended.put(pull)

    def _next(self, end: float) -> _Pull | None:
        """A pull that has ended, if there is one before `end`."""
        try:
            return self._ended.get(timeout=max(0.0, end - time.monotonic()))
        except Empty:
            return None

    def _brought(self, pull: _Pull) -> Sequence[Letter]:
        if len(pull.names) == 1:
            self._held -= {*pull.names}
        if pull.error is None:
            return pull.letters
        if not isinstance(pull.error, Exception):
            raise pull.error
        self.post.nodes()  # raises as well where it is the line that is broken
        return [Letter(0, name, b"", NO_MESSAGE) for name in pull.names if len(pull.names) == 1]

    def _part(self, why: str) -> None:
        _log.warning("a reply holds up the others (%s): from here on each is pulled by itself", why)
        self.singly = True
