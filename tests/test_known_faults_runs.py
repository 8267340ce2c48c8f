"""Faults of runs that users of comparable software met: what they cost, what they keep, what stops them."""

import gc
import resource
import subprocess
import sys
import tracemalloc
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protocol.study import Cell, cells
from server.rounds import play
from studies.in_process import in_process, run_cell
from studies.load import Loaded, build

ROOT = Path(__file__).parents[1]
PAIRS: dict[str, Any] = {
    "study": {"name": "runs", "seed": 3, "repetitions": 2},
    "problem": {
        "kind": "pairwise",
        "dimension": 3,
        "features": "sphere",
        "bound": 3,
        "theta": [Decimal(1), Decimal(0), Decimal(-1)],
    },
    "grid": {"n": [10_000], "epsilon": [Decimal(2)], "delta": [Decimal("1e-5")]},
    "arm": [
        {"trust": "local", "mechanism": "randomized-response", "estimator": "debiased"},
        {"trust": "central", "mechanism": "gaussian-statistic", "estimator": "mle"},
    ],
}


def rounds(count: int) -> Loaded:
    """A private descent of so many rounds."""
    return build(
        {
            "study": {"name": "rounds", "seed": 3, "repetitions": 1},
            "problem": {"kind": "records", "model": "linear", "dimension": 3, "theta": [Decimal("0.5")] * 3},
            "records": {"features": "uniform(0, 1)", "noise": "normal"},
            "grid": {"n": [200], "epsilon": [Decimal(1)], "delta": [Decimal("1e-5")]},
            "arm": [
                {
                    "trust": "central",
                    "estimator": "descent",
                    "rounds": count,
                    "step": Decimal("0.1"),
                    "threshold": Decimal(1),
                }
            ],
        },
        Path(),
    )


def resident() -> int:
    """Kilobytes of this process in memory, now."""
    text = Path("/proc/self/status").read_text("utf-8")
    return int(text[text.index("VmRSS:") :].split()[1])


def held_by_round(count: int) -> dict[int, int]:
    """Bytes that Python holds when every fifth round is asked."""
    loaded, held, asked = rounds(count), dict[int, int](), iter(range(count))
    room = in_process(loaded.study, loaded.theta, 3)

    def ask(tasks: list[bytes]) -> list[bytes]:
        if (number := next(asked)) % 5 == 0:
            gc.collect()
            held[number] = tracemalloc.get_traced_memory()[0]
        return room.ask(tasks)

    (cell,) = cells(loaded.study)
    list(play(loaded.study, cell, ask, room.server))
    return held


def kept_by_a_round() -> float:
    """Bytes that each round adds once the tasks of the last 32 rounds are at hand: the median of all slopes."""
    held_by_round(3)  # what is loaded or compiled once
    tracemalloc.start()
    try:
        held = held_by_round(66)
    finally:
        tracemalloc.stop()
    late = [number for number in held if number >= 40]
    return float(np.median([(held[b] - held[a]) / (b - a) for a, b in combinations(late, 2)]))


def test_rounds_keep_no_data() -> None:
    """A round adds less than a quarter of its 200 * 4 numbers.

    What three clients remember of a run is that they answered a round: a few hundred bytes each time. A process of its
    own counts, since what other tests left running (threads, logs kept for a failure) takes memory meanwhile.
    """
    code = f"import runpy; print(runpy.run_path({__file__!r})['kept_by_a_round']())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 200 * 4 * 8 / 4, f"{done.stdout.strip()} bytes a round"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="resident memory is looked up in /proc")
def test_ten_thousand_clients_twenty_times_keep_no_memory() -> None:
    loaded = build(PAIRS, Path())
    (cell,) = cells(loaded.study)
    sizes = []
    for _ in range(20):
        assert len(list(run_cell(loaded.study, loaded.theta, cell, clients=10_000))) == 4
        gc.collect()
        sizes.append(resident())
    assert sizes[-1] < 1.05 * sizes[1]


def test_a_round_without_any_answer_keeps_no_estimate_of_before() -> None:
    """All clients refuse from the third round on: the run ends, and no model of an earlier round is its result."""
    loaded = rounds(5)
    room = in_process(loaded.study, loaded.theta, 2)
    calls = []

    def ask(tasks: list[bytes]) -> list[bytes]:
        calls.append(tasks)
        return room.ask(tasks) if len(calls) < 3 else []

    (cell,) = cells(loaded.study)
    with pytest.raises(RuntimeError, match="got 0"):
        list(play(loaded.study, cell, ask, room.server))
    assert len(calls) == 3


@pytest.mark.slow  # a time, on machines that do other work
def test_ten_clients_start_in_seconds(tmp_path: Path) -> None:
    """A whole command in a new process, results on disk: under 5 s of a core, imports among them, compiled once."""
    study = ROOT / "studies" / "toml" / "quick.toml"
    words = ["run", str(study), "--clients", "10", "--set", "study.repetitions=1", "--set", "grid.n=[100]"]
    used = []
    for name in ("first", "second"):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "studies", *words, "--out", str(tmp_path / name)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / name / "results.parquet").exists()
        used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert used[1] < 5.0


def test_estimates_do_not_know_who_answered_first() -> None:
    """Nor how rows are spread: one client, and seven whose replies come backwards, bit for bit."""
    loaded = build(PAIRS | {"grid": PAIRS["grid"] | {"n": [50]}}, Path())
    cell = Cell(50, 0, 2)
    room = in_process(loaded.study, loaded.theta, 7)
    backwards = play(loaded.study, cell, lambda tasks: room.ask(tasks)[::-1], room.server)
    alone = run_cell(loaded.study, loaded.theta, cell)
    assert [one.theta.tobytes() for one in backwards] == [one.theta.tobytes() for one in alone]
