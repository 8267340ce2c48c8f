"""Nothing that was started outlives who started it, even where the guardian is killed at the same moment."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deploy import leash

ROOT = Path(__file__).parents[2]
STARTS = """
import os, signal, sys
from pathlib import Path
from deploy.processes import private_home

with private_home(Path(sys.argv[1])) as processes:
    child = processes.start("sleeper", ["sleep", "600"])
    while b"python" in Path(f"/proc/{child.pid}/cmdline").read_bytes():
        pass
    print(child.pid, flush=True)
    os.kill(processes._guardian.pid, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the signal at a parent's end is Linux's own")


def test_a_child_ends_with_its_parent_and_its_guardian(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", STARTS, str(tmp_path / "logs")], env=environment, capture_output=True, text=True
    )
    child = Path("/proc", done.stdout.strip())
    deadline = time.monotonic() + 60
    while child.name and child.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert child.name, done.stderr


def test_whose_parent_is_gone_already_is_not_started(tmp_path: Path) -> None:
    command = [sys.executable, "-I", "-S", leash.__file__]
    program = [sys.executable, "-c", f"open({str(tmp_path / 'ran')!r}, 'w')"]
    assert subprocess.run([*command, "1", *program], check=False).returncode == 0
    assert not (tmp_path / "ran").exists()
    assert subprocess.run([*command, str(os.getpid()), *program], check=False).returncode == 0
    assert (tmp_path / "ran").exists()
