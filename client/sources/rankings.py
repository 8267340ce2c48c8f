"""Rankings of a holder's file: which items stood in each, and their ranks. The whole file is validated when it is read.

Public are the items of a ranking, in the order of their names; ranks stay here.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from client.sources.ranking_columns import ABSENT, LONG, WIDE, RankingColumns
from client.sources.reading import Records, SourceError
from protocol.study import MOST

BELOW = 1 << 31  # the rank of what is not ranked
Ranks = tuple[int, ...]


@dataclass(frozen=True)
class Ranking:
    """One labeler's order of some items: `items` by name, and the rank of each, 1 the best, equal ones tied.

    A rank is `BELOW` where there is none; all of them are where the answer is missing. `place` is the record that an
    error names, `row` the global number of its first row, -1 where the file numbers none.
    """

    owner: str = field(repr=False)
    question: str = field(repr=False)
    items: tuple[str, ...]
    ranks: Ranks = field(repr=False)
    place: int
    row: int = -1

    @property
    def missing(self) -> bool:
        """Whether nothing is ranked."""
        return all(rank == BELOW for rank in self.ranks)

    @property
    def top(self) -> int | None:
        """The place in `items` of the one best item; None where several are, or the answer is missing."""
        best = min(self.ranks)
        return self.ranks.index(best) if best != BELOW and self.ranks.count(best) == 1 else None


def read_rankings(records: Records, columns: RankingColumns) -> tuple[tuple[Ranking, ...], int]:
    """All rankings of at least two items, and how many of fewer are left out. They stand in an order that no
    answer decides; ids are read as in comparisons.

    Lines of wide files and of best and worst keep their order. Rankings of long files stand in the order of their rows,
    or of hashes of (labeler, question): the order of their lines may follow from ranks.
    Raises SourceError for the first line that does not fit.
    """
    form = columns.form
    records.load(columns.named())
    read = _long if form == LONG else _wide if form == WIDE else _best_worst
    every = tuple(read(records, columns))
    if form == LONG and columns.wanted.unranked is None:
        _require_one_set(records, every)
    found = tuple(ranking for ranking in every if len(ranking.items) > 1)
    if not found:
        raise SourceError(f"{records.path}: expected at least one ranking of two items, got none")
    return tuple(sorted(found, key=_order)) if form == LONG else found, len(every) - len(found)


def _long(records: Records, columns: RankingColumns) -> Iterator[Ranking]:
    assert columns.rank is not None
    owners, questions = _who(records, columns), _questions(records, columns)
    if columns.labeler is None and not columns.questions:
        raise SourceError(f"{records.path}: expected columns that tell rankings apart: --labeler, or --question")
    groups: dict[tuple[str, str, int], list[int]] = {}
    for place, key in enumerate(zip(owners or [""] * len(records), questions, _rows(records, columns), strict=True)):
        groups.setdefault(key, []).append(place)
    names, ranks = _filled(records, columns.items[0]), _ranks(records, columns, columns.rank, BELOW - 1)
    for (owner, question, row), places in groups.items():
        seen: dict[str, int] = {}
        for place in places:
            if names[place] in seen:
                where = f"{records.where(place)}, field {columns.items[0]}"
                raise SourceError(
                    f"{where}: expected different items in a ranking, got {names[place]!r} again. If a labeler ranks "
                    "more than once, name the columns that tell rankings apart: --question"
                )
            seen[names[place]] = ranks[place]
        yield _ranking(columns, (owner if owners else f"ranking {question}", question), seen, places[0], row)


def _require_one_set(records: Records, rankings: Sequence[Ranking]) -> None:
    """Where nobody said what items without a line are, all rankings must have lines for the same items.

    Else which items a ranking holds, and so what is public of it, could be which ones its labeler cared to rank.
    Raises SourceError.
    """
    for ranking in rankings:
        if ranking.items != rankings[0].items:
            raise SourceError(
                f"{records.where(ranking.place)}: expected a line for the same items in every ranking, got other items "
                "here: an item without a line may be one that was offered and not ranked, which is an answer. Where "
                "lines name all that was offered, say so: --unranked absent; else add the missing ones with an empty "
                "rank, and say --unranked last"
            )


def _wide(records: Records, columns: RankingColumns) -> Iterator[Ranking]:
    owners, questions = _who(records, columns), _questions(records, columns)
    cells = [_ranks(records, columns, name, len(columns.items)) for name in columns.items]
    for place, row in enumerate(_rows(records, columns)):
        ranks = {name: cell[place] for name, cell in zip(columns.items, cells, strict=True)}
        who = (owners[place] if owners else f"row {place}", questions[place])
        yield _ranking(columns, who, ranks, place, row)


def _best_worst(records: Records, columns: RankingColumns) -> Iterator[Ranking]:
    """The best has rank 1, the worst 3, the others 2. An empty answer is missing, an empty item was not offered."""
    assert columns.best is not None
    owners, questions = _who(records, columns), _questions(records, columns)
    cells = [records.column(name) for name in columns.items]
    bests = records.column(columns.best)
    worsts: Sequence[str | None] = [None] * len(records) if columns.worst is None else records.column(columns.worst)
    known = {item for cell in cells for item in cell if item is not None}
    for place, row in enumerate(_rows(records, columns)):
        items = [cell[place] for cell in cells]
        names = [item for item in items if item is not None]
        if len(set(names)) != len(names):
            raise SourceError(f"{records.where(place)}: expected different items in a ranking, got one twice")
        best = _meant(records, place, columns.best, bests[place], columns, items, known)
        worst = _meant(records, place, columns.worst or "", worsts[place], columns, items, known)
        if best is not None and best == worst:
            raise SourceError(f"{records.where(place)}: expected another worst item than the best, got {best!r} twice")
        answered = best is not None or worst is not None
        ranks = {name: 1 if name == best else 3 if name == worst else 2 if answered else BELOW for name in names}
        yield _in_order((owners[place] if owners else f"row {place}", questions[place]), ranks, place, row)


def _meant(
    records: Records,
    place: int,
    field_name: str,
    text: str | None,
    columns: RankingColumns,
    items: Sequence[str | None],
    known: set[str],
) -> str | None:
    """The item that an answer names: by its name, its column, or its letter or number in the order of the columns.

    A text that is the name of any item means that item only. Raises SourceError for a text without a meaning.
    """
    if text is None:
        return None
    letters = {chr(ord("a") + index): name for index, name in enumerate(items)}
    words = letters | {str(index + 1): name for index, name in enumerate(items)}
    words |= {column.lower(): name for column, name in zip(columns.items, items, strict=True)}
    found = (text if text in items else None) if text in known else words.get(text.lower())
    if found is None:
        choices = ", ".join(repr(name) for name in items if name is not None)
        raise SourceError(
            f"{records.where(place)}, field {field_name}: expected one of {choices}, a letter A, B, ... or a number "
            f"1, 2, ... of their columns, got {text!r}"
        )
    return found


def _ranking(columns: RankingColumns, who: tuple[str, str], ranks: dict[str, int], place: int, row: int) -> Ranking:
    if columns.wanted.unranked == ABSENT:
        ranks = {name: rank for name, rank in ranks.items() if rank != BELOW}
    return _in_order(who, ranks, place, row)


def _in_order(who: tuple[str, str], ranks: dict[str, int], place: int, row: int) -> Ranking:
    items = tuple(sorted(ranks))
    return Ranking(*who, items, tuple(ranks[name] for name in items), place, row)


def _ranks(records: Records, columns: RankingColumns, name: str, most: int) -> list[int]:
    """A column of ranks. Raises SourceError for a text that is none, and for none where nobody said what that means."""
    found = []
    for place, text in enumerate(records.column(name)):
        where = f"{records.where(place)}, field {name}"
        if text is None:
            if columns.wanted.unranked is None:
                raise SourceError(
                    f"{where}: expected a rank, got an empty field: say what it means, --unranked absent (the item was "
                    "not offered, which is public) or --unranked last (it was, and stands below all that are ranked)"
                )
            found.append(BELOW)
            continue
        if not (text.isascii() and text.isdecimal() and len(text) <= 10 and 1 <= int(text) <= most):
            raise SourceError(f"{where}: expected a rank, a whole number from 1 to {most}, got {text!r}")
        found.append(int(text))
    return found


def _who(records: Records, columns: RankingColumns) -> list[str]:
    """Who ranked; empty where every ranking is a labeler of its own, named by its place, or its question if long."""
    return [] if columns.labeler is None else _filled(records, columns.labeler)


def _questions(records: Records, columns: RankingColumns) -> list[str]:
    texts = [[text or "" for text in records.column(name)] for name in sorted(columns.questions)]
    if not texts:
        return [""] * len(records)
    if len(texts) == 1:
        return texts[0]
    return [json.dumps(parts, ensure_ascii=False) for parts in zip(*texts, strict=True)]


def _rows(records: Records, columns: RankingColumns) -> list[int]:
    """The global row number that each line gives for its ranking; -1 where no column does."""
    name = columns.wanted.row
    if name is None:
        return [-1] * len(records)
    found = []
    for place, text in enumerate(_filled(records, name)):
        if not (text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) <= MOST):
            raise SourceError(f"{records.where(place)}, field {name}: expected a row number, got {text!r}")
        found.append(int(text))
    return found


def _filled(records: Records, name: str) -> list[str]:
    found = []
    for place, text in enumerate(records.column(name)):
        if text is None:
            raise SourceError(f"{records.where(place)}, field {name}: expected a name, got an empty field")
        found.append(text)
    return found


def _order(ranking: Ranking) -> tuple[int, bytes]:
    return ranking.row, hashlib.sha256(json.dumps([ranking.owner, ranking.question]).encode()).digest()
