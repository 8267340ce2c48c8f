"""What a first study compiles in two processes: for the types that estimators call kernels with."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLAYED = """\
import sys
from pathlib import Path
import numba
from server.first_kernels import shares
from server.kernels_logistic import cumulant
from studies.in_process import run_cell
from studies.load import load
from protocol.study import cells

loaded = load(Path("studies/toml/quick.toml"), ["study.repetitions=1", "grid.n=[10000]", "grid.epsilon=[1.0]"])
for cell in cells(loaded.study):
    list(run_cell(loaded.study, loaded.truth, cell))
for kernel, arguments in (one for share in shares() for one in share):
    types = tuple(map(numba.typeof, arguments))
    if types not in kernel.signatures or (kernel is cumulant and len(kernel.signatures) > 1):
        sys.exit(f"{kernel.py_func.__name__}: expected {types}, got {kernel.signatures}")
"""


def test_the_first_study_calls_what_was_compiled_for_it() -> None:
    """In a process of its own; and the passes over rows, which take longest to compile, with one list of types only."""
    done = subprocess.run([sys.executable, "-c", PLAYED], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
