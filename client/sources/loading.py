"""From a holder's file to a table of labels. The whole file is validated when it is read, before the first answer.

Errors name file, line, field, expected and got; they are for the holder's own terminal.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from client.labels import Labels
from client.sources.columns import Columns, Wanted, choose
from client.sources.comparisons import Comparisons, comparisons, filled, whose
from client.sources.identities import Identities
from client.sources.item_features import ItemFeatures
from client.sources.outcomes import MISSING
from client.sources.pair_cells import with_separator
from client.sources.prompts import with_prompts
from client.sources.reading import Records, SourceError, read_records
from client.sources.table import Table, label_identity
from protocol.study import MOST

EVERY_ROW = Wanted()
ITEM = "item"  # the column of a public list of items


def read_table(
    path: Path,
    public: bool,
    wanted: Wanted = EVERY_ROW,
    items: tuple[str, ...] | None = None,
    features: ItemFeatures | None = None,
    records: Records | None = None,
) -> Table:
    """Read and validate a file of comparisons; ids are strings in Unicode form NFC without outer spaces.

    `items` numbers the items, in a federation as all its nodes do; else they are numbered by name. Lines that compare
    an item with itself hold no information and are left out. `records`: the file, where it was read before.
    Raises SourceError for the first line that does not fit.
    """
    records = read_records(path) if records is None else records
    columns, found = _compared(records, wanted, None if features is None else features.prompt)
    owners, questions = whose(records, columns, found)
    identities = Identities.of(map(label_identity, owners, found.first, found.second, questions))
    found, answers = with_prompts(records, columns.prompt, found)
    names = _items(found, items, records)
    number, person = _numbers(names), _numbers(labelers := tuple(sorted(set(owners))))
    sides = [np.fromiter(map(number.__getitem__, side), np.int32, len(side)) for side in (found.first, found.second)]
    missing = (found.outcome == MISSING).astype(np.uint8)
    values = np.where(missing, np.uint8(0), found.outcome)
    table = Table(
        path=path,
        public=public,
        columns=columns,
        items=names,
        rows_held=_rows(records, columns, found),
        pairs=np.stack(sides, axis=1),
        dropped=found.same,
        unnamed=found.unnamed,
        features=None if features is None else features.of(names),
        feature_names=() if features is None else features.columns,
        labelers=labelers,
        questions=tuple(questions),
        owners=np.fromiter(map(person.__getitem__, owners), np.int64, len(owners)),
        values=Labels(values),
        missing=Labels(missing),
        identities=identities,
        first=identities.first(),
        answers=answers,
    )
    return _with_usable_features(table, path if features is None else features.path)


def _compared(records: Records, wanted: Wanted, prompt: str | None) -> tuple[Columns, Comparisons]:
    """What a file compares; items are answers to the column `prompt` where nothing else is wanted."""
    wanted = replace(wanted, prompt=prompt) if wanted.prompt is None else wanted
    columns = with_separator(records, choose(records.path, records.names, wanted))
    found = comparisons(records, columns)
    if not len(found.places):
        raise SourceError(f"{records.path}: expected at least one comparison of two items, got none")
    return columns, found


def read_items(path: Path) -> tuple[str, ...]:
    """A public list of items, in the order of their numbers: a file with the column `item`."""
    records = read_records(path)
    if records.names.count(ITEM) != 1:
        raise SourceError(f"{path}, header: expected one column {ITEM!r}, got the columns {', '.join(records.names)}")
    names = filled(records, ITEM)
    first: dict[str, int] = {}
    for index, name in enumerate(names):
        if first.setdefault(name, index) != index:
            raise SourceError(f"{records.where(index)}, field {ITEM}: expected different names, got {name!r} again")
    return tuple(names)


def _rows(records: Records, columns: Columns, found: Comparisons) -> NDArray[np.int64]:
    """Global row numbers: in the order of the file, or those of its column."""
    if columns.row is None:
        return np.arange(len(found.places))
    if found.same or found.unnamed or columns.wins:
        raise SourceError(f"{records.path}: expected one comparison of two items in every line beside numbered rows")
    rows: list[int] = []
    for place, text in enumerate(filled(records, columns.row)):
        number = int(text) if text.isascii() and text.isdecimal() and len(text) <= 10 else -1
        if not (rows[-1] if rows else -1) < number <= MOST:
            where = f"{records.where(place)}, field {columns.row}"
            raise SourceError(f"{where}: expected a row number above the one before, got {text!r}")
        rows.append(number)
    return np.array(rows, dtype=np.int64)


def _items(found: Comparisons, items: tuple[str, ...] | None, records: Records) -> tuple[str, ...]:
    used = {*found.first, *found.second}
    if items is None:
        return tuple(sorted(used))
    if unknown := used - set(items):
        named = zip(found.places, found.first, found.second, strict=True)
        place, name = next((place, name) for place, *pair in named for name in pair if name in unknown)
        raise SourceError(f"{records.where(place)}: expected items of the public list, got {name!r}")
    return items


def _with_usable_features(table: Table, path: Path) -> Table:
    try:
        assert table.problem.design is not None
    except ValueError as error:
        raise SourceError(f"{path}: {error}") from None
    return table


def _numbers(names: Sequence[str]) -> dict[str, int]:
    return {name: index for index, name in enumerate(names)}
