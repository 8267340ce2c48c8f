"""A holder's file as columns of text: CSV, TSV, JSONL or Parquet, plain or compressed, told apart by content.

Names of files say nothing: their first bytes do. Every value is text, whatever it looks like; empty cells are None.
"""

import csv
import gzip
import io
import json
import unicodedata
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

Texts = list[str | None]
GZIP, ZSTD, PARQUET = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1"
LONGEST_FIELD = 1 << 30  # characters: a prompt may be long
DELIMITERS = (",", "\t", ";")  # the first of those that split the header into the most columns


class SourceError(ValueError):
    """A holder's file that cannot be used: names file, line and field, what was expected and what was got."""


@dataclass(frozen=True, eq=False)
class Records:
    """The records of a file, in order: `names` of its columns, and for each record its physical line (or row).

    Values are Unicode text in form NFC without outer spaces; None where a cell is empty or null.
    """

    path: Path
    names: tuple[str, ...]
    unit: str
    lines: Sequence[int] = field(repr=False)
    _column: Callable[[str, bool], list[Any]] = field(repr=False)

    def __len__(self) -> int:
        return len(self.lines)

    def where(self, index: int) -> str:
        """The place of a record, for an error."""
        return f"{self.path}, {self.unit} {self.lines[index]}"

    def column(self, name: str, numeric: bool = False) -> Texts:
        """The values of one column. Raises SourceError where a record has none, or something that is not text.

        Floating-point numbers of Parquet are read as text only where `numeric` numbers are wanted: they are no names.
        """
        clean = _Clean()
        values = self._column(name, numeric)
        try:
            return [clean[value] for value in values]
        except (TypeError, UnicodeEncodeError):  # lists and tables, half a character: say where
            index = next(i for i, value in enumerate(values) if not _is_text(value))
            got = type(values[index]).__name__
            raise SourceError(f"{self.where(index)}, field {name}: expected text or a number, got a {got}") from None


def _is_text(value: Any) -> bool:
    try:
        return value is None or str.encode("" if isinstance(value, bool) else value) is not None
    except (TypeError, UnicodeEncodeError):
        return False


class _Clean(dict[Any, str | None]):
    """Cleans a value once, however often it occurs."""

    def __missing__(self, value: Any) -> str | None:
        if isinstance(value, bool):
            value = "true" if value else "false"
        text = unicodedata.normalize("NFC", value).strip() if value else ""
        text.encode()  # JSON can write half a character, which no name can hold
        return self.setdefault(value, text or None)


def read_records(path: Path) -> Records:
    """Read a whole file. Raises SourceError, and OSError where it cannot be opened."""
    raw = _unpacked(path.read_bytes(), path)
    if raw.startswith(PARQUET):
        return _parquet(raw, path)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"{path}: expected UTF-8, got other bytes ({error.reason}): save it as UTF-8") from None
    start = text.lstrip()[:1]
    if start == "[":
        raise SourceError(f"{path}: expected CSV, TSV, JSONL or Parquet, got a JSON array: write one object a line")
    return _objects(text, path) if start == "{" else _delimited(text, path)


def _unpacked(raw: bytes, path: Path) -> bytes:
    try:
        if raw.startswith(GZIP):
            return gzip.decompress(raw)  # all members
    except (OSError, EOFError, zlib.error) as error:
        raise SourceError(f"{path}: expected a whole gzip file, got a damaged one ({error})") from None
    return _unpacked_zstd(raw, path) if raw.startswith(ZSTD) else raw


def _unpacked_zstd(raw: bytes, path: Path) -> bytes:
    """All frames, by the standard library where it can (Python 3.14), else by an optional package."""
    try:
        try:
            module = import_module("compression.zstd")
            return bytes(module.decompress(raw))
        except ModuleNotFoundError:
            module = import_module("zstandard")
            return _frames(module.ZstdDecompressor, raw)
    except ModuleNotFoundError:
        raise SourceError(
            f"{path}: expected the package zstandard, which reads this zst file: pip install 'halftruth[zst]'"
        ) from None
    except (module.ZstdError, EOFError) as error:
        raise SourceError(f"{path}: expected a whole zst file, got a damaged one ({error})") from None


