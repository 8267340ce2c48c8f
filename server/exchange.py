"""One message to every node and its replies, over any post that can push and pull: deadlines, and what did not fit.

Nothing here knows Flower, and nothing trusts what comes back.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from protocol.codec import decode_bundle, identity
from protocol.counting import counted
from protocol.errors import WireError
from server.listening import RoundFailed
from server.post import GROWTH, LONGEST, SHORTEST, Clock, Letter, Post
from server.register import Register
from server.round import ERRORS, LOST, Round
from server.sent import Sent, node_words
from server.signatures import SignTasks

AGAIN = frozenset({3, 4, 5, 8})  # errors after which another message may be answered: something was lost, or ended
DEATHS = 3  # of a node's process in one round: it will not do better at the next
SILENCE = 10  # a node that says nothing is asked again after this part of the deadline, then after twice as long
SOON, LATEST = 0.1, 2.0  # seconds before a node is asked again whose message is known to be lost: more each time
MOST_BLAMED = 20  # of nodes and reasons, in a summary
_log = logging.getLogger("flwr.halftruth")  # below Flower's logger, whose lines reach whoever reads the run's log


@dataclass
class Exchange:
    """Asks `nodes`: one message each way for each, within `deadline` seconds.

    Strict: every node has to answer, and the first that cannot is named. A node whose message was lost, whose process
    died, or that says nothing for long is asked again until the deadline, and so is another one that came in place of
    one that is gone: the same tasks have the same answers, at no cost. Not strict: those that answered by the deadline
    count, if there is one, and replies that come later are only counted; one that got lost is asked for once more.
    A reply that is longer than what was asked can be is not read. `record` is given every byte string that arrived, of
    what is too long the beginning.
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
    _old: dict[str, tuple[int, str]] = field(default_factory=dict)  # messages of rounds before: node, late or duplicate
    _gone: set[str] = field(default_factory=set)  # those said to be lost: not looked for, and perhaps answered
    _most: int = 0  # bytes that a reply of any round so far may have

    def ask(self, tasks: list[bytes]) -> list[bytes]:
        """Carry tasks to every node and bring back their replies, in the order of the nodes. Raises RoundFailed.

        Each is a `server.sent.Sent`, which names its sender, or says why it may not count.
        """
        round = Round(tasks, self.name, self.sign)
        nodes = self._wanted(round)
        self._most = max([self._most, *(round.longest(node) for node in (nodes if round.addressed else nodes[:1]))])
        self._send(round, nodes)
        end, pause = self.clock.now() + self.deadline, SHORTEST
        while self._open(round) and self.clock.now() < end:
            letters = self.post.pull([*round.waiting, *(self._old.keys() - self._gone)])
            for letter in letters:
                self.record(letter.raw[: self._most])
            for letter in letters:
                self._take(letter, round)
            if self.strict:
                self._ask_again(round)
            if self._open(round):  # also after some letters: each look costs as much as a letter
                self.clock.sleep(pause)
                pause = SHORTEST if letters else min(LONGEST, pause * GROWTH)
        self._close(round)
        if not round.answers:
            raise RoundFailed(f"expected replies of {counted(len(nodes), 'node')}, got none: {self.describe()}")
        return [reply for node in sorted(round.answers) for reply in self._checked(node, round)]

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

    def refused(self, count: int) -> None:
        """Count answers in which a client refused a task."""
        if count:
            self.seen["refused"] += count

    def name(self, node: int) -> str:
        """What a node is called: by the register, or by Flower's number."""
        known = self.register.of(node) if self.register else None
        return node_words(node if known is None else known.name)

    def _checked(self, node: int, round: Round) -> list[Sent]:
        """One node's replies; those that may not count say why in place of what they say."""
        replies = []
        for raw, name in zip(round.answers[node], map(identity, round.of(node)), strict=True):
            fault = "" if self.register is None else round.fault(self.register.of(node), name, raw)
            replies.append(Sent(raw, self.name(node), name, fault))
        return replies

    def _wanted(self, round: Round) -> Sequence[int]:
        """The nodes that are asked something."""
        return [node for node in self.nodes if round.of(node)] if round.addressed else self.nodes

    def _open(self, round: Round) -> bool:
        """Whether there is anything to wait for."""
        wanted = self._wanted(round) if self.strict else round.waiting.values()
        return any(node not in round.answers for node in wanted)

    def _close(self, round: Round) -> None:
        """The deadline, or the end: who has not answered is missing. Raises RoundFailed."""
        for name, node in round.sent.items():
            if name in round.waiting or name in self._gone:
                self._old[name] = node, "duplicate" if node in round.answers else "late"
        silent = dict.fromkeys(round.waiting.values()) if not self.strict else dict.fromkeys(self._wanted(round))
        for node in silent:
            if node not in round.answers:
                why = round.lost.get(node, f"no reply within {self.deadline:g} s (deadline)")
                self._note("missing", node, why)
                if self.strict:
                    raise self._nothing_of(node, why)

    def _send(self, round: Round, nodes: Sequence[int]) -> None:
        together = [[node] for node in nodes] if round.addressed else [nodes]
        pushed = [(self.post.push(part, round.bundle(part[0])), part) for part in together if part]
        sent = {name: node for ids, part in pushed for name, node in zip(ids, part, strict=False) if name}
        round.sent |= sent
        round.waiting |= sent
        for node in nodes:
            round.times[node] += 1
            round.due[node] = self.clock.now() + self.deadline / SILENCE * 2.0 ** (round.times[node] - 1)
        for node in sorted(set(nodes) - set(sent.values())):
            self._failed(round, node, "the message could not be sent", True)

    def _ask_again(self, round: Round) -> None:
        """Ask the nodes again whose time has come, or who came in their place."""
        for node in list(self._wanted(round)):
            if node not in round.answers and self.clock.now() >= round.due[node]:
                target = self._present(node, round)
                if target is None:
                    round.lost.setdefault(node, ERRORS[5])
                    round.due[node] = self.clock.now() + LATEST
                else:
                    _log.warning("%s: asked again", self.name(target))
                    self._send(round, [target])

    def _present(self, node: int, round: Round) -> int | None:
        """The node if it is there; one that came in its place, where as many are there as there were; or None."""
        there = {other for other in self.post.nodes() if self.register is None or self.register.welcome(other)}
        strangers = there - set(self.nodes)
        if node in there:
            return node
        if round.addressed or not strangers or len(there) != len(self.nodes):
            return None
        new = min(strangers)
        _log.warning("%s is gone, and %s came in its place", self.name(node), self.name(new))
        self.nodes = sorted({*self.nodes, new} - {node})
        for kept in (round.times, round.deaths):
            kept[new] = kept.pop(node, 0)
        return new

    def _take(self, letter: Letter, round: Round) -> None:
        name, node = letter.reply_to, round.sent.get(letter.reply_to)
        if letter.error == LOST:
            self._gone.add(name)
        if name in self._old:
            if letter.error is None:
                node, what = self._old.pop(name)
                self._note(what, node, "what it answers is charged, and does not count" if what == "late" else "")
            elif letter.error != LOST:
                del self._old[name]
        elif node is None or (letter.error is None and letter.node != node):
            self._note("foreign", letter.node)
        elif node in round.answers or (letter.error is not None and name not in round.waiting):
            round.waiting.pop(name, None)
            if letter.error is None:
                self._note("duplicate", node)
        else:  # also one that was taken for lost
            round.waiting.pop(name, None)
            self._read(letter, round, node)

    def _read(self, letter: Letter, round: Round, node: int) -> None:
        if letter.error is not None:  # its text is the other side's, and is not repeated
            why = ERRORS.get(letter.error, "an unknown error")
            round.deaths[node] += letter.error == 8
            if not self.strict and letter.error == LOST and round.times[node] == 1:  # perhaps with a liar's reply
                self._note("failed", node, f"{why}: asked again")
                self._send(round, [node])
                return
            again = letter.error in AGAIN and round.deaths[node] <= DEATHS
            self._failed(round, node, f"Flower's error {letter.error}: {why}", again)
            return
        known = self.register.of(node) if self.register else None
        most = round.longest(node, known.count if known else None)
        if len(letter.raw) > most:
            self._lost("unreadable", node, f"{len(letter.raw)} bytes where at most {most} can be an answer")
            return
        try:
            replies = decode_bundle(letter.raw)
        except WireError as error:
            self._lost("unreadable", node, str(error))
            return
        asked = len(round.of(node))
        if len(replies) != asked:
            self._lost("unreadable", node, f"{counted(len(replies), 'reply')} to {counted(asked, 'task')}")
            return
        self.seen["answered"] += 1
        round.answers[node] = replies

    def _failed(self, round: Round, node: int, why: str, again: bool) -> None:
        """A message that will not be answered; `again`: another one may be."""
        if not (self.strict and again):
            self._lost("failed", node, why)
            return
        self._note("failed", node, why)
        round.lost[node] = why
        round.due[node] = self.clock.now() + min(LATEST, SOON * 2.0 ** (round.times[node] - 1))

    def _lost(self, what: str, node: int, why: str) -> None:
        self._note(what, node, why)
        if self.strict:
            raise self._nothing_of(node, why)

    def _nothing_of(self, node: int, why: str) -> RoundFailed:
        return RoundFailed(f"expected a reply of {self.name(node)}, got none: {why}")

    def _note(self, what: str, node: int, why: str = "") -> None:
        self.seen[what] += 1
        _log.warning("%s: %s%s", self.name(node), what, why and f" ({why})")
