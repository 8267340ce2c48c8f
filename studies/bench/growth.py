"""How a cell's cost grows with rows, dimension, clients and repetitions; with cores: `studies.bench.cores`."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np

from protocol.study import cells
from studies.bench.measure import timed
from studies.in_process import run_cell
from studies.load import Loaded, build

ARMS = {
    "local, de-biased fit": {"trust": "local", "estimator": "debiased"},
    "local, de-biased SGD": {"trust": "local", "estimator": "debiased-sgd"},
    "central, clipped sum": {"trust": "central", "mechanism": "gaussian-statistic-clipped", "estimator": "mle"},
}
EACH, REPORTED = "clients with one row each", "local, de-biased fit"
CORES = "cores"
ALL_ARMS = "all three, wall"


@dataclass(frozen=True)
class Size:
    """How large a cell is; `repetitions` are in it."""

    rows: int = 100_000
    dimension: int = 4
    clients: int = 1
    repetitions: int = 1


@dataclass(frozen=True)
class Point:
    """Median seconds of a cell at one value of an axis: CPU of both sides, for cores the wall's."""

    axis: str
    line: str
    x: int
    seconds: float


@dataclass(frozen=True)
class Slope:
    """d log seconds / d log x of a line: by least squares over all of it, and between its last two points."""

    axis: str
    line: str
    first: Point
    last: Point
    over_all: float
    at_the_end: float


def axes(small: bool) -> dict[str, tuple[Size, tuple[int, ...]]]:
    """Axis -> what else is fixed, and its values."""
    if small:
        size = Size(rows=200)
        return {
            "rows": (size, (100, 200)),
            "dimension": (size, (2, 4)),
            "clients": (size, (1, 2)),
            "repetitions": (size, (1, 2)),
        }
    size = Size()
    return {
        "rows": (size, (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)),
        "dimension": (size, (2, 4, 8, 16, 32)),
        "clients": (size, (1, 10, 100, 1_000, 10_000)),
        "repetitions": (replace(size, rows=10_000), (1, 4, 16, 64)),
    }


def points(runs: int, small: bool) -> Iterator[Point]:
    """All points of one process, axis by axis."""
    for axis, (size, values) in axes(small).items():
        for line in ARMS:
            for x in values:
                yield Point(axis, line, x, _cell(replace(size, **{axis: x}), line, runs))
    for x in (100, 200) if small else (1_000, 10_000, 100_000, 1_000_000):
        yield Point(EACH, REPORTED, x, _cell(Size(rows=x, clients=x), REPORTED, runs))


def slopes(found: Sequence[Point]) -> list[Slope]:
    """Slopes of every line of at least two points."""
    lines: dict[tuple[str, str], list[Point]] = {}
    for point in found:
        lines.setdefault((point.axis, point.line), []).append(point)
    return [_slope(line) for line in lines.values() if len(line) > 1]


def _slope(line: Sequence[Point]) -> Slope:
    x, y = np.log([point.x for point in line]), np.log([point.seconds for point in line])
    over_all = float(np.polyfit(x, y, 1)[0])
    at_the_end = float((y[-1] - y[-2]) / (x[-1] - x[-2]))
    return Slope(line[0].axis, line[0].line, line[0], line[-1], over_all, at_the_end)


def study_of(size: Size, *lines: str) -> Loaded:
    """The study of one cell with these arms."""
    theta = [0.5 - (index % 2) for index in range(size.dimension)]
    table = {
        "study": {"name": "growth", "seed": 7, "repetitions": size.repetitions},
        "problem": {
            "kind": "pairwise",
            "dimension": size.dimension,
            "features": "gaussian",
            "theta": theta,
            "bound": size.dimension,
        },
        "grid": {"n": [size.rows], "epsilon": [1], "delta": [1e-5]},
        "arm": [ARMS[line] for line in lines],
    }
    return build(table, Path())


def _cell(size: Size, line: str, runs: int) -> float:
    """CPU seconds of one cell with one arm, from drawing its features to its estimates."""
    loaded = study_of(size, line)
    (cell,) = cells(loaded.study, size.repetitions)

    def play() -> None:
        for _ in run_cell(loaded.study, loaded.truth, cell, size.clients):
            pass

    play()  # kernels are compiled: which ones, size decides
    return median(timed(play, time.process_time) for _ in range(runs))