def _frames(decompressor: Callable[[], Any], raw: bytes) -> bytes:
    """One frame after the other: the package's own reader takes the end of the bytes for the end of a frame."""
    parts = []
    while raw:
        frame = decompressor().decompressobj()
        parts.append(frame.decompress(raw))
        if not frame.eof:
            raise EOFError("it ends too early")
        raw = frame.unused_data
    return b"".join(parts)


def _delimited(text: str, path: Path) -> Records:
    """CSV, or TSV where the header says so. A quoted field may hold line breaks; blank lines hold no record."""
    csv.field_size_limit(LONGEST_FIELD)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text), strict=True)
    rows: list[list[str]] = []
    lines: list[int] = []
    try:
        names = tuple(name.strip() for name in next(reader, []))
        line = reader.line_num + 1
        for fields in reader:
            if fields:
                if len(fields) != len(names):
                    raise SourceError(f"{path}, line {line}: expected {len(names)} fields, got {len(fields)}")
                rows.append(fields)
                lines.append(line)
            line = reader.line_num + 1
    except csv.Error as error:
        raise SourceError(f"{path}, line {reader.line_num}: expected comma-separated values, got: {error}") from None

    def column(name: str, _: bool) -> list[Any]:
        place = names.index(name)
        return [fields[place] for fields in rows]

    return Records(path, names, "line", lines, column)


def _delimiter(text: str) -> str:
    header = text.partition("\n")[0]
    widths = [len(next(csv.reader([header], delimiter=delimiter), [])) for delimiter in DELIMITERS]
    return DELIMITERS[widths.index(max(widths))]


def _objects(text: str, path: Path) -> Records:
    """JSONL: one object a line. Numbers keep their digits: an id beyond 2^53 is not another one."""
    decoder = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_refuse_constant)
    found: list[dict[str, Any]] = []
    lines: list[int] = []
    for number, line in enumerate(text.split("\n"), start=1):  # no other line break ends a record
        if not (stripped := line.strip()):
            continue
        try:
            record = decoder.decode(stripped)
        except (ValueError, RecursionError) as error:
            said = error.msg if isinstance(error, json.JSONDecodeError) else error
            raise SourceError(f"{path}, line {number}: expected one JSON object, got: {said}") from None
        if not isinstance(record, dict):
            raise SourceError(f"{path}, line {number}: expected one JSON object, got a {type(record).__name__}")
        found.append(record)
        lines.append(number)

    def column(name: str, _: bool) -> list[Any]:
        try:
            return [record[name] for record in found]
        except KeyError:
            index = next(i for i, record in enumerate(found) if name not in record)
            keys = ", ".join(map(repr, found[index]))
            where = f"{path}, line {lines[index]}"
            raise SourceError(f"{where}: expected the key {name!r}, as in the lines before, got {keys}") from None

    return Records(path, tuple(found[0]), "line", lines, column)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name}, which is not JSON")


def _parquet(raw: bytes, path: Path) -> Records:
    import pyarrow as pa  # here and nowhere else on a client: it takes a while
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(pa.BufferReader(raw))
    except (pa.ArrowException, OSError) as error:
        raise SourceError(f"{path}: expected a whole Parquet file, got a damaged one ({error})") from None

    def column(name: str, numeric: bool) -> list[Any]:
        values = table.column(name)
        kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
        lossy = pa.types.is_floating(kind) and not numeric  # an id that became a float has lost digits
        if lossy or pa.types.is_nested(kind):
            raise SourceError(f"{path}, field {name}: expected text, whole numbers or true/false, got {kind}")
        texts = values.to_pylist()
        return texts if pa.types.is_boolean(kind) else [None if value is None else str(value) for value in texts]

    return Records(path, tuple(table.column_names), "row", range(1, table.num_rows + 1), column)
