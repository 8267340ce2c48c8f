"""How often what ends is started again, by a clock of the test's own."""

import pytest

from deploy.processes import FlowerFailed
from deploy.restarts import EARLY, MOST, SOUND, Restarts


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


def test_there_is_an_end_of_it() -> None:
    time = Time()
    for _ in range(MOST):
        time.restarts.count("node", "node ended", time.now - SOUND)
    with pytest.raises(FlowerFailed, match=f"more than {MOST}"):
        time.restarts.count("node", "node ended", time.now - SOUND)
