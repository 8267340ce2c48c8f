"""An exchange over a post that loses, repeats and delays, by a clock of its own: nothing waits, everything is exact."""

import json
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from protocol.codec import decode_task, encode_bundle, identity
from server.exchange import Exchange
from server.listening import RoundFailed
from server.longest import longest
from server.post import Clock, Letter, gather
from server.sent import Sent

GOLDEN = Path(__file__).parents[1] / "golden"
TASK = bytes.fromhex(json.loads((GOLDEN / "task_central.json").read_text("utf-8"))["bytes"])
REPLY = encode_bundle([b"reply"])


@dataclass
class Slow:
    """A post with time of its own. `plan`: for each node, what becomes of each message in turn, an error's code, bytes
    or nothing, and after how many seconds; the last of them again and again. `there`: who is there, from when on.
    """

    plan: dict[int, list[tuple[int | bytes | None, float]]]
    there: list[tuple[float, set[int]]]
    now: float = 0.0
    pushed: list[tuple[float, int]] = field(default_factory=list)
    letters: list[tuple[float, Letter]] = field(default_factory=list)

    @property
    def clock(self) -> Clock:
        """Its time."""
        return Clock(lambda: self.now, self.wait)

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds

    def nodes(self) -> Collection[int]:
        """Who is there now."""
        return max((since, nodes) for since, nodes in self.there if since <= self.now)[1]

    def push(self, nodes: Sequence[int], raw: bytes) -> Sequence[str | None]:
        """A message each; a node that was never there is none."""
        names: list[str | None] = []
        for node in nodes:
            if node not in self.plan:
                names.append(None)
                continue
            what, after = self.plan[node][0] if len(self.plan[node]) == 1 else self.plan[node].pop(0)
            name = f"{node}-{len(self.pushed)}"
            names.append(name)
            self.pushed.append((round(self.now, 3), node))
            if isinstance(what, bytes):
                self.letters.append((self.now + after, Letter(node, name, what)))
            elif what is not None:
                self.letters.append((self.now + after, Letter(0, name, b"secret", what)))
        return names

    def pull(self, ids: Collection[str]) -> Sequence[Letter]:
        """What has come by now."""
        here = [letter for at, letter in self.letters if at <= self.now and letter.reply_to in ids]
        self.letters = [(at, letter) for at, letter in self.letters if letter not in here]
        return here


def slow(plan: dict[int, list[tuple[int | bytes | None, float]]], *there: tuple[float, set[int]]) -> Slow:
    return Slow(plan, list(there) or [(0.0, set(plan))])


def exchange(post: Slow, nodes: Sequence[int] = (1, 2), strict: bool = True, deadline: float = 600.0) -> Exchange:
    return Exchange(post, nodes, deadline, strict, clock=post.clock)


WELL: list[tuple[int | bytes | None, float]] = [(REPLY, 1.0)]


@pytest.mark.parametrize("code", [3, 4, 5, 8])
def test_a_node_whose_message_was_lost_is_asked_again_at_once(code: int) -> None:
    post = slow({1: WELL, 2: [(code, 2.0), (REPLY, 1.0)]})
    own = exchange(post)
    assert own.ask([TASK]) == [b"reply"] * 2
    assert own.describe() == "answered: 2, failed: 1"
    assert post.now < 5 and [node for _, node in post.pushed] == [1, 2, 2]


@pytest.mark.parametrize("code", [1, 2, 7, 77])
def test_an_error_that_stays_ends_the_round(code: int) -> None:
    post = slow({1: WELL, 2: [(code, 2.0)]})
    with pytest.raises(RoundFailed, match=f"node 2, got none: Flower's error {code}"):
        exchange(post).ask([TASK])
    assert post.now < 5 and len(post.pushed) == 2


def test_a_process_that_dies_whenever_it_is_asked_is_given_up() -> None:
    post = slow({1: WELL, 2: [(8, 1.0)]})
    own = exchange(post)
    with pytest.raises(RoundFailed, match="node 2, got none: Flower's error 8: its process died"):
        own.ask([TASK])
    assert own.seen["failed"] == 4 and post.now < 10


