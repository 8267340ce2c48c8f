"""Looks at the processes of a run while they live: CPU seconds by program, and memory that is theirs alone."""

import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from deploy.ending import PROC, carriers

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
class Look:
    """What was there at a time: CPU seconds, and resident bytes of each (program, process)."""

    at: float
    spent: Spent
    resident: dict[tuple[str, int], int]


@dataclass(frozen=True)
class Measured:
    """When rounds were answered, in seconds since 1970, and what was said of them; and the looks at all processes."""

    rounds: Sequence[tuple[float, str]]
    looks: Sequence[Look]

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

    def growth(self) -> dict[str, tuple[float, float]]:
        """Most resident MB of a program's processes after a tenth of the rounds, and at the last one."""
        first, last = self.rounds[len(self.rounds) // 10][0], self.rounds[-1][0]
        found: dict[str, tuple[float, float]] = {}
        for (program, process), _ in sorted(self.looks[-1].resident.items()):
            values = [self._resident((program, process), at) for at in (first, last)]
            before = found.get(program, (0.0, 0.0))
            found[program] = (max(before[0], values[0]), max(before[1], values[1]))
        return found

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
    over = threading.Event()

    def watch() -> None:
        while not over.wait(PAUSE):
            looks.append(look(carriers(home)))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield looks
    finally:
        over.set()
        thread.join()


def look(processes: Sequence[int]) -> Look:
    """What these processes have spent and hold now."""
    spent, resident = defaultdict[str, float](float), {}
    tick, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    for process in processes:
        try:
            words = (PROC / str(process) / "cmdline").read_bytes().decode(errors="replace")
            fields = (PROC / str(process) / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        program = next((name for word, name in PROGRAMS.items() if word in words), OTHERS)
        user, system, ended_user, ended_system = map(int, fields[11:15])
        spent[program] += (user + system) / tick
        spent[ENDED + program] += (ended_user + ended_system) / tick
        if program != OTHERS:
            resident[program, process] = int(fields[21]) * page
    return Look(time.time(), dict(spent), resident)
