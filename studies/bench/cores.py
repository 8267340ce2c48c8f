"""How a whole run grows with cores: as many worker processes as cores, one thread each, and no other core.

`python -m studies.bench.cores JOBS` is the run that is timed, in a process of its own: libraries count threads when
they are imported, and a process that is warm already would compare itself with others that start.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from protocol.failure import RunFailed
from protocol.threads import cores
from studies.bench.growth import ALL_ARMS, ARMS, CORES, Point, Size, study_of
from studies.bench.measure import timed
from studies.run import run
from studies.unit import one_thread

WORK, SMALL = Size(repetitions=400), Size(rows=500, repetitions=4)


def core_points(runs: int, small: bool) -> Iterator[Point]:
    """Seconds of the wall of the same run over 1, 2, 4, ... cores, up to all: its processes' start is in them."""
    for count in counts(cores()):
        _wall(count, small)
        yield Point(CORES, ALL_ARMS, count, median(_wall(count, small) for _ in range(runs)))


def counts(most: int) -> list[int]:
    """Powers of two below `most`, and `most`.

    >>> counts(6)
    [1, 2, 4, 6]
    """
    return sorted({most, *(1 << power for power in range(most.bit_length()))})


@contextmanager
def on_cores(count: int) -> Iterator[None]:
    """Processes started here have so many cores between them, where the system can say so, and a thread each."""
    if not hasattr(os, "sched_setaffinity"):
        with one_thread():
            yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:count])
    try:
        with one_thread():
            yield
    finally:
        os.sched_setaffinity(0, before)


def _wall(jobs: int, small: bool) -> float:
    """Seconds of a run. Raises RunFailed with its last words."""
    command = [sys.executable, "-m", "studies.bench.cores", str(jobs), *(["--small"] if small else [])]

    def whole() -> None:
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise RunFailed(f"{CORES}: {(done.stderr.strip().splitlines() or [f'exit code {done.returncode}'])[-1]}")

    with on_cores(jobs):
        return timed(whole, time.perf_counter)


def main() -> int:
    """Run the study over so many processes."""
    parser = argparse.ArgumentParser(prog="python -m studies.bench.cores")
    parser.add_argument("jobs", type=int)
    parser.add_argument("--small", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as out:
        run(study_of(SMALL if args.small else WORK, *ARMS), Path(out), jobs=args.jobs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