def test_a_node_that_is_gone_may_come_back_until_the_deadline() -> None:
    """Under its own number: its key is known."""
    post = slow({1: WELL, 2: [(5, 50.0), (REPLY, 1.0)]}, (0, {1, 2}), (40, {1}), (200, {1, 2}))
    own = exchange(post)
    assert own.ask([TASK]) == [b"reply"] * 2 and 200 < post.now < 205
    assert own.nodes == (1, 2)


def test_another_node_in_place_of_one_that_is_gone_is_asked() -> None:
    """A node without a key has another number each time it starts. The old one is taken for there for a minute."""
    post = slow({1: WELL, 2: [(5, 55.0)], 9: WELL}, (0, {1, 2}), (20, {1, 2, 9}), (55, {1, 9}))
    own = exchange(post)
    assert own.ask([TASK]) == [b"reply"] * 2 and 55 < post.now < 60
    assert own.nodes == [1, 9]
    del post.plan[2]  # its number says nothing any more
    assert own.ask([TASK]) == [b"reply"] * 2
    assert own.describe() == "answered: 4, failed: 1"


def test_a_node_that_was_replaced_between_rounds_cannot_be_sent_to() -> None:
    post = slow({1: WELL, 9: WELL}, (0, {1, 9}))
    own = exchange(post)
    assert own.ask([TASK]) == [b"reply"] * 2 and own.nodes == [1, 9]


def test_a_stranger_is_not_asked_while_everybody_is_there() -> None:
    post = slow({1: WELL, 2: [(8, 1.0), (REPLY, 1.0)], 9: WELL})
    own = exchange(post)
    own.ask([TASK])
    assert own.nodes == (1, 2) and {node for _, node in post.pushed} == {1, 2}


def test_a_node_that_never_comes_back_is_named_at_the_deadline() -> None:
    post = slow({1: WELL, 2: [(5, 50.0)]}, (0, {1, 2}), (50, {1}))
    with pytest.raises(RoundFailed, match="node 2, got none: Flower's error 5: the node is gone"):
        exchange(post).ask([TASK])
    assert 600 <= post.now < 601 and len(post.pushed) == 2


def test_a_node_that_says_nothing_is_asked_again_now_and_then() -> None:
    """A message may be lost with the process that had it, and nobody says so. The other answer comes too, in time."""
    post = slow({1: WELL, 2: [(None, 0.0), (REPLY, 300.0), (REPLY, 1.0)]})
    own = exchange(post)
    assert own.ask([TASK]) == [b"reply"] * 2
    assert [round(at, -1) for at, node in post.pushed if node == 2] == [0, 60, 180]
    post.now = 400.0
    own.ask([TASK])
    assert own.describe() == "answered: 4, duplicate: 1"


def test_late_replies_are_counted_and_do_not_count() -> None:
    post = slow({1: WELL, 2: [(REPLY, 12.0), (REPLY, 1.0)]})
    own = exchange(post, strict=False, deadline=10)
    assert own.ask([TASK]) == [b"reply"] and own.describe() == "answered: 1, missing: 1"
    post.now = 13.0
    assert own.ask([TASK]) == [b"reply"] * 2 and own.describe() == "answered: 3, late: 1, missing: 1"


def test_without_strictness_nobody_is_asked_twice() -> None:
    post = slow({1: WELL, 2: [(8, 1.0)]})
    own = exchange(post, strict=False)
    assert own.ask([TASK]) == [b"reply"] and len(post.pushed) == 2 and post.now < 3


def test_a_message_that_is_lost_is_sent_once_more_and_whichever_answer_comes_first_counts() -> None:
    """A look that somebody holds up has taken the reply away: it is lost to others, and comes when that look ends."""

    class Late(Slow):
        def pull(self, ids: Collection[str]) -> Sequence[Letter]:
            assert "2-1" not in ids or self.now < 3, "what is lost is not asked for again"
            return super().pull([*ids, "2-1"])

    def played(second: float | None, first: float | None, deadline: float = 10) -> tuple[Late, Exchange]:
        after = (None, 0.0) if second is None else (REPLY, second)
        post = Late({1: WELL, 2: [(3, 2.0), after, (REPLY, 1.0)]}, [(0.0, {1, 2})])
        post.letters += [(first, Letter(2, "2-1", REPLY))] if first else []
        own = exchange(post, strict=False, deadline=deadline)
        own.ask([TASK])
        return post, own

    post, own = played(1.0, None)
    assert own.describe() == "answered: 2, failed: 1" and [node for _, node in post.pushed] == [1, 2, 2]
    post, own = played(None, 5.0)
    assert own.describe() == "answered: 2, failed: 1" and post.now < 6
    for first, what in ((5.0, "duplicate: 1, failed: 1"), (None, "failed: 1, late: 1, missing: 1")):
        post, own = played(None, first, 9)
        post.letters.append((post.now, Letter(2, "2-1", REPLY)))
        own.ask([TASK])
        assert own.describe() == f"answered: {4 if first else 3}, {what}"


