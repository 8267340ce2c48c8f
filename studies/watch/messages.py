"""What a server said of its rounds: lines of rounds.txt, read for those who watch."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

LINE = re.compile(
    r"(\d+\.\d+) cell-\S+: exchange (\d+) with (\d+) nodes?: .*?; messages so far: (.*)"
)  # server.telling:Telling
COUNT = re.compile(r"([a-z]+): (\d+)")


@dataclass(frozen=True)
class Messages:
    """Rounds that were asked, and replies by what came of them: in `all`, and in the `last` round, of `nodes` nodes.

    `blamed` says in words whose do not count; `at` is when the last round was told, in seconds since 1970.
    """

    rounds: int = 0
    nodes: int = 0
    all: Counter[str] = field(default_factory=Counter)
    last: Counter[str] = field(default_factory=Counter)
    blamed: str = ""
    at: float | None = None


@dataclass(frozen=True)
class _Line:
    at: float
    exchange: int
    nodes: int
    counts: Counter[str]
    blamed: str


def messages(lines: Iterable[str]) -> Messages:
    """What lines say together; the torn end of a file that grows is left out.

    A server counts from its start on, and numbers its rounds: where the number does not rise, another server began.

    >>> messages(["1.5 cell-9-0-1: exchange 1 with 2 nodes: 1 task; messages so far: answered: 1, late: 1"]).all
    Counter({'answered': 1, 'late': 1})
    """
    ended, before = Counter[str](), _Line(0.0, 0, 0, Counter(), "")
    found = Messages()
    for rounds, line in enumerate(_read(lines), start=1):
        if line.exchange <= before.exchange:
            ended, before = ended + before.counts, _Line(0.0, 0, 0, Counter(), "")
        found = Messages(rounds, line.nodes, ended + line.counts, line.counts - before.counts, line.blamed, line.at)
        before = line
    return found


def _read(lines: Iterable[str]) -> Iterator[_Line]:
    for line in dict.fromkeys(lines):  # for a moment a line is in two files
        if (found := LINE.fullmatch(line)) is None:
            continue
        counts, _, blamed = found[4].partition(" (")
        counter = Counter({name: int(n) for name, n in COUNT.findall(counts)})
        yield _Line(float(found[1]), int(found[2]), int(found[3]), counter, blamed.removesuffix(")"))
