"""However a run ends, no process is left, finished cells are kept, and the exit code says what happened."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

Commands = Callable[..., Any]
SOON = 120.0  # seconds: an idle machine takes two
DEPLOYMENT = ("--on", "deployment", "--clients", "1")


def parts(out: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in out.glob("parts/*.parquet")}


def test_ctrl_c_and_a_client_that_cannot_answer_keep_finished_cells_and_resume_goes_on(
    command: Commands, reference: pa.Table
) -> None:
    run = command(*DEPLOYMENT, "--block", "1")
    run.wait(lambda: len(parts(run.out)) or None)
    home = run.home()
    os.killpg(run.process.pid, signal.SIGINT)  # as a terminal does
    code, said = run.end(within=SOON)
    kept = parts(run.out)
    assert code == 130, said
    assert f"{len(kept)} of 2 units are finished" in said
    assert "--on deployment" in said
    assert "--resume" in said
    assert "Traceback" not in said
    assert not home.exists()
    for more in sorted(kept)[1:]:  # finished while Ctrl-C was on its way
        more.unlink()
        del kept[more]
    mute = command(*DEPLOYMENT, "--resume")
    mute.await_process("bin/flwr-serverapp")
    (mute.home() / "node-0.toml").unlink()
    code, said = mute.end()
    assert code == 1 and "INTERNAL" in said, said
    assert "Traceback" not in said
    assert "node-0.toml" not in said, "a client's exception crossed the border"
    assert kept == parts(run.out)
    again = command("--resume")
    code, said = again.end()
    assert code == 0, said
    assert pq.read_table(run.out / "results.parquet").drop_columns("runtime").equals(reference)
    assert kept.items() <= parts(run.out).items()


@pytest.mark.parametrize(
    ("number", "code"),
    [
        # tests/flower_processes/test_flower_ending.py ends children by the same signal
        pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow, id="kill"),
        pytest.param(signal.SIGKILL, -signal.SIGKILL, id="kill -9"),
    ],
)
def test_a_killed_command_takes_its_processes_with_it(command: Commands, number: int, code: int) -> None:
    run = command(*DEPLOYMENT)
    run.await_process("bin/flwr-serverapp")
    home = run.home()
    assert len(run.others()) >= 5  # the SuperLink, a SuperNode, what each started, the server, the guardian
    run.process.send_signal(number)
    run.process.wait(SOON)
    run.wait_until(lambda: not run.others() and not home.exists(), within=SOON)
    assert run.process.returncode == code


@pytest.mark.slow
def test_a_killed_simulation_leaves_nothing(command: Commands) -> None:
    run = command("--on", "simulation", "--clients", "2")
    run.await_process("raylet")
    home = run.home()
    run.process.kill()
    run.wait_until(lambda: not run.others() and not home.exists(), within=SOON)


@pytest.mark.slow
def test_a_killed_guardian_is_not_missed(command: Commands) -> None:
    run = command(*DEPLOYMENT)
    os.kill(run.await_process("ending.py"), signal.SIGKILL)
    run.await_process("bin/flwr-serverapp")
    os.kill(run.process.pid, signal.SIGTERM)
    assert run.end(within=SOON)[0] == 143
