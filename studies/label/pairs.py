"""The pairs that a labeler is asked about: from any file of comparisons in which nobody has answered yet."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from client.sources.column_names import LABELERS, plain
from client.sources.columns import NONE, Columns, Header, Wanted
from client.sources.reading import LONGEST_NAME, SourceError, Unfit, name_of, read_records, text_of, whole_text
from client.sources.table import Table, label_identity
from client.table_file import TableFile
from protocol.counting import counted
from protocol.strict import StudyError

ME = "me"  # whose answers they are where a file does not say it
SPOKEN = ("question", "prompt", "criterion")  # columns of questions that are shown without their names
ITEM, TEXT = "item", "text"  # columns of a file of whole texts
Texts = Mapping[str, str]  # name -> whole text, where it is longer


@dataclass(frozen=True)
class Pair:
    """One pair, in the order of its items' names: what is shown, and the `key` by which its answer is kept.

    `row` is its number in the federation; `place` its row in the table. `question`: (heading, text) of each column.
    """

    key: str
    row: int
    place: int
    items: tuple[str, str]
    question: tuple[tuple[str, str], ...]
    texts: tuple[str, str]


@dataclass(frozen=True, eq=False)
class Pairs:
    """All pairs of one labeler, in the order of the file; each label once. `table` holds those of everybody."""

    labeler: str
    table: Table
    all: tuple[Pair, ...]

    @property
    def keys(self) -> dict[str, Pair]:
        """The pairs by key."""
        return {pair.key: pair for pair in self.all}


def read_pairs(source: TableFile, labeler: str | None = None, texts: Path | None = None) -> Pairs:
    """The pairs of a labeler, the only one of the file unless it is named; `texts` has whole texts of items by name.

    Raises StudyError for a file with answers, and for one of nobody or of several where none is named; SourceError.
    """
    if not isinstance(source.columns, Wanted):
        raise StudyError(f"{source.file}: expected pairs to compare, got rankings: they have no page")
    records = read_records(source.file)
    columns = replace(source.columns, answered=False)
    named = columns.labeler is not None or Header(source.file, records.names).known(LABELERS)
    table = replace(source, columns=columns if named else replace(columns, labeler=NONE)).read()
    assert isinstance(table.columns, Columns)
    _check_unanswered(table, table.columns)
    who = _whose(table, labeler) if table.columns.labeler is not None else labeler or ME
    own = table.columns.labeler is None
    whole = {**_long_texts(source.file, table.columns), **({} if texts is None else read_texts(texts))}
    found: dict[str, Pair] = {}
    for place, (owner, row) in enumerate(zip(table.owners.tolist(), table.rows_held.tolist(), strict=True)):
        if own or table.labelers[owner] == who:
            pair = _pair(table, table.columns, place, row, who, whole)
            found.setdefault(pair.key, pair)
    return Pairs(who, table, tuple(found.values()))


def read_texts(path: Path) -> dict[str, str]:
    """Whole texts by name: of a file with a column `text`, and perhaps `item`, their names. Raises SourceError."""
    records = read_records(path)
    if records.names.count(TEXT) != 1:
        raise SourceError(f"{path}, header: expected one column {TEXT!r}, got the columns {', '.join(records.names)}")
    values: list[str] = []
    records.scan({TEXT: lambda value: values.append(_shown(value))})
    found = {name_of(text): text for text in values if text}
    if ITEM in records.names:
        names = records.column(ITEM)
        found |= {name: text for name, text in zip(names, values, strict=True) if name is not None and text}
    return found


def _check_unanswered(table: Table, columns: Columns) -> None:
    if columns.sides is None or columns.wins:
        raise StudyError(f"{table.path}: expected two columns of items and no answers, got columns that say who won")
    answered = int((table.missing.reveal() == 0).sum())
    if answered:
        raise StudyError(
            f"{table.path}: expected pairs that nobody has answered, got {counted(answered, 'row')} with an answer: "
            f"empty their {columns.winner}, or leave them out"
        )


def _whose(table: Table, labeler: str | None) -> str:
    names = table.labelers
    if labeler is None and len(names) == 1:
        return names[0]
    if labeler is None or labeler not in names:
        some = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        raise StudyError(f"--as: expected one of the {counted(len(names), 'labeler')} of {table.path} ({some})")
    return labeler


def _pair(table: Table, columns: Columns, place: int, row: int, who: str, whole: Texts) -> Pair:
    names = [table.items[item] for item in table.pairs[place].tolist()]
    (a, *prompt), (b, *_) = (table.answers.get(name, (name,)) for name in names)
    asked = table.questions[place]
    question = [(columns.prompt, *prompt)] if columns.prompt is not None else []
    values = json.loads(asked) if len(columns.questions) > 1 else [asked]
    question += [each for each in zip(sorted(columns.questions), values, strict=False) if each[0] != columns.prompt]
    shown = tuple(("" if plain(name) in SPOKEN else name, whole.get(text, text)) for name, text in question if text)
    key = label_identity(who, a, b, asked).hex()
    return Pair(key, row, place, (names[0], names[1]), shown, (whole.get(a, a), whole.get(b, b)))


def _long_texts(path: Path, columns: Columns) -> dict[str, str]:
    """Texts of a file that are longer than a name, by name."""
    found: dict[str, str] = {}

    def keep(value: Any) -> None:
        if isinstance(value, list) or len(text := whole_text(value)) > LONGEST_NAME:
            name, shown = text_of(value), _shown(value) if isinstance(value, list) else text
            if name is not None:
                found[name] = shown

    texts = [name for name in (*columns.items, *columns.questions, columns.prompt) if name is not None]
    read_records(path).scan(dict.fromkeys(texts, keep))
    return found


def _shown(value: Any) -> str:
    """A raw value as a person reads it: of a conversation what was said, and by whom."""
    if not isinstance(value, list):
        return whole_text(value)
    if text_of(value) is None:
        raise Unfit("expected text, got an empty list")
    who, what = ("role", "content") if "role" in value[0] else ("from", "value")
    return "\n\n".join(f"{part.get(who, '')}: {part.get(what, '')}" for part in value)
