"""What a server said of its rounds: lines of rounds.txt, read for those who watch."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

LINE = re.compile(r"(\d+\.\d+) cell-\S+: .*?; messages so far: (.*)")
COUNT = re.compile(r"([a-z]+): (\d+)")


@dataclass(frozen=True)
class Messages:
    """Rounds that were asked, replies by what came of them, and in words whose did not count, last said."""

    rounds: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    blamed: str = ""
    last: float | None = None  # seconds since 1970


def messages(lines: Iterable[str]) -> Messages:
    """What lines say together; the torn end of a file that grows is left out.

    A server counts from its start on, and every round has an answer: where a line has no more answers than the one
    before, another server began.

    >>> messages(["1.5 cell-9-0-1: 1 task, 9 bytes to each, 9 from all; messages so far: answered: 2, late: 1"]).counts
    Counter({'answered': 2, 'late': 1})
    """
    total, before = Counter[str](), Counter[str]()
    rounds, blamed, last = 0, "", None
    for at, counts, words in _read(lines):
        if counts["answered"] <= before["answered"]:
            total += before
        before, rounds, blamed, last = counts, rounds + 1, words, at
    return Messages(rounds, total + before, blamed, last)


def _read(lines: Iterable[str]) -> Iterator[tuple[float, Counter[str], str]]:
    for line in dict.fromkeys(lines):  # for a moment a line is in two files
        if (found := LINE.fullmatch(line)) is None:
            continue
        counts, _, blamed = found[2].partition(" (")
        yield float(found[1]), Counter({name: int(n) for name, n in COUNT.findall(counts)}), blamed.removesuffix(")")
