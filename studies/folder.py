"""A results folder: study.json, parts/, results.parquet. Nothing in it is overwritten unless asked."""

import json
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from protocol import strict
from protocol.choice_features import packed
from protocol.counting import counted
from protocol.strict import StudyError, unopened
from protocol.study import Cell, cells
from studies import machine, results
from studies.files import write_atomically, write_text
from studies.load import Loaded, changes, restore
from studies.parts import describe_cell, part_cell, part_path

FORMAT = 1


@dataclass(frozen=True)
class Folder:
    """The files of one run in `path`."""

    path: Path

    @property
    def study(self) -> Path:
        """The resolved study, with versions, machine and durations."""
        return self.path / "study.json"

    @property
    def features(self) -> Path:
        """Given features by value."""
        return self.path / "features.npy"

    @property
    def parts(self) -> Path:
        """One file per finished unit."""
        return self.path / "parts"

    @property
    def results(self) -> Path:
        """All rows, merged and sorted."""
        return self.path / "results.parquet"

    @property
    def summary(self) -> Path:
        """Every metric of every arm at every setting, as CSV."""
        return self.path / "summary.csv"

    @property
    def paired(self) -> Path:
        """Paired differences of all arms, as CSV."""
        return self.path / "paired.csv"

    @property
    def logs(self) -> Path:
        """What the processes of a run printed that did not finish."""
        return self.path / "logs"

    @property
    def rounds(self) -> Path:
        """A line for each round that was asked over Flower: when, how much, and how many messages came to what."""
        return self.path / "rounds.txt"

    @property
    def rounds_now(self) -> Path:
        """A link to what a server of this run's own says of its rounds, while it runs."""
        return self.path / "rounds-now.txt"

    @property
    def journal(self) -> Path:
        """Answered rounds of units that are not finished: a run that goes on asks them of nobody."""
        return self.path / "journal"

    @property
    def figures(self) -> Path:
        """Plots."""
        return self.path / "figures"

    def finished(self) -> list[Cell]:
        """Cells that have a part file."""
        found = (part_cell(path) for path in sorted(self.parts.glob("*.parquet")))
        return [cell for cell in found if cell is not None]

    def record(self) -> dict[str, Any]:
        """The content of study.json; raises StudyError where it is missing or not ours."""
        try:
            content = json.loads(self.study.read_text(encoding="utf-8"))
        except OSError as error:
            raise StudyError(f"{self.study}: expected a results folder with this file, {unopened(error)}") from None
        except ValueError as error:
            raise StudyError(f"{self.study}: expected JSON, {error}") from None
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise StudyError(f"{self.study}: expected a study.json of format {FORMAT}")
        return content

    def save(self, record: dict[str, Any]) -> None:
        """Write study.json atomically."""
        text = json.dumps(record, indent=2) + "\n"
        write_text(self.study, text)


def one_run(path: Path) -> Folder:
    """The folder of a run. Raises StudyError for one of policies or attacks."""
    if (worlds := path / "worlds").is_dir():
        raise StudyError(f"{path}: expected one run, got a study of policies: name a world's folder in {worlds}")
    if any((path / name).exists() for name in ("attack.json", "attacks.parquet")):
        raise StudyError(f"{path}: expected one run, got a study of attacks, which has its tables and plots")
    return Folder(path)


def prepare(folder: Folder, loaded: Loaded, block: int | None, resume: bool, overwrite: bool) -> list[Cell]:
    """Make the folder ready and return all units of the run.

    Raises StudyError where there are results already and neither `resume` nor `overwrite` was said, or where the study
    to resume is another one: says what changed. A resumed run keeps its own block.
    """
    strict.folder(folder.path, "--out")
    there = folder.study.exists() or folder.results.exists() or bool(folder.finished())
    if there and overwrite:
        _clear(folder)
    elif there and resume:
        return _resumed(folder, loaded)
    elif there:
        raise StudyError(
            f"{folder.path}: there are results already ({counted(len(folder.finished()), 'finished unit')}). "
            "Say --resume to go on, --overwrite to start again, or choose another --out"
        )
    units = cells(loaded.study, block)
    strict.make_folder(folder.parts, "--out")
    design = packed(loaded.study.problem)
    if design is not None:
        write_atomically(folder.features, lambda draft: _write_array(draft, design))
    head = {"format": FORMAT, "study": loaded.resolved, "sha256": loaded.sha256}
    head |= {"study_fingerprint": loaded.study.fingerprint.hex(), "block": block, **machine.describe(), "sessions": []}
    folder.save(head)
    return units


def open_study(folder: Folder) -> Loaded:
    """The study of a results folder. Raises StudyError."""
    record = folder.record()
    loaded = restore(record["study"], folder.path)
    if loaded.sha256 != record.get("sha256"):
        raise StudyError(f"{folder.study}: expected sha256 {record.get('sha256')}, got {loaded.sha256}: it was edited")
    return loaded


def merge(folder: Folder, loaded: Loaded, units: Sequence[Cell]) -> pa.Table:
    """Merge the part files of all units into results.parquet: the same bytes whatever the order, jobs or pauses.

    Raises StudyError for a part that is damaged or belongs to another study.
    """
    fingerprint = loaded.study.fingerprint.hex()
    parts = []
    for cell in units:
        path = part_path(folder.parts, cell)
        try:
            part = results.read(path)
        except StudyError as error:
            raise StudyError(f"{error}. Delete the file and say --resume") from None
        if part["study_fingerprint"].unique().to_pylist() != [fingerprint]:
            raise StudyError(f"{path}: expected rows of study {fingerprint[:16]} for {describe_cell(cell)}")
        parts.append(part)
    table = results.merge(parts, loaded.study.arms)
    results.write(table, folder.results)
    shutil.rmtree(folder.journal, ignore_errors=True)
    return table


def _resumed(folder: Folder, loaded: Loaded) -> list[Cell]:
    record = folder.record()
    if record["sha256"] != loaded.sha256:
        lines = "\n  ".join(changes(record["study"], loaded.resolved))
        raise StudyError(
            f"{folder.path}: the study to resume is not the one that was started:\n  {lines}\n"
            "Undo the change, say --overwrite to start again, or choose another --out"
        )
    now = time.time_ns()
    folder.parts.mkdir(exist_ok=True)
    for draft in folder.parts.glob(".*.part"):  # of a process that was killed
        draft.unlink(missing_ok=True)
    for path, after in ((folder.study, 0), (folder.parts, 1_000_000)):  # who watches sees that a session began
        os.utime(path, ns=(now + after, now + after))
    return cells(loaded.study, record["block"])


def _clear(folder: Folder) -> None:
    shutil.rmtree(folder.journal, ignore_errors=True)
    old = [*folder.parts.glob("*.parquet"), *folder.parts.glob(".*.part"), *folder.figures.glob("error_*.*")]
    for path in [*old, folder.results, folder.features, folder.summary, folder.paired, folder.rounds]:
        path.unlink(missing_ok=True)


def _write_array(path: Path, values: Any) -> None:
    with path.open("wb") as file:
        np.save(file, values, allow_pickle=False)
