"""A figure in a process of its own: it imports and compiles nothing but its own, and memory is its own."""

import subprocess
import sys
import tempfile
from pathlib import Path

from protocol.failure import RunFailed
from studies.bench.figure import Figure
from studies.bench.row import Row, parse


def alone(figure: Figure, runs: int, small: bool) -> list[Row]:
    """Measure a figure in a child. Raises RunFailed with its last words."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "rows.json"
        words = [figure.name, "--runs", str(runs), "--cores", str(figure.cores), "--out", str(out)]
        command = [sys.executable, "-m", "studies.bench.child", *words, *(["--small"] if small else [])]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            raise RunFailed(f"{figure.name}: {said[-1]}")
        return parse(out)
