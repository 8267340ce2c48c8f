"""Policy studies from end to end: same bytes for any number of clients, theorems on every row, and what they show."""

import csv
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from protocol.failure import RunFailed
from protocol.warned import code_of
from studies.cli import main
from studies.load import Loaded
from studies.policy.run import RESULTS, run_policies
from studies.policy.score import SCHEMA, Judge
from studies.policy.study_file import load_policy_study
from studies.policy.summary import Loss, summarise_policies
from studies.policy.worlds import world
from studies.run import run

TOML = Path(__file__).parents[3] / "studies" / "toml"


def played(loaded: Loaded, out: Path) -> pa.Table:
    return run(loaded, out, jobs=1)


@pytest.fixture(scope="module")
def whole(policy_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole")
    run_policies(load_policy_study(policy_path), out, played)
    return out


def test_any_number_of_clients_gives_the_same_bytes(policy_path: Path, whole: Path, tmp_path: Path) -> None:
    run_policies(
        load_policy_study(policy_path), tmp_path, lambda loaded, out: run(loaded, out, jobs=1, clients=7, block=1)
    )
    assert (tmp_path / RESULTS).read_bytes() == (whole / RESULTS).read_bytes()


def test_every_estimate_has_its_policies(whole: Path) -> None:
    table = pq.read_table(whole / RESULTS)
    assert table.schema.equals(SCHEMA)
    rows = table.to_pylist()
    worlds, counts, repetitions = 6, 2, 2
    with_region, without = 6, 2  # arms; one-pass descent and the answer 0 have no region
    assert len(rows) == worlds * counts * repetitions * (4 * with_region + without)
    assert {row["policy"] for row in rows if row["covered"] is None} == {"greedy"}
    assert all(len(row["actions"]) == 3 for row in rows)


def test_what_is_lost_is_what_the_actions_lose_and_within_its_bound(policy_path: Path, whole: Path) -> None:
    study = load_policy_study(policy_path)
    known = {(shown, number): world(study, shown, number) for shown in study.law.shown for number in range(2)}
    for row in pq.read_table(whole / RESULTS).to_pylist():
        here = known[row["shown"], row["world"]]
        rewards = here.bandit.features @ here.loaded.theta
        loss = (rewards.max(axis=1) - rewards[np.arange(3), row["actions"]]).mean()
        assert row["suboptimality"] == pytest.approx(loss, abs=1e-12)
        if row["policy"] == "greedy" or row["covered"]:
            assert row["suboptimality"] <= row["bound"] + 1e-9


def test_the_greedy_bound_is_the_estimates_error(policy_path: Path, whole: Path) -> None:
    results = pq.read_table(whole / "worlds" / "uniform-001" / "results.parquet").to_pylist()
    errors = {(row["n"], row["arm"], row["repetition"]): row["error_l2"] for row in results}
    rows = [row for row in pq.read_table(whole / RESULTS).to_pylist() if row["policy"] == "greedy"]
    own = [row for row in rows if (row["shown"], row["world"]) == ("uniform", 1)]
    assert len(own) == len(errors)
    for row in own:  # L = 2
        assert row["bound"] == pytest.approx(4 * errors[row["n"], row["arm"], row["repetition"]], rel=1e-12)


def test_a_broken_bound_stops_the_run(policy_path: Path, tmp_path: Path) -> None:
    study = load_policy_study(policy_path, ["bandit.length=1e-3", "grid.n=[60]"])
    here = world(load_policy_study(policy_path, ["grid.n=[60]"]), "uniform", 0)  # its features are longer than said
    with pytest.raises(RunFailed, match="expected greedy to lose at most"):
        list(Judge(study, here).rows(played(here.loaded, tmp_path)))


def test_the_command(policy_path: Path, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    shutil.copytree(whole, out)
    (out / RESULTS).unlink()
    assert main(["policy", str(policy_path), "--out", str(out)]) == 2
    assert "--resume" in capsys.readouterr().err
    assert main(["policy", str(policy_path), "--out", str(out), "--resume"]) == 0
    said = capsys.readouterr().out
    assert "pairs: mostly-best, n = 400" in said and "actions at random lose" in said
    codes = {code_of(text) for texts in pq.read_table(out / RESULTS)["warnings"].to_pylist() for text in texts}
    assert codes and None not in codes and all(f"Warning ({code}) in " in said for code in codes)
    assert (out / RESULTS).read_bytes() == (whole / RESULTS).read_bytes()
    assert {path.suffix for path in (out / "figures").iterdir()} == {".png", ".svg"}
    with (out / "losses.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 3 * 2 * (4 * 6 + 2)
    assert {line["worlds"] for line in lines} == {"2"}


def shipped(name: str, out: Path, *overrides: str) -> list[Loss]:
    table = run_policies(load_policy_study(TOML / name, overrides), out, played)
    return list(summarise_policies(table))


def gains(losses: list[Loss], shown: str, n: int, policy: str) -> list[float]:
    """Gains of a policy on greedy in standard errors over worlds, for every level and arm."""
    kept = [one for one in losses if (one.place.shown, one.place.n, one.policy) == (shown, n, policy)]
    return [one.gain.mean / one.gain.se for one in kept if one.gain is not None]


def test_pessimism_pays_where_the_best_actions_were_shown_and_costs_where_they_were_not(tmp_path: Path) -> None:
    """The small form of pessimism.toml, clear labels only: 12 worlds, one repetition, n = 300.

    3.5 standard errors over worlds, t with 11 degrees of freedom: 0.25 % each if nothing were to be gained. The coins
    are fixed, so a failure is a change; the full study, below, has the strict limit.
    """
    few = ("bandit.worlds=12", "study.repetitions=1", "grid.n=[300]", "grid.epsilon=[1.0]")
    losses = shipped("pessimism.toml", tmp_path, *few, 'policy.names=["greedy", "pessimistic"]')
    kept = [one for one in losses if one.place.arm.startswith("clear")]
    assert min(gains(kept, "mostly-best", 300, "pessimistic")) > 3.5
    assert max(gains(kept, "rarely-best", 300, "pessimistic")) < -3.5


@pytest.mark.slow
def test_flowers_simulation_engine_gives_the_same_bytes(policy_path: Path, tmp_path: Path) -> None:
    few = ("bandit.worlds=1", 'bandit.shown=["mostly-best"]', "study.repetitions=1", "grid.n=[60]")
    flags = [word for override in few for word in ("--set", override)]
    for name, where in (("here", []), ("virtual", ["--on", "simulation", "--clients", "2"])):
        assert main(["policy", str(policy_path), "--out", str(tmp_path / name), *flags, *where]) == 0
    assert (tmp_path / "here" / RESULTS).read_bytes() == (tmp_path / "virtual" / RESULTS).read_bytes()


@pytest.mark.slow
def test_where_pessimism_pays(tmp_path: Path) -> None:
    """Half of pessimism.toml at two n. Every limit is 4 standard errors over 20 worlds: 4e-4 each by Student's t."""
    few = ("bandit.worlds=20", "study.repetitions=1", "grid.n=[300, 10000]", "grid.epsilon=[4.0]")
    losses = shipped("pessimism.toml", tmp_path, *few)
    kept = [one for one in losses if not one.place.arm.startswith("central")]
    assert min(gains(kept, "mostly-best", 300, "pessimistic")) > 4
    assert max(gains(losses, "rarely-best", 300, "pessimistic")) < -4
    assert max(gains(losses, "rarely-best", 10_000, "pessimistic")) < -4


@pytest.mark.slow
def test_the_loss_falls_with_n_and_grows_with_privacy(tmp_path: Path) -> None:
    """A quarter of downstream.toml: 33 times as many labels leave at most a tenth of the loss, where the law 1/n leaves
    a thirtieth; local labels lose more than clear ones."""
    few = ("bandit.worlds=10", "study.repetitions=5", "grid.n=[300, 10000]", 'policy.names=["greedy"]')
    losses = shipped("downstream.toml", tmp_path, *few, "grid.epsilon=[1.0]")
    mean = {(one.place.arm, one.place.n): one.loss.mean for one in losses}
    arms = {arm for arm, _ in mean} - {"none/none/zero"}
    assert len(arms) == 4
    for arm in arms:
        assert mean[arm, 10_000] < 0.1 * mean[arm, 300]
        assert mean[arm, 300] < mean["none/none/zero", 300]
        if arm.startswith("local"):
            assert mean[arm, 300] > mean["clear/none/mle", 300]
            assert mean[arm, 10_000] > mean["clear/none/mle", 10_000]
