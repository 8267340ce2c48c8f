"""Answers of a file of comparisons as it writes them: ties, gaps, repetitions, and labelers who always say the same."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from client.sources.outcomes import FIRST, MISSING, SECOND, TIE, UNKNOWN
from client.sources.reading import Records
from studies.data.findings import Finding
from studies.data.look_names import found_at

SAYS = ("the first item", "the second item", "a tie")
LEAST_OF_ONE = 4  # rows of a labeler whose answers are all the same
LEAST_SORTED = 8  # rows of a file that is sorted by its answers
SURE = 6.0  # standard errors of a share: chance goes so far in 2 of 10^9 files
Key = tuple[str, str, str, str]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows about two different items in the file's own order and orientation: the place of each row's record, its
    items, its outcome (FIRST, ..., UNKNOWN), its labeler and its question. `sided` says that the sides have names.
    """

    places: Sequence[int]
    first: Sequence[str]
    second: Sequence[str]
    values: NDArray[np.uint8]
    owners: Sequence[str]
    questions: Sequence[str]
    sided: bool


def look_at_answers(records: Records, rows: Rows, texts: Sequence[str | None]) -> Iterator[Finding]:
    """Findings about outcomes; `texts` are those of the winner's column, by record."""
    places = np.asarray(rows.places, dtype=np.int64)
    first: dict[str, int] = {}
    unknown = places[rows.values == UNKNOWN].tolist()
    for place in unknown:
        first.setdefault(texts[place] or "", place)
    if unknown:
        counts = Counter(texts[place] or "" for place in unknown)
        shown = [f"{text!r} ({counts[text]} times)" for text in first]
        yield found_at("unknown-outcome", records, list(first.values()), shown, len(unknown))
    for code, value in (("ties", TIE), ("no-winner", MISSING)):
        if len(found := places[rows.values == value]):
            yield found_at(code, records, found.tolist(), [])
    yield from _look_at_sides(records, rows)
    answers = rows.values[rows.values < UNKNOWN]
    changes = int(np.count_nonzero(np.diff(answers)))
    if len(answers) >= LEAST_SORTED and rows.sided and 0 < changes < len(np.unique(answers)):
        yield Finding("sorted-by-answer", len(answers))


def _look_at_sides(records: Records, rows: Rows) -> Iterator[Finding]:
    """Sides that win beyond chance, and labelers who always give one answer."""
    if not rows.sided:
        return
    won, lost = (int((rows.values == value).sum()) for value in (FIRST, SECOND))
    if (decided := won + lost) and abs(won - lost) > SURE * math.sqrt(decided):
        share = max(won, lost) / decided
        yield Finding("position", decided, (), (f"{SAYS[int(lost > won)]} wins {share:.1%} of {decided}",))
    answers: dict[str, list[int]] = {}
    for index, owner in enumerate(rows.owners):
        answers.setdefault(owner, []).append(index)
    alike = [
        (owner, found)
        for owner, found in answers.items()
        if len(found) >= LEAST_OF_ONE and len(said := set(rows.values[found].tolist())) == 1 and said < {0, 1, 2}
    ]
    if alike:
        shown = [f"{owner}: {SAYS[int(rows.values[found[0]])]}, {len(found)} times" for owner, found in alike]
        yield found_at("one-answer", records, [rows.places[found[0]] for _, found in alike], shown)


def look_at_repetitions(records: Records, rows: Rows) -> Iterator[Finding]:
    """Rows that are one label: in the same order, swapped, and those that contradict the first."""
    first: dict[Key, int] = {}
    same: list[int] = []
    swapped: list[int] = []
    against: dict[Key, int] = {}
    for index, (a, b) in enumerate(zip(rows.first, rows.second, strict=True)):
        key = (rows.owners[index], min(a, b), max(a, b), rows.questions[index])
        before = first.setdefault(key, index)
        if before == index:
            continue
        (same if rows.first[before] == a else swapped).append(rows.places[index])
        if UNKNOWN > _by_name(rows, index) != _by_name(rows, before) < UNKNOWN:
            against.setdefault(key, rows.places[index])
    if same:
        yield found_at("repeated", records, same, [])
    if swapped:
        yield found_at("swapped", records, swapped, [])
    if against:
        shown = [f"{owner}: {a} or {b}" for owner, a, b, _ in against]
        yield found_at("contradictions", records, list(against.values()), shown)


def who_beat_whom(rows: Rows) -> tuple[list[str], NDArray[np.int32], NDArray[np.int32]]:
    """Items by name; the pair of each row, (rows, 2); and winner and loser of each win, (wins, 2), a tie being both."""
    names = sorted({*rows.first, *rows.second})
    number = {name: index for index, name in enumerate(names)}
    sides = [np.fromiter(map(number.__getitem__, side), np.int32, len(side)) for side in (rows.first, rows.second)]
    pairs = np.stack(sides, axis=1)
    firsts, seconds = (np.isin(rows.values, (value, TIE)) for value in (FIRST, SECOND))
    return names, pairs, np.concatenate([pairs[firsts], pairs[seconds][:, ::-1]])


def _by_name(rows: Rows, index: int) -> int:
    """An outcome in the order of the items' names."""
    value = int(rows.values[index])
    return value ^ 1 if value < TIE and rows.second[index] < rows.first[index] else value
