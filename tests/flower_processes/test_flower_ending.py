"""Ending by environment: children in sessions of their own, deaf ones, and nobody else."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy import ending
from deploy.ending import carriers, end_all
from deploy.ports import free_port, listens
from deploy.processes import FlowerFailed, Signalled, private_home, program

DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
PARENT = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {DEAF!r}], start_new_session=True).wait()"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "home"
    folder.mkdir()
    yield folder
    end_all(folder)


def start(code: str, home: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "FLWR_HOME": str(home)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_a_deaf_grandchild_in_another_session_ends_and_a_stranger_lives(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ending, "KINDLY", 0.3)
    child, stranger = start(PARENT, home), start("import time; time.sleep(600)", home.parent / "home2")
    assert child.stdout is not None
    assert child.stdout.readline() == "deaf\n"
    assert len(carriers(home)) == 2
    assert end_all(home) == []
    assert carriers(home) == []
    assert not home.exists()
    assert stranger.poll() is None
    stranger.kill()
    for process in (child, stranger):
        process.communicate()


HIDDEN = """
import os, subprocess, sys
from pathlib import Path
from types import SimpleNamespace
from deploy.ending import carriers, end_processes
from deploy.mending import _executors

home = Path(sys.argv[1])
script = home / "flower-superexec"
script.write_text("import ctypes, time; ctypes.CDLL(None).prctl(4, 0); print('hidden', flush=True); time.sleep(600)")
words = f"sys.executable, {str(script)!r}, '--parent-pid', str(os.getpid())"
parent = f"import os, subprocess, sys; subprocess.run([{words}])"
how = {"env": {**os.environ, "FLWR_HOME": str(home)}, "stdout": subprocess.PIPE}
superlink = subprocess.Popen([sys.executable, "-c", parent], **how)
assert superlink.stdout.readline() == b"hidden\\n"
children = SimpleNamespace(names=lambda: {superlink.pid: "superlink"})
assert _executors(children) == {"superlink"}, "not known by its words"
assert len(carriers(home)) == 2, "not found by its parent"
assert end_processes(home) == [] == carriers(home)
"""


def test_an_executor_that_hides_from_all_but_root_is_seen_and_ended(home: Path) -> None:
    """As Flower's does: without rights of its own, nobody but its kernel reads the environment of such a process."""
    bare = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"] if os.geteuid() == 0 else []
    if bare and shutil.which("setpriv") is None:
        pytest.skip("expected setpriv, to be nobody in particular")
    words = [*bare, sys.executable, "-c", HIDDEN, str(home)]
    root = Path(__file__).parents[2]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=root, timeout=120)
    assert done.returncode == 0, done.stderr


def test_the_guardian_acts_when_its_parent_is_gone(home: Path) -> None:
    child = start(DEAF, home)
    command = [sys.executable, "-I", "-S", ending.__file__, str(home)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as guardian:
        time.sleep(0.2)
        assert guardian.poll() is None
        assert child.poll() is None
    assert guardian.returncode == 0
    assert not home.exists()
    child.communicate()


def test_leaving_the_block_by_a_signal_ends_the_children(tmp_path: Path) -> None:
    homes = []

    def sleep() -> None:
        with private_home(tmp_path / "logs") as processes:
            homes.append(processes.home)
            processes.start("sleeper", ["sleep", "600"])
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Signalled) as caught:
        sleep()
    assert caught.value.code == 143
    assert carriers(homes[0]) == []
    assert not homes[0].exists()
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_child_that_has_ended_is_named_with_its_log(tmp_path: Path) -> None:
    with private_home(tmp_path / "logs") as processes:
        processes.start("sleeper", ["sleep", "no number"]).wait()
        with pytest.raises(FlowerFailed, match=r"sleeper ended with exit code 1; its log: .*sleeper\.log"):
            processes.check()
    assert "no number" in (tmp_path / "logs" / "sleeper.log").read_text()


def test_a_missing_program_is_named() -> None:
    with pytest.raises(FlowerFailed, match="flower-nothing"):
        program("flower-nothing")


def test_another_process_that_listens_does_not_count() -> None:
    port = free_port()
    code = f"import socket; s = socket.create_server(('127.0.0.1', {port})); print(s, flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert listens(other.pid, port)
        assert not listens(os.getpid(), port)
        other.communicate(b"\n")
    assert not listens(other.pid, port)
