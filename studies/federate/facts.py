"""What the server of a federation is told of a split file: public facts only."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from client.rows import answerable
from client.sources.ranking_labels import RankingAs
from client.sources.table import Table
from protocol.choice_features import of_choices
from protocol.messages import Mechanism, Task
from protocol.privacy import Unit
from protocol.problem import Problem, of_pairs
from protocol.strict import StudyError
from protocol.terms import TIE
from protocol.trust import Trust
from studies.fit.task import labeler_groups, whose


@dataclass(frozen=True)
class Terms:
    """What nodes answer to: a trust model, a unit with its cap (0 for labels), whether ties are public, and what each
    ranking is `asked`, None where files hold comparisons.
    """

    trust: Trust
    unit: Unit = Unit.LABEL
    cap: int = 0
    ties_public: bool = False
    asked: RankingAs | None = None

    def __str__(self) -> str:
        counted = f", cap {self.cap}" if self.cap else ""
        asked = "" if self.asked is None else f", --ranking-as {self.asked}"
        return f"--trust {self.trust.label}, --unit {self.unit.label}{counted}{asked}"


@dataclass(frozen=True, eq=False)
class Facts:
    """Public facts about a split file; no name of a labeler, and nothing that follows from a protected answer.

    `pairs` (n, 2) are numbers of `items`; of top choices (n, K), -1 where a row has fewer; `rows` are those
    that `nodes` nodes send under the `terms`: in clear all with a winner, under a claim the first of each label, within
    the cap. `groups` (n,) number the labelers where the unit is a labeler; `ties` (n,) are known where they are public.
    `features` (items, p) describe items, or None. `whose` is a hash of whose labels about what there are. Of `labelers`
    only the number is known.
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
        top = self.terms.asked is not None and not self.terms.asked.pairs
        return (of_choices if top else of_pairs)(len(self.items), self.pairs, self.features)


def facts_of(table: Table, terms: Terms, nodes: int) -> Facts:
    """What a server has to know of a file that is split over nodes. Raises StudyError where nothing is to be asked."""
    n, ties = len(table.pairs), terms.ties_public or terms.trust is Trust.CLEAR
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
        whose=whose(table),
        items=table.items,
        pairs=table.pairs,
        rows=rows,
        groups=labeler_groups(table) if terms.unit is Unit.LABELER else None,
        # The value of a top choice is a place: one that is 2 is no tie, and nobody's business.
        ties=table.values.reveal() == TIE if ties and table.problem.kind == "pairwise" else None,
        features=table.features,
        feature_names=table.feature_names,
    )
