"""Comparisons of a holder's file, as a source of labels.

Public are the items, which pair each row compares and in which order the rows stand; nothing of it may follow from an
answer. Pairs are therefore in the order of their items' names, however the file writes them: whoever always writes the
winner first would otherwise publish the answers.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from client.labels import Labels
from client.sources import Facts, ProblemUnknown
from client.sources.columns import Columns
from client.sources.identities import Identities
from client.sources.outcomes import TIE, homonyms
from client.sources.ranking_columns import RankingColumns
from protocol.messages import Runs, Task
from protocol.problem import Problem, of_pairs
from protocol.trust import Trust

DOMAIN = b"halftruth label v1\n"


@dataclass(frozen=True)
class PrivateCounts:
    """What depends on labels, for the holder's own terminal and nothing else: rows with a tie, rows without a winner,
    and labels whose rows contradict each other.
    """

    ties: int
    missing: int
    contradictions: int


@dataclass(frozen=True, eq=False)
class Table:
    """Comparisons of one file, in its order. `rows` are their global numbers, increasing: 0, 1, ... or as a split says.

    Public: `items`, `pairs`, int32 (rows, 2), whose first item comes first by name (the answer's, where it is one to a
    prompt) whatever its number, and `features` of items, float64 (items, p), where they are described by some. Kept
    here: labelers, questions, and `values`: 1 iff the second of the pair wins, 2 for a tie. A row whose winner is
    `missing` has the value 0: under a claim it is a label as others are, since which ones are missing would tell
    something. Rows of one (labeler, unordered pair,
    question) are one label: under every claim the lowest of them stands for it and the others are not sent. `public`
    says that the user declared the labels to be no secret. `dropped` counts lines that compare an item with itself,
    `unnamed` those left out because an item is missing. `answers`: of items that are answers to prompts, the (answer,
    prompt) of each of this file.
    """

    path: Path
    public: bool
    columns: Columns | RankingColumns
    items: tuple[str, ...]
    rows_held: NDArray[np.int64]
    pairs: NDArray[np.int32]
    dropped: int
    unnamed: int
    features: NDArray[np.float64] | None
    feature_names: tuple[str, ...]
    labelers: tuple[str, ...] = field(repr=False)
    questions: tuple[str, ...] = field(repr=False)
    owners: NDArray[np.int64] = field(repr=False)
    values: Labels = field(repr=False)
    missing: Labels = field(repr=False)
    identities: Identities = field(repr=False)
    first: NDArray[np.bool_] = field(repr=False)
    answers: Mapping[str, tuple[str, str]] = field(default_factory=dict, repr=False)
    synthetic = False

    @property
    def label_count(self) -> int:
        """How many different labels there are: rows of one labeler about one pair and question count once."""
        return int(self.first.sum())

    @property
    def homonyms(self) -> list[str]:
        """Items whose names could be taken for answers, such as "a" or "tie", and are not."""
        columns = self.columns
        if not isinstance(columns, Columns) or columns.sides is None or columns.winner is None:
            return []
        return homonyms(self.items, columns.coding, columns.sides)

    @cached_property
    def problem(self) -> Problem:
        """What a server is told of the rows held: which items each compares, or x = phi(item_b) - phi(item_a).

        Raises ValueError for features that differ in nothing, or beyond all scales.
        """
        return of_pairs(len(self.items), self.pairs, self.features)

    def private_counts(self) -> PrivateCounts:
        """Counts that depend on labels: for the holder's terminal only."""
        values, missing = self.values.reveal(), self.missing.reveal() == 1
        answers: dict[bytes, set[int]] = {}
        for row in np.flatnonzero(~missing).tolist():
            answers.setdefault(self.identities[row], set()).add(int(values[row]))
        contradictions = sum(len(found) > 1 for found in answers.values())
        return PrivateCounts(int((values == TIE).sum()), int(missing.sum()), contradictions)

    def check(self, task: Task) -> None:
        """The task's design must hold exactly this file's pairs, by name, for all rows that may be sent."""
        asked, own = task.problem, self.problem
        if (asked.kind, asked.features, asked.dimension) != (own.kind, own.features, own.dimension):
            raise ProblemUnknown(f"expected pairs of {own.dimension} dimensions with features by {own.features}")
        assert asked.design is not None and own.design is not None
        held = self.rows_held[self.rows_held < task.n]
        if task.n > len(asked.design) or not np.array_equal(asked.design[held], own.design[: len(held)]):
            raise ProblemUnknown("expected exactly the pairs of this file")

    def rows(self, task: Task) -> Runs:
        """Rows held below n: in clear all that have a winner or a tie, under a claim the first of each label."""
        sent = self.missing.reveal() == 0 if task.trust is Trust.CLEAR else self.first
        return Runs.of(self.rows_held[sent & (self.rows_held < task.n)].tolist())

    def facts(self, rows: NDArray[np.int64]) -> Facts | None:
        """Whose labels these rows are."""
        places = self._places(rows)
        return Facts(self.identities.at(places), self.owners[places], self.labelers)

    def levels(self, task: Task, rows: NDArray[np.int64]) -> None:
        """Nothing is drawn here: the node's policy says which levels its labelers ask for."""

    def labels(self, task: Task, repetition: int, rows: NDArray[np.int64]) -> Labels:
        """Labels of these rows."""
        return Labels(self.values.reveal()[self._places(rows)])

    def _places(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.searchsorted(self.rows_held, rows)


def label_identity(labeler: str, one: str, other: str, question: str = "") -> bytes:
    """32 bytes that name a label, whatever its row, its orientation and its value.

    SHA-256 over a domain string and the length-prefixed labeler, unordered pair and question.

    >>> label_identity("r1", "x", "y") == label_identity("r1", "y", "x") != label_identity("r1x", "", "y")
    True
    """
    if other < one:
        one, other = other, one
    parts = [part.encode() for part in (labeler, one, other, question)]
    return hashlib.sha256(DOMAIN + b"".join([len(part).to_bytes(8, "little") + part for part in parts])).digest()
