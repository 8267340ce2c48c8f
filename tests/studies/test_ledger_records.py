"""`halftruth ledger show` of records: a run is one line, and what is counted is called what it is."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client.ledger_view import read_entries, read_labelers
from studies.cli import main
from studies.fit.state import CURATOR, LEDGER

N, ROUNDS = 60, 25
CENTRAL = (
    "--columns",
    "x",
    "--trust",
    "central",
    "--epsilon",
    "1",
    "--threshold",
    "3",
    "--id",
    "id",
    "--holder",
    "who",
)
DESCENT = (*CENTRAL, "--model", "linear", "--response", "y", "--step", "0.1")


@pytest.fixture
def losses(tmp_path: Path) -> Path:
    """Sixty records of six people."""
    values = np.random.default_rng(5).uniform(0, 1, size=(N, 2))
    lines = [f"c{row},p{row % 6},{x!r},{y!r}" for row, (x, y) in enumerate(values.tolist())]
    path = tmp_path / "losses.csv"
    path.write_text("\n".join(["id,who,x,y", *lines]) + "\n", encoding="utf-8")
    return path


def ask(path: Path, *words: str) -> None:
    assert main(["records", str(path), *words, "--state", str(path.parent / "state")]) == 0


def shown(capsys: pytest.CaptureFixture[str], path: Path, name: str, *flags: str) -> str:
    capsys.readouterr()
    assert main(["ledger", "show", str(path.parent / "state" / name), *flags]) == 0
    return capsys.readouterr().out


def content(capsys: pytest.CaptureFixture[str], path: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(shown(capsys, path, name, "--json"))
    return found


def test_rounds_of_a_run_are_one_line_and_one_charge(losses: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask(losses, *DESCENT, "--rounds", str(ROUNDS))
    ask(losses, *CENTRAL)
    ask(losses, *DESCENT, "--rounds", "2")
    run, alone, short = content(capsys, losses, LEDGER)["tasks"]
    assert (run["rounds"], run["records"], run["holders"], run["epsilon"]) == (f"0 to {ROUNDS - 1}", N, 6, "1")
    assert (alone["rounds"], alone["records"]) == (None, N)
    assert short["rounds"] == "0 to 1"
    said = shown(capsys, losses, LEDGER)
    assert "label" not in said and "holder's ledger" in said
    assert len(said.splitlines()) < 25


def test_releases_of_a_run_are_one_line_for_a_person_and_each_its_own_for_a_program(
    losses: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(losses, *DESCENT, "--rounds", str(ROUNDS))
    ask(losses, *DESCENT, "--rounds", str(ROUNDS), "--threshold", "4")
    releases = content(capsys, losses, CURATOR)["releases"]
    assert len(releases) == 2 * ROUNDS
    assert {(one["rounds"], one["records"]) for one in releases} == {(ROUNDS, N)}
    said = shown(capsys, losses, CURATOR)
    assert said.count(f"{ROUNDS} of {ROUNDS}") == 2
    assert f"{2 * ROUNDS} releases in 2 lines" in said


def test_holders_of_all_their_records_are_counted_themselves(losses: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask(losses, *CENTRAL, "--unit", "holder")
    found = content(capsys, losses, LEDGER)
    (task,) = found["tasks"]
    assert task["holders"] == 6 and "records" not in task
    assert {tuple(one) for one in found["holders"]} == {("holder", "epsilon", "delta")}
    assert content(capsys, losses, CURATOR)["releases"][0]["holders"] == 6


def test_a_ledger_of_labels_and_records_says_rows(losses: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask(losses, *CENTRAL)
    votes = losses.parent / "votes.csv"
    votes.write_text("labeler,item_a,item_b,winner\nr1,x,y,x\n", encoding="utf-8")
    words = ("--trust", "local", "--epsilon", "1", "--state", str(losses.parent / "state"))
    assert main(["fit", str(votes), *words]) == 0
    tasks = content(capsys, losses, LEDGER)["tasks"]
    assert [task["rows"] for task in tasks] == [N, 1]
    assert shown(capsys, losses, LEDGER)


def test_a_run_that_was_cut_short_says_which_rounds_answered(losses: Path) -> None:
    """Folding changes neither what was charged nor what anybody has spent."""
    ask(losses, *DESCENT, "--rounds", "4")
    path = losses.parent / "state" / LEDGER
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM task WHERE number = 3")  # the run, round 0, round 1
    connection.close()
    (entry,) = read_entries(path)
    assert (entry.rounds, entry.labels, entry.labelers) == ((0, 2, 3), N, 6)
    assert {spent.epsilon for spent in read_labelers(path)} == {10}
