"""Part files of a run: one a finished unit, named after its cell."""

import re
from pathlib import Path

from protocol.study import Cell

OVERHEAD = 3000  # what a repetition costs besides its rows, in rows: for the estimate of the time left


def part_path(parts: Path, cell: Cell) -> Path:
    """Where a cell's rows are: the name carries n, the first repetition and their number."""
    return parts / f"n{cell.n:010d}-r{cell.first_repetition:010d}-c{cell.repetitions:010d}.parquet"


def part_cell(path: Path) -> Cell | None:
    """The cell that a part file is named after; None for any other file."""
    match = re.fullmatch(r"n(\d{10})-r(\d{10})-c(\d{10})\.parquet", path.name)
    return None if match is None else Cell(*(int(number) for number in match.groups()))


def weight(cell: Cell) -> int:
    """What a cell costs, in rows."""
    return cell.repetitions * (cell.n + OVERHEAD)


def describe_cell(cell: Cell) -> str:
    """A cell in words."""
    return f"n = {cell.n}, repetitions {cell.first_repetition}..{cell.first_repetition + cell.repetitions - 1}"
