"""The records of a file as comparisons: two different items, who was asked what, and which of them won.

Which records are left out follows from their items alone, never from an answer.
"""

import hashlib
import json
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from client.sources.column_names import TEXTS, plain
from client.sources.columns import DROP, Columns
from client.sources.numbers import how_to_write
from client.sources.outcomes import FIRST, MISSING, SECOND, TIE, in_order, outcomes
from client.sources.pair_cells import parted_cells
from client.sources.reading import Records, SourceError, Texts, name_of
from protocol.study import MOST

DOMAIN = b"halftruth wins v1\n"


@dataclass(frozen=True, eq=False)
class Comparisons:
    """Usable comparisons: the places of their records, two different items each in the order of names, the outcome.

    `games` numbers those of one record, where its wins are counted. `same` counts records that compare an item with
    itself, `unnamed` those that lack an item.
    """

    places: Sequence[int]
    first: Sequence[str]
    second: Sequence[str]
    outcome: NDArray[np.uint8]
    games: Sequence[int] | None
    same: int
    unnamed: int


def comparisons(records: Records, columns: Columns) -> Comparisons:
    """All comparisons of a file. Raises SourceError for the first record that does not fit."""
    sides = pairs(records, columns)
    unnamed = [place for place, (a, b) in enumerate(zip(*sides, strict=True)) if a is None or b is None]
    if unnamed and columns.unnamed != DROP:
        fields = columns.items if len(columns.items) > 1 else columns.items * 2
        field = next(name for name, side in zip(fields, sides, strict=True) if side[unnamed[0]] is None)
        raise SourceError(
            f"{no_name(records, unnamed[0], field)}: fill it in, or leave such rows out: --unnamed {DROP}"
        )
    places, first, second = different(*sides)
    left = len(records) - len(places) - len(unnamed), len(unnamed)
    if columns.wins:
        return _counted(records, columns, places, (first, second), left)
    if columns.sides is None or columns.winner is None:
        found = np.full(len(places), SECOND if columns.sides is None else MISSING, dtype=np.uint8)
    else:
        found = outcomes(records, columns.winner, columns.coding, places, columns.sides, (first, second))
    return Comparisons(places, *in_order(first, second, found), None, *left)


def pairs(records: Records, columns: Columns) -> tuple[Texts, Texts]:
    """The first and the second item of each record as the file has them, or the loser and the winner; None: missing.

    All columns are read here, in one pass. Raises SourceError.
    """
    texts = [name for name in columns.items if plain(name.partition(".")[0]) in TEXTS]
    records.load(columns.named(), texts=texts)
    if columns.both is None:
        one, other = (records.column(name, text=name in texts) for name in columns.items)
        return one, other
    assert columns.between is not None, "read by `with_separator`"
    cells = parted_cells(records, columns.both, columns.between)
    return [cell[0] for cell in cells], [cell[1] for cell in cells]


def whose(records: Records, columns: Columns, found: Comparisons) -> tuple[list[str], list[str]]:
    """Who answered each comparison, and what was asked.

    Without a column every record, or counted win, is a labeler of its own, named by its place.
    """
    questions = _questions(records, columns)
    asked = [questions[place] for place in found.places] if questions else [""] * len(found.places)
    if columns.labeler is None:
        games = [""] * len(found.places) if found.games is None else [f".{game}" for game in found.games]
        return [f"row {place}{game}" for place, game in zip(found.places, games, strict=True)], asked
    names = filled(records, columns.labeler)
    owners = [names[place] for place in found.places]
    if found.games is not None:  # a labeler's wins are labels of their own: numbered, however lines share them
        seen: Counter[tuple[str, ...]] = Counter()
        for index, key in enumerate(zip(owners, found.first, found.second, asked, strict=True)):
            seen[key] += 1
            asked[index] = name_of(json.dumps([asked[index], f"game {seen[key]}"], ensure_ascii=False))
    return owners, asked


