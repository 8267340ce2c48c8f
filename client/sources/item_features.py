"""Items described by public numbers: rewards are then linear in them, r(item) = theta . phi(item)."""

import math
import zipfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from client.sources.reading import Records, SourceError, name_of, read_records

IDS = ("id", "item", "item_id", "name", "model")
ZIP = b"PK\x03\x04"


@dataclass(frozen=True, eq=False)
class ItemFeatures:
    """phi: float64 (items, columns), one row for each of `items`."""

    path: Path
    items: tuple[str, ...]
    columns: tuple[str, ...]
    values: NDArray[np.float64] = field(repr=False)

    def of(self, names: Sequence[str]) -> NDArray[np.float64]:
        """Rows of the items `names`, in their order. Raises SourceError for one that is not described."""
        number = {item: index for index, item in enumerate(self.items)}
        for name in names:
            if name not in number:
                raise SourceError(f"{self.path}: expected features of every item, got none of {name!r}")
        return self.values[[number[name] for name in names]]


def read_item_features(path: Path, columns: Sequence[str] | None = None) -> ItemFeatures:
    """Read features from a table with a column of ids (`id`, `item`, ...), all others being numbers, or from an .npz
    with `items` (n,) and `features` (n, p). `columns` chooses columns, by name or in an .npz by number.

    Raises SourceError, naming item and column, for a cell that is empty or no finite number: a guessed value would be
    a guess about an item.
    """
    with path.open("rb") as file:
        packed = file.read(len(ZIP)) == ZIP
    found = _archive(path) if packed else _table(read_records(path), columns)
    if packed and columns is not None:
        places = _places(found, columns)
        chosen = tuple(found.columns[place] for place in places)
        found = ItemFeatures(path, found.items, chosen, found.values[:, places])
    if len(set(found.items)) != len(found.items):
        raise SourceError(f"{path}: expected every item once, got {_repeated(found.items)!r} again")
    bad = np.argwhere(~np.isfinite(found.values))
    if len(bad):
        item, column = bad[0].tolist()
        raise _no_number(path, found.items[item], found.columns[column], str(found.values[item, column]))
    return found


def _table(records: Records, columns: Sequence[str] | None) -> ItemFeatures:
    ids = [name for name in records.names if name.lower() in IDS]
    if len(ids) != 1:
        raise SourceError(f"{records.path}, header: expected one column of ids out of {', '.join(IDS)}, got {ids}")
    chosen = [name for name in records.names if name != ids[0]] if columns is None else list(columns)
    for name in chosen:
        if records.names.count(name) != 1:
            known = ", ".join(records.names)
            raise SourceError(f"{records.path}, header: expected one column {name!r}, got the columns {known}")
    items = []
    records.load((ids[0], *chosen))
    for index, item in enumerate(records.column(ids[0])):
        if item is None:
            raise SourceError(f"{records.where(index)}, field {ids[0]}: expected a name, got an empty field")
        items.append(item)
    values = np.empty((len(items), len(chosen)))
    for place, name in enumerate(chosen):
        values[:, place] = [_number(records.path, items[i], name, text) for i, text in enumerate(records.column(name))]
    if not values.size:
        raise SourceError(f"{records.path}: expected at least one item and one column of numbers, got {values.shape}")
    return ItemFeatures(records.path, tuple(items), tuple(chosen), values)


def _archive(path: Path) -> ItemFeatures:
    try:
        with np.load(path, allow_pickle=False) as stored:
            found = {name: stored[name] for name in stored.files}
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        raise SourceError(f"{path}: expected an .npz file of plain arrays, got another ({error})") from None
    if not {"items", "features"} <= set(found):
        raise SourceError(f"{path}: expected arrays 'items' and 'features', got {', '.join(sorted(found))}")
    items, values = found["items"], found["features"]
    if items.ndim != 1 or items.dtype.kind not in "UT" or values.ndim != 2 or values.dtype.kind not in "fiu":
        raise SourceError(f"{path}: expected names (n,) and real numbers (n, p), got {items.dtype} and {values.dtype}")
    if len(items) != len(values) or not values.size:
        raise SourceError(f"{path}: expected as many names as rows of features, got {items.shape} and {values.shape}")
    names = tuple(str(place) for place in range(values.shape[1]))
    try:
        return ItemFeatures(path, tuple(map(name_of, items.tolist())), names, values.astype(np.float64))
    except UnicodeEncodeError:
        raise SourceError(f"{path}: expected names that are text, got half a character") from None


def _places(found: ItemFeatures, columns: Sequence[str]) -> list[int]:
    unknown = [name for name in columns if name not in found.columns]
    if unknown:
        raise SourceError(f"{found.path}: expected columns out of 0..{len(found.columns) - 1}, got {unknown[0]!r}")
    return [found.columns.index(name) for name in columns]


def _number(path: Path, item: str, column: str, text: str | None) -> float:
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise _no_number(path, item, column, "an empty cell" if text is None else repr(text))
    return value


def _no_number(path: Path, item: str, column: str, got: str) -> SourceError:
    return SourceError(
        f"{path}, item {item!r}, column {column}: expected a finite number, got {got}: fill it in, or choose others "
        "with --features-columns"
    )


def _repeated(names: Sequence[str]) -> str:
    return next(name for name, count in Counter(names).items() if count > 1)
