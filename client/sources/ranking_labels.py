"""What is asked of a ranking: its top choice, or some of its comparisons, chosen before anyone looks at the ranking.

A whole ranking is never randomised as one of K! values: at the same level that says far less (docs/PRIVACY.md).
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from client.labels import Labels
from client.sources.choice_table import ChoiceTable
from client.sources.identities import Identities
from client.sources.item_features import ItemFeatures
from client.sources.ranking_columns import BEST_WORST, RankingColumns, RankingWanted, choose_ranking
from client.sources.rankings import Ranking, read_rankings
from client.sources.reading import Records, SourceError, read_records
from client.sources.table import Table
from protocol.problem import MOST_CHOICES
from protocol.terms import TIE

TOP, PAIR, PAIRS = "top", "pair", "pairs"
DOMAIN = b"halftruth ranking v1\n"
MOST_PAIRS = 1000


@dataclass(frozen=True)
class RankingAs:
    """What a ranking answers: its top choice where `pairs` is 0, else so many comparisons of two of its items."""

    pairs: int = 0

    @classmethod
    def parse(cls, text: str) -> "RankingAs":
        """Read "top", "pair" or "pairs:M". Raises SourceError for something else.

        >>> RankingAs.parse("pairs:3").pairs, str(RankingAs.parse("pair"))
        (3, 'pair')
        """
        if text in (TOP, PAIR):
            return cls(int(text == PAIR))
        head, _, count = text.partition(":")
        if head != PAIRS or not (count.isascii() and count.isdecimal() and 1 <= int(count[:5]) <= MOST_PAIRS):
            known = f"{TOP}, {PAIR} or {PAIRS}:M with M in 1..{MOST_PAIRS}"
            raise SourceError(f"--ranking-as: expected {known}, got {text!r}")
        return cls(int(count))

    def __str__(self) -> str:
        return TOP if not self.pairs else PAIR if self.pairs == 1 else f"{PAIRS}:{self.pairs}"


def read_ranking_table(
    path: Path,
    public: bool,
    wanted: RankingWanted,
    asked: RankingAs,
    features: ItemFeatures | None = None,
    records: Records | None = None,
    items: tuple[str, ...] | None = None,
) -> Table:
    """Read and validate a file of rankings as a table of top choices, or of comparisons.

    `items` numbers the items, in a federation as all its nodes do; else they are numbered by name.
    Raises SourceError for the first line that does not fit.
    """
    records = read_records(path) if records is None else records
    columns = choose_ranking(path, records.names, wanted)
    rankings, dropped = read_rankings(records, columns)
    if asked.pairs:
        kind, answers = Table, list(_comparisons(rankings, asked.pairs))
    else:
        kind, answers = ChoiceTable, list(_tops(rankings, records, columns.form))
    rows = _rows(answers, records)
    names = _names(rankings, records, items)
    return _table(kind, (path, public, columns, dropped), answers, rows, names, features)


def rows_of(ranking: Ranking, asked: RankingAs) -> int:
    """How many rows a ranking has: one for its top choice, else one for each comparison that is asked."""
    size = len(ranking.items)
    return min(asked.pairs, size * (size - 1) // 2) if asked.pairs else 1


def ranking_identity(ranking: Ranking) -> bytes:
    """32 bytes that name a ranking, whatever its place in a file and its ranks.

    SHA-256 over a domain string and the length-prefixed labeler, question and items by name.
    """
    parts = [part.encode() for part in (ranking.owner, ranking.question, *ranking.items)]
    return hashlib.sha256(DOMAIN + b"".join([len(part).to_bytes(8, "little") + part for part in parts])).digest()


def public_comparisons(identity: bytes, size: int, count: int) -> list[tuple[int, int]]:
    """Which `count` pairs of places j < k below `size` a ranking is compared in; all of them where there are fewer.

    Those whose hashes with the ranking's identity come first: like one public coin for each ranking, they depend on
    names alone, never on ranks; the first m of M + 1 are the first m of M. In rising order.

    >>> public_comparisons(b"r", 3, 5)
    [(0, 1), (0, 2), (1, 2)]
    """
    pairs = list(combinations(range(size), 2))
    if count < len(pairs):
        pairs.sort(key=lambda pair: hashlib.sha256(DOMAIN + identity + f" {pair[0]} {pair[1]}".encode()).digest())
    return sorted(pairs[:count])


@dataclass(frozen=True)
class _Answer:
    """One row: whose, about which items, under which name, and its value, None where it is missing."""

    ranking: Ranking
    items: tuple[str, ...]
    identity: bytes
    value: int | None


def _tops(rankings: Iterable[Ranking], records: Records, form: str) -> Iterable[_Answer]:
    for ranking in rankings:
        if len(ranking.items) > MOST_CHOICES:
            where = records.where(ranking.place)
            raise SourceError(
                f"{where}: expected at most {MOST_CHOICES} items where the top one is asked, got {len(ranking.items)}: "
                f"--ranking-as {PAIR}"
            )
        if ranking.top is None and not ranking.missing and form != BEST_WORST:
            raise SourceError(
                f"{records.where(ranking.place)}: expected one best item of each ranking, got several: "
                f"--ranking-as {PAIR}, which takes ties"
            )
        yield _Answer(ranking, ranking.items, ranking_identity(ranking), ranking.top)


def _comparisons(rankings: Iterable[Ranking], count: int) -> Iterable[_Answer]:
    for ranking in rankings:
        identity = ranking_identity(ranking)
        for j, k in public_comparisons(identity, len(ranking.items), count):
            name = hashlib.sha256(DOMAIN + identity + f" pair {j} {k}".encode()).digest()
            first, second = ranking.ranks[j], ranking.ranks[k]
            value = TIE if first == second else int(second < first)
            items = (ranking.items[j], ranking.items[k])
            yield _Answer(ranking, items, name, None if ranking.missing else value)


def _rows(answers: Sequence[_Answer], records: Records) -> NDArray[np.int64]:
    """Global row numbers: in order, or from the one that its file gives to each ranking. Raises SourceError."""
    if answers[0].ranking.row < 0:
        return np.arange(len(answers))
    rows: list[int] = []
    last: Ranking | None = None
    for answer in answers:
        starts = answer.ranking is not last
        row, last = answer.ranking.row if starts else rows[-1] + 1, answer.ranking
        if rows and row <= rows[-1]:
            where = records.where(answer.ranking.place)
            raise SourceError(f"{where}: expected a row number beyond the rows of the ranking before, got {row}")
        rows.append(row)
    return np.array(rows, dtype=np.int64)


def _names(rankings: Sequence[Ranking], records: Records, items: tuple[str, ...] | None) -> tuple[str, ...]:
    used = {name for ranking in rankings for name in ranking.items}
    if items is None:
        return tuple(sorted(used))
    if unknown := used - set(items):
        place, name = next((ranking.place, name) for ranking in rankings for name in ranking.items if name in unknown)
        raise SourceError(f"{records.where(place)}: expected items of the public list, got {name!r}")
    return items


def _table(
    kind: type[Table],
    file: tuple[Path, bool, RankingColumns, int],
    answers: list[_Answer],
    rows: NDArray[np.int64],
    names: tuple[str, ...],
    features: ItemFeatures | None,
) -> Table:
    path, public, columns, dropped = file
    number = {name: index for index, name in enumerate(names)}
    sets = np.full((len(answers), max(len(answer.items) for answer in answers)), -1, dtype=np.int32)
    for row, answer in enumerate(answers):
        sets[row, : len(answer.items)] = [number[name] for name in answer.items]
    labelers = tuple(sorted({answer.ranking.owner for answer in answers}))
    person = {name: index for index, name in enumerate(labelers)}
    identities = Identities.of(answer.identity for answer in answers)
    table = kind(
        path=path,
        public=public,
        columns=columns,
        items=names,
        rows_held=rows,
        pairs=sets,
        dropped=dropped,
        unnamed=0,
        features=None if features is None else features.of(names),
        feature_names=() if features is None else features.columns,
        labelers=labelers,
        questions=tuple(answer.ranking.question for answer in answers),
        owners=np.array([person[answer.ranking.owner] for answer in answers], dtype=np.int64),
        values=Labels(np.array([answer.value or 0 for answer in answers], dtype=np.uint8)),
        missing=Labels(np.array([answer.value is None for answer in answers], dtype=np.uint8)),
        identities=identities,
        first=identities.first(),
    )
    try:
        assert table.problem.design is not None
    except ValueError as error:
        raise SourceError(f"{path if features is None else features.path}: {error}") from None
    return table
