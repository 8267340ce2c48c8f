"""How often what ends is started again, by a clock of the test's own."""

import pytest

from deploy.processes import FlowerFailed
from deploy.restarts import EARLY, LONGEST_PAUSE, MOST, SOUND, Restarts


class Time:
    """A clock and what was said."""

    def __init__(self) -> None:
        self.now, self.said = 0.0, list[str]()
        self.restarts = Restarts(self.said.append, lambda: self.now)


def test_what_ends_now_and_then_is_started_again_and_that_is_said() -> None:
    time = Time()
    for _ in range(3 * EARLY):
        since, time.now = time.now, time.now + SOUND
        time.restarts.count("node", "node ended", since)
    assert time.said == ["node ended: started again"] * 3 * EARLY


def test_what_keeps_ending_is_given_up_by_name() -> None:
    time = Time()
    for _ in range(EARLY - 1):
        time.restarts.count("node", "node ended; its log: x", time.now)
        time.restarts.count("superlink", "superlink ended", time.now - SOUND)
    with pytest.raises(FlowerFailed, match=f"node ended; its log: x, {EARLY} times"):
        time.restarts.count("node", "node ended; its log: x", time.now)


def test_pauses_grow_while_it_keeps_ending_and_a_keeper_never_gives_up() -> None:
    time, slept = Time(), list[float]()
    kept = Restarts(time.said.append, lambda: time.now, slept.append, for_ever=True)
    for _ in range(2 * MOST):
        kept.wait("node", "node ended", time.now)
    assert slept[:8] == [0, 1, 3, 7, 15, 31, LONGEST_PAUSE, LONGEST_PAUSE] and len(slept) == 2 * MOST
    assert time.said[:2] == ["node ended: started again", "node ended: started again in 1 s"]
    assert kept.count("node", "node ended", time.now - SOUND) == 0


def test_there_is_an_end_of_it() -> None:
    time = Time()
    for _ in range(MOST):
        time.restarts.count("node", "node ended", time.now - SOUND)
    with pytest.raises(FlowerFailed, match=f"more than {MOST}"):
        time.restarts.count("node", "node ended", time.now - SOUND)