def filled(records: Records, name: str) -> list[str]:
    """A column of names, none of them empty. Raises SourceError."""
    values = records.column(name)
    named = [value for value in values if value is not None]
    if len(named) < len(values):
        raise SourceError(no_name(records, values.index(None), name))
    return named


def no_name(records: Records, place: int, name: str) -> str:
    """That a record has no name in a column of names."""
    return f"{records.where(place)}, field {name}: expected a name, got an empty field"


def different(one: Texts, other: Texts) -> tuple["array[int]", list[str], list[str]]:
    """Places of records about two different items, and these items."""
    places, first, second = array("q"), list[str](), list[str]()
    for place, (a, b) in enumerate(zip(one, other, strict=True)):
        if a is not None and b is not None and a != b:
            places.append(place)
            first.append(a)
            second.append(b)
    return places, first, second


def _questions(records: Records, columns: Columns) -> list[str]:
    """What was asked, by record: the text of one column, a JSON list of several; empty where there is no column.

    Several stand in the order of their names: in that of the file or the flag, another order would name a label anew.
    """
    texts = [[text or "" for text in records.column(name)] for name in sorted(columns.questions)]
    if len(texts) < 2:
        return texts[0] if texts else []
    return [json.dumps(parts, ensure_ascii=False) for parts in zip(*texts, strict=True)]  # as ledgers know them


def _counted(
    records: Records,
    columns: Columns,
    places: Sequence[int],
    sides: tuple[list[str], list[str]],
    left: tuple[int, int],
) -> Comparisons:
    """Each counted win as a comparison of its own; how many there are of a pair is public, which ones are wins is not.

    A record's outcomes stand in an order that depends on its place alone: in that of the answers, the first rows would
    be one item's wins. Replacing one of two outcomes by the other changes one row, whatever the counts; of three it
    could change two, so ties are counted only where each record is one comparison.
    """
    at: list[int] = []
    games: list[int] = []
    values: list[int] = []
    for index, counts in enumerate(_counts(records, columns, places)):
        order = sorted(range(sum(counts)), key=lambda game: _hash(places[index], game))
        known = [FIRST] * counts[0] + [SECOND] * counts[1] + [TIE] * sum(counts[2:])
        at += [index] * len(order)
        games += range(1, len(order) + 1)
        values += [known[place] for place in order]
    first, second = ([side[index] for index in at] for side in sides)
    ordered = in_order(first, second, np.array(values, dtype=np.uint8))
    return Comparisons([places[index] for index in at], *ordered, games, *left)


def _hash(place: int, game: int) -> bytes:
    return hashlib.sha256(DOMAIN + f"{place} {game}".encode()).digest()


def _counts(records: Records, columns: Columns, places: Sequence[int]) -> Iterator[list[int]]:
    """How often each outcome is counted in each record. Raises SourceError."""
    cells = [records.column(name) for name in columns.wins]
    total = 0
    for place in places:
        counts = []
        for name, cell in zip(columns.wins, cells, strict=True):
            text = cell[place] or ""
            if not (text.isascii() and text.isdecimal() and len(text) <= 10):
                where = f"{records.where(place)}, field {name}"
                got = repr(text) if text else "an empty field"
                hint = how_to_write(text)
                raise SourceError(f"{where}: expected a count, a whole number of wins{hint and f' {hint}'}, got {got}")
            counts.append(int(text))
        total += sum(counts)
        if total > MOST:
            raise SourceError(f"{records.where(place)}: expected at most {MOST} wins in all, got more")
        if not sum(counts):
            raise SourceError(
                f"{records.where(place)}: expected at least one win, got none: leave out what was not compared"
            )
        if len(counts) > 2 and sum(counts) > 1:
            raise SourceError(
                f"{records.where(place)}: expected one comparison a line where ties are counted, got {sum(counts)}: "
                "write a line for each"
            )
        yield counts
