"""Both items of a pair in one cell: what stands between them, as its holder says or as all cells agree."""

import re
from dataclasses import replace

from client.sources.columns import Columns
from client.sources.reading import Records, SourceError

SEPARATORS = (",", ";", "|", "/", "\t", "\n", " vs. ", " vs ", " v ", " > ", " - ")
BRACKETS = {"[": "]", "(": ")", "{": "}"}
Pair = tuple[str | None, str | None]


def with_separator(records: Records, columns: Columns) -> Columns:
    """The same columns with what stands between two items of a cell, where they stand in one.

    Without the holder's word it is the one known separator that parts every cell in two. It follows from items alone.
    Raises SourceError where none does, naming the first cell, and where several do.
    """
    name = columns.both
    if name is None or columns.between is not None:
        return columns
    records.load(columns.named())
    cells = {cell for cell in records.column(name) if cell is not None}
    parted = {between: sum(_parts(cell, between) is not None for cell in cells) for between in SEPARATORS}
    fitting = [between for between, count in parted.items() if count == len(cells)]
    if cells and len(fitting) > 1:
        found = " and ".join(map(repr, fitting))
        raise SourceError(f"{records.path}, field {name}: expected one way to part its cells, got {found}: {_GIVE}")
    likely = max(SEPARATORS, key=parted.__getitem__)
    if cells and not parted[likely]:
        place = next(place for place, cell in enumerate(records.column(name)) if cell is not None)
        raise _error(records, name, place, " or ".join(map(repr, SEPARATORS)))
    return replace(columns, between=likely)


def parted_cells(records: Records, name: str, between: str) -> list[Pair]:
    """The two items of each cell of a column, None and None of an empty one. Raises SourceError for another number."""
    found: list[Pair] = []
    for place, cell in enumerate(records.column(name)):
        parts = (None, None) if cell is None else _parts(cell, between)
        if parts is None:
            raise _error(records, name, place, repr(between))
        found.append(parts)
    return found


_GIVE = "say what stands between the two items: --pair-separator (in a node file: between)"


def _error(records: Records, name: str, place: int, between: str) -> SourceError:
    where, cell = f"{records.where(place)}, field {name}", records.column(name)[place]
    return SourceError(f"{where}: expected two items with one {between} between them, got {cell!r}. Else {_GIVE}")


def _parts(cell: str, between: str) -> tuple[str, str] | None:
    """Both items of a cell; None for another number of them, and for a list in brackets.

    >>> _parts("a VS b", " vs "), _parts("a,b,c", ","), _parts("(a, b)", ","), _parts("f(x), g(x)", ",")
    (('a', 'b'), None, None, ('f(x)', 'g(x)'))
    """
    parts = [part.strip() for part in re.split(re.escape(between), cell, flags=re.IGNORECASE)]
    if len(parts) != 2 or not all(parts):
        return None
    first, second = parts
    return None if BRACKETS.get(first[0], first) not in first else (first, second)
