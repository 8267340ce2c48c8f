"""What the server of a federation is told of a split file: public facts only."""

import hashlib
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from client.rows import answerable
from client.sources.table import Table
from protocol.messages import Mechanism, Task
from protocol.privacy import Unit
from protocol.problem import Problem, of_pairs
from protocol.strict import StudyError
from protocol.terms import TIE
from protocol.trust import Trust
from studies.fit.task import labeler_groups


@dataclass(frozen=True)
class Terms:
    """What nodes answer to: a trust model, a unit with its cap (0 for labels), and whether ties are public."""

    trust: Trust
    unit: Unit = Unit.LABEL
    cap: int = 0
    ties_public: bool = False

    def __str__(self) -> str:
        counted = f", cap {self.cap}" if self.cap else ""
        return f"--trust {self.trust.label}, --unit {self.unit.label}{counted}"


@dataclass(frozen=True, eq=False)
class Facts:
    """Public facts about a split file; no name of a labeler, and nothing that follows from a protected answer.

    `pairs` (n, 2) are numbers of `items`; `rows` are those that `nodes` nodes send under the `terms`: in clear all with
    a winner, under a claim the first of each label, within the cap. `groups` (n,) number the labelers where the unit is
    a labeler; `ties` (n,) are known where they are public. `features` (items, p) describe items, or None. `whose` is a
    hash of whose labels about what there are. Of `labelers` only the number is known.
    """

    terms: Terms
    nodes: int
    labelers: range
    label_count: int
    whose: bytes
    items: tuple[str, ...]
    pairs: NDArray[np.int32] = field(repr=False)
    rows: NDArray[np.int64] = field(repr=False)
    groups: NDArray[np.int32] | None = field(repr=False)
    ties: NDArray[np.bool_] | None = field(repr=False)
    features: NDArray[np.float64] | None = field(repr=False)
    feature_names: tuple[str, ...]

    @cached_property
    def problem(self) -> Problem:
        """What `client.sources.table:Table.problem` is to the nodes, made of the same facts. Raises ValueError."""
        return of_pairs(len(self.items), self.pairs, self.features)


def facts_of(table: Table, terms: Terms, nodes: int) -> Facts:
    """What a server has to know of a file that is split over nodes. Raises StudyError where nothing is to be asked."""
    n, clear = len(table.pairs), terms.trust is Trust.CLEAR
    everything = Task(
        *(bytes(32), terms.trust, terms.unit, table.problem, (Mechanism("none"),), n, None, None, 0, 1), cap=terms.cap
    )
    rows = answerable(everything, table)
    if not len(rows):
        raise StudyError(f"{table.path}: expected at least one answer that counts, found none")
    return Facts(
        terms=terms,
        nodes=nodes,
        labelers=range(len(table.labelers)),
        label_count=table.label_count,
        whose=hashlib.sha256(b"".join(table.identities)).digest(),
        items=table.items,
        pairs=table.pairs,
        rows=rows,
        groups=labeler_groups(table) if terms.unit is Unit.LABELER else None,
        ties=table.values.reveal() == TIE if terms.ties_public or clear else None,
        features=table.features,
        feature_names=table.feature_names,
    )
