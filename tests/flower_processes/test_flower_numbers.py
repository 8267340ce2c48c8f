"""The same study over real processes: the same results file, apart from the column that says where it was computed."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from protocol.codec import decode_bundle, decode_reply, encode_task, identity
from protocol.messages import Kind, Refusal
from protocol.study import cells
from protocol.trust import Trust
from server.tasks import offers
from studies.cli import main
from studies.in_process import in_process
from studies.load import load
from studies.run import run as in_process_run

Commands = Callable[..., Any]


def check_results(out: Path, reference: pa.Table, runtime: str) -> None:
    table = pq.read_table(out / "results.parquet")
    assert table["runtime"].unique().to_pylist() == [runtime]
    assert table.drop_columns("runtime").equals(reference)
    (session,) = json.loads((out / "study.json").read_text())["sessions"]
    assert session["runtime"] == runtime
    assert session["flwr"].startswith("1.")
    assert sorted(path.name for path in out.iterdir()) == ["parts", "results.parquet", "rounds.txt", "study.json"]


def check_transcript(messages: list[bytes], study_path: Path, clients: int) -> None:
    """What reached the server are the replies of these clients to these tasks, byte for byte, and nothing else."""
    loaded = load(study_path)
    (cell,) = cells(loaded.study)
    tasks = [offer.task for offer in offers(loaded.study, cell) if offer.task is not None]
    asked = {identity(encode_task(task)): task for task in tasks}
    arrived = [reply for raw in messages for reply in decode_bundle(raw)]
    for reply in map(decode_reply, arrived):
        assert not isinstance(reply, Refusal)
        for report in (signed.report for signed in reply):
            task = asked[report.task]
            assert report.mechanism in task.menu
            assert (report.table != b"") == (task.trust is Trust.LOCAL)
            assert (report.payload.kind is Kind.SYMBOLS) == (task.trust is not Trust.CENTRAL)
    room = in_process(loaded.study, loaded.theta, clients)
    assert Counter(arrived) == Counter(room.ask([encode_task(task) for task in tasks]))


def test_a_deployment_and_a_simulation_at_once(
    command: Commands, small: Path, reference: pa.Table, transcribed: Callable[[Path], list[bytes]], tmp_path: Path
) -> None:
    user, said = tmp_path / "user", tmp_path / "said"
    user.mkdir()
    said.mkdir()
    real = command("--on", "deployment", "--clients", "2", "--transcript", str(said), name="real", HOME=str(user))
    virtual = command("--on", "simulation", "--clients", "3", name="virtual", HOME=str(user))
    homes = {run.home() for run in (real, virtual)}
    assert len(homes) == 2
    for run, runtime in ((real, "deployment"), (virtual, "simulation")):
        code, words = run.end()
        assert code == 0, words
        check_results(run.out, reference, runtime)
    assert not any(home.exists() for home in homes)
    assert list(user.iterdir()) == [], "something was written to the user's own folder"
    check_transcript(transcribed(said), small, 2)
    promised = ["audit", "transcript", str(said), "--coins", "addressed", "--epsilon", "1"]
    assert main([*promised, "--trust", "clear"]) == 0
    assert main([*promised, "--trust", "local"]) == 1, "this study has arms that tell a server more"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("runtime", "clients"), [("simulation", 1), ("simulation", 8), ("deployment", 1), ("deployment", 4)]
)
def test_any_number_of_clients(command: Commands, reference: pa.Table, runtime: str, clients: int) -> None:
    run = command("--on", runtime, "--clients", str(clients))
    code, words = run.end()
    assert code == 0, words
    check_results(run.out, reference, runtime)


LEVELS = """
study = { name = "levels", seed = 11, repetitions = 2 }
problem = { kind = "pairwise", dimension = 3, features = "gaussian", theta = [0.75, 0.0, -0.75], bound = 3.0 }
population = { levels = [0.5, 4], shares = [0.5, 0.5], theta = [[0.5, 0.5, -1.0], [1.0, -0.5, -0.5]] }
grid = { n = [200] }
arm = [
  { trust = "local", mechanism = "randomized-response-menu", estimator = "debiased" },
  { trust = "local", mechanism = "randomized-response-menu", estimator = "debiased-sgd" },
  { trust = "local", mechanism = "randomized-response-menu", estimator = "rr-mle" },
]
"""


@pytest.mark.slow
@pytest.mark.parametrize(("runtime", "clients"), [("simulation", 5), ("deployment", 3)])
def test_levels_and_opinions_of_labelers(command: Commands, tmp_path: Path, runtime: str, clients: int) -> None:
    study = tmp_path / "levels.toml"
    study.write_text(LEVELS, encoding="utf-8")
    expected = in_process_run(load(study), tmp_path / "reference", jobs=1).drop_columns("runtime")
    run = command("--on", runtime, "--clients", str(clients), study=study)
    code, words = run.end()
    assert code == 0, words
    check_results(run.out, expected, runtime)
