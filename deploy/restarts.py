"""What ends and is started again, and how often: a process that keeps ending does not work."""

import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from deploy.processes import FlowerFailed

SOUND = 60.0  # seconds: what lives so long worked
EARLY = 4  # ends in a row, each sooner than that, after which nothing is started again
MOST = 100  # of one run, of whatever kind


class Lost(FlowerFailed):
    """A run that cannot come to its end, while another one of the same study can: says what ended."""


def tell(words: str) -> None:
    """Say it to whoever started the run."""
    print(f"halftruth: {words}", file=sys.stderr, flush=True)


class SuperLinkLost(Lost):
    """The SuperLink, or what it starts apps with, has ended: it and its nodes have to be started again."""


@dataclass
class Restarts:
    """Counts what ended in a run."""

    say: Callable[[str], None] = tell
    now: Callable[[], float] = time.monotonic
    _early: Counter[str] = field(default_factory=Counter)
    _all: int = 0

    def count(self, name: str, why: str, since: float) -> None:
        """Something ended that had been started at `since`, and will be started again.

        Raises FlowerFailed, with `why`, where that happened too often.
        """
        self._all += 1
        self._early[name] = self._early[name] + 1 if self.now() - since < SOUND else 1
        if self._early[name] >= EARLY:
            raise FlowerFailed(f"{why}, {self._early[name]} times, each within {SOUND:g} seconds")
        if self._all > MOST:
            raise FlowerFailed(f"{why}: more than {MOST} processes of this run ended")
        self.say(f"{why}: started again")
