"""Playing an attack study: the same honest answers every time, with more and more liars among them."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa

from protocol.failure import RunFailed
from protocol.strict import StudyError
from protocol.study import Cell
from server.evidence import Server
from server.listening import Ask
from server.rounds import play
from studies.attacks.folder import Folder, Unit
from studies.attacks.lies import Attack
from studies.attacks.record_lies import RecordAttack
from studies.attacks.score import rows
from studies.attacks.study_file import AttackStudy, Liars
from studies.choice_score import scorer
from studies.in_process import in_process
from studies.results import tabulate
from studies.run import Interrupted

Progress = Callable[[int, int], None]


def run_attacks(
    study: AttackStudy,
    out: Path,
    clients: int = 1,
    progress: Progress = lambda done, total: None,
    *,
    resume: bool = False,
    overwrite: bool = False,
) -> pa.Table:
    """Play every kind of liars at every fraction, and write and return OUT/attacks.parquet.

    Rows are ordered by liars, fraction, n and then as a cell's outcomes are. The bytes depend on the study only, not on
    how many clients share the rows, nor on pauses. With nobody lying, all kinds of liars have the same rows.
    Raises RunFailed for a round that failed, StudyError for more clients than rows and for a folder that cannot be
    used, and Interrupted on Ctrl-C; what is finished stays.
    """
    asked = study.loaded.study
    if clients > min(asked.grid.n):
        raise StudyError(f"--clients: expected at most the smallest n = {min(asked.grid.n)}, got {clients}")
    folder = Folder(out, study)
    folder.prepare(resume, overwrite)
    present, total = set(folder.finished()), len(folder.units)
    missing = [unit for unit in folder.units if unit not in present]
    done = len(present)
    progress(done, total)
    try:
        for cell, units in groupby(missing, key=lambda unit: unit.cell):
            for unit, found in _cell(study, cell, list(units), clients):
                folder.keep(unit, found)
                done += 1
                progress(done, total)
    except KeyboardInterrupt as stopped:
        raise Interrupted(len(folder.finished()), total, getattr(stopped, "code", 130)) from None
    return folder.merge()


def _cell(
    study: AttackStudy, cell: Cell, units: Sequence[Unit], clients: int
) -> Iterator[tuple[Unit, list[dict[str, Any]]]]:
    """Units of one cell with their rows; where nobody lies, one set of outcomes serves all kinds of liars."""
    asked, theta = study.loaded.study, study.loaded.theta
    room = in_process(asked, theta, clients)
    ask = _remembering(room.ask)
    honest: pa.Table | None = None
    for unit in units:
        liars, fraction = study.liars[unit.liars], study.fractions[unit.fraction]
        table = honest
        if fraction > 0.0 or table is None:
            table = _played(study, cell, _attacked(study, liars, fraction, ask, room.server), room.server)
        honest = table if fraction == 0.0 else honest
        yield unit, rows(liars, fraction, table, theta)


def _attacked(study: AttackStudy, liars: Liars, fraction: float, ask: Ask, server: Server) -> Ask:
    """`ask`, with a fraction of liars among those who answer."""
    asked, theta = study.loaded.study, study.loaded.theta
    if asked.records is not None:
        return RecordAttack(asked, theta, liars, fraction, study.nodes).on(ask)
    return Attack(asked, theta, liars, fraction, study.nodes, server.features).on(ask)


def _played(study: AttackStudy, cell: Cell, ask: Ask, server: Server) -> pa.Table:
    asked = study.loaded.study
    try:
        return tabulate(asked, scorer(asked, study.loaded.theta), cell, play(asked, cell, ask, server))
    except (RuntimeError, ValueError) as error:
        raise RunFailed(f"n = {cell.n}: {type(error).__name__}: {error}") from error


def _remembering(ask: Ask) -> Ask:
    """Ask once: honest clients give the same answers to the same tasks, and the round loop asks the same ones."""
    known: dict[bytes, list[bytes]] = {}

    def remembered(tasks: list[bytes]) -> list[bytes]:
        key = b"".join(tasks)
        if key not in known:
            known[key] = list(ask(tasks))
        return known[key]

    return remembered
