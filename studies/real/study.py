"""A real study as it is understood: data, claims, ways, the lines of its table, and what they should show."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import NamedTuple

from client.sources.ranking_labels import RankingAs
from client.table_file import TableFile
from protocol.decimals import canonical
from protocol.privacy import Unit
from protocol.trust import Trust
from studies.real.ways import Way

TOP = RankingAs()
NO_CLAIM = "-"
Cells = tuple[str, ...]


@dataclass(frozen=True)
class Vectors:
    """What describes each answer: arrays of an .npz, a name out of `items` and numbers `values`, a row for each answer.

    `item_a` and `item_b` are the columns of the data that name the two answers in the same way.
    """

    file: Path
    items: tuple[str, ...]
    values: str
    item_a: tuple[str, ...]
    item_b: tuple[str, ...]


class Line(NamedTuple):
    """One line of a table: what is asked of rankings, the way, its level (None: no claim), and its cap (0: none)."""

    asked: RankingAs | None
    way: Way
    level: Decimal | None
    cap: int


@dataclass(frozen=True)
class Expected:
    """That in `measure`, "accuracy" or "log-loss", the line with the cells `better` is better than another one."""

    measure: str
    better: Cells
    than: Cells

    def __str__(self) -> str:
        return f"{self.measure} of {', '.join(self.better)} better than of {', '.join(self.than)}"


@dataclass(frozen=True)
class RealStudy:
    """A study of a file: every way at every level, and what each is worth for those who were kept out.

    Of rankings each of `asked` is tried, None where files hold comparisons. One in `one_in` labelers or labels is kept
    out. A claim is for the `unit`; at the unit LABELER each of `caps` is tried, else they are (0,).
    """

    name: str
    seeds: int
    data: TableFile
    vectors: Vectors | None
    asked: tuple[RankingAs | None, ...]
    one_in: int
    by_labeler: bool
    levels: tuple[Decimal, ...]
    delta: Decimal
    unit: Unit
    caps: tuple[int, ...]
    ways: tuple[Way, ...]
    expected: tuple[Expected, ...] = ()

    @property
    def heads(self) -> Cells:
        """What names a line."""
        asked = ("asked",) if self.asked != (None,) else ()
        return (*asked, "way", "epsilon", *(("cap",) if self.unit is Unit.LABELER else ()))

    def lines(self) -> Iterator[Line]:
        """The lines of the table, in its order."""
        for asked, way in product(self.asked, self.ways):
            if way.answers(asked):
                clear = way.trust is Trust.CLEAR
                levels: tuple[Decimal | None, ...] = (None,) if clear else self.levels
                caps = (0,) if clear else self.caps
                yield from (Line(asked, way, level, cap) for level, cap in product(levels, caps))

    def cells(self, line: Line) -> Cells:
        """The texts under `heads`."""
        texts = {
            "asked": str(line.asked),
            "way": line.way.name,
            "epsilon": NO_CLAIM if line.level is None else canonical(line.level),
            "cap": str(line.cap or NO_CLAIM),
        }
        return tuple(texts[head] for head in self.heads)
