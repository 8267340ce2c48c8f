"""Which reports may speak for which rows: a row that two of them claim counts for neither.

Whichever of two were taken, by arrival or by a hash, its sender could try until it is theirs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from protocol.codec import Signed
from protocol.messages import Task
from server.alike import Sheaf

NOBODY = -1


class Fault(NamedTuple):
    """Something that does not count: who sent it ("": nobody knows), why, and with whom it cannot be true."""

    sender: str
    why: str
    rival: str = ""

    def __str__(self) -> str:
        return (f"{self.sender}: " if self.sender else "") + self.why + (f" ({self.rival})" if self.rival else "")


@dataclass(frozen=True)
class Claim:
    """A report that fits its task, the rows that it is about, and who sent it."""

    rows: NDArray[np.int64] = field(repr=False)
    signed: Signed
    sender: str


@dataclass(frozen=True)
class Gathered:
    """Reports that are alike and fit their task, and the rows that they are about; of nobody in particular."""

    rows: NDArray[np.int64] = field(repr=False)
    sheaf: Sheaf


def check_apart(joint: Sequence[Gathered], claims: Sequence[Claim], task: Task) -> None:
    """Raise ValueError where a row of gathered reports is claimed twice, or a labeler of many may be."""
    if not joint:
        return
    if task.groups is not None:
        raise ValueError("expected no labelers of several rows, got groups")
    taken = np.zeros(task.n, dtype=np.bool_)
    for rows in (*(claim.rows for claim in claims), *(gathered.rows for gathered in joint)):
        if taken[rows].any() or (rows[1:] <= rows[:-1]).any():
            raise ValueError("expected a report a row, got two")
        taken[rows] = True


def settled(claims: Sequence[Claim], task: Task) -> tuple[list[Claim], list[Fault]]:
    """The claims that nobody contests, in the order of their ids, and why others do not count.

    The same bytes twice are one report: it counts once. Of two others that share a row neither counts, nor of two that
    share a labeler whom one sum is to protect: two nodes would clip a part each, and the sum could move further than
    its noise covers.
    """
    single: list[Claim] = []
    faults: list[Fault] = []
    for claim in sorted(claims, key=lambda claim: (claim.signed.id, claim.sender)):
        if single and single[-1].signed.id == claim.signed.id:
            faults.append(Fault(claim.sender, "a report that is already here", single[-1].sender))
        else:
            single.append(claim)
    contested: dict[int, Fault] = {}
    words = "rows that another report answers for as well"
    _contest(single, [claim.rows for claim in single], task.n, words, contested)
    if task.groups is not None:
        groups, whole = task.groups, int(task.groups.max()) + 1
        words = "a labeler of whom another report has rows as well: one labeler lives on one node"
        _contest(single, [np.unique(groups[claim.rows]).astype(np.int64) for claim in single], whole, words, contested)
    accepted = [claim for place, claim in enumerate(single) if place not in contested]
    return accepted, [*faults, *contested.values()]


def _contest(
    claims: Sequence[Claim], held: Sequence[NDArray[np.int64]], size: int, words: str, contested: dict[int, Fault]
) -> None:
    """Enter both of any two claims that hold a number below `size` in common; each names one of its rivals."""
    if len(held) < 2:
        return
    owner = np.full(size, NOBODY, dtype=np.int64)
    for place, numbers in enumerate(held):
        taken = owner[numbers]
        for rival in np.unique(taken[taken != NOBODY]).tolist():
            contested.setdefault(rival, Fault(claims[rival].sender, words, claims[place].sender))
            contested.setdefault(place, Fault(claims[place].sender, words, claims[rival].sender))
        owner[numbers] = place
