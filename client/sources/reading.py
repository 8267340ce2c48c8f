"""A holder's file as columns of text: CSV, TSV, JSONL or Parquet, plain or compressed, told apart by content.

Names of files say nothing: their first bytes do. Every value is text, whatever it looks like; empty cells are None. The
file is read from its disk whenever columns are asked for, and what is kept is a list of them: a file may be larger than
memory. Long texts, such as prompts, are known by a name that begins as they do and ends with their hash.
"""

import hashlib
import json
import unicodedata
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from client.sources.containers import SourceError, Stamp, opened, packing
from client.sources.parquet import MAGIC, Parquet
from client.sources.text_formats import text_format

__all__ = ("EMPTY", "Records", "Sink", "SourceError", "Texts", "Unfit", "name_of", "read_records", "text_of")

Texts = list[str | None]
Sink = Callable[[Any], None]
LONGEST_NAME = 160  # characters: longer texts are known by a shorter name
SHOWN, HASHED = 60, 32  # of it: characters of the text, and of its hash
MESSAGE = ("role", "content"), ("from", "value")  # keys of a message, as conversations have them


class Unfit(ValueError):
    """A value that does not fit: what was expected, and what was got."""


class Format(Protocol):
    """A file as records, read anew each time."""

    names: tuple[str, ...]
    unit: str
    empty_is_text: bool
    kind: str

    def cells(self, names: Sequence[str], numeric: frozenset[str]) -> Iterator[tuple[int, Sequence[Any]]]:
        """The line (or row) of each record, and its raw values in these columns."""


class Records:
    """The records of a file, in order: `names` of its columns, and for each record its physical line (or row).

    Columns that were read are kept: 8 bytes a record, and each of their different texts once.
    """

    def __init__(self, path: Path, form: Format, packed: str | None, stamp: Stamp) -> None:
        self.path, self.names, self.format, self.packed = path, form.names, form, packed
        self._stamp = stamp
        self._lines: array[int] | None = None
        self._kept: dict[tuple[str, bool, bool], Texts] = {}

    @property
    def lines(self) -> Sequence[int]:
        """The line of each record, or its row. Raises SourceError for a file that cannot be read to its end."""
        if self._lines is None:
            self.scan({})
        assert self._lines is not None
        return self._lines

    def __len__(self) -> int:
        return len(self.lines)

    def where(self, index: int) -> str:
        """The place of a record, for an error."""
        return f"{self.path}, {self.format.unit} {self.lines[index]}"

    def scan(self, sinks: Mapping[str, Sink], numeric: bool = False, word: str = "field") -> None:
        """Read the file once, and give each column's raw values to its sink, in order.

        Raw values are text, None, truths, and what JSON nests. Floating-point numbers of Parquet are given, as text,
        only where `numeric` numbers are wanted. Raises SourceError for a record that does not fit, with what a sink
        said, and for a file that is no longer the one that was opened.
        """
        self._require_unchanged()
        lines, names, receivers = array("q"), tuple(sinks), tuple(sinks.values())
        column = 0
        for line, values in self.format.cells(names, frozenset(names if numeric else ())):
            try:
                for column, value in enumerate(values):
                    receivers[column](value)
            except Unfit as error:
                where = f"{self.path}, {self.format.unit} {line}"
                raise SourceError(f"{where}, {word} {names[column]}: {error}") from None
            lines.append(line)
        self._require_unchanged()
        self._lines = lines

    def _require_unchanged(self) -> None:
        stream, stamp = opened(self.path)
        stream.close()
        if stamp != self._stamp:
            raise SourceError(f"{self.path}: expected the file as it was a moment ago: try again")

    def load(self, names: Sequence[str], numeric: bool = False, texts: Sequence[str] = ()) -> None:
        """Read columns that are not kept yet, in one pass; see `column`."""
        wanted = [(name, numeric, name in texts) for name in dict.fromkeys(names)]
        found = {key: _Texts(key[2] and self.format.empty_is_text) for key in wanted if key not in self._kept}
        if found:
            self.scan({key[0]: sink.add for key, sink in found.items()}, numeric)
            self._kept |= {key: sink.found for key, sink in found.items()}

    def column(self, name: str, numeric: bool = False, text: bool = False) -> Texts:
        """The values of one column: Unicode text in form NFC without outer spaces, None where a cell is empty or null.

        In a column of `text` the empty one is text too, where the format tells it from a missing one: `EMPTY` names it.
        Raises SourceError where a record has none, or something that is not text.
        """
        self.load((name,), numeric, (name,) if text else ())
        return self._kept[name, numeric, text]


