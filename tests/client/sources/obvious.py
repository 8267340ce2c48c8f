"""An obvious reader of files of comparisons, which shares nothing with the product but how long names are written.

It holds a file in memory, knows every answer by a word of its own table, and raises where it does not. Tests ask
whether every row of the product is a row of this one.
"""

import csv
import gzip
import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

from client.sources.columns import Columns
from client.sources.reading import EMPTY, name_of
from client.sources.table import Table

FIRST = ("item_a", "a", "model_a", "model_x", "left", "home", "first")
SECOND = ("item_b", "b", "model_b", "model_y", "right", "away", "second")
TIES = ("tie", "draw", "same", "equal", "both", "neither", "both_bad", "bothbad", "tie (bothbad)", "tie (inconsistent)")
TEXTS = ("chosen", "rejected")
Cells = Mapping[str, Any]
Row = tuple[str, str, str, str | None, str]  # labeler, items by name, who won ("tie", or None for nobody), question


def unpacked(raw: bytes) -> bytes:
    """The bytes inside gzip or Zstandard."""
    if raw.startswith(b"\x1f\x8b"):
        return gzip.decompress(raw)
    if raw.startswith(b"\x28\xb5\x2f\xfd"):
        import zstandard

        with zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True) as stream:
            return stream.readall()
    return raw


def cells(raw: bytes) -> list[dict[str, Any]]:
    """Records as the standard library's readers of whole files have them. Raises for what they do not read."""
    text = unpacked(raw).decode("utf-8-sig")
    if text.lstrip()[:1] == "{":
        return [json.loads(line, parse_int=str, parse_float=str) for line in text.split("\n") if line.strip(" \t\r")]
    delimiter = max(
        ",\t;", key=lambda d: (len(next(csv.reader([text.lstrip().splitlines()[0]], delimiter=d))), d == ",")
    )
    header, *rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True) if row]
    return [dict(zip((name.strip() for name in header), row, strict=True)) for row in rows]


def clean(value: object) -> str | None:
    """A cell as a name; None where it is empty."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return (name_of(value) if isinstance(value, str) else None) or None


def rows(found: list[dict[str, Any]], columns: Columns, unnamed: bool) -> Iterator[Row]:
    """Rows of comparisons, in order. Raises for a row without an item, unless `unnamed` ones are left out."""
    pairs = [_pair(record, columns) for record in found]
    known = {item for one, other in pairs for item in (one, other) if None not in (one, other) and one != other}
    for place, (record, (one, other)) in enumerate(zip(found, pairs, strict=True)):
        if one is None or other is None:
            assert unnamed
            continue
        if one == other:
            continue
        asked = [clean(record[name]) or "" for name in sorted(columns.questions)]
        question = "" if not asked else asked[0] if len(asked) == 1 else json.dumps(asked, ensure_ascii=False)
        owner = f"row {place}" if columns.labeler is None else clean(record[columns.labeler])
        assert owner is not None
        won = other if columns.sides is None else _winner(record, columns, one, other, known)
        yield owner, min(one, other), max(one, other), won, question


def rows_of(table: Table) -> Iterator[Row]:
    """Rows of the product's table, in order."""
    values, missing = table.values.reveal(), table.missing.reveal()
    for place, (a, b) in enumerate(table.pairs.tolist()):
        pair = (table.items[a], table.items[b])
        won = None if missing[place] else (*pair, "tie")[values[place]]
        yield table.labelers[table.owners[place]], *pair, won, table.questions[place]


def counted(found: list[dict[str, Any]], columns: Columns) -> list[tuple[str, str, str, int]]:
    """Pairs, who won, and how often, where wins are counted: of each record, in order."""
    wins = [(*_pair(record, columns), [int(record[name]) for name in columns.wins]) for record in found]
    return [(one, other, (one, other)[k], count[k]) for one, other, count in wins for k in (0, 1) if one != other]  # type: ignore[misc]


def _pair(record: Cells, columns: Columns) -> tuple[str | None, str | None]:
    if columns.both is not None:
        both = clean(record[columns.both])
        one, other = (None, None) if both is None else (clean(part) for part in both.split(columns.between))
        return one, other
    one, other = (_item(record, name) for name in columns.items)
    return one, other


def _item(record: Cells, name: str) -> str | None:
    value = record[name]
    return EMPTY if name in TEXTS and isinstance(value, str) and not value.strip() else clean(value)


def _winner(record: Cells, columns: Columns, one: str, other: str, known: set[str | None]) -> str | None:
    """Who won. Raises for a word that nobody knows."""
    assert columns.winner is not None and columns.sides is not None
    text = clean(record[columns.winner])
    if text is None:
        return None
    if columns.coding is not None:
        first, tie, second = columns.coding.split("/")
        return {first: one, tie: "tie", second: other}[text]
    if text in known:
        assert text in (one, other)
        return text
    if text in (*FIRST, columns.sides[0]):
        return one
    if text in (*SECOND, columns.sides[1]):
        return other
    assert text.lower() in TIES
    return "tie"