def test_an_error_that_comes_after_a_round_is_nobody_s_late_reply() -> None:
    """A message that nobody answers expires, and that is said of it: nothing was answered, and nothing charged."""
    post = slow({1: WELL, 2: [(3, 12.0), (REPLY, 1.0)]})
    own = exchange(post, strict=False, deadline=10)
    own.ask([TASK])
    post.now = 13.0
    own.ask([TASK])
    assert own.describe() == "answered: 3, missing: 1"


@pytest.mark.parametrize("strict", [True, False])
def test_a_reply_that_is_too_long_is_not_read_and_its_node_is_named(strict: bool) -> None:
    """By two bytes: a bundle of one reply as long as it may be, and one byte more."""
    most = longest([decode_task(TASK)])
    raws = [encode_bundle([bytes(length)]) for length in (most - 4, most - 3)]
    assert [len(raw) - most for raw in raws] == [0, 1]
    seen: list[int] = []
    post = slow({1: [(raws[0], 1.0)], 2: [(raws[1], 1.0)]})
    own = exchange(post, strict=strict, deadline=10)
    own.record = lambda raw: seen.append(len(raw))
    if strict:
        with pytest.raises(RoundFailed, match=f"a reply of node 2, got none: {most + 1} bytes where at most {most} "):
            own.ask([TASK])
    else:
        assert own.ask([TASK]) == [bytes(most - 4)] and own.describe() == "answered: 1, unreadable: 1"
    assert seen == [most, most], "nor is it kept"


def test_nodes_are_waited_for_until_there_are_enough() -> None:
    post = slow({}, (0, {1}), (5, {1, 2}), (20, {1, 2, 3}))
    assert gather(post, 2, 10, post.clock, least=2) == [1, 2] and 5 <= post.now < 6
    assert gather(post, 3, 10, post.clock, least=2) == [1, 2] and 15 <= post.now < 16
    with pytest.raises(RoundFailed, match=r"expected 4 clients, or at least 3, within 2 s, got 2"):
        gather(post, 4, 2, post.clock, least=3)


def test_a_clock_that_is_set_while_a_round_runs_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deadlines are of the clock that only grows: the time of day may jump a year, either way, at every look."""
    jumps = iter([1e9 + (-1) ** look * 3e7 * look for look in range(100_000)])
    monkeypatch.setattr(time, "time", lambda: next(jumps))
    monkeypatch.setattr(time, "time_ns", lambda: int(next(jumps) * 1e9))

    class Real(Slow):
        def nodes(self) -> Collection[int]:
            return {1, 2}

        def pull(self, ids: Collection[str]) -> Sequence[Letter]:
            self.now = time.monotonic() - begin
            return super().pull(ids)

    for last, fails in ((0.3, False), (30.0, True)):
        begin = time.monotonic()
        post = Real({1: [(REPLY, 0.1)], 2: [(REPLY, last)]}, [])
        own = Exchange(post, gather(post, 2, 1.0), 0.6, strict=False)
        assert len(own.ask([TASK])) == (1 if fails else 2)
        assert own.seen["missing"] == fails
        assert (0.6 if fails else 0.3) <= time.monotonic() - begin < 30


def test_replies_name_their_senders() -> None:
    found = exchange(slow({1: WELL, 2: WELL})).ask([TASK])
    assert [(reply.sender, reply.task) for reply in found if isinstance(reply, Sent)] == [
        ("node 1", identity(TASK)),
        ("node 2", identity(TASK)),
    ]
