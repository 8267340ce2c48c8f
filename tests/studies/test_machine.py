"""Whether kernels are kept: said before a run, which compiles them first where they are not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from studies.cli import main
from studies.machine import kernels_kept

ROOT = Path(__file__).parents[2]
COMPILE = "import numpy as np; from server.kernels_solve import dot; dot(np.ones(2), np.ones(2))"


def test_kernels_are_kept_once_they_were_compiled_from_the_present_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("NUMBA_CACHE_LOCATOR_CLASSES", raising=False)  # that of tests; people have none
    assert not kernels_kept()
    subprocess.run([sys.executable, "-c", COMPILE], cwd=ROOT, check=True)
    assert kernels_kept()
    for path in tmp_path.rglob("*.nbi"):
        os.utime(path, (0, 0))  # of an older source
    assert not kernels_kept()


def test_a_run_ends_with_what_privacy_costs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ["study.repetitions=3", "grid.n=[200, 1000]", "grid.epsilon=[1.0]"]
    words = [word for each in small for word in ("--set", each)]
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))  # looked at by the note alone: numba has read it
    run = ["run", str(ROOT / "studies" / "toml" / "quick.toml"), "--jobs", "1", *words]
    assert main([*run, "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr()
    told = " ".join(said.out.split())
    assert "for the same error as with clear labels." in told or "labelers privacy costs cannot be told" in told
    assert "compiles its kernels first" in said.err.lower()
