"""The folder of an attack study: attack.json says which one it is, parts/ holds what is finished."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from protocol import strict
from protocol.counting import counted
from protocol.strict import StudyError, unopened
from protocol.study import Cell, cells
from studies import machine
from studies.attacks.score import SCHEMA
from studies.attacks.study_file import AttackStudy
from studies.files import write_atomically, write_text
from studies.load import changes
from studies.parts import part_path

RESULTS, STUDY, PARTS = "attacks.parquet", "attack.json", "parts"


@dataclass(frozen=True)
class Unit:
    """What is played and kept as one: a cell, under one kind of liars (by its place) at one fraction (by its place)."""

    cell: Cell
    liars: int
    fraction: int


@dataclass(frozen=True, eq=False)
class Folder:
    """The files of one attack study in `path`."""

    path: Path
    study: AttackStudy

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """All units, in the order in which they are played."""
        asked = self.study.loaded.study
        order = sorted(cells(asked), key=lambda cell: (cell.n, cell.first_repetition))
        kinds, shares = range(len(self.study.liars)), range(len(self.study.fractions))
        return tuple(Unit(cell, liars, share) for cell in order for liars in kinds for share in shares)

    def prepare(self, resume: bool, overwrite: bool) -> None:
        """Make the folder ready.

        Raises StudyError where there are results already and neither `resume` nor `overwrite` was said, or where the
        study to resume is another one: says what changed.
        """
        if (strict.folder(self.path, "--out") / "study.json").exists():
            raise StudyError(f"--out: expected the folder of an attack study, got that of a run: {self.path}")
        parts = strict.make_folder(self.path / PARTS, "--out")
        for draft in parts.glob(".*.part"):  # of a process that was killed
            draft.unlink(missing_ok=True)
        there = (self.path / STUDY).exists() or (self.path / RESULTS).exists()
        if there and resume:
            self._check_same()
        elif there and not overwrite:
            raise StudyError(
                f"--out: expected a folder without results, got {self.path} with "
                f"{counted(len(self.finished()), 'finished unit')}: say --resume to go on, --overwrite to start again"
            )
        else:
            for old in (*parts.glob("*-l???-f???.parquet"), self.path / RESULTS):
                old.unlink(missing_ok=True)
            text = json.dumps({"study": self._resolved(), **machine.describe()}, indent=2) + "\n"
            write_text(self.path / STUDY, text)

    def finished(self) -> list[Unit]:
        """Units that have a part file."""
        return [unit for unit in self.units if self._part(unit).exists()]

    def keep(self, unit: Unit, found: list[dict[str, Any]]) -> None:
        """Write the rows of a unit, whole or not at all."""
        _write(pa.Table.from_pylist(found, schema=SCHEMA), self._part(unit))

    def merge(self) -> pa.Table:
        """Write and return OUT/attacks.parquet: by liars, fraction, n, and then as a cell's outcomes are.

        Raises StudyError for a part that does not read.
        """
        order = sorted(self.units, key=lambda unit: (unit.liars, unit.fraction, unit.cell.n))  # stable: cells in order
        table = pa.concat_tables([self._read(self._part(unit)) for unit in order]).combine_chunks()
        _write(table, self.path / RESULTS)
        return table

    def _part(self, unit: Unit) -> Path:
        stem = part_path(self.path, unit.cell).stem
        return self.path / PARTS / f"{stem}-l{unit.liars:03d}-f{unit.fraction:03d}.parquet"

    def _read(self, path: Path) -> pa.Table:
        try:
            table = pq.read_table(path)
        except (OSError, pa.ArrowInvalid) as error:
            raise StudyError(f"{path}: expected finished rows, {error}. Delete the file and say --resume") from None
        if not table.schema.equals(SCHEMA):
            raise StudyError(f"{path}: expected the columns {SCHEMA.names}. Delete the file and say --resume")
        return table

    def _resolved(self) -> dict[str, Any]:
        study = self.study
        attack = {"fractions": list(study.fractions), "nodes": study.nodes}
        return {**study.loaded.resolved, "attack": attack, "liars": [vars(liars) for liars in study.liars]}

    def _check_same(self) -> None:
        path = self.path / STUDY
        try:
            known = json.loads(path.read_text(encoding="utf-8"))["study"]
        except OSError as error:
            raise StudyError(f"{path}: expected the study to resume, {unopened(error)}: say --overwrite") from None
        except (ValueError, KeyError, TypeError):
            raise StudyError(f"{path}: expected a study, got something else: say --overwrite") from None
        asked = json.loads(json.dumps(self._resolved()))
        if lines := "\n  ".join(changes(known, asked)):
            raise StudyError(
                f"{self.path}: the study to resume is not the one that was started:\n  {lines}\n"
                "Undo the change, say --overwrite to start again, or choose another --out"
            )


def _write(table: pa.Table, path: Path) -> None:
    write_atomically(path, lambda draft: pq.write_table(table, draft, compression="zstd"))
