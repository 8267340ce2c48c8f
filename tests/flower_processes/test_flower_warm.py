"""A node's two processes end together, however the first of them ends."""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deploy.nodes import node_toml
from deploy.ports import HOST, free_port
from studies.load import load

ROOT = Path(__file__).parents[2]
MARK = "HALFTRUTH_TEST_MARK"
LONG = 120.0  # seconds: an idle machine takes five


class Node:
    """A node whose SuperLink is not there, as it may be for a while."""

    def __init__(self, file: Path) -> None:
        self.mark = uuid.uuid4().hex
        self.process = subprocess.Popen(
            [sys.executable, "-m", "studies", "node", "--config", str(file)],
            env={**os.environ, MARK: self.mark, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def executors(self) -> list[int]:
        """Ids of its executors."""
        found = []
        for entry in filter(lambda entry: entry.name.isdecimal(), os.scandir("/proc")):
            try:
                variables = Path(entry.path, "environ").read_bytes()
                words = Path(entry.path, "cmdline").read_bytes()
            except OSError:
                continue
            if self.mark.encode() in variables and b"deploy.executor" in words:
                found.append(int(entry.name))
        return found

    def wait(self, holds: Callable[[list[int]], bool]) -> list[int]:
        """Wait for something to hold of its executors."""
        deadline = time.monotonic() + LONG
        while not holds(found := self.executors()):
            assert time.monotonic() < deadline, found
            time.sleep(0.1)
        return found


@pytest.fixture
def node(small: Path, tmp_path: Path) -> Iterator[Node]:
    (tmp_path / "node.toml").write_text(node_toml(load(small).study, 0, 1, f"{HOST}:{free_port()}"))
    started = Node(tmp_path / "node.toml")
    yield started
    started.process.kill()
    started.process.wait()
    started.wait(lambda found: not found)


INTERRUPTED = pytest.param(signal.SIGINT, marks=pytest.mark.slow)  # Flower handles it as it does SIGTERM


@pytest.mark.parametrize("sign", [signal.SIGTERM, INTERRUPTED, signal.SIGKILL], ids=str)
def test_an_executor_ends_with_its_node(node: Node, sign: signal.Signals) -> None:
    node.wait(lambda found: len(found) == 1)
    node.process.send_signal(sign)
    assert node.process.wait(timeout=LONG) in (0, -sign), "asked to, by Flower's handler or before it was there"
    node.wait(lambda found: not found)
