"""Running a study: units over worker processes, finished parts kept, one results file at the end."""

import os
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from functools import partial
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

import pyarrow as pa

from protocol.numerics import fingerprint
from protocol.strict import StudyError
from protocol.study import Cell
from server.first_kernels import SHARES, compile_share
from studies.folder import Folder, merge, prepare
from studies.load import Loaded
from studies.machine import kernels_kept
from studies.parts import part_path, weight
from studies.unit import How, UnitError, deaf, one_thread, run_unit, start_worker, work

Progress = Callable[[int, int], None]
# Plays cells in any order: scores each, writes its part, and yields it with the seconds it took.
Player = Callable[[Folder, Loaded, Sequence[Cell]], Generator[tuple[Cell, float]]]


class Interrupted(Exception):
    """Ctrl-C, or another signal with its exit code: `done` of `total` units are finished and kept."""

    def __init__(self, done: int, total: int, code: int = 130) -> None:
        super().__init__(f"{done} of {total} units are finished")
        self.done = done
        self.total = total
        self.code = code


def run(
    loaded: Loaded,
    out: Path,
    *,
    jobs: int | None = None,
    clients: int = 1,
    resume: bool = False,
    overwrite: bool = False,
    block: int | None = None,
    transcript: Path | None = None,
    progress: Progress = lambda done, total: None,
) -> pa.Table:
    """Run a study into the folder `out` and return the table of its results.parquet.

    `jobs` processes (default: all cores; 1 uses this process), `clients` in each, `block` repetitions a unit.
    `progress` is told the work done and the whole work, and in the folder `transcript` every message is kept. The
    numbers depend on none of these.

    Raises StudyError for a folder that cannot be used, UnitError for a unit that failed, Interrupted on Ctrl-C; what is
    finished stays.
    """
    for name, value in (("jobs", jobs), ("clients", clients), ("block", block)):
        if value is not None and value < 1:
            raise StudyError(f"--{name}: expected at least 1, got {value}")
    check_clients(loaded, clients)
    folder = Folder(out)
    units = prepare(folder, loaded, block, resume, overwrite)
    many = jobs or os.cpu_count() or 1
    facts = {"runtime": "in-process", "jobs": many, "clients": clients}
    play_missing(folder, loaded, units, partial(_in_process, many, (clients, transcript)), facts, progress)
    return merge(folder, loaded, units)


def check_clients(loaded: Loaded, clients: int) -> None:
    """Raise StudyError where there are more clients than rows."""
    if clients > min(loaded.study.grid.n):
        raise StudyError(f"--clients: expected at most the smallest n = {min(loaded.study.grid.n)}, got {clients}")


def play_missing(
    folder: Folder, loaded: Loaded, units: Sequence[Cell], play: Player, facts: Mapping[str, Any], progress: Progress
) -> None:
    """Play the units without a part file; note in study.json how long they took, and `facts` about this session.

    Raises Interrupted, and what the player raises; what is finished stays.
    """
    present = set(folder.finished())
    missing = [cell for cell in units if cell not in present]
    whole = sum(map(weight, units))
    done = whole - sum(map(weight, missing))
    progress(done, whole)
    if not missing:
        return
    seconds: dict[str, float] = {}
    start = time.perf_counter()
    try:
        with closing(play(folder, loaded, missing)) as playing:
            for cell, duration in playing:
                seconds[part_path(folder.parts, cell).stem] = round(duration, 3)
                done += weight(cell)
                progress(done, whole)
    except KeyboardInterrupt as stopped:
        code = getattr(stopped, "code", 130)
        raise Interrupted(len(set(folder.finished()) & set(units)), len(units), code) from None
    finally:
        _note_session(folder, facts, time.perf_counter() - start, seconds)


def _in_process(
    jobs: int, how: How, folder: Folder, loaded: Loaded, missing: Sequence[Cell]
) -> Generator[tuple[Cell, float]]:
    workers = min(jobs, len(missing))
    if workers > 1:
        yield from _in_workers(workers, how, folder, loaded, missing)
        return
    for cell in missing:
        yield cell, run_unit(loaded, cell, how, folder.parts)


def _in_workers(
    jobs: int, how: How, folder: Folder, loaded: Loaded, missing: Sequence[Cell]
) -> Generator[tuple[Cell, float]]:
    others = set(active_children())
    with one_thread():
        pool = ProcessPoolExecutor(
            jobs, get_context("spawn"), initializer=start_worker, initargs=(loaded, how, folder.parts)
        )
        try:
            with deaf():
                first = [pool.submit(compile_share, number) for number in range(SHARES)] if _compiles(loaded) else []
            for compiled in first:
                compiled.result()
            with deaf():
                futures = {pool.submit(work, cell): cell for cell in missing}
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool:
            raise UnitError("a worker process that ended without a word: was it killed, or is memory short?") from None
        except UnitError:
            pool.shutdown(cancel_futures=True)  # units that run may finish
            raise
        except BaseException:
            # Parts are written whole or not at all, so a worker may be stopped anywhere.
            pool.shutdown(wait=False, cancel_futures=True)
            workers = set(active_children()) - others
            for worker in workers:
                worker.terminate()
            for worker in workers:  # before anybody counts parts
                worker.join(10)
            raise
        finally:
            pool.shutdown()


def _compiles(loaded: Loaded) -> bool:
    """Whether its workers would begin by compiling kernels that one of them could have from the other."""
    problem = loaded.study.problem
    return problem.kind == "pairwise" and problem.features != "items" and not kernels_kept()


def _note_session(folder: Folder, facts: Mapping[str, Any], duration: float, seconds: dict[str, float]) -> None:
    record = folder.record()
    measured = {"numerics": fingerprint().hex(), "seconds": round(duration, 3), "unit_seconds": seconds}
    record["sessions"].append({**facts, **measured})
    folder.save(record)
