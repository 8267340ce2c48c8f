"""What guides tell a person to type, typed: a federation on one machine, with files, and over machines, which are one.

Commands are those of README.md and docs/DEPLOYMENT.md; only ports and folders' places are this test's own.
"""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from deploy.ports import free_port

ROOT = Path(__file__).parents[2]
LONG = 540.0
Type = Callable[..., str]


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[tuple[Type, Callable[[str], "subprocess.Popen[bytes]"]]]:
    """Types a command and gives what it says; or starts one that goes on. Whatever is left is ended."""
    (tmp_path / "studies").symlink_to(ROOT / "studies")
    environment = os.environ | {"PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(tmp_path / "home")}
    running: list[subprocess.Popen[bytes]] = []

    def words(command: str) -> list[str]:
        return [sys.executable, "-P", "-m", "studies", *shlex.split(command)]

    def say(command: str, expected: int = 0) -> str:
        done = subprocess.run(
            words(command), env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=LONG, check=False
        )
        assert done.returncode == expected, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def begin(command: str) -> "subprocess.Popen[bytes]":
        with (tmp_path / f"log-{len(running)}").open("wb") as log:
            running.append(
                subprocess.Popen(words(command), env=environment, cwd=tmp_path, stdout=log, stderr=subprocess.STDOUT)
            )
        return running[-1]

    yield say, begin
    for process in reversed(running):
        process.send_signal(signal.SIGINT)
        process.wait(60)
    say("down")


def drinks(path: Path, people: int = 12) -> None:
    coins, names = np.random.default_rng(3), ["tea", "coffee", "water"]
    lines = ["labeler,item_a,item_b,winner"]
    for person in range(people):
        for a, b in ((0, 1), (1, 2), (0, 2)):
            lines.append(f"p{person},{names[a]},{names[b]},{names[a if coins.random() < 0.8 else b]}")
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.slow
def test_one_machine_with_labels_that_are_made_up_and_then_with_files(
    shell: tuple[Type, Callable[[str], object]], tmp_path: Path
) -> None:
    say, _ = shell
    say("up --nodes 4 --tls")
    assert "node-3" in say("status")
    say("run studies/toml/quick.toml --out out/up --on deployment --federation --set study.repetitions=2")
    assert (tmp_path / "out/up/results.parquet").exists()
    say("report out/up")
    say("down")
    drinks(tmp_path / "votes.csv")
    say("data split votes.csv --nodes 3 --out nodes")
    say("up --nodes nodes")
    assert "tea" in say("federate nodes/server --federation --trust local --epsilon 1")
    assert "tea" in say("federate nodes/server --federation --epsilon 1"), "and once more, of what is kept"
    say("down")


@pytest.mark.slow
def test_over_machines(shell: tuple[Type, Callable[[str], "subprocess.Popen[bytes]"]], tmp_path: Path) -> None:
    say, begin = shell
    drinks(tmp_path / "votes.csv")
    say("data split votes.csv --nodes 2 --out nodes")
    say("certs certs --host localhost")
    port = free_port()
    server = begin(f"server --state state --certs certs --port {port}")
    deadline = time.monotonic() + LONG
    while "localhost" not in (tmp_path / "log-0").read_text() and "127.0.0.1" not in (tmp_path / "log-0").read_text():
        assert server.poll() is None and time.monotonic() < deadline, (tmp_path / "log-0").read_text()
        time.sleep(0.2)
    for place, name in enumerate(("north", "clinic")):
        say(f"keys new {name}.key")
        say(f"keys register {name} {name}.key.pub --state state")
        where = f"--superlink localhost:{port} --certs certs/ca.crt --key {name}.key"
        begin(f"node --config nodes/node-{place}/node.toml {where}")
    listed = say("keys list --state state")
    assert "north" in listed and "clinic" in listed
    while say("status --state state").count("online") < 2:
        assert server.poll() is None and time.monotonic() < deadline, (tmp_path / "log-1").read_text()
        time.sleep(1)
    assert "tea" in say("federate nodes/server --epsilon 1 --federation state")
