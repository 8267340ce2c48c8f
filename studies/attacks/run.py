"""Playing an attack study: the same honest answers every time, with more and more liars among them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from protocol.strict import StudyError
from protocol.study import Cell, cells
from server.listening import Ask
from server.rounds import play
from studies.attacks.lies import Attack
from studies.attacks.score import SCHEMA, rows
from studies.attacks.study_file import AttackStudy
from studies.choice_score import scorer
from studies.failure import RunFailed
from studies.files import write_atomically
from studies.in_process import in_process
from studies.results import tabulate

RESULTS = "attacks.parquet"
Progress = Callable[[int, int], None]


def run_attacks(
    study: AttackStudy, out: Path, clients: int = 1, progress: Progress = lambda done, total: None
) -> pa.Table:
    """Play every kind of liars at every fraction, and write and return OUT/attacks.parquet.

    Rows are ordered by liars, fraction, n and then as a cell's outcomes are. The bytes depend on the study only, not on
    how many clients share the rows. With nobody lying, all kinds of liars have the same rows.
    Raises RunFailed for a round that failed, and StudyError for more clients than rows.
    """
    asked = study.loaded.study
    if clients > min(asked.grid.n):
        raise StudyError(f"--clients: expected at most the smallest n = {min(asked.grid.n)}, got {clients}")
    found: list[dict[str, Any]] = []
    units, done = sorted(cells(asked), key=lambda cell: (cell.n, cell.first_repetition)), 0
    total = len(units) * len(study.liars) * len(study.fractions)
    for cell in units:
        room = in_process(asked, study.loaded.theta, clients)
        ask = _remembering(room.ask)
        honest: pa.Table | None = None
        for liars in study.liars:
            for fraction in study.fractions:
                table = honest
                if fraction > 0.0 or table is None:
                    attack = Attack(asked, study.loaded.theta, liars, fraction, study.nodes, room.server.features)
                    table = _played(study, cell, attack.on(ask), room.server)
                honest = table if fraction == 0.0 else honest
                found += rows(liars, fraction, table, study.loaded.theta)
                done += 1
                progress(done, total)
    return _written(study, found, out)


def _written(study: AttackStudy, found: list[dict[str, Any]], out: Path) -> pa.Table:
    order = {liars.name: index for index, liars in enumerate(study.liars)}
    found.sort(key=lambda row: (order[row["liars"]], row["fraction"], row["n"]))  # stable: repetitions stay in order
    table = pa.Table.from_pylist(found, schema=SCHEMA)
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(out / RESULTS, lambda draft: pq.write_table(table, draft, compression="zstd"))
    return table


def _played(study: AttackStudy, cell: Cell, ask: Ask, server: Any) -> pa.Table:
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
            known[key] = ask(tasks)
        return known[key]

    return remembered
