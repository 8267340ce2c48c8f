"""Sessions between real processes: sums that members open over Flower's engines are those of one process."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from server.journal import HEAD, MAGIC
from studies.load import load
from studies.run import run

STUDY = """
study = { name = "shares", seed = 7, repetitions = 2 }
problem = { kind = "pairwise", dimension = 3, features = "gaussian", theta = [0.5, 0.0, -0.5], bound = 1 }
grid = { n = [120], epsilon = [1.0, 4.0], delta = [1e-5] }
arm = [
  { trust = "central", mechanism = "gaussian-statistic-clipped", estimator = "mle" },
  { trust = "distributed", mechanism = "skellam", estimator = "mle", honest = 0.8 },
  { trust = "distributed", mechanism = "binomial", estimator = "mle", honest = 1.0 },
]
"""


@pytest.mark.slow
@pytest.mark.parametrize(("runtime", "clients"), [("deployment", 3), ("simulation", 5)])
def test_members_in_processes_of_their_own_open_the_same_sums(
    expect_bits: Callable[[str, str, int], None], runtime: str, clients: int
) -> None:
    expect_bits(STUDY, runtime, clients)


ROUNDS = """
study = { name = "rounds", seed = 11, repetitions = 2 }
problem = { kind = "records", model = "linear", dimension = 3, theta = [0.5, 0.0, -0.5], bound = 2 }
records = { features = "uniform(0, 1)", noise = "centred pareto(1.6)", tail = 0.5, moment = 16 }
grid = { n = [150], epsilon = [0.5], delta = [1e-5] }
arm = [
  { trust = "distributed", estimator = "descent", rounds = 3, step = 0.1 },
  { trust = "distributed", estimator = "descent", rounds = 3, step = 0.1, batches = "disjoint" },
]
"""
STAGES = 5


def exchanges(folder: Path) -> int:
    """How many exchanges are in the one journal there is; none where there is none yet, or no more."""
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


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["deployment", "simulation"])
def test_rounds_that_have_a_session_each_are_the_same_over_processes(
    expect_bits: Callable[[str, str, int], None], runtime: str
) -> None:
    expect_bits(ROUNDS, runtime, 3)


@pytest.mark.slow
@pytest.mark.parametrize("after", [STAGES, STAGES + 3], ids=["between rounds", "within a session"])
def test_a_server_that_is_killed_goes_on_with_the_sessions_of_a_run(
    command: Callable[..., Any], tmp_path: Path, after: int
) -> None:
    """What members said is in its journal, and each of them would say no stage of a session otherwise again."""
    study = tmp_path / "study.toml"
    study.write_text(ROUNDS, encoding="utf-8")
    expected = run(load(study), tmp_path / "reference", jobs=1).drop_columns("runtime")
    started = command("--on", "deployment", "--clients", "3", study=study)
    started.wait(lambda: exchanges(started.out / "journal") >= after or None, within=600)
    os.kill(started.await_process("bin/flwr-serverapp"), signal.SIGKILL)
    code, said = started.end(within=900)
    assert code == 0, said
    assert pq.read_table(started.out / "results.parquet").drop_columns("runtime").equals(expected)
    assert len((started.out / "rounds.txt").read_text("utf-8").splitlines()) <= 3 * STAGES + 1  # one may be asked twice
