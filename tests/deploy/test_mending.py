"""What is started again, and what takes a run with it: real processes that do nothing, in place of Flower's."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deploy import mending
from deploy.flwr_command import SuperLink
from deploy.mending import Mending
from deploy.nodes import Nodes
from deploy.processes import FlowerFailed, Processes, private_home
from deploy.restarts import EARLY, Restarts, SuperLinkLost

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are looked for in /proc")


class Sleepers(Nodes):
    """Nodes that say a number and sleep."""

    def _start(self, name: str) -> None:
        line = "import os, time; print('INFO : SuperNode ID:', os.getpid(), flush=True); time.sleep(600)"
        self.processes.start(name, [sys.executable, "-c", line])


class Deaf(SuperLink):
    """A SuperLink that notes which nodes it was told are gone."""

    def unregister(self, node: str) -> None:
        """Note it, and fail like one that does not know the node."""
        self.environment["gone"] += f" {node}"  # type: ignore[index]
        raise FlowerFailed("no such node")


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Processes, Mending, list[str]]]:
    """A SuperLink with an executor and two nodes, and what was said of them."""
    for name in ("GRACE", "GLANCE"):
        monkeypatch.setattr(mending, name, 0.0)
    said: list[str] = []
    with private_home(tmp_path / "logs") as processes:
        words = dict.fromkeys(("node-0", "node-1"), ())
        nodes = Sleepers(processes, words)
        for name in words:
            nodes._start(name)
        superlink = processes.start("superlink", [sys.executable, "-c", "import time; time.sleep(600)"])
        script = tmp_path / "flower-superexec"
        script.write_text("import ctypes, time; ctypes.CDLL(None).prctl(4, 0); time.sleep(600)\n")  # hides, as it does
        command = [sys.executable, str(script), "--insecure", "--parent-pid", str(superlink.pid)]
        processes.start("executor", command)
        until(lambda: mending._executors(processes) == {"superlink"})
        restarts = Restarts(said.append, sleep=lambda seconds: None)
        yield processes, Mending(processes, Deaf("x", {"gone": ""}), nodes, restarts), said


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_nothing_is_done_where_all_is_well(room: tuple[Processes, Mending, list[str]]) -> None:
    processes, own, said = room
    before = processes.names()
    for _ in range(3):
        own.check()
    assert processes.names() == before and not said


def test_a_node_that_ends_is_started_again_and_its_number_forgotten(room: tuple[Processes, Mending, list[str]]) -> None:
    processes, own, said = room
    until(lambda: "ID:" in processes.log("node-1").read_text())
    (old,) = (process for process, name in processes.names().items() if name == "node-1")
    os.kill(old, signal.SIGKILL)
    until(lambda: not processes.lives("node-1"))
    own.check()
    assert processes.lives("node-1") and processes.lives("node-0")
    assert said == [f"node-1 ended with signal SIGKILL; its log: {processes.log('node-1')}: started again"]
    assert own.link.environment["gone"] == f" {old}"


def test_a_node_that_keeps_ending_is_given_up(room: tuple[Processes, Mending, list[str]]) -> None:
    processes, own, said = room
    for left in range(EARLY, 0, -1):
        processes.kill("node-0")
        if left > 1:
            own.check()
    with pytest.raises(FlowerFailed, match=rf"node-0 ended with signal SIGKILL; its log: .*, {EARLY} times"):
        own.check()
    assert len(said) == EARLY - 1


def test_a_superlink_is_of_no_use_without_its_executor(room: tuple[Processes, Mending, list[str]]) -> None:
    processes, own, _ = room
    processes.kill("executor")
    for _ in range(2):
        with pytest.raises(SuperLinkLost, match="the SuperLink's executor ended"):
            own.check()


def test_a_superlink_that_ends_takes_its_runs_with_it(room: tuple[Processes, Mending, list[str]]) -> None:
    processes, own, said = room
    processes.kill("superlink")
    with pytest.raises(SuperLinkLost, match=r"superlink ended with signal SIGKILL; its log: .*superlink\.log"):
        own.check()
    home = processes.home
    processes.end_children()
    assert processes.names() == {} and home.is_dir() and not said
