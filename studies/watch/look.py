"""What the folder of a run says at a moment. Nothing is written or locked; what is half written is left for later."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from protocol.arms import Arm
from protocol.coins import Floats
from protocol.strict import StudyError
from protocol.study import Cell, cells
from studies import results
from studies.federate.progress import Progress, read_progress
from studies.folder import Folder, open_study
from studies.load import Loaded
from studies.parts import part_path
from studies.summary import Moments, Setting, by_group
from studies.watch.messages import Messages, messages
from studies.watch.pace import left

FINISHED, RUNS, STOPPED = "finished", "runs", "stopped"
Key = tuple[Setting, str]


@dataclass(frozen=True)
class Count:
    """Units of one n, and their repetitions: how many there are, and how many are finished."""

    n: int
    done: int
    units: int
    repetitions: int
    all_repetitions: int


@dataclass(frozen=True, eq=False)
class Seen:
    """A run at a moment, of a study or a federation from files: its name, its fingerprint in hex and its `arms`.

    `runtimes` of its parts, `state`, `counts` by n, the seconds `left` (None: not known) and since a sign of life
    (`quiet`), moments of the true L2 `errors` so far by setting and arm, `messages` of nodes, and names of parts that
    are `unread`, since they are damaged or another study's. A federation from files is one unit, whose errors nobody
    knows; `failed` says why it has no estimate.
    """

    folder: Folder
    name: str
    fingerprint: str
    arms: tuple[Arm, ...]
    runtimes: tuple[str, ...]
    state: str
    counts: tuple[Count, ...]
    left: float | None
    quiet: float
    errors: Mapping[Key, Moments]
    messages: Messages
    unread: tuple[str, ...] = ()
    failed: str = ""
    from_files: bool = False


@dataclass(frozen=True, eq=False)
class _Part:
    runtime: str
    errors: Mapping[Key, Floats]


@dataclass
class Watch:
    """Looks at one folder again and again, and reads a part once."""

    folder: Folder
    _study: tuple[int, Loaded, dict[str, Any]] | None = None
    _parts: dict[tuple[str, int], _Part | None] = field(default_factory=dict)

    def look(self, now: float) -> Seen:
        """What is there at `now`, seconds since 1970. Raises StudyError where no run has begun, or where it is none."""
        federation = None if self.folder.study.exists() else read_progress(self.folder.path)
        if federation is not None:
            return self._federation(federation, now)
        loaded, record = self._opened()
        units = cells(loaded.study, record["block"])
        paths = {cell: part_path(self.folder.parts, cell) for cell in units}
        finished = {cell: at for cell, path in paths.items() if (at := _time(path)) is not None}
        sign, begin = self._sign(finished), _time(self.folder.study) or 0.0
        state = RUNS if sign > begin or not record["sessions"] else STOPPED
        if len(finished) == len(units) and self.folder.results.exists():
            state = FINISHED
        errors = self._errors(loaded, [paths[cell] for cell in finished])
        return Seen(
            folder=self.folder,
            name=loaded.study.name,
            fingerprint=loaded.study.fingerprint.hex(),
            arms=loaded.study.arms,
            runtimes=tuple(sorted({part.runtime for part in self._parts.values() if part is not None})),
            state=state,
            counts=_counts(loaded, units, finished),
            left=left(units, finished, begin if state == RUNS else now, now, record["sessions"]),
            quiet=max(0.0, now - max(sign, begin)),
            errors=errors,
            messages=messages(self._said()),
            unread=tuple(sorted(name for (name, _), part in self._parts.items() if part is None)),
        )

    def _federation(self, progress: Progress, now: float) -> Seen:
        """A federation from files, as what it writes says."""
        ended, sign = progress.ended, max(self._sign({}), progress.began)
        finished = ended is not None and not progress.failed
        return Seen(
            folder=self.folder,
            name=f"federation of {progress.split}",
            fingerprint=progress.fingerprint,
            arms=progress.arms,
            runtimes=(progress.runtime,),
            state=RUNS if ended is None else FINISHED if finished else STOPPED,
            counts=(Count(progress.rows, int(finished), 1, int(finished), 1),),
            left=0.0 if finished else None,
            quiet=max(0.0, now - (sign if ended is None else ended)),
            errors={},
            messages=messages(self._said()),
            failed=progress.failed,
            from_files=True,
        )

    def _opened(self) -> tuple[Loaded, dict[str, Any]]:
        """The study, read again where its file is another one."""
        try:
            stamp = self.folder.study.stat().st_mtime_ns
        except OSError:
            stamp = 0  # then reading it says what is wrong
        if self._study is None or self._study[0] != stamp:
            self._study = stamp, open_study(self.folder), self.folder.record()
        return self._study[1:]

    def _sign(self, finished: Mapping[Cell, float]) -> float:
        """When the run last wrote something, seconds since 1970."""
        places = (self.folder.parts, self.folder.logs, self.folder.rounds_now, self.folder.journal)
        return max([*(at for place in places if (at := _time(place)) is not None), *finished.values()], default=0.0)

    def _said(self) -> Iterator[str]:
        for path in (self.folder.rounds, self.folder.rounds_now):
            with suppress(OSError, UnicodeDecodeError):
                yield from path.read_text("utf-8").splitlines()

    def _errors(self, loaded: Loaded, paths: list[Path]) -> dict[Key, Moments]:
        """Moments over all finished repetitions; parts that are gone are forgotten."""
        keep = {}
        for path in paths:
            with suppress(FileNotFoundError):
                key = (path.name, path.stat().st_mtime_ns)
                keep[key] = self._parts[key] if key in self._parts else _read(loaded, path)
        self._parts = keep
        values: dict[Key, list[Floats]] = {}
        for part in filter(None, keep.values()):
            for one, found in part.errors.items():
                values.setdefault(one, []).append(found)
        return {one: Moments.of(np.concatenate(found)) for one, found in values.items()}


def _read(loaded: Loaded, path: Path) -> _Part | None:
    """A part's true L2 errors by setting and arm; None where it does not read or is another study's."""
    try:
        part = results.read(path)
    except StudyError:
        return None
    if part["study_fingerprint"].unique().to_pylist() != [loaded.study.fingerprint.hex()]:
        return None
    return _Part(part["runtime"][0].as_py(), by_group(results.merge([part], loaded.study.arms), "error_l2"))


def _counts(loaded: Loaded, units: list[Cell], finished: Mapping[Cell, float]) -> tuple[Count, ...]:
    found = []
    for n in loaded.study.grid.n:
        own = [cell for cell in units if cell.n == n]
        done = [cell for cell in own if cell in finished]
        repetitions = sum(cell.repetitions for cell in done)
        found.append(Count(n, len(done), len(own), repetitions, loaded.study.repetitions))
    return tuple(found)


def _time(path: Path) -> float | None:
    """When a file was last written; None where it is not there."""
    try:
        return path.stat().st_mtime
    except OSError:
        return None
