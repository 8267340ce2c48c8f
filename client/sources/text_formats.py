"""Files of text as records: CSV or TSV by their header, and JSONL. Each record is read when it is asked for."""

import csv
import json
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

from client.sources.containers import SourceError, lines, opened

LONGEST_FIELD = 1 << 24  # characters of a field in quotation marks; one that is never closed ends here
DELIMITERS = (",", "\t", ";")  # the first of those that split the header into the most columns
BLANK = " \t\r\n"  # what JSON takes for white space
MOST_NESTED = 200  # names of what stands inside the values of the first record
DEEPEST = 3
Cells = Iterator[tuple[int, Sequence[Any]]]
Fields = Generator[tuple[int, list[str]], None, None]
Entries = Generator[tuple[int, dict[str, Any]], None, None]


class Delimited:
    """CSV, or TSV where the header says so. A quoted field may hold line breaks; blank lines hold no record."""

    unit, empty_is_text = "line", False
    kind: str
    delimiter: str

    def __init__(self, path: Path, header: str) -> None:
        csv.field_size_limit(LONGEST_FIELD)
        self.path = path
        self.delimiter = _delimiter(path, header)
        self.kind = "TSV" if self.delimiter == "\t" else "CSV"
        with closing(self._records()) as records:
            _, names = next(records, (0, []))
        self.names = tuple(name.strip() for name in names)

    def cells(self, names: Sequence[str], numeric: frozenset[str]) -> Cells:
        """The line of each record, and its cells in these columns. Raises SourceError."""
        places = [self.names.index(name) for name in names]
        records = self._records()
        next(records, None)
        for line, fields in records:
            if len(fields) != len(self.names):
                raise SourceError(
                    f"{self.path}, line {line}: expected {len(self.names)} fields, got {len(fields)}: a field that "
                    "holds the delimiter, a quotation mark or a line break stands in quotation marks"
                )
            yield line, [fields[place] for place in places]

    def _records(self) -> Fields:
        stream, _ = opened(self.path)
        with stream:
            reader = csv.reader(lines(stream, self.path, True), delimiter=self.delimiter, strict=True)
            line = 1
            try:
                for fields in reader:
                    if fields:
                        yield line, fields
                    line = reader.line_num + 1
            except csv.Error as error:
                raise SourceError(
                    f"{self.path}, line {line}: expected comma-separated values, got: {error} (in line "
                    f"{reader.line_num}). Is a quotation mark never closed?"
                ) from None


class Objects:
    """JSONL: one object a line. Numbers keep their digits: an id beyond 2^53 is not another one.

    `names` are the keys of the first record, and of what stands inside its values: `summaries.0.text`.
    """

    unit, empty_is_text, kind = "line", True, "JSONL"
    names: tuple[str, ...]

    def __init__(self, path: Path) -> None:
        self.path = path
        with closing(self.objects()) as objects:
            _, first = next(objects)
        self.names = (*first, *[name for name in _inside(first, DEEPEST) if name not in first][:MOST_NESTED])

    def objects(self) -> Entries:
        """The line of each record, and all that stands in it. Raises SourceError."""
        decoder = json.JSONDecoder(
            parse_int=str, parse_float=str, parse_constant=_refuse_constant, object_pairs_hook=_each_once
        )
        stream, _ = opened(self.path)
        with stream:
            for number, line in enumerate(lines(stream, self.path, False), start=1):
                if not (stripped := line.strip(BLANK)):
                    continue
                try:
                    record = decoder.decode(stripped)
                except (ValueError, RecursionError) as error:
                    said = error.msg if isinstance(error, json.JSONDecodeError) else error
                    where = f"{self.path}, line {number}"
                    raise SourceError(f"{where}: expected one JSON object, got: {said}") from None
                if not isinstance(record, dict):
                    got = type(record).__name__
                    raise SourceError(f"{self.path}, line {number}: expected one JSON object, got a {got}")
                yield number, record

    def cells(self, names: Sequence[str], numeric: frozenset[str]) -> Cells:
        """The line of each record, and its values of these keys. Raises SourceError for a record without one."""
        for line, record in self.objects():
            try:
                yield line, [record[name] if name in record else _within(record, name) for name in names]
            except (LookupError, ValueError):
                missing = next(name for name in names if not _has(record, name))
                keys = ", ".join(map(repr, record))
                raise SourceError(
                    f"{self.path}, line {line}: expected the key {missing!r}, as in the lines before, got {keys}"
                ) from None


def text_format(path: Path) -> Delimited | Objects:
    """The format of a file of text, by its first line that is not blank. Raises SourceError, OSError."""
    stream, _ = opened(path)
    with stream:
        first = next((line for line in lines(stream, path, True) if line.strip()), None)
    if first is None:
        raise SourceError(f"{path}: expected a header and records, got an empty file")
    start = first.lstrip()[:1]
    if start == "[":
        raise SourceError(f"{path}: expected CSV, TSV, JSONL or Parquet, got a JSON array: write one object a line")
    return Objects(path) if start == "{" else Delimited(path, first)


def _delimiter(path: Path, header: str) -> str:
    try:
        widths = [len(next(csv.reader([header], delimiter=delimiter), [])) for delimiter in DELIMITERS]
    except csv.Error as error:
        raise SourceError(f"{path}, header: expected names of columns, got: {error}") from None
    return DELIMITERS[widths.index(max(widths))]


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name}, which is not JSON")


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} twice")
    return found


def _inside(value: Any, depth: int) -> Iterator[str]:
    """Names of what stands inside a value: keys, and places in lists, joined by points."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield str(key)
        if depth:
            yield from (f"{key}.{name}" for name in _inside(part, depth - 1))


def _within(record: dict[str, Any], name: str) -> Any:
    """What a name with points leads to. Raises LookupError, ValueError."""
    value: Any = record
    for key in name.split("."):
        if isinstance(value, list):
            value = value[int(key) if key.isdecimal() else len(value)]
        elif isinstance(value, dict):
            value = value[key]
        else:
            raise KeyError(key)
    return value


def _has(record: dict[str, Any], name: str) -> bool:
    try:
        return name in record or _within(record, name) is not None or True
    except (LookupError, ValueError):
        return False
