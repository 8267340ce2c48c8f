"""What goes wrong is said in words, with the exit code of a failed run, in bounded time, and nothing is left behind."""

import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deploy import superlink
from deploy.processes import FlowerFailed, private_home

Commands = Callable[..., Any]
DEPLOYMENT = ("--on", "deployment", "--clients", "1")


def failed(run: Any, *words: str, within: float = 240) -> str:
    """The run ends with exit code 1, says these words and no traceback, keeps its logs."""
    code, said = run.end(within)
    assert code == 1, said
    assert "Traceback" not in said
    for word in words:
        assert word in said
    return str(said)


def asked(run: Any) -> None:
    """Wait until the node has a question that it never answers."""
    os.kill(run.await_process("deploy.executor"), signal.SIGSTOP)
    log = run.out / "logs" / "node-0.log"
    run.wait(lambda: 1 if log.exists() and "Receiving" in log.read_text() else None)
    run.wait(lambda: None if any("bin/flwr run" in words for words in run.others().values()) else 1)


@pytest.mark.slow  # tests/flower_processes/test_flower_kills.py kills each of them in the suite
@pytest.mark.parametrize("name", ["bin/flower-superlink", "deploy.supernode"])
def test_a_killed_process_is_started_again_at_once(command: Commands, reference: pa.Table, name: str) -> None:
    run = command(*DEPLOYMENT)
    asked(run)
    os.kill(run.await_process(name), signal.SIGKILL)
    log = {"bin/flower-superlink": "superlink", "deploy.supernode": "node-0"}[name]
    code, said = run.end(within=300)
    assert code == 0, said
    assert f"{log} ended with signal SIGKILL; its log: {run.out / 'logs' / f'{log}.log'}: started again" in said
    assert pq.read_table(run.out / "results.parquet").drop_columns("runtime").equals(reference)


@pytest.mark.slow  # tests/flower/test_server_raises.py hears the same in one process
def test_a_server_that_raises_says_why(command: Commands, tmp_path: Path) -> None:
    study = tmp_path / "two.toml"
    study.write_text(
        'study = { name = "two", seed = 11, repetitions = 1 }\ngrid = { n = [2] }\n'
        'problem = { kind = "pairwise", dimension = 4, features = "gaussian", theta = [0.75, 0.25, -0.25, -0.75] }\n'
        'arm = [{ trust = "clear", estimator = "mle" }]\n'
    )
    failed(command(*DEPLOYMENT, study=study), "minimiser")


def test_without_ray_there_is_no_simulation(command: Commands, tmp_path: Path) -> None:
    shim = tmp_path / "shim" / "ray"
    shim.mkdir(parents=True)
    (shim / "__init__.py").write_text("raise ImportError('no ray today')\n")
    run = command("--on", "simulation", PYTHONPATH=str(shim.parent))
    failed(run, "expected ray", "no ray today", "halftruth[simulation]")
    assert not run.out.exists()


def test_an_unknown_connection_is_named(command: Commands, tmp_path: Path) -> None:
    run = command(*DEPLOYMENT, "--superlink", "nowhere", FLWR_HOME=str(tmp_path / "flower"))
    failed(run, "nowhere")


def test_a_taken_port_is_left_to_whoever_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind((superlink.HOST, 0))
        taken.listen()
        ports = iter([taken.getsockname()[1], superlink.free_port()])
        monkeypatch.setattr(superlink, "free_port", lambda: next(ports))
        with private_home(tmp_path / "logs") as processes:
            _, address = superlink.start_superlink(processes, superlink.Serving())
            assert address != f"{superlink.HOST}:{taken.getsockname()[1]}"
            processes.check()


def test_a_port_that_is_always_taken_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind((superlink.HOST, 0))
        taken.listen()
        monkeypatch.setattr(superlink, "free_port", lambda: taken.getsockname()[1])
        monkeypatch.setattr(superlink, "ATTEMPTS", 1)
        with private_home(tmp_path / "logs") as processes, pytest.raises(FlowerFailed, match=r"superlink\.log"):
            superlink.start_superlink(processes, superlink.Serving())


@pytest.mark.slow  # tests/flower_processes/test_flower_kills.py kills one in the suite
def test_a_killed_executor_is_replaced_and_the_numbers_are_the_same(command: Commands, reference: pa.Table) -> None:
    run = command(*DEPLOYMENT)
    run.await_process("bin/flwr-serverapp")
    os.kill(run.await_process("deploy.executor"), signal.SIGKILL)  # before the question, at it, or after it
    code, said = run.end()
    assert code == 0, said
    assert pq.read_table(run.out / "results.parquet").drop_columns("runtime").equals(reference)


@pytest.mark.slow
def test_a_killed_server_app_is_replaced_and_the_numbers_are_the_same(command: Commands, reference: pa.Table) -> None:
    run = command(*DEPLOYMENT)
    os.kill(run.await_process("bin/flwr-serverapp"), signal.SIGKILL)  # at whatever moment
    code, said = run.end(within=240)
    assert code == 0, said
    assert pq.read_table(run.out / "results.parquet").drop_columns("runtime").equals(reference)
