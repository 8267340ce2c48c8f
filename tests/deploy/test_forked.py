"""Work in a forked child: its bytes, its death, its slowness, and nothing of it that stays."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deploy.forked import Abandoned, Died, TooSlow, in_child

ROOT = Path(__file__).parents[2]


@pytest.fixture
def line() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


@pytest.fixture(autouse=True)
def none_is_left() -> Iterator[None]:
    """Of the children of a test none outlives it; those of tests before are not looked at, nor reaped."""
    before = children()
    yield
    assert children() <= before


def children() -> set[str]:
    """The ids of this process's children, zombies among them; none where the system does not tell."""
    return {child for file in Path("/proc/self/task").glob("*/children") for child in file.read_text("ascii").split()}


@pytest.mark.parametrize("size", [0, 1, 1 << 20])
def test_bytes_come_back(line: tuple[socket.socket, socket.socket], size: int) -> None:
    assert in_child(lambda: b"x" * size, 60, line[0].fileno()) == b"x" * size


def test_work_is_done_in_another_process(line: tuple[socket.socket, socket.socket]) -> None:
    kept: list[int] = []
    assert in_child(lambda: (kept.append(1), str(os.getpid()).encode())[1], 60, line[0].fileno()) != os.getpid()
    assert kept == []


@pytest.mark.parametrize("work", [lambda: os.kill(os.getpid(), signal.SIGKILL), lambda: 1 / 0, lambda: os._exit(3)])
def test_a_child_that_ends_otherwise_is_told(
    line: tuple[socket.socket, socket.socket], work: Callable[[], bytes]
) -> None:
    with pytest.raises(Died):
        in_child(work, 60, line[0].fileno())


def test_what_a_child_raises_is_not_repeated(
    line: tuple[socket.socket, socket.socket], capfd: pytest.CaptureFixture[str]
) -> None:
    def work() -> bytes:
        raise ValueError("label 7 is 1")

    with pytest.raises(Died):
        in_child(work, 60, line[0].fileno())
    assert capfd.readouterr().err == "no answer: ValueError\n"


def test_a_slow_child_is_killed(line: tuple[socket.socket, socket.socket]) -> None:
    with pytest.raises(TooSlow):
        in_child(lambda: time.sleep(600) or b"", 0.2, line[0].fileno())


def test_a_child_that_nobody_waits_for_is_killed(line: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = line
    theirs.close()
    with pytest.raises(Abandoned):
        in_child(lambda: time.sleep(600) or b"", 600, ours.fileno())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills a child with its parent")
def test_a_child_dies_with_its_parent() -> None:
    code = (
        "import os, socket, time; from deploy.forked import in_child; a, b = socket.socketpair()\n"
        "in_child(lambda: (print(os.getpid(), flush=True), time.sleep(600)) and b'', 600, a.fileno())"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
        assert parent.stdout.read() == "", "its end is closed when the child is gone"
    deadline = time.monotonic() + 30
    while Path(f"/proc/{child}").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not Path(f"/proc/{child}").exists()
