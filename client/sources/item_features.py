"""Items described by public numbers: rewards are then linear in them, r(item) = theta . phi(item).

Files join by name. Where one has a column of prompts, each line describes an answer to a prompt.
"""

import math
import zipfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from client.sources.numbers import how_to_write, plain_number
from client.sources.parquet import Parquet
from client.sources.prompts import answer_to
from client.sources.reading import EMPTY, Records, SourceError, name_of, read_records

IDS = ("id", "item", "item_id", "name", "model")
TEXTS = ("text", "answer", "response", "completion", "output")  # where no column is one of `IDS`
PROMPTS = ("prompt", "prompts")
ITEMS = ("items", *IDS, *TEXTS)  # how arrays of names are called
VALUES = ("features", "vectors", "embeddings", "embedding", "emb")  # and those of numbers
ZIP = b"PK\x03\x04"
MOST_NAMED = 3  # of items that nothing describes
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ItemFeatures:
    """phi: float64 (items, columns), one row for each of `items`.

    `prompt`: the column of prompts, where items are answers to them (`client.sources.prompts:answer_to`).
    """

    path: Path
    items: tuple[str, ...]
    columns: tuple[str, ...]
    values: Floats = field(repr=False)
    prompt: str | None = None

    def of(self, names: Sequence[str]) -> Floats:
        """Rows of the items `names`, in their order. Raises SourceError that names some of those not described."""
        number = {item: index for index, item in enumerate(self.items)}
        missing = [name for name in dict.fromkeys(names) if name not in number]
        if missing:
            shown = ", ".join(map(repr, missing[:MOST_NAMED]))
            more = f" and {len(missing) - MOST_NAMED:,} more of {len(names):,}" if len(missing) > MOST_NAMED else ""
            raise SourceError(f"{self.path}: expected features of every item, got none of {shown}{more}")
        return self.values[[number[name] for name in names]]


def read_item_features(path: Path, columns: Sequence[str] | None = None) -> ItemFeatures:
    """Read features from a table or an .npz file. `columns` chooses columns by name; of vectors, by number.

    A table has a column of ids (`IDS`, else `TEXTS`), perhaps one of prompts, and all others are numbers; or, of
    Parquet, one other, which holds lists of numbers. An .npz has an array of names (n,), perhaps one of prompts, and
    one of numbers (n, p): `ITEMS`, `PROMPTS`, `VALUES`.
    Raises SourceError, naming item and column, for a cell that is empty or no finite number: a guessed value would be
    a guess about an item.
    """
    with path.open("rb") as file:
        packed = file.read(len(ZIP)) == ZIP
    found = _archive(path, columns) if packed else _table(read_records(path), columns)
    if len(set(found.items)) != len(found.items):
        raise SourceError(f"{path}: expected every item once, got {_repeated(found.items)!r} again")
    bad = np.argwhere(~np.isfinite(found.values))
    if len(bad):
        item, column = bad[0].tolist()
        raise _no_number(path, found.items[item], found.columns[column], str(found.values[item, column]))
    return found


def _table(records: Records, columns: Sequence[str] | None) -> ItemFeatures:
    item, prompt = _keys(records)
    others = [name for name in records.names if name not in (item, prompt)]
    form = records.format
    lists = form.lists() if isinstance(form, Parquet) else []
    if isinstance(form, Parquet) and others == lists and len(lists) == 1:
        values, names = _chosen(records.path, form.vectors(lists[0]), columns)
    else:
        names = tuple(others if columns is None else columns)
        if both := [name for name in names if name in lists]:
            raise SourceError(
                f"{records.path}, field {both[0]}: expected one column of lists and names beside it, got {others}"
            )
        values = _numbers(records, item, names)
    if not values.size:
        raise SourceError(f"{records.path}: expected at least one item and one column of numbers, got {values.shape}")
    return ItemFeatures(records.path, _names(records, item, prompt), names, values, prompt)


def _numbers(records: Records, item: str, names: Sequence[str]) -> Floats:
    """Columns of numbers, (records, columns). Raises SourceError that names the item."""
    for name in names:
        if records.names.count(name) != 1:
            known = ", ".join(records.names)
            raise SourceError(f"{records.path}, header: expected one column {name!r}, got the columns {known}")
    items = records.column(item)
    records.load(names, numeric=True)
    values = np.empty((len(records), len(names)))
    for place, name in enumerate(names):
        cells = records.column(name, numeric=True)
        values[:, place] = [_number(records.path, items[i] or "", name, text) for i, text in enumerate(cells)]
    return values


