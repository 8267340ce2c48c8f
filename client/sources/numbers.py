"""Cells of a holder's file as numbers, read strictly. What a cell held is in an error for the holder's own terminal."""

import math
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from client.sources.reading import Records, Sink, SourceError, Texts, Unfit, name_of, text_of

Floats = NDArray[np.float64]

LARGEST = 1e100  # squares of larger numbers leave no room for sums
LONGEST_SHOWN = 40
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_PARTED = r"' \u00a0\u202f\u2009\u2019_"  # what parts thousands, beside a comma or a point
_THOUSANDS = rf"[+-]?[0-9]{{1,3}}(?:[,{_PARTED}][0-9]{{2,3}})*[,{_PARTED}][0-9]{{3}}(?:\.[0-9]*)?"
_POINTS = r"[+-]?[0-9]{1,3}(?:\.[0-9]{3}){2,}"
_COMMA = r"[+-]?[0-9]*,[0-9]+"
_BOTH = rf"[+-]?[0-9]{{1,3}}(?:[.{_PARTED}][0-9]{{3}})+,[0-9]*"
_MONEY = r"[$€£¥₹]"
_DRESSED = (
    rf"(?=.*(?:{_MONEY}|[%‰()]))[(+-]? ?{_MONEY}? ?[+-]?[0-9][0-9.,{_PARTED}]* ?(?:%|‰|{_MONEY})? ?\)?"  # 12 %, ($3)
)
SEPARATED = re.compile("|".join((_THOUSANDS, _POINTS, _COMMA, _BOTH)))
DRESSED = re.compile(_DRESSED)
_WRITTEN = {  # numbers as people write them
    _THOUSANDS: "without separators of thousands",
    _POINTS: "without separators of thousands",
    _COMMA: "with a decimal point",
    _BOTH: "without separators of thousands and with a decimal point",
    _DRESSED: "without a currency, a percent sign or brackets",
}
_HINTS = {
    r"(?i)nan|n/?a|null|none|nil|-+|\?|\.": "or an empty cell where it is missing",
    r"(?i)[+-]?inf(?:inity)?": "that is finite",
}


@dataclass(frozen=True)
class Scales:
    """Public numbers by column: a value x becomes (x - centre) / scale; 0 and 1 where a column has none.

    They have to be known beforehand: a mean or a spread of the file would tell of its records, outside every claim.
    """

    centre: Mapping[str, Decimal] = field(default_factory=dict)
    scale: Mapping[str, Decimal] = field(default_factory=dict)

    @property
    def names(self) -> set[str]:
        """The columns that have some."""
        return {*self.centre, *self.scale}

    def written_out(self, name: str, columns: Sequence[str]) -> "Scales":
        """The same with the numbers of a name given to each of the columns that it stands for."""
        centre, scale = (
            {key: value for key, value in numbers.items() if key != name}
            | (dict.fromkeys(columns, numbers[name]) if name in numbers else {})
            for numbers in (self.centre, self.scale)
        )
        return Scales(centre, scale)

    def of(self, name: str, values: Floats) -> Floats:
        """Values of a column, scaled."""
        moved: Floats = (values - float(self.centre.get(name, 0))) / float(self.scale.get(name, 1))
        return moved


def numbers(records: Records, name: str) -> Floats:
    """One column, shape (records,): see `number_columns`."""
    return number_columns(records, (name,))[0]


def number_columns(records: Records, names: Sequence[str]) -> list[Floats]:
    """Columns, each of shape (records,), in one pass over the file: NaN exactly where a cell is empty.

    "NAME=TEXT", where no column has that name, is 1 where the cell of NAME is TEXT and 0 where it is another text.
    Raises SourceError with file, line, column and value for a cell that is no plain decimal number, or beyond 1e100.
    """
    found = {name: array("d") for name in dict.fromkeys(names)}
    plain = {name: _number_sink(found[name]) for name in found if not _is_text(records, name)}
    records.scan(plain, numeric=True, word="column")
    for name in found.keys() - plain.keys():
        column, _, text = name.partition("=")
        records.scan({column: _text_sink(found[name], name_of(text))}, word="column")
    return [np.array(found[name]) for name in names]


def number_of(cell: Any) -> float:
    """A raw cell as a number; NaN where it is empty. Raises Unfit for another text, and for a number beyond 1e100."""
    text = cell.strip() if isinstance(cell, str) else text_of(cell)
    if not text:
        return math.nan
    value = plain_number(text)
    if not abs(value) <= LARGEST:
        raise Unfit(_misread(text))
    return value


def plain_number(text: str) -> float:
    """A plain decimal number, of any size; NaN for any other text."""
    return float(text) if _NUMBER.fullmatch(text) else math.nan


def _number_sink(found: "array[float]") -> Sink:
    return lambda cell: found.append(number_of(cell))


def _text_sink(found: "array[float]", wanted: str) -> Sink:
    def add(cell: Any) -> None:
        text = text_of(cell)
        found.append(math.nan if text is None else float(text == wanted))

    return add


def absent_texts(records: Records, wanted: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Wanted names NAME=TEXT of which no cell is TEXT, perhaps misspelt; and how many different texts NAME has."""
    for name in wanted:
        column, _, text = name.partition("=")
        if _is_text(records, name) and text not in (cells := records.column(column)):
            yield name, len({cell for cell in cells if cell is not None})


def _is_text(records: Records, name: str) -> bool:
    return name not in records.names and "=" in name


def filled(records: Records, name: str) -> list[str]:
    """A column of names, none of them empty. Raises SourceError."""
    cells: Texts = records.column(name)
    for place, cell in enumerate(cells):
        if cell is None:
            raise SourceError(f"{records.where(place)}, column {name}: expected a name, got an empty cell")
    return [cell for cell in cells if cell is not None]


def column_of(records: Records, name: str) -> str:
    """The column of the file that a wanted name is read from."""
    return name if name in records.names else name.partition("=")[0]


def missing_columns(records: Records, wanted: Iterator[str]) -> list[str]:
    """Wanted names that are no column of the file, or one of several."""
    return [name for name in wanted if records.names.count(column_of(records, name)) != 1]


def how_to_write(cell: str) -> str:
    """How a number is to be written that stands as people write it, after "expected a number"; empty for other texts.

    >>> how_to_write("$1,200"), how_to_write("7,5"), how_to_write("12")
    ('without a currency, a percent sign or brackets', 'with a decimal point', '')
    """
    return next((hint for pattern, hint in _WRITTEN.items() if re.fullmatch(pattern, cell)), "")


def _misread(cell: str) -> str:
    shown = cell if len(cell) <= LONGEST_SHOWN else cell[:LONGEST_SHOWN] + "..."
    other = next((hint for pattern, hint in _HINTS.items() if re.fullmatch(pattern, cell)), "")
    hint = how_to_write(cell) or other
    if _NUMBER.fullmatch(cell):
        hint = f"of at most {LARGEST:g} in size: scale it"
    return f"expected a number{f' {hint}' if hint else ''}, got {shown!r}"
