"""Processes of a study of many rounds are killed at random moments: the same bits, every round asked as it was, and
nothing left behind.
"""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from client.ledger_view import read_entries, read_labelers
from server.journal import HEAD, MAGIC
from studies.cli import main
from studies.load import load
from studies.run import run

Commands = Callable[..., Any]
Say = pytest.CaptureFixture[str]
FEW, ROUNDS = 7, 20
STUDY = """
study = { name = "kills", seed = 11, repetitions = 2 }
problem = { kind = "records", model = "linear", dimension = 3, theta = [0.5, 0.0, -0.5], bound = 2 }
records = { features = "uniform(0, 1)", noise = "centred pareto(1.6)", tail = 0.5, moment = 16 }
grid = { n = [150], epsilon = [0.5], delta = [1e-5] }
arm = [
  { trust = "central", estimator = "descent", rounds = ROUNDS, step = 0.1 },
  { trust = "local", mechanism = "piecewise", estimator = "descent", rounds = ROUNDS, step = 0.1 },
]
"""
PROGRAMS = {
    "SuperLink": "bin/flower-superlink",
    "its executor": "bin/flower-superexec",
    "the server's app": "bin/flwr-serverapp",
    "a node": "deploy.supernode",
    "a node's executor, or its child": "deploy.executor",
}


def written(folder: Path) -> int:
    """Rounds in the one journal there is; none where the cell is not there yet, or no more."""
    for path in folder.glob("*.journal"):
        try:
            content, place, found = path.read_bytes(), len(MAGIC), 0
        except FileNotFoundError:
            continue
        while place + HEAD.size <= len(content):
            place += HEAD.size + HEAD.unpack_from(content, place)[0]
            found += place <= len(content)
        return found
    return 0


def study_of(tmp_path: Path, rounds: int) -> Path:
    """The study on disk."""
    path = tmp_path / "study.toml"
    path.write_text(STUDY.replace("ROUNDS", str(rounds)), encoding="utf-8")
    return path


def killed_again_and_again(
    command: Commands, tmp_path: Path, programs: list[str], coins: np.random.Generator, rounds: int = ROUNDS
) -> None:
    """Kill one process of each of these programs in turn, each when another random round has been answered."""
    path = study_of(tmp_path, rounds)
    expected = run(load(path), tmp_path / "reference", jobs=1).drop_columns("runtime")
    moments = np.sort(coins.choice(np.arange(1, rounds - 1), len(programs), replace=False))
    started = command("--on", "deployment", "--clients", "2", study=path)
    for moment, program in zip(moments.tolist(), programs, strict=True):
        started.wait(lambda moment=moment: written(started.out / "journal") >= moment or None, within=600)
        found = started.wait(lambda program=program: those(started, PROGRAMS[program]) or None, within=300)
        os.kill(found[int(coins.integers(len(found)))], signal.SIGKILL)
    code, said = started.end(within=900)
    assert code == 0, said
    assert pq.read_table(started.out / "results.parquet").drop_columns("runtime").equals(expected)
    assert not (started.out / "journal").exists() and not (started.out / "logs").exists()
    if "SuperLink" in programs:
        assert "superlink ended with signal SIGKILL" in said


def those(started: Any, program: str) -> list[int]:
    """Living processes of a program."""
    return [process for process, words in started.others().items() if program in words]


def test_a_study_survives_the_end_of_any_of_its_processes(command: Commands, tmp_path: Path) -> None:
    killed_again_and_again(command, tmp_path, list(PROGRAMS), np.random.default_rng(7), FEW)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_fifty_kills(command: Commands, tmp_path: Path, seed: int) -> None:
    """Five in each of ten studies, of random processes at random moments."""
    coins = np.random.default_rng(100 + seed)
    killed_again_and_again(command, tmp_path, coins.choice(list(PROGRAMS), 5).tolist(), coins)


@pytest.mark.slow
def test_a_killed_command_goes_on_in_the_middle_of_a_unit(command: Commands, tmp_path: Path) -> None:
    """Its guardian ends everything; what was answered is in its folder, and asked of nobody again."""
    path = study_of(tmp_path, ROUNDS)
    first = command("--on", "deployment", "--clients", "2", study=path)
    first.wait(lambda: written(first.out / "journal") >= 5 or None, within=600)
    first.process.kill()
    first.process.communicate()
    first.wait_until(lambda: first.others() == {}, within=60)
    had = written(first.out / "journal")
    assert had >= 5
    again = command("--on", "deployment", "--clients", "2", "--resume", study=path)
    code, said = again.end(within=600)
    assert code == 0, said
    assert len((again.out / "rounds.txt").read_text("utf-8").splitlines()) <= ROUNDS - had
    expected = run(load(path), tmp_path / "reference", jobs=1).drop_columns("runtime")
    assert pq.read_table(again.out / "results.parquet").drop_columns("runtime").equals(expected)


LEVEL = ("--epsilon", "1", "--estimator", "descent", "--mechanism", "piecewise", "--bound", "2", "--threshold", "2")


@pytest.mark.slow
def test_no_budget_is_lost_or_spent_twice(
    command: Commands, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two nodes with records of a file and ledgers of their own: each process that may end does, in ten rounds. What
    ledgers hold is what those of an uninterrupted twin hold, and the estimate is what all repeat when asked again.
    """
    lines = ["id,x,y", *(f"c{row},{row % 7 / 7},{row % 3}" for row in range(60))]
    (tmp_path / "losses.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    columns = ("--columns", "x", "--response", "y", "--model", "linear", "--id", "id", "--trust", "local")
    split = ("data", "split", str(tmp_path / "losses.csv"), "--records", "--nodes", "2", "--label-cap", "10", *columns)
    how = (*LEVEL, "--rounds", "10", "--step", "0.2", "--json")
    for name in ("nodes", "twin"):
        assert main([*split, "--out", str(tmp_path / name)]) == 0
    out, twin = tmp_path / "nodes", tmp_path / "twin"
    assert main(["federate", str(twin / "server"), "--nodes", str(twin), "--on", "in-process", *how]) == 0
    capsys.readouterr()

    def rounds(folder: Path) -> int:
        ledger = folder / "node-0" / "ledger.sqlite"
        return len(read_entries(ledger)) if ledger.exists() else 0

    started = command(str(out / "server"), "--nodes", str(out), *how, verb="federate")
    for moment, program in enumerate(PROGRAMS.values(), start=1):
        started.wait(lambda moment=moment: rounds(out) >= moment or None, within=600)
        os.kill(started.wait(lambda program=program: those(started, program) or None, within=300)[0], signal.SIGKILL)
    code, said = started.end(within=900)
    assert code == 0, said
    for node in ("node-0", "node-1"):
        paths = [folder / node / "ledger.sqlite" for folder in (out, twin)]
        spent = [[(one.epsilon, one.delta, one.labels) for one in read_labelers(path)] for path in paths]
        entries = [[(one.epsilon, one.mechanism, one.labels) for one in read_entries(path)] for path in paths]
        assert spent[0] == spent[1] and entries[0] == entries[1]
        assert sum(labels for *_, labels in entries[0]) == 30  # each record in one round; a round may miss a node's
    assert main(["federate", str(out / "server"), "--nodes", str(out), "--on", "in-process", *how]) == 0
    again = json.loads(capsys.readouterr().out)
    assert json.loads(said[said.index("{") : said.rindex("}") + 1])["estimate"] == again["estimate"]
