"""`python -m studies.flower.measure`: what rounds of private convex optimisation over real processes take."""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from deploy.ending import PROC, carriers
from protocol.failure import RunFailed
from server.delivery import ROUNDS_FILE
from studies.terminal import print_line, print_table

MARK = "HALFTRUTH_MEASURED"
PAUSE = 0.2  # seconds between two looks at all processes
PROGRAMS = ("flower-superlink", "flower-supernode", "flower-superexec", "flwr-serverapp", "flwr-clientapp")
STUDY = """
study = {{ name = "private-sco", seed = 20226, repetitions = 1 }}
problem = {{ kind = "records", model = "linear", dimension = {dimension}, theta = {theta}, bound = 2 }}
records = {{ features = "uniform(0, 1)", noise = "centred pareto(1.6)", tail = 0.5, moment = 18 }}
grid = {{ n = [{records}], epsilon = [1.0], delta = [1e-5] }}
arm = [{{ trust = "central", estimator = "descent", rounds = {rounds}, step = 0.1 }}]
"""
Spent = dict[str, float]  # CPU seconds by program; those of children that ended, under the name of who waited for them
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Measured:
    """When rounds were answered, in seconds since 1970, and what was said of them; CPU seconds until each look."""

    rounds: Sequence[tuple[float, str]]
    looks: Sequence[tuple[float, Spent]]

    @property
    def wall(self) -> Floats:
        """Seconds from each round's answers to the next one's."""
        return np.diff([at for at, _ in self.rounds])

    @property
    def cpu(self) -> Floats:
        """CPU seconds of all processes in the same spans."""
        return np.diff(self._at_rounds([float(sum(spent.values())) for _, spent in self.looks]))

    def by_program(self) -> dict[str, float]:
        """CPU seconds a round of each program, on average."""
        names = sorted({name for _, spent in self.looks for name in spent})
        spans = {name: np.diff(self._at_rounds([spent.get(name, 0.0) for _, spent in self.looks])) for name in names}
        return {name: float(span.mean()) for name, span in spans.items()}

    def _at_rounds(self, values: Sequence[float]) -> Floats:
        times = [at for at, _ in self.looks]
        return np.interp([at for at, _ in self.rounds], times, values)


def measure(clients: int, rounds: int, records: int, dimension: int) -> Measured:
    """Run the study over a SuperLink and `clients` SuperNodes here, and watch its processes in /proc.

    Raises RunFailed where the run fails.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        theta = [1 / dimension**0.5] * dimension
        study = STUDY.format(dimension=dimension, theta=theta, records=records, rounds=rounds)
        (folder / "study.toml").write_text(study, encoding="utf-8")
        words = ["run", str(folder / "study.toml"), "--out", str(folder / "out")]
        child = subprocess.Popen(
            [sys.executable, "-m", "studies", *words, "--on", "deployment", "--clients", str(clients)],
            env={**os.environ, MARK: str(folder)},
            stdout=subprocess.DEVNULL,
        )
        looks, said = [], ""
        while child.poll() is None:
            there = carriers(folder)
            looks.append((time.time(), _spent(there)))
            said = _said(there) or said
            time.sleep(PAUSE)
    told = [line.split(" ", 1) for line in said.splitlines()]
    if child.returncode or len(told) < 2:
        raise RunFailed(f"expected a run of at least two rounds, got exit code {child.returncode}, {len(told)} rounds")
    return Measured([(float(at), words) for at, words in told], looks)


def _spent(processes: Sequence[int]) -> Spent:
    """CPU seconds of processes, and of their children that have ended and were waited for."""
    spent, tick = defaultdict[str, float](float), os.sysconf("SC_CLK_TCK")
    for process in processes:
        try:
            words = (PROC / str(process) / "cmdline").read_bytes().decode(errors="replace")
            fields = (PROC / str(process) / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        program = next((name for name in PROGRAMS if name in words), "others")
        user, system, ended_user, ended_system = map(int, fields[11:15])
        spent[program] += (user + system) / tick
        spent[f"children of {program}"] += (ended_user + ended_system) / tick
    return spent


def _said(processes: Sequence[int]) -> str:
    """The file of rounds in the run's private home, as far as it is written."""
    for process in processes:
        try:
            variables = (PROC / str(process) / "environ").read_bytes().split(b"\0")
            home = next(value[10:].decode() for value in variables if value.startswith(b"FLWR_HOME="))
            return (Path(home) / "outcomes" / ROUNDS_FILE).read_text("utf-8")
        except (OSError, StopIteration):
            continue
    return ""


def main() -> int:
    """Measure and print: exit code 0 done, 1 the run failed."""
    parser = argparse.ArgumentParser(prog="python -m studies.flower.measure", description=__doc__)
    for name, value in (("clients", 4), ("rounds", 20), ("records", 20_000), ("dimension", 20)):
        parser.add_argument(f"--{name}", type=int, default=value, help=f"({value})")
    args = parser.parse_args()
    before = os.getloadavg()[0]
    try:
        found = measure(args.clients, args.rounds, args.records, args.dimension)
    except RunFailed as error:
        print(f"halftruth: {error}", file=sys.stderr)
        return 1
    rows = [
        (name, *(f"{value:.2f}" for value in _spread(values)))
        for name, values in (("wall", found.wall), ("CPU", found.cpu))
    ]
    print_table(["seconds a round", "median", "least", "most"], rows, ["seconds a round"])
    programs = [(name, f"{value:.2f}") for name, value in found.by_program().items() if value >= 0.005]
    print_table(["program", "CPU seconds a round"], programs, ["program"])
    print_line(f"{len(found.rounds)} rounds, the first not counted; the last: {found.rounds[-1][1]}")
    print_line(f"{os.cpu_count()} cores, load {before:.1f} before and {os.getloadavg()[0]:.1f} after")
    return 0


def _spread(values: Floats) -> tuple[float, float, float]:
    return float(np.median(values)), float(values.min()), float(values.max())


if __name__ == "__main__":
    sys.exit(main())
