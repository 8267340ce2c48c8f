"""A holder's CSV file of comparisons: columns labeler, item_a, item_b, winner; other columns are ignored.

The whole file is validated when it is read, before the first answer. Errors name file, line, field, expected and got;
they are for the holder's own terminal.
"""

import csv
import hashlib
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from client.labels import Labels
from client.sources import Facts, ProblemUnknown
from protocol.messages import Runs, Task
from protocol.trust import Trust

LABELER = ("labeler", "labeler_id")
TIES = frozenset({"", "tie", "draw", "same", "equal", "both", "neither"})
DOMAIN = b"halftruth label v1\n"


class SourceError(ValueError):
    """A file that does not hold one usable comparison a line."""


@dataclass(frozen=True, eq=False)
class Table:
    """Comparisons of one file, in line order; the global row id is the number of the line's record, from 0.

    Public: `items` (sorted by code point) and `pairs` (item_a, item_b), int32 (rows, 2). Kept here: labelers, and
    labels y = 1 iff item_b wins. Rows of one (labeler, unordered pair) are one label: under every claim the lowest of
    them stands for it and the others are not sent. `public` says that the user declared the labels to be no secret.
    """

    path: Path
    public: bool
    items: tuple[str, ...]
    pairs: NDArray[np.int32]
    labelers: tuple[str, ...] = field(repr=False)
    owners: NDArray[np.int64] = field(repr=False)
    values: Labels = field(repr=False)
    identities: tuple[bytes, ...] = field(repr=False)
    first: NDArray[np.bool_] = field(repr=False)
    synthetic = False

    @property
    def label_count(self) -> int:
        """How many different labels there are: rows of one labeler about one pair count once."""
        return int(self.first.sum())

    def check(self, task: Task) -> None:
        """The task's design must hold exactly this file's pairs, in its orientation, for all rows that may be sent."""
        problem, rows = task.problem, min(task.n, len(self.pairs))
        if problem.features != "items" or problem.design is None or problem.dimension != len(self.items):
            raise ProblemUnknown(f"expected a problem over {len(self.items)} items")
        if task.n > len(problem.design) or not np.array_equal(problem.design[:rows], self.pairs[:rows]):
            raise ProblemUnknown("expected exactly the pairs of this file")

    def rows(self, task: Task) -> Runs:
        """All rows below n in clear; under a claim the first row of each label."""
        if task.trust is Trust.CLEAR:
            return Runs.of(range(min(task.n, len(self.pairs))))
        return Runs.of(np.flatnonzero(self.first[: task.n]).tolist())

    def facts(self, rows: NDArray[np.int64]) -> Facts | None:
        """Whose labels these rows are."""
        owners, pairs = self.owners[rows], self.pairs[rows]
        identities = [self.identities[row] for row in rows.tolist()]
        return Facts(identities, owners, self.labelers, (pairs[:, 0] > pairs[:, 1]).astype(np.uint8))

    def labels(self, task: Task, repetition: int, rows: NDArray[np.int64]) -> Labels:
        """Labels of these rows, in the file's orientation."""
        return Labels(self.values.reveal()[rows])


def read_table(path: Path, public: bool) -> Table:
    """Read and validate a CSV file of comparisons: UTF-8, ids are strings in Unicode form NFC without outer spaces.

    `winner` is "item_a" or "item_b" (or "a", "b"), or the name of one of the two items. Raises SourceError for the
    first line that does not fit; ties and missing winners are among them.
    """
    records = list(_records(path))
    if not records:
        raise SourceError(f"{path}: expected at least one comparison below the header, got none")
    items = tuple(sorted({item for _, a, b, _ in records for item in (a, b)}))
    labelers = tuple(sorted({labeler for labeler, _, _, _ in records}))
    number = {item: index for index, item in enumerate(items)}
    owner = {labeler: index for index, labeler in enumerate(labelers)}
    identities = tuple(label_identity(labeler, a, b) for labeler, a, b, _ in records)
    lowest: dict[bytes, int] = {}
    for row, identity in enumerate(identities):
        lowest.setdefault(identity, row)
    first = np.zeros(len(records), dtype=np.bool_)
    first[list(lowest.values())] = True
    return Table(
        path=path,
        public=public,
        items=items,
        pairs=np.array([(number[a], number[b]) for _, a, b, _ in records], dtype=np.int32),
        labelers=labelers,
        owners=np.array([owner[labeler] for labeler, _, _, _ in records], dtype=np.int64),
        values=Labels(np.array([won for _, _, _, won in records], dtype=np.uint8)),
        identities=identities,
        first=first,
    )


