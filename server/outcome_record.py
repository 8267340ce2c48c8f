"""Outcomes on their way from a server's process to whoever scores them: exact JSON lines, in a file or in a log."""

import base64
import binascii
import json
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocol.privacy import Guarantee, Unit
from protocol.study import Cell, Study
from server.outcome import Outcome

OUTCOME, DONE, FAILED = "halftruth-outcome", "halftruth-done", "halftruth-failed"
LONGEST_LINE = 2000
# At the start of a line, behind a logger's level and colours only: an error's text may be a client's words.
_LINE = re.compile(rf"(?:\x1b\[[\d;]*m|INFO|[\s:])*({OUTCOME}|{DONE}|{FAILED})(?: (.*))?")
_CELL = re.compile(r"cell-(\d{1,10})-(\d{1,10})-(\d{1,10})")


class RecordError(ValueError):
    """A line that is no outcome of the study."""


def encode(outcome: Outcome, study: Study) -> str:
    """One line of JSON, without its newline: the arm by its index, floats in hexadecimal, decimals as text."""
    claim = outcome.claim
    return json.dumps(
        {
            "arm": study.arms.index(outcome.arm),
            "n": outcome.n,
            "repetition": outcome.repetition,
            "epsilon": _text(outcome.epsilon),
            "delta": _text(outcome.delta),
            "theta": _hex(outcome.theta),
            "ci_low": _hex(outcome.ci_low),
            "ci_high": _hex(outcome.ci_high),
            "hit_boundary": outcome.hit_boundary,
            "claim": None if claim is None else [_text(claim.epsilon), _text(claim.delta), int(claim.unit)],
            "computed_epsilon": _text(outcome.computed_epsilon),
            "coins": outcome.coins,
            "warnings": list(outcome.warnings),
            "levels": [[str(level), count] for level, count in outcome.levels],
        },
        separators=(",", ":"),
    )


def decode(line: str, study: Study) -> Outcome:
    """The outcome that `encode` wrote, equal in every field and bit. Raises RecordError."""
    try:
        content = json.loads(line)
        claim = content["claim"]
        return Outcome(
            arm=study.arms[content["arm"]],
            n=content["n"],
            repetition=content["repetition"],
            epsilon=_decimal(content["epsilon"]),
            delta=_decimal(content["delta"]),
            theta=_floats(content["theta"]),
            ci_low=None if content["ci_low"] is None else _floats(content["ci_low"]),
            ci_high=None if content["ci_high"] is None else _floats(content["ci_high"]),
            hit_boundary=content["hit_boundary"],
            claim=None if claim is None else Guarantee(Decimal(claim[0]), Decimal(claim[1]), Unit(claim[2])),
            computed_epsilon=_decimal(content["computed_epsilon"]),
            coins=content["coins"],
            warnings=tuple(content["warnings"]),
            levels=tuple((Decimal(level), int(count)) for level, count in content["levels"]),
        )
    except (ValueError, KeyError, IndexError, TypeError, InvalidOperation) as error:
        raise RecordError(f"expected an outcome of study {study.name!r}, got a line that is none: {error!r}") from None


def cell_name(cell: Cell) -> str:
    """What a cell is called in file names and logs: cell-<n>-<first repetition>-<repetitions>."""
    return f"cell-{cell.n}-{cell.first_repetition}-{cell.repetitions}"


def parse_cell(name: str) -> Cell:
    """The cell of a name. Raises RecordError.

    >>> parse_cell("cell-1000-30-10")
    Cell(n=1000, first_repetition=30, repetitions=10)
    """
    match = _CELL.fullmatch(name)
    if match is None:
        raise RecordError(f"expected cell-<n>-<first>-<count>, got {name!r}")
    return Cell(*map(int, match.groups()))


def log_lines(cell: Cell, records: Sequence[str]) -> Iterator[str]:
    """The records of a cell as lines of a log, of at most 2,000 characters: marker, cell, i/of, base64 of zlib."""
    text = base64.b64encode(zlib.compress("\n".join(records).encode(), 9)).decode("ascii")
    size = LONGEST_LINE - 100
    chunks = [text[at : at + size] for at in range(0, len(text), size)]
    for index, chunk in enumerate(chunks, start=1):
        yield f"{OUTCOME} {cell_name(cell)} {index}/{len(chunks)} {chunk}"


@dataclass
class Lines:
    """Reads the lines of a log; a line seen again changes nothing, and nothing follows the end of a run.

    `done` and `failed` (a reason) say how the run ended.
    """

    done: bool = False
    failed: str | None = None
    _parts: dict[str, dict[int, str]] = field(default_factory=dict)
    _finished: set[str] = field(default_factory=set)

    def feed(self, line: str) -> tuple[Cell, list[str]] | None:
        """Take one line; returns a cell and its records when the line completes them. Raises RecordError."""
        match = _LINE.match(line)
        if match is None or self.done or self.failed is not None:
            return None
        marker, rest = match.group(1), (match.group(2) or "").strip()
        if marker == DONE:
            self.done = True
        elif marker == FAILED:
            self.failed = rest or "no reason given"
        else:
            return self._take(rest)
        return None

    def _take(self, rest: str) -> tuple[Cell, list[str]] | None:
        match = re.fullmatch(r"(\S+) (\d+)/(\d+) (\S+)", rest)
        if match is None:
            raise RecordError(f"expected <cell> <i>/<of> <chunk> after {OUTCOME}, got {rest[:60]!r}")
        name, index, count, chunk = match.group(1), int(match.group(2)), int(match.group(3)), match.group(4)
        cell = parse_cell(name)
        parts = self._parts.setdefault(name, {})
        parts[index] = chunk
        if name in self._finished or set(parts) != set(range(1, count + 1)):
            return None
        self._finished.add(name)
        text = "".join(parts[i] for i in sorted(parts))
        try:
            return cell, zlib.decompress(base64.b64decode(text, validate=True)).decode().split("\n")
        except (binascii.Error, zlib.error, UnicodeDecodeError) as error:
            raise RecordError(f"expected the records of {name}, got a damaged log: {error}") from None


def _text(value: Decimal | None) -> str | None:
    return None if value is None else str(value)


def _decimal(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)


def _hex(values: NDArray[np.float64] | None) -> list[str] | None:
    return None if values is None else [float(value).hex() for value in values]


def _floats(values: list[Any]) -> NDArray[np.float64]:
    return np.array([float.fromhex(value) for value in values])
