"""A post that senders hold up, in real threads: a look ends in time, and what others sent is there."""

import json
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from protocol.codec import encode_bundle
from server.exchange import Exchange
from server.post import Letter
from server.pulling import AT_ONCE, MOST_HELD, InTime, patience
from server.round import LOST, NO_MESSAGE

GOLDEN = Path(__file__).parents[1] / "golden" / "task_central.json"
TASK = bytes.fromhex(json.loads(GOLDEN.read_text("utf-8"))["bytes"])
REPLY = encode_bundle([b"reply"])
PATIENCE = 0.2


class Over(BaseException):
    """The run is over: no error of anybody's."""


@dataclass
class Claiming:
    """A post like Flower's: a look takes what is there away from other looks, and waits for what is announced.

    `stalled` nodes announce a reply that is there when `upload` is set; `garbled` ones send what is no message.
    """

    stalled: Collection[int] = ()
    garbled: Collection[int] = ()
    silent: Collection[int] = ()
    down: type[BaseException] | None = None
    upload: threading.Event = field(default_factory=threading.Event)
    asked: dict[str, int] = field(default_factory=dict)
    claimed: set[str] = field(default_factory=set)
    looks: list[int] = field(default_factory=list)
    there: int = 0
    most: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def nodes(self) -> Collection[int]:
        """Everybody."""
        if self.down is not None:
            raise self.down
        return set(self.asked.values())

    def push(self, nodes: Sequence[int], raw: bytes) -> Sequence[str | None]:
        """Ask."""
        names = [f"{node}-{len(self.asked) + place}" for place, node in enumerate(nodes)]
        self.asked |= dict(zip(names, nodes, strict=True))
        return names

    def pull(self, ids: Collection[str]) -> Sequence[Letter]:
        """Look."""
        with self.lock:
            self.looks.append(len(ids))
            self.there += 1
            self.most = max(self.most, self.there)
            mine = [name for name in ids if name not in self.claimed and self.asked[name] not in self.silent]
            lost = [Letter(0, name, b"", LOST) for name in ids if name in self.claimed]
            self.claimed |= set(mine)
        try:
            if self.down is not None:
                raise self.down
            if any(self.asked[name] in self.garbled for name in mine):
                raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "a label")
            if any(self.asked[name] in self.stalled for name in mine):
                self.upload.wait(60)
            return [*lost, *(Letter(self.asked[name], name, REPLY) for name in mine)]
        finally:
            with self.lock:
                self.there -= 1


@pytest.fixture
def end() -> Iterator[list[Claiming]]:
    """Posts whose threads are let go."""
    posts: list[Claiming] = []
    yield posts
    for post in posts:
        post.upload.set()


def timed(post: InTime, ids: Collection[str]) -> tuple[dict[str, int | None], float]:
    begin = time.monotonic()
    letters = post.pull(ids)
    return {letter.reply_to: letter.error for letter in letters}, time.monotonic() - begin


def test_one_call_for_all_while_nobody_holds_it_up() -> None:
    under = Claiming(silent={3})
    post = InTime(under, PATIENCE)
    names = post.push([1, 2, 3], b"")
    assert timed(post, [name for name in names if name])[0] == {"1-0": None, "2-1": None}
    assert timed(post, ["3-2"])[0] == {} and timed(post, [])[0] == {}
    assert under.looks == [3, 1] and not post.singly


def test_a_look_ends_in_time_and_what_it_took_away_comes_when_it_can(end: list[Claiming]) -> None:
    under = Claiming(stalled={2}, silent={4})
    end.append(under)
    post = InTime(under, PATIENCE)
    names = [name for name in post.push([1, 2, 3, 4], b"") if name]
    found, took = timed(post, names)
    assert found == {} and PATIENCE <= took < PATIENCE + 5 and post.singly
    assert timed(post, names)[0] == dict.fromkeys(names[:3], LOST), "who has not replied has lost nothing"
    again = [name for name in post.push([1, 2, 3], b"") if name]
    found, took = timed(post, again)
    assert found == {again[0]: None, again[2]: None} and took < PATIENCE + 5
    found, took = timed(post, again[1:2])
    assert found == {} and took < PATIENCE, "what is held is not looked for twice"
    under.upload.set()
    late: dict[str, int | None] = {}
    while len(late) < 4:
        late |= timed(post, [])[0]
    assert late == {**dict.fromkeys(names[:3]), again[1]: None}


