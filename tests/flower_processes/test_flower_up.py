"""A federation in the background: up, status, a study on it, killed and ended, and no process left whatever died."""

import io
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deploy import federation
from deploy.ending import carriers
from deploy.federation import State
from deploy.ports import free_port
from studies.cli import main
from studies.folder import Folder
from studies.load import load
from studies.run import run as run_in_process
from studies.watch.look import FINISHED, Watch

ROOT = Path(__file__).parents[2]
LONG = 540.0  # seconds: an idle machine takes twenty
Said = tuple[int, str]
ROUNDS = """
study = { name = "kills", seed = 11, repetitions = 2 }
problem = { kind = "records", model = "linear", dimension = 3, theta = [0.5, 0.0, -0.5], bound = 2 }
records = { features = "uniform(0, 1)", noise = "centred pareto(1.6)", tail = 0.5, moment = 16 }
grid = { n = [150], epsilon = [0.5], delta = [1e-5] }
arm = [{ trust = "local", mechanism = "piecewise", estimator = "descent", rounds = 20, step = 0.1 }]
"""


def say(*words: str) -> Said:
    """Exit code and output of a command, in this process."""
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        code = main(words)
    return code, output.getvalue()


def up(*words: str) -> Said:
    """The same of `halftruth up`, in a process of its own, which a keeper outlives."""
    done = subprocess.run(
        [sys.executable, "-m", "studies", "up", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=ROOT.parent,
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def wait_until(holds: Callable[[], bool], within: float = LONG) -> None:
    """Wait for something to hold."""
    deadline = time.monotonic() + within
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    """A state folder, whatever a test leaves in it ended afterwards."""
    made = State(tmp_path / "state")
    yield made
    record = federation.read(made)
    code, said = say("down", "--state", str(made.folder))
    assert code == 0, said
    assert record is None or not record.home or carriers(Path(record.home)) == []


def status(state: State) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(say("status", "--state", str(state.folder), "--json")[1])
    return found


def guardian_of(home: Path) -> int:
    """The process that ends the others where their keeper is killed."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if words[-2:-1] == [str(home).encode()] and any(word.endswith(b"ending.py") for word in words):
                    return int(entry.name)
    pytest.fail("nobody guards")


def noted(state: State) -> int:
    """Bytes in the server's journals: rounds that were answered."""
    with suppress(FileNotFoundError):  # a cell is finished
        return sum(path.stat().st_size for path in (state.folder / "journal").glob("*.journal"))
    return 0


def bits(out: Path) -> pa.Table:
    return pq.read_table(out / "results.parquet").drop_columns("runtime")


def test_a_federation_with_keys_from_up_to_down(state: State, small: Path, reference: pa.Table, tmp_path: Path) -> None:
    folder = str(state.folder)
    words = ("--nodes", "2", "--tls", "--state", folder)
    code, said = up(*words)
    assert code == 0 and said.startswith("Up at 127.0.0.1:"), said
    record = federation.read(state)
    assert record is not None
    home = Path(record.home)

    found = status(state)
    assert (found["phase"], found["online"], found["ended"]) == ("running", 2, {})
    assert {"keeper", "superlink", "node-0", "node-1"} <= set(found["taken"])
    assert all(taken["cpu_seconds"] > 0 and taken["memory_mb"] > 20 for taken in found["taken"].values())
    assert [(node["name"], node["status"]) for node in found["nodes"]] == [("node-0", "online"), ("node-1", "online")]

    run = ("run", str(small), "--on", "deployment", "--federation", folder)
    code, said = say(*run, "--out", str(tmp_path / "out"))
    assert code == 0, said
    assert bits(tmp_path / "out").equals(reference)
    seen = Watch(Folder(tmp_path / "out")).look(time.time())  # its messages came through the log
    assert (seen.state, seen.messages.nodes, seen.messages.all) == (FINISHED, 2, {"answered": 2})
    code, said = say(*run, "--out", str(tmp_path / "few"), "--clients", "3")
    assert code == 2 and "expected 3 nodes" in said and "found 2" in said

    code, said = say("up", *words)
    assert code == 0 and said.startswith("Up already at "), said
    assert federation.read(state) == record
    code, said = say("up", "--nodes", "1", "--state", folder)
    assert code == 1 and "another federation is up" in said and "halftruth down" in said

    os.kill(record.keeper, signal.SIGKILL)
    wait_until(lambda: carriers(home) == [] and not home.exists())  # by its guardian
    found = status(state)
    assert found["phase"] == "killed"
    code, said = say(*run, "--out", str(tmp_path / "late"))
    assert code == 1 and "found none: halftruth up" in said
    assert say("down", "--state", folder)[1].startswith("Ended")
    code, said = say("down", "--state", folder)
    assert (code, said) == (0, f"Nothing runs in {folder}\n")
    assert {path.name for path in state.folder.iterdir()} >= {"keys", "certs", "logs", "nodes.toml"}


def again(found: dict[str, Any]) -> tuple[int, int]:
    """How often the two that were killed were started: a node that comes before the server is there, once more."""
    return found["starts"]["superlink"], found["starts"]["node-1"]


@pytest.mark.slow
def test_what_dies_comes_back_and_revoked_keys_stay_out(state: State, small: Path, tmp_path: Path) -> None:
    folder = str(state.folder)
    code, said = up("--nodes", "2", "--tls", "--state", folder)
    assert code == 0, said
    first = status(state)
    record = federation.read(state)
    assert record is not None
    guardian = guardian_of(Path(record.home))
    for process in (record.children["node-1"].process, record.children["superlink"].process, guardian):
        os.kill(process, signal.SIGKILL)
    wait_until(lambda: (found := status(state))["online"] == 2 and min(again(found)) >= 2)
    assert guardian_of(Path(record.home)) != guardian
    assert [node["id"] for node in status(state)["nodes"]] == [node["id"] for node in first["nodes"]]
    code, said = say("run", str(small), "--out", str(tmp_path / "out"), "--on", "deployment", "--federation", folder)
    assert code == 0, said

    assert say("keys", "revoke", "node-1", "--state", folder)[0] == 0
    wait_until(lambda: status(state)["online"] == 1)
    wait_until(lambda: "its key is revoked" in (state.logs / "keeper.log").read_text())
    assert say("keys", "new", str(tmp_path / "key"))[0] == 0
    code, said = say("keys", "register", "node-1", f"{tmp_path / 'key'}.pub", "--state", folder)
    assert code == 2 and "--replaces node-1" in said
    code, said = say("keys", "register", "node-1", f"{tmp_path / 'key'}.pub", "--state", folder, "--replaces", "node-1")
    assert code == 0, said
    words = ("--part", "1/2", "--superlink", record.address, "--certs", str(state.certs / "ca.crt"))
    node = subprocess.Popen(
        [sys.executable, "-m", "studies", "node", *words, "--key", str(tmp_path / "key")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )
    try:
        wait_until(lambda: status(state)["online"] == 2)
    finally:
        os.killpg(node.pid, signal.SIGTERM)
        node.wait(60)


@pytest.mark.slow
def test_a_run_goes_on_when_the_superlink_of_its_federation_is_killed(state: State, tmp_path: Path) -> None:
    """Then keeper and guardian are killed at once, and nothing is left without anybody's help."""
    folder, study, out = str(state.folder), tmp_path / "study.toml", tmp_path / "out"
    study.write_text(ROUNDS, encoding="utf-8")
    expected = run_in_process(load(study), tmp_path / "reference", jobs=1).drop_columns("runtime")
    code, said = up("--nodes", "2", "--tls", "--state", folder)
    assert code == 0, said
    words = ("run", str(study), "--out", str(out), "--on", "deployment", "--federation", folder)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "studies", *words]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        try:
            for kills in (1, 2):
                wait_until(lambda kills=kills: run.poll() is not None or noted(state) > 1_000 * kills)  # type: ignore[misc]
                record = federation.read(state)
                assert run.poll() is None and record is not None, run.communicate()
                os.kill(record.children["superlink"].process, signal.SIGKILL)
                wait_until(lambda kills=kills: again(status(state))[0] > kills)  # type: ignore[misc]
            said, _ = run.communicate(timeout=LONG)
        finally:
            run.kill()
    assert run.returncode == 0, said
    assert "started again" in said
    assert bits(out).equals(expected)
    record = federation.read(state)
    assert record is not None
    for process in (guardian_of(Path(record.home)), record.keeper):
        os.kill(process, signal.SIGKILL)
    wait_until(lambda: carriers(Path(record.home)) == [])


@pytest.mark.slow
def test_a_server_in_the_foreground_ends_cleanly_and_remembers_its_nodes(state: State, tmp_path: Path) -> None:
    folder, certs, key = str(state.folder), str(tmp_path / "certs"), str(tmp_path / "anna")
    assert say("certs", certs)[0] == 0
    assert say("keys", "new", key)[0] == 0
    code, said = say("server", "--state", folder, "--host", "0.0.0.0")
    assert code == 2 and "expected --certs with it" in said
    ids = []
    where = ("--state", folder, "--port", str(free_port()), "--certs", certs)
    command = [sys.executable, "-m", "studies", "server", *where]
    for _ in range(2):
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            try:
                assert server.stdout.readline().startswith("halftruth server: ready at 127.0.0.1:")
                code, said = say("keys", "register", "anna", f"{key}.pub", "--state", folder)
                assert code == 0, said
                ids.append(json.loads(say("keys", "list", "--state", folder, "--json")[1])[0]["id"])
                record = federation.read(state)
                assert record is not None
                server.terminate()
                assert server.wait(60) == 0
                assert server.stdout.read() == "halftruth server: ended\n"
                assert carriers(Path(record.home)) == []
            finally:
                server.kill()  # its guardian ends the others
    assert ids[0] == ids[1]


def test_a_port_that_is_taken_is_named_with_its_holder(state: State) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        code, said = up("--nodes", "1", "--port", str(port), "--state", str(state.folder))
        assert code == 1 and f"port {port} of 127.0.0.1 is taken by process {os.getpid()} (" in said
        found = status(state)
        assert found["phase"] == "failed" and f"port {port}" in found["reason"]
