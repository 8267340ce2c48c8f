"""Answers that a labeler gives one by one, kept in one private file until they are released, and then for good.

Until then an answer can be changed and taken back: what was taken back stands nowhere any more.
"""

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from client.private_files import readable_by_others, replace_private
from protocol import strict
from protocol.strict import StudyError

FIRST, SECOND, TIE, SKIP = "first", "second", "tie", "skip"
KINDS = (FIRST, SECOND, TIE, SKIP)
FILE, LOCK = "answers.json", "lock"
FORMAT = "halftruth answers 1"


class AnswersUnusable(ValueError):
    """A file of answers that cannot be used: says which, and what was expected. It never holds an answer."""


class Frozen(ValueError):
    """The pair's answer was released, and stays as it is."""


class Answers:
    """One labeler's answers to pairs by key, the pair's name; each is one of `KINDS`, about the pair in its own order.

    `put` and `undo` are on disk when they return, and raise OSError with nothing changed where the disk does not take
    them. A pair that was skipped when others were released may still be answered.
    """

    def __init__(self, path: Path, labeler: str) -> None:
        self._path, self._labeler = path, labeler
        self._released: dict[str, str] = {}
        self._open: list[tuple[str, str]] = []
        if path.exists():
            self._read()

    def __repr__(self) -> str:
        return f"Answers({self._path}, content hidden)"

    @property
    def now(self) -> dict[str, str]:
        """The answer of each pair that has one, skips included."""
        return {**self._released, **dict(self._open)}

    @property
    def released(self) -> dict[str, str]:
        """What was released: answers that are no skips."""
        return {key: kind for key, kind in self._released.items() if kind != SKIP}

    @property
    def latest(self) -> str | None:
        """The pair whose answer `undo` takes back."""
        return self._open[-1][0] if self._open else None

    def put(self, key: str, kind: str) -> None:
        """Answer a pair, or answer it otherwise. Raises Frozen, ValueError for another kind, OSError."""
        if kind not in KINDS:
            raise ValueError(f"expected an answer out of {', '.join(KINDS)}, got something else")
        if self._released.get(key, SKIP) != SKIP:
            raise Frozen("expected a pair that was not released: its answer stays as it is")
        self._write(self._released, [*self._open, (key, kind)])

    def undo(self) -> str | None:
        """Take the latest answer since the last release back, and bring the one before of its pair; None without one.

        Raises OSError.
        """
        key = self.latest
        if key is not None:
            self._write(self._released, self._open[:-1])
        return key

    def release(self) -> None:
        """Freeze all answers: from now on they may be asked for. Raises OSError."""
        self._write(self.now, [])

    def _write(self, released: dict[str, str], open_: list[tuple[str, str]]) -> None:
        content = {"format": FORMAT, "labeler": self._labeler, "released": released, "open": open_}
        replace_private(self._path, json.dumps(content, indent=0, ensure_ascii=False).encode() + b"\n")
        self._released, self._open = released, open_

    def _read(self) -> None:
        try:
            if readable_by_others(self._path):
                raise StudyError("expected a file that only its user can read: chmod 600")
            labeler, self._released, self._open = _parsed(self._path.read_bytes())
        except (OSError, ValueError) as error:  # of JSON only the place is told, of the rest nothing that stands there
            raise AnswersUnusable(f"{self._path}: {_why(error)}") from None
        if labeler != self._labeler:
            raise AnswersUnusable(f"{self._path}: expected answers of {self._labeler}, got those of {labeler}")


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep a folder of answers to this process. Raises AnswersUnusable where another one has it, OSError."""
    with (folder / LOCK).open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AnswersUnusable(f"{folder}: expected nobody at these answers, another halftruth label is") from None
        yield


def _parsed(raw: bytes) -> tuple[str, dict[str, str], list[tuple[str, str]]]:
    keys, content = ("format", "labeler", "released", "open"), json.loads(raw)
    if not isinstance(content, dict):  # what it is instead is not repeated
        raise StudyError("expected a table, got something else")
    top = strict.table(content, "answers", keys, keys)
    if top["format"] != FORMAT:
        raise StudyError(f"expected the format {FORMAT!r}, got another: a newer version wrote it")
    released, entries = top["released"], top["open"]
    if not isinstance(released, dict) or not isinstance(entries, list):
        raise StudyError("expected a table of released answers and a list of others")
    if not all(isinstance(entry, list) and len(entry) == 2 for entry in entries):
        raise StudyError("expected a pair and its answer in each entry")
    found = [(key, kind) for key, kind in entries]
    if not all(_sound(key, kind) for key, kind in [*released.items(), *found]):
        raise StudyError(f"expected pairs by name, each with one of {', '.join(KINDS)}")
    if any(released.get(key, SKIP) != SKIP for key, _ in found):
        raise StudyError("expected no other answer to a pair that was released")
    return strict.text(top["labeler"], "labeler"), dict(released), found


def _sound(key: Any, kind: Any) -> bool:
    return isinstance(key, str) and isinstance(kind, str) and kind in KINDS


def _why(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"expected JSON, got something else in line {error.lineno}"
    if isinstance(error, UnicodeDecodeError):
        return "expected UTF-8 text, got something else"
    return strict.reason(error)