def test_what_is_no_message_is_its_sender_s_alone() -> None:
    post = InTime(Claiming(garbled={2}), PATIENCE)
    names = [name for name in post.push([1, 2, 3], b"") if name]
    assert timed(post, names)[0] == dict.fromkeys(names, LOST) and post.singly
    again = [name for name in post.push([1, 2, 3], b"") if name]
    assert timed(post, again)[0] == {again[0]: None, again[1]: NO_MESSAGE, again[2]: None}


@pytest.mark.parametrize("why", [ConnectionError, Over])
@pytest.mark.parametrize("singly", [True, False])
def test_what_is_nobody_s_reply_is_raised(why: type[BaseException], singly: bool) -> None:
    """A line that is broken, and a run that was ended."""
    post = InTime(Claiming(), PATIENCE, singly=singly)
    names = [name for name in post.push([1, 2], b"") if name]
    post.post.down = why  # type: ignore[attr-defined]
    with pytest.raises(why):
        post.pull(names)


def test_many_that_hold_up_are_looked_at_some_at_a_time_and_not_again(end: list[Claiming]) -> None:
    """Those after them are reached, at the latest when all who hold up are held."""
    liars = 2 * AT_ONCE
    under = Claiming(stalled=range(liars))
    end.append(under)
    post = InTime(under, PATIENCE, singly=True)
    names = [name for name in post.push(range(liars + 3), b"") if name]
    found: dict[str, int | None] = {}
    for look in range(3):
        came, took = timed(post, [name for name in names if name not in found])
        found |= came
        assert took < PATIENCE + 5 and under.there == min(AT_ONCE * (look + 1), liars)
    assert found == dict.fromkeys(names[liars:])


def test_who_holds_up_several_pulls_is_sent_nothing_more(end: list[Claiming]) -> None:
    under = Claiming(stalled={1})
    end.append(under)
    post = InTime(under, 0.02, singly=True)
    for _ in range(MOST_HELD):
        names = post.push([1, 2], b"")
        assert None not in names
        post.pull([name for name in names if name])
    assert [name is None for name in post.push([1, 2], b"")] == [True, False]
    assert post.push([1], b"") == [None]
    under.upload.set()
    while under.there:
        time.sleep(0.01)
    post.pull([])
    assert None not in post.push([1, 2], b"")


@pytest.mark.parametrize(("strict", "others"), [(True, 0), (False, 3)])
def test_a_round_ends_by_its_deadline_whatever_one_node_does(end: list[Claiming], strict: bool, others: int) -> None:
    """Of four nodes one announces a reply and never uploads it. The others' replies come in, asked for once more."""
    under = Claiming(stalled={2})
    end.append(under)
    own = Exchange(InTime(under, PATIENCE), (1, 2, 3, 4), 2.0, strict)
    begin = time.monotonic()
    if strict:
        with pytest.raises(Exception, match="expected a reply of node 2, got none: "):
            own.ask([TASK])
    else:
        for round in (1, 2):
            assert len(own.ask([TASK])) == others
            assert own.seen["missing"] == round and own.seen["answered"] == others * round
    assert time.monotonic() - begin < 2 * 2.0 + 2 * PATIENCE + 5


def test_patience_is_a_part_of_a_deadline_within_bounds() -> None:
    assert [patience(seconds) for seconds in (0.3, 5, 30, 600)] == [1.0, 1.0, 3.0, 10.0]
