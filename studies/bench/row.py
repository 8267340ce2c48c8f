"""One side of a figure as measured: a line of the JSON file, of which tables and the regression check are made."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from protocol.strict import StudyError, unopened
from studies.files import write_text

OURS, PEER, LIMIT = "ours", "peer", "limit"


@dataclass(frozen=True)
class Row:
    """What a side reached: `value`, `least` and `most` in the figure's unit, the first of them the median of `runs`.

    `ratio` is the median over rounds of this side's cost divided by ours of the same round: how many times faster
    than a peer we are, or which share of the limit we reach.
    """

    figure: str
    side: str
    role: str
    unit: str
    value: float
    least: float
    most: float
    ratio: float
    runs: int
    small: bool


def dump(rows: Sequence[Any], facts: Mapping[str, Any], path: Path) -> None:
    """Write rows, of whatever dataclass, as a list of objects, each with the facts: `pandas.read_json(path)`."""
    write_text(path, json.dumps([{**asdict(row), **facts} for row in rows], indent=1) + "\n")


def parse(path: Path) -> list[Row]:
    """Rows of a recorded run, without its machine. Raises StudyError naming what is wrong."""
    names = [field.name for field in fields(Row)]
    try:
        return [Row(**{name: one[name] for name in names}) for one in json.loads(path.read_text("utf-8"))]
    except OSError as error:
        raise StudyError(f"expected a recorded run at {path}, {unopened(error)}") from None
    except (ValueError, KeyError, TypeError):
        raise StudyError(f"expected a recorded run of halftruth bench, got another file: {path}") from None