def label_identity(labeler: str, one: str, other: str, question: str = "") -> bytes:
    """32 bytes that name a label, whatever its row, its orientation and its value.

    SHA-256 over a domain string and the length-prefixed labeler, unordered pair and question.

    >>> label_identity("r1", "x", "y") == label_identity("r1", "y", "x") != label_identity("r1x", "", "y")
    True
    """
    digest = hashlib.sha256(DOMAIN)
    for part in (labeler, *sorted((one, other)), question):
        raw = part.encode()
        digest.update(len(raw).to_bytes(8, "little") + raw)
    return digest.digest()


def _records(path: Path) -> Iterator[tuple[str, str, str, int]]:
    """(labeler, item_a, item_b, 1 iff item_b won) of each record."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            header = [name.strip() for name in next(reader, [])]
            places = _columns(header, path)
            line = reader.line_num + 1
            for fields in reader:
                if fields:  # a blank line holds no record
                    yield _record(fields, len(header), places, f"{path}, line {line}")
                line = reader.line_num + 1
    except UnicodeDecodeError as error:
        raise SourceError(f"{path}: expected UTF-8, got other bytes ({error.reason}): save it as UTF-8") from None
    except csv.Error as error:
        raise SourceError(f"{path}, line {reader.line_num}: expected comma-separated values, got: {error}") from None


def _columns(header: list[str], path: Path) -> dict[str, int]:
    labeler = [name for name in LABELER if name in header]
    if len(labeler) != 1:
        raise SourceError(f"{path}, line 1: expected one column out of {LABELER}, got the columns {header}")
    for name in (*labeler, "item_a", "item_b", "winner"):
        if header.count(name) != 1:
            raise SourceError(f"{path}, line 1: expected one column {name!r}, got the columns {header}")
    return {"labeler": header.index(labeler[0])} | {name: header.index(name) for name in ("item_a", "item_b", "winner")}


def _record(fields: list[str], width: int, places: dict[str, int], where: str) -> tuple[str, str, str, int]:
    if len(fields) != width:
        raise SourceError(f"{where}: expected {width} fields, got {len(fields)}")
    text = {name: unicodedata.normalize("NFC", fields[place]).strip() for name, place in places.items()}
    for name in ("labeler", "item_a", "item_b"):
        if not text[name]:
            raise SourceError(f"{where}, field {name}: expected a name, got an empty field")
    a, b = text["item_a"], text["item_b"]
    if a == b:
        raise SourceError(f"{where}: expected two different items, got {a!r} against itself: remove the line")
    return text["labeler"], a, b, _winner(text["winner"], a, b, where)


def _winner(text: str, a: str, b: str, where: str) -> int:
    """0 where item_a won, 1 where item_b won; a word that could mean both is an error, not a guess."""
    meanings = {won for won, words in enumerate((("item_a", "a", a), ("item_b", "b", b))) if text in words}
    if len(meanings) == 1:
        return meanings.pop()
    place = f"{where}, field winner"
    if meanings:
        raise SourceError(f"{place}: {text!r} names one item and the place of the other: write item_a or item_b")
    if text.lower() in TIES:
        raise SourceError(f"{place}: expected a winner, got {text!r}: ties and missing winners are not handled yet")
    raise SourceError(f"{place}: expected 'item_a', 'item_b', {a!r} or {b!r}, got {text!r}")
