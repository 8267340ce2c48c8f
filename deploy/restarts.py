"""What ends and is started again, when, and how often: a process that keeps ending does not work."""

import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from deploy.processes import FlowerFailed

SOUND = 60.0  # seconds: what lives so long worked
EARLY = 4  # ends in a row, each sooner than that, after which a run starts nothing again
MOST = 100  # of one run, of whatever kind
LONGEST_PAUSE = 60.0  # seconds, after 0, 1, 3, 7, ...


class Lost(FlowerFailed):
    """A run that cannot come to its end, while another one of the same study can: says what ended."""


def tell(words: str) -> None:
    """Say it to whoever started the run."""
    print(f"halftruth: {words}", file=sys.stderr, flush=True)


class SuperLinkLost(Lost):
    """The SuperLink, or what it starts apps with, has ended: it and its nodes have to be started again."""


@dataclass
class Restarts:
    """Counts what ended in a run; or, where nobody waits for an end, `for_ever`."""

    say: Callable[[str], None] = tell
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    for_ever: bool = False
    _early: Counter[str] = field(default_factory=Counter)
    _all: int = 0

    def count(self, name: str, why: str, since: float) -> float:
        """Something ended that had been started at `since`; how many seconds later to start it again.

        None after the first end, then more and more while it keeps ending. Raises FlowerFailed, with `why`, where that
        happened too often.
        """
        self._all += 1
        self._early[name] = self._early[name] + 1 if self.now() - since < SOUND else 1
        if self._early[name] >= EARLY and not self.for_ever:
            raise FlowerFailed(f"{why}, {self._early[name]} times, each within {SOUND:g} seconds")
        if self._all > MOST and not self.for_ever:
            raise FlowerFailed(f"{why}: more than {MOST} processes of this run ended")
        pause = min(LONGEST_PAUSE, 2.0 ** (self._early[name] - 1) - 1)
        self.say(f"{why}: started again" + (f" in {pause:g} s" if pause else ""))
        return pause

    def wait(self, name: str, why: str, since: float) -> None:
        """Count it, and let that time pass."""
        self.sleep(self.count(name, why, since))
