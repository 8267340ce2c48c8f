"""Figures of the command itself: its help, its import, and a second run, which compiles nothing."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from weakref import finalize

from studies.bench.figure import Prepared, Side
from studies.cli import COMMANDS

FLOWER = "import sys; from flwr.cli.app import app; sys.argv = ['flwr', '--help']; app()"
STUDY = """
study = { name = "second", seed = 1, repetitions = 1 }
problem = { kind = "pairwise", dimension = 2, features = "gaussian", theta = [0.5, -0.5], bound = 1 }
grid = { n = [100], epsilon = [1.0] }
arm = [{ trust = "local", estimator = "debiased-sgd" }, { trust = "local", estimator = "debiased" }]
"""


def help_text(small: bool) -> Prepared:
    """`halftruth --help` in a new process, beside `flwr --help` and an interpreter that does nothing."""

    def agree() -> None:
        text = _run("-m", "studies", "--help")
        missing = {words[0] for words, _, _ in COMMANDS if words[0] not in text}
        assert not missing, f"--help does not name {sorted(missing)}"

    ours = Side("halftruth --help", lambda: _run("-m", "studies", "--help"))
    flower = Side("flwr --help", lambda: _run("-c", FLOWER))
    return Prepared(ours, () if small else (flower,), 1.0, "s", agree, _nothing())


def imported(small: bool) -> Prepared:
    """`import studies.cli` in a new process, beside numpy, which no help waits for."""

    def agree() -> None:
        heavy = "import sys, studies.cli; print(*{'numpy', 'numba', 'flwr', 'scipy'} & set(sys.modules))"
        assert not _run("-c", heavy).strip(), "importing the command imports what only some commands need"

    ours = Side("import studies.cli", lambda: _run("-c", "import studies.cli"))
    numpy = Side("import numpy", lambda: _run("-c", "import numpy"))
    return Prepared(ours, (numpy,), 1.0, "s", agree, _nothing())


def second_run(small: bool) -> Prepared:
    """A tiny study in a new process whose kernels are kept, beside one that has to compile them."""
    folder = tempfile.TemporaryDirectory()
    room = Path(folder.name)
    (room / "study.toml").write_text(STUDY, "utf-8")

    def run(**environment: str) -> str:
        words = ("-m", "studies", "run", str(room / "study.toml"), "--out", str(room / "out"), "--overwrite")
        return _run(*words, "--jobs", "1", **environment)

    def first() -> None:
        with tempfile.TemporaryDirectory(dir=room) as empty:
            run(NUMBA_CACHE_DIR=empty)

    def agree() -> None:
        run()
        said = run(NUMBA_DEBUG_CACHE="1")
        assert "data loaded from" in said and "data saved to" not in said, "a second run compiles"

    ours = Side("second run", run)
    finalize(run, folder.cleanup)
    alone = Side("import what it needs", lambda: _run("-c", "import studies.run, studies.console"))
    return Prepared(ours, () if small else (Side("first run", first),), 1.0, "s", agree, alone)


def _nothing() -> Side:
    return Side("python -c pass", lambda: _run("-c", "pass"))


def _run(*words: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *words], env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
