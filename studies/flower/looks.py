"""Looks at the processes of a run while they live: CPU seconds by program, and memory that is theirs alone."""

import os
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from deploy.ending import PROC, carriers, stat

PAUSE = 0.25  # seconds between two looks at all processes
PROGRAMS = {  # words of a command line, and what it is
    "flower-superlink": "SuperLink",
    "flwr-serverapp": "server's app",
    "flower-superexec": "Flower's executors",
    "flwr-clientapp": "Flower's client apps",
    "flower-supernode": "SuperNodes",
    "deploy.supernode": "SuperNodes",
    "deploy.executor": "warm executors",
}
OTHERS, ENDED = "others", "children of "
Floats = NDArray[np.float64]
Spent = dict[str, float]  # CPU seconds by program; those of children that ended, under the name of who waited for them


@dataclass(frozen=True)
class Process:
    """One process at a time: CPU seconds of its own and of its children that ended, which it has waited for."""

    number: int
    parent: int
    program: str
    own: float
    ended: float
    resident: int


@dataclass
class Meter:
    """Adds up what processes spend, so that sums only grow, though a process takes its count with it when it ends.

    A parent gets the whole count of a child that it waits for: what was counted while the child lived is taken off.
    """

    spent: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    _seen: dict[int, Process] = field(default_factory=dict)
    _owed: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))  # by parent

    def add(self, processes: Iterable[Process]) -> None:
        """Take a look at all processes that there are."""
        there = {process.number: process for process in processes}
        for number in self._seen.keys() - there.keys():
            gone = self._seen[number]
            self._owed[gone.parent] += gone.own + gone.ended
        for number, process in there.items():
            before = self._seen.get(number)
            self.spent[process.program] += process.own - (before.own if before else 0.0)
            came = process.ended - (before.ended if before else 0.0)
            known = min(came, self._owed[number])
            self._owed[number] -= known
            self.spent[ENDED + process.program] += came - known
        self._seen = there


@dataclass(frozen=True)
class Look:
    """What was there at a time: CPU seconds so far, and resident bytes of each (program, process)."""

    at: float
    spent: Spent
    resident: dict[tuple[str, int], int]


@dataclass(frozen=True)
class Measured:
    """When rounds were answered, in seconds since 1970, and what was said of them; the looks at all processes.

    `calls`: when the SuperLink had answered which call, where that was asked for.
    """

    rounds: Sequence[tuple[float, str]]
    looks: Sequence[Look]
    calls: Sequence[tuple[float, str]] = ()

    @property
    def wall(self) -> Floats:
        """Seconds from each round's answers to the next one's."""
        return np.diff([at for at, _ in self.rounds])

    @property
    def cpu(self) -> Floats:
        """CPU seconds of all processes in the same spans."""
        return np.diff(self._at_rounds([sum(look.spent.values()) for look in self.looks]))

    def by_program(self) -> dict[str, float]:
        """CPU seconds a round of each program, on average."""
        names = sorted({name for look in self.looks for name in look.spent})
        spans = {name: np.diff(self._at_rounds([look.spent.get(name, 0.0) for look in self.looks])) for name in names}
        return {name: float(span.mean()) for name, span in spans.items()}

    def calls_a_round(self) -> dict[str, float]:
        """How often each path was called a round, on average."""
        first, last = self.rounds[0][0], self.rounds[-1][0]
        counts = Counter(path for at, path in self.calls if first < at <= last)
        return {path: count / len(self.wall) for path, count in sorted(counts.items())}

    def growth(self) -> dict[str, tuple[float, float]]:
        """Most resident MB of programs that lived through it: after a tenth of the rounds, and the last."""
        first, last = self.rounds[len(self.rounds) // 10][0], self.rounds[-1][0]
        found: dict[str, tuple[float, float]] = {}
        for who in sorted(self._there(first) & self._there(last)):
            before = found.get(who[0], (0.0, 0.0))
            found[who[0]] = (max(before[0], self._resident(who, first)), max(before[1], self._resident(who, last)))
        return found

    def _there(self, until: float) -> set[tuple[str, int]]:
        return set([look for look in self.looks if look.at <= until][-1].resident)

    def _resident(self, who: tuple[str, int], until: float) -> float:
        """Resident MB at the last look until then that saw the process."""
        return next(
            (look.resident[who] / 1e6 for look in reversed(self.looks) if look.at <= until and who in look.resident),
            0.0,
        )

    def _at_rounds(self, values: Sequence[float]) -> Floats:
        return np.interp([at for at, _ in self.rounds], [look.at for look in self.looks], values)


@contextmanager
def watched(home: Path) -> Iterator[list[Look]]:
    """Looks at all processes that carry a private Flower home, while the block runs."""
    looks: list[Look] = []
    over, meter = threading.Event(), Meter()

    def watch() -> None:
        while not over.wait(PAUSE):
            found = [process for number in carriers(home) if (process := _read(number))]
            meter.add(found)
            resident = {(each.program, each.number): each.resident for each in found if each.program != OTHERS}
            looks.append(Look(time.time(), dict(meter.spent), resident))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield looks
    finally:
        over.set()
        thread.join()


def _read(number: int) -> Process | None:
    """What a process has spent and holds now; None where it has just ended."""
    tick, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    try:
        words = (PROC / str(number) / "cmdline").read_bytes().decode(errors="replace")
        fields = stat(number)
    except OSError:
        return None
    program = next((name for word, name in PROGRAMS.items() if word in words), OTHERS)
    user, system, ended_user, ended_system = map(int, fields[11:15])
    own, ended = (user + system) / tick, (ended_user + ended_system) / tick
    return Process(number, int(fields[1]), program, own, ended, int(fields[21]) * page)