class _Texts:
    """Cleans each value once, however often it occurs, and keeps it once."""

    def __init__(self, text: bool) -> None:
        self.found: Texts = []
        self._empty = EMPTY if text else None
        self._names: dict[str | bool | None, str | None] = {None: None}
        self._long: dict[str, str] = {}

    def add(self, value: Any) -> None:
        """Take the next value. Raises Unfit."""
        try:
            self.found.append(self._names[value])
        except (KeyError, TypeError):
            name = text_of(value) or self._empty
            if isinstance(value, str | bool) and len(str(value)) <= LONGEST_NAME:
                self._names[value] = name
            elif name is not None:
                name = self._long.setdefault(name, name)
            self.found.append(name)


def text_of(value: Any) -> str | None:
    """A raw value as a name: `name_of` text, "true" or "false", a conversation as its JSON; None for none or an empty.

    Raises Unfit for what is no text: lists, tables, and half a character, which JSON can write and no name can hold.
    """
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if _is_conversation(value):
        value = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    if not isinstance(value, str):
        raise Unfit(
            f"expected text or a number, got a {type(value).__name__}: what stands in it is named as a.0 or a.text"
        )
    try:
        return name_of(value) or None
    except UnicodeEncodeError:
        raise Unfit("expected text or a number, got a str with half a character") from None


def whole_text(value: Any) -> str:
    """All of a raw value's text, where `text_of` is its name: form NFC without outer spaces; what is nested as JSON.

    >>> whole_text(" cafe\\u0301 ") == "caf\\u00e9", whole_text(True), whole_text(None)
    (True, 'true', '')
    """
    if isinstance(value, dict):
        value = json.dumps(value, ensure_ascii=False)
    text = value if isinstance(value, str) else "" if value is None else str(value).lower()
    return unicodedata.normalize("NFC", text).strip()


def name_of(text: str) -> str:
    """The name by which a text is known: in form NFC, without outer spaces, and at most `LONGEST_NAME` characters.

    A longer text is known by its beginning and 128 bits of its SHA-256. The name of a name is the same.
    Raises UnicodeEncodeError.

    >>> name_of(" cafe\\u0301 "), name_of("b" * 200)[56:67], name_of(name_of("b" * 200)) == name_of("b" * 200)
    ('café', 'bbbb... #aa', True)
    """
    text = unicodedata.normalize("NFC", text).strip()
    raw = text.encode()
    return text if len(text) <= LONGEST_NAME else _digested(" ".join(text[: 4 * SHOWN].split())[:SHOWN] + "...", raw)


def _digested(shown: str, raw: bytes) -> str:
    return f"{shown} #{hashlib.sha256(raw).hexdigest()[:HASHED]}"


EMPTY = _digested("(empty)", b"")  # the name of the empty text


def _is_conversation(value: Any) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(part, dict) and any(set(keys) <= set(part) for keys in MESSAGE) for part in value)


def read_records(path: Path) -> Records:
    """Open a file: its format and the names of its columns. Raises SourceError, and OSError where it does not open."""
    stream, stamp = opened(path)
    with stream:
        columnar = stream.peek(len(MAGIC)).startswith(MAGIC)
    return Records(path, Parquet(path) if columnar else text_format(path), packing(path), stamp)
