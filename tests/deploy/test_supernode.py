"""A node's executor: asked, killed, hung, started again but not for ever; and a pace that follows messages."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deploy import supernode
from deploy.supernode import LONGEST, SHORTEST, STARTS, Executor, Pace

ROOT = Path(__file__).parents[2]
SERVE = """
import os, signal, socket, sys, time
sys.path.insert(0, {root!r})
from deploy.executor import serve
def answer(question):
    {answer}
with socket.socket(fileno=int(sys.argv[1])) as line:
    serve(line, answer)
"""
Executors = Callable[[str], Executor]


@pytest.fixture
def executor() -> Iterator[Executors]:
    """Makes executors whose children answer with a line of Python; all are ended."""
    made: list[Executor] = []

    def make(answer: str) -> Executor:
        made.append(Executor([sys.executable, "-c", SERVE.format(root=str(ROOT), answer=answer)]))
        return made[-1]

    yield make
    for one in made:
        one.end()


def test_every_question_is_answered_by_a_process_of_its_own(executor: Executors) -> None:
    asked = executor("return question + str(os.getpid()).encode()")
    first, second = asked.ask(b"a", 60), asked.ask(b"b", 60)
    assert first is not None and second is not None
    assert (first[:1], second[:1]) == (b"a", b"b")
    assert len({first[1:], second[1:], str(os.getpid()).encode()}) == 3


def test_an_empty_answer_is_none(executor: Executors) -> None:
    assert executor("return b''").ask(b"a", 60) is None


def test_a_child_that_dies_once_is_asked_again(executor: Executors, tmp_path: Path) -> None:
    mark = str(tmp_path / "mark")
    asked = executor(f"os.path.exists({mark!r}) or (open({mark!r}, 'w'), os.kill(os.getpid(), 9)); return b'done'")
    assert asked.ask(b"a", 60) == b"done"


def test_a_child_that_always_dies_gives_none_and_the_executor_lives_on(executor: Executors) -> None:
    asked = executor("question == b'die' and os.kill(os.getpid(), 9); return b'done'")
    assert asked.ask(b"die", 60) is None
    before = asked.keep()
    assert asked.ask(b"a", 60) == b"done"
    assert asked.keep() is before


def test_a_child_that_hangs_gives_none_in_time_and_the_executor_lives_on(executor: Executors) -> None:
    asked = executor("question == b'hang' and time.sleep(600); return b'done'")
    assert asked.ask(b"a", 60) == b"done"
    before, started = asked.keep(), time.monotonic()
    assert asked.ask(b"hang", 0.3) is None
    assert time.monotonic() - started < 5
    assert asked.ask(b"a", 60) == b"done"
    assert asked.keep() is before


def test_an_executor_that_is_killed_at_work_is_started_again_and_asked_again(
    executor: Executors, tmp_path: Path
) -> None:
    mark = str(tmp_path / "mark")
    kill = "os.kill(os.getppid(), signal.SIGKILL), time.sleep(600)"
    asked = executor(f"os.path.exists({mark!r}) or (open({mark!r}, 'w'), {kill}); return b'done'")
    assert asked.ask(b"a", 60) == b"done"


def test_an_executor_that_is_stopped_gives_none_and_is_replaced(
    executor: Executors, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supernode, "MARGIN", 0.5)
    asked = executor("return str(os.getppid()).encode()")
    first = asked.ask(b"a", 60)
    assert first is not None
    os.kill(int(first), signal.SIGSTOP)
    assert asked.ask(b"a", 0.1) is None
    monkeypatch.setattr(supernode, "MARGIN", 60)
    assert asked.ask(b"a", 0.1) not in (None, first)


def test_an_executor_that_cannot_start_is_not_started_for_ever() -> None:
    clock = [0.0]
    asked = Executor([sys.executable, "-c", "raise SystemExit(1)"], now=lambda: clock[0])
    while asked._starts.maxlen != len(asked._starts):
        assert asked.ask(b"a", 60) is None
    assert asked.keep() is None
    clock[0] += 61
    assert asked.keep() is not None
    asked.end()
    assert STARTS == 5


def test_an_executor_ends_when_its_node_is_gone(executor: Executors) -> None:
    asked = executor("return str(os.getppid()).encode()")
    assert asked.ask(b"a", 60) is not None
    process, line = asked._process, asked._line
    assert process is not None and line is not None
    line.close()
    assert process.wait(timeout=60) == 0


class Clock:
    """Time that passes by sleeping only."""

    def __init__(self) -> None:
        self.time, self.slept = 0.0, list[float]()

    def sleep(self, seconds: float) -> None:
        self.time += seconds
        self.slept.append(seconds)


def test_pauses_grow_without_messages_and_are_short_after_one() -> None:
    clock = Clock()
    pace = Pace(clock.sleep, lambda: clock.time)
    for _ in range(20):
        pace.idle()
    assert clock.slept[0] == SHORTEST
    assert clock.slept[-1] == LONGEST
    assert sorted(clock.slept) == clock.slept
    assert sum(clock.slept[:14]) < 15, "a quarter of a minute after a message it is looked for every three seconds"
    pace.came()
    pace.answered()
    pace.idle()
    assert clock.slept[-1] == SHORTEST


def looks(pace: Pace, clock: Clock, span: float) -> tuple[int, float]:
    """How often a message was looked for that came `span` seconds after the last answer, and how late it was found."""
    pace.answered()
    came, before = clock.time + span, len(clock.slept)
    while clock.time < came:
        pace.idle()
    pace.came()
    return len(clock.slept) - before, clock.time - came


def test_a_regular_pace_is_learned_and_a_faster_one_as_well() -> None:
    clock = Clock()
    pace = Pace(clock.sleep, lambda: clock.time)
    first, *later = [looks(pace, clock, 2.0) for _ in range(5)]
    assert all(often < first[0] and late <= 0.6 for often, late in later)
    faster = [looks(pace, clock, 0.3) for _ in range(8)]
    assert faster[-1][1] < 0.2, "long pauses of the past are not held on to"
    assert all(late <= LONGEST for _, late in faster)
