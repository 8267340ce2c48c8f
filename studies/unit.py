"""One unit of a study: what a worker process does, from a cell to a part file."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from multiprocessing import connection, parent_process
from pathlib import Path

from protocol.failure import RunFailed
from protocol.study import Cell
from server.rounds import play
from server.transcript import Transcript
from studies.choice_score import scorer
from studies.in_process import in_process
from studies.load import Loaded
from studies.parts import describe_cell, part_path
from studies.results import tabulate, write

# Read when numpy is imported, so they are set before a worker starts. No result depends on them.
THREAD_COUNTS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
How = tuple[int, Path | None]  # how many clients, and the folder of a transcript
_state: list[tuple[Loaded, How, Path]] = []


class UnitError(RunFailed):
    """A unit that failed: says which and why."""


def run_unit(loaded: Loaded, cell: Cell, how: How, parts: Path) -> float:
    """Play a cell, score it and write its part file, whole or not at all; returns seconds. Raises UnitError."""
    start, (clients, folder) = time.perf_counter(), how
    try:
        room = in_process(loaded.study, loaded.truth, clients)
        with Transcript(folder) if folder else nullcontext() as kept:
            ask = kept.kept(room.replies) if kept else room.replies
            outcomes = list(play(loaded.study, cell, ask, room.server))
        score = scorer(loaded.study, loaded.theta, room.server.features)  # of features that server and clients draw too
        table = tabulate(loaded.study, score, cell, outcomes)
        write(table, part_path(parts, cell))
    except Exception as error:
        raise UnitError(f"{describe_cell(cell)}: {type(error).__name__}: {error}") from error
    return time.perf_counter() - start


def start_worker(loaded: Loaded, how: How, parts: Path) -> None:
    """Prepare a worker process: it leaves Ctrl-C to its parent, and ends when its parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()
    _state[:] = [(loaded, how, parts)]


def work(cell: Cell) -> float:
    """Run one unit in a prepared worker."""
    ((loaded, how, parts),) = _state
    return run_unit(loaded, cell, how, parts)


@contextmanager
def one_thread() -> Iterator[None]:
    """Environment in which started workers use one thread each; restored afterwards."""
    before = {name: os.environ.get(name) for name in THREAD_COUNTS}
    os.environ.update(dict.fromkeys(THREAD_COUNTS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def deaf() -> Iterator[None]:
    """Processes started here never hear Ctrl-C, not even before their first line; this thread hears it afterwards."""
    if os.name != "posix":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)