def _keys(records: Records) -> tuple[str, str | None]:
    """The column that names items, and that of prompts, None where there is none."""
    found = [[name for name in records.names if name.lower() in known] for known in (IDS, TEXTS, PROMPTS)]
    ids, prompts = found[0] or found[1], found[2]
    if len(ids) != 1 or len(prompts) > 1:
        known = ", ".join((*IDS, *TEXTS))
        raise SourceError(
            f"{records.path}, header: expected one column of ids out of {known}, and at most one of prompts, got "
            f"{[*ids, *prompts]}"
        )
    return ids[0], prompts[0] if prompts else None


def _names(records: Records, item: str, prompt: str | None) -> tuple[str, ...]:
    records.load([item, *([] if prompt is None else [prompt])], texts=(item,))
    names = []
    for index, name in enumerate(records.column(item, text=True)):
        if name is None:
            raise SourceError(f"{records.where(index)}, field {item}: expected a name, got an empty field")
        names.append(name)
    return tuple(names if prompt is None else map(answer_to, names, records.column(prompt)))


def _archive(path: Path, columns: Sequence[str] | None) -> ItemFeatures:
    try:
        with np.load(path, allow_pickle=False) as stored:
            found = {name: stored[name] for name in stored.files}
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        raise SourceError(f"{path}: expected an .npz file of plain arrays, got another ({error})") from None
    item, prompt, numbers = (
        next((name for name in known if name in found), None) for known in (ITEMS, PROMPTS, VALUES)
    )
    if item is None or numbers is None:
        raise SourceError(f"{path}: expected arrays 'items' and 'features', got {', '.join(sorted(found))}")
    values, keys = found[numbers], [found[name] for name in (item, prompt) if name is not None]
    if values.ndim != 2 or values.dtype.kind not in "fiu" or any(_unfit(names) for names in keys):
        got = ", ".join(f"{array.dtype} {array.shape}" for array in (*keys, values))
        raise SourceError(f"{path}: expected names (n,) and real numbers (n, p), got {got}")
    items, *rest = [_texts(path, names) for names in keys]
    prompts = rest[0] if rest else None
    if len(items) != len(values) or not values.size or len(items if prompts is None else prompts) != len(items):
        raise SourceError(f"{path}: expected as many names as rows of features, got {len(items)} and {values.shape}")
    chosen, names = _chosen(path, values.astype(np.float64), columns)
    named = items if prompts is None else tuple(map(answer_to, items, prompts))
    return ItemFeatures(path, named, names, chosen, None if prompts is None else PROMPTS[0])


def _unfit(names: NDArray[Any]) -> bool:
    return names.ndim != 1 or names.dtype.kind not in "UTiu"


def _texts(path: Path, names: NDArray[Any]) -> tuple[str, ...]:
    """Names of an array; a whole number is its digits, as in any table. Raises SourceError."""
    try:
        return tuple(name_of(str(name)) or EMPTY for name in names.tolist())
    except UnicodeEncodeError:
        raise SourceError(f"{path}: expected names that are text, got half a character") from None


def _chosen(path: Path, values: Floats, columns: Sequence[str] | None) -> tuple[Floats, tuple[str, ...]]:
    """Vectors, or some of their numbers, and the names of these: 0, 1, .... Raises SourceError."""
    known = [str(place) for place in range(values.shape[1])]
    names = known if columns is None else list(columns)
    if unknown := [name for name in names if name not in known]:
        raise SourceError(f"{path}: expected columns out of 0..{len(known) - 1}, got {unknown[0]!r}")
    return values[:, [known.index(name) for name in names]], tuple(names)


def _number(path: Path, item: str, column: str, text: str | None) -> float:
    value = plain_number((text or "").strip())
    if not math.isfinite(value):
        raise _no_number(path, item, column, "an empty cell" if text is None else repr(text), how_to_write(text or ""))
    return value


def _no_number(path: Path, item: str, column: str, got: str, how: str = "") -> SourceError:
    return SourceError(
        f"{path}, item {item!r}, column {column}: expected a finite number{how and f' {how}'}, got {got}: fill it in, "
        "or choose others with --features-columns"
    )


def _repeated(names: Sequence[str]) -> str:
    return next(name for name, count in Counter(names).items() if count > 1)
