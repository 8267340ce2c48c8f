"""Columns of numbers of a file: what is none, what is missing, and how heavy their tails are."""

import re
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from client.sources.numbers import DRESSED, LARGEST, SEPARATED, number_of
from client.sources.reading import Records, Unfit
from studies.data.findings import MOST_SHOWN, Finding
from studies.data.look_names import found_at
from studies.tails import tail_index

NOT_FINITE = re.compile(r"(?i)[+-]?(nan|inf|infinity)")
THREE_DIGITS = re.compile(r"[+-]?[1-9][0-9]{0,2}\.[0-9]{3}")  # 1.234: as some write a thousand and more
POINTS = "three-digits"
MOSTLY = 0.5  # a column whose cells are numbers more often than this is one of numbers


@dataclass
class NumberLook:
    """One column: its numbers, and the places of cells that are none, by code."""

    name: str
    values: "array[float]" = field(default_factory=lambda: array("d"))
    wrong: Counter[str] = field(default_factory=Counter)
    shown: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    count: int = 0
    otherwise: bool = False  # a number is written as no separator of thousands leaves it

    def add(self, value: Any) -> None:
        """Take the next raw value."""
        place, self.count = self.count, self.count + 1
        try:
            number = number_of(value)
        except Unfit:
            text = value.strip() if isinstance(value, str) else type(value).__name__
            self._note(_code(text), place, text)
            return
        if number != number:
            self._note("empty-cells", place, "")
        else:
            self.values.append(number)
            self._look_at_points(place, value, number)

    def _look_at_points(self, place: int, value: Any, number: float) -> None:
        """Note 1.234, until a number shows that a point is one here: 0.5, 1.25 or 1234."""
        text = value.strip() if isinstance(value, str) else ""
        if self.otherwise or (text.lstrip("+-").isdecimal() and abs(number) < 1000):
            return
        if THREE_DIGITS.fullmatch(text):
            self._note(POINTS, place, text)
            return
        self.otherwise = True
        self.wrong.pop(POINTS, None)
        self.shown.pop(POINTS, None)

    def _note(self, code: str, place: int, text: str) -> None:
        self.wrong[code] += 1
        if self.wrong[code] <= MOST_SHOWN:
            self.shown.setdefault(code, []).append((place, text))

    @property
    def numeric(self) -> bool:
        """Whether most cells that are not empty are numbers."""
        filled = self.count - self.wrong["empty-cells"]
        return filled > 0 and filled - self.wrong["no-number"] > MOSTLY * filled


def look_at_numbers(records: Records, names: Sequence[str]) -> list[NumberLook]:
    """All of these columns, in one pass. Raises SourceError."""
    looks = [NumberLook(name) for name in names]
    records.scan({look.name: look.add for look in looks}, numeric=True, word="column")
    return looks


def findings_of(records: Records, looks: Sequence[NumberLook]) -> Iterator[Finding]:
    """What is awkward about columns of numbers; columns of text have none."""
    for look in looks:
        for code, cells in look.shown.items():
            shown = [f"{look.name}: {text[:40]!r}" if text else look.name for _, text in cells]
            yield found_at(code, records, [place for place, _ in cells], shown, look.wrong[code])
        tail = tail_index(np.asarray(look.values))
        if tail is not None and tail.index < 2:
            most = f": --tail below {tail.index - 1:.2f}" if tail.index > 1 else ": no --tail fits"
            code = "no-mean" if tail.no_mean else "no-variance"
            yield Finding(code, len(look.values), (), (f"{look.name}: {tail}{most}",))


def facts_of(look: NumberLook) -> dict[str, Any]:
    """A column in numbers, for a table."""
    values = np.asarray(look.values)
    tail = tail_index(values) if len(values) else None
    low, median, high = (float(v) for v in np.quantile(values, (0, 0.5, 1))) if len(values) else (None,) * 3
    return {
        "column": look.name,
        "numbers": len(values),
        "empty": look.wrong["empty-cells"],
        "unusable": look.wrong.total() - look.wrong["empty-cells"] - look.wrong[POINTS],
        "minimum": low,
        "median": median,
        "maximum": high,
        "tail_index": None if tail is None else round(tail.index, 3),
    }


def _code(text: str) -> str:
    if NOT_FINITE.fullmatch(text):
        return "not-finite"
    if SEPARATED.fullmatch(text):
        return "thousands"
    if DRESSED.fullmatch(text):
        return "dressed"
    try:
        return "too-large" if abs(float(text)) > LARGEST else "no-number"
    except ValueError:
        return "no-number"
