"""Where a server's process leaves outcomes for whoever scores them: a folder, or lines of the run's log."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from protocol.study import Cell, Study
from server.outcome import Outcome
from server.outcome_record import DONE, FAILED, LONGEST_LINE, cell_name, encode, log_lines

DONE_FILE, FAILED_FILE, ROUNDS_FILE = "done", "failed.txt", "rounds.txt"


class Delivery(Protocol):
    """Takes cells as they are finished, and says at the end how it went."""

    def has(self, cell: Cell) -> bool:
        """Whether a cell is there already."""

    def heard(self, words: str) -> None:
        """A round was answered: a sign of life, in a line."""

    def deliver(self, study: Study, cell: Cell, outcomes: Sequence[Outcome]) -> None:
        """Leave the outcomes of a cell, whole or not at all."""

    def done(self) -> None:
        """All cells are there."""

    def failed(self, reason: str) -> None:
        """There will be no more; `reason` is one line."""


@dataclass(frozen=True)
class ToFolder:
    """One file a cell, renamed into place; last a file `done`, or `failed.txt` with the reason.

    `rounds.txt` grows by a line a round: seconds since 1970, and what was said.
    """

    folder: Path

    def has(self, cell: Cell) -> bool:
        """Whether the cell's file is there."""
        return self._path(cell).exists()

    def heard(self, words: str) -> None:
        """Append a line."""
        with (self.folder / ROUNDS_FILE).open("a", encoding="utf-8") as file:
            file.write(f"{time.time():.3f} {words}\n")

    def deliver(self, study: Study, cell: Cell, outcomes: Sequence[Outcome]) -> None:
        """Write the cell's file."""
        self._write(self._path(cell), "".join(f"{encode(outcome, study)}\n" for outcome in outcomes))

    def done(self) -> None:
        """Write `done`."""
        self._write(self.folder / DONE_FILE, "")

    def failed(self, reason: str) -> None:
        """Write `failed.txt`."""
        self._write(self.folder / FAILED_FILE, f"{reason}\n")

    def _path(self, cell: Cell) -> Path:
        return self.folder / f"{cell_name(cell)}.jsonl"

    def _write(self, path: Path, text: str) -> None:
        draft = path.with_name(f".{path.name}.{os.getpid()}.part")
        with draft.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)


@dataclass(frozen=True)
class ToLog:
    """Lines for `server.outcome_record.Lines`, and the estimates of each cell's first repetition for those who read."""

    write: Callable[[str], None]

    def has(self, cell: Cell) -> bool:
        """A log is not read."""
        return False

    def heard(self, words: str) -> None:
        """Write a line."""
        self.write(words)

    def deliver(self, study: Study, cell: Cell, outcomes: Sequence[Outcome]) -> None:
        """Write the cell's lines."""
        for line in log_lines(cell, [encode(outcome, study) for outcome in outcomes]):
            self.write(line)
        for outcome in outcomes:
            if outcome.repetition == cell.first_repetition:
                self.write(_shown(outcome))

    def done(self) -> None:
        """Write the last line."""
        self.write(DONE)

    def failed(self, reason: str) -> None:
        """Write the last line, with the reason."""
        self.write(f"{FAILED} {reason}")


def _shown(outcome: Outcome) -> str:
    theta = " ".join(f"{value:+.3f}" for value in outcome.theta)
    said = ["no claim" if outcome.claim is None else str(outcome.claim), f"coins: {outcome.coins or 'none'}"]
    return "; ".join((f"n = {outcome.n}, {outcome.arm.name}: theta = {theta}", *said))


def one_line(words: str) -> str:
    """Words of which some may be a client's, as one line of a bounded length: no reader takes it for several."""
    text = " ".join(words.split())
    return text if len(text) <= LONGEST_LINE - 100 else text[: LONGEST_LINE - 103] + "..."
