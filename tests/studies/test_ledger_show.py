"""`halftruth ledger show`: recognises both ledgers, shows charges, never answers."""

import json
import re
import sqlite3
from pathlib import Path

import pytest

from studies.cli import main

VOTES = "labeler,item_a,item_b,winner\nr1,x,y,x\nr1,x,z,z\nr2\x1b[31m,x,y,y\n"


@pytest.fixture
def state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """Ledgers after one local and one central fit."""
    votes = tmp_path / "votes.csv"
    votes.write_text(VOTES, encoding="utf-8")
    for words in (["local", "--epsilon", "0.1"], ["central", "--epsilon", "2"]):
        assert main(["fit", str(votes), "--state", str(tmp_path / "state"), "--trust", *words]) == 0
    capsys.readouterr()
    return tmp_path / "state"


def test_charges_by_task_and_totals_by_labeler(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", "show", str(state / "ledger.sqlite"), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    local, central = content["tasks"]
    assert (local["trust"], local["epsilon"], local["delta"], local["labels"]) == ("local", "0.1", None, 3)
    assert (central["trust"], central["epsilon"], central["delta"], central["level"]) == (
        "central",
        "2",
        "0.00001",
        None,
    )
    assert {line["labeler"]: (line["labels"], line["epsilon"], line["delta"]) for line in content["labelers"]} == {
        "r1": (2, "4.2", "0.0000838905609894"),  # two labels that change together: delta (1 + e^2), rounded up
        "r2\x1b[31m": (1, "2.1", "0.00001"),
    }
    assert all(line["most epsilon of a label"] == "2.1" for line in content["labelers"])


def test_a_curator_ledger_shows_releases_without_their_values(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", "show", str(state / "curator.sqlite"), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    (release,), (together,) = content["releases"], content["together"]
    assert (release["mechanism"], release["labels"], release["reports"]) == ("gaussian-statistic-clipped", 3, 1)
    assert (together["unit"], together["releases"], together["epsilon added"]) == ("label", 1, "2")
    assert float(together["epsilon as Gaussian"]) == pytest.approx(2, rel=1e-3)
    assert (release["unit"], release["cap"]) == ("label", None)
    assert not {"values", "accepted"} & set(release)


def test_a_release_for_labelers_says_so(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--trust", "central", "--epsilon", "3", "--unit", "labeler", "--cap", "2"]
    assert main(["fit", str(state.parent / "votes.csv"), "--state", str(state), *words]) == 0
    capsys.readouterr()
    assert main(["ledger", "show", str(state / "curator.sqlite"), "--json"]) == 0
    release = json.loads(capsys.readouterr().out)["releases"][-1]
    assert (release["unit"], release["cap"], release["epsilon"]) == ("labeler", 2, "3")


def test_a_person_reads_tables(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (state / "ledger.sqlite").read_bytes()
    for name in ("ledger.sqlite", "curator.sqlite"):
        assert main(["ledger", "show", str(state / name)]) == 0
    said = capsys.readouterr().out
    assert "randomized-response" in said
    assert "gaussian-statistic" in said
    assert "8.39e-5" in said  # rounded up; JSON has every digit
    assert "\x1b[31m" not in said
    assert (state / "ledger.sqlite").read_bytes() == before


@pytest.mark.parametrize("width", ["80", "160"])
def test_no_name_is_cut(
    state: Path, width: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a terminal is narrow: rich takes its width, and that there is one, from the environment."""
    monkeypatch.setenv("COLUMNS", width)
    monkeypatch.setenv("FORCE_COLOR", "1")
    for name, mechanism in (("ledger.sqlite", "randomized-response"), ("curator.sqlite", "gaussian-statistic-clipped")):
        assert main(["ledger", "show", str(state / name)]) == 0
        said = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
        assert ("task: " in said) == (width == "80")
        assert mechanism in said and "…" not in said
        assert max(map(len, said.splitlines())) <= int(width)


def test_budgets_are_rounded_up_for_a_person_and_exact_in_json(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--trust", "local", "--epsilon", "1", "--unit", "labeler", "--cap", "3"]
    assert main(["fit", str(state.parent / "votes.csv"), "--state", str(state), *words]) == 0
    capsys.readouterr()
    for flags, said in (((), "2.43333333334"), (("--json",), "2.4" + "3" * 39)):
        assert main(["ledger", "show", str(state / "ledger.sqlite"), *flags]) == 0
        assert said in capsys.readouterr().out


def test_other_files_are_wrong_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, database = tmp_path / "votes.csv", tmp_path / "other.sqlite"
    text.write_text(VOTES, encoding="utf-8")
    connection = sqlite3.connect(database)
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    for path in (text, database, tmp_path / "none.sqlite", tmp_path):
        assert main(["ledger", "show", str(path)]) == 2
        assert path.name in capsys.readouterr().err


def test_a_folder_names_the_ledgers_in_it(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", "show", str(state)]) == 2
    assert "got a folder; name one of its files: curator.sqlite, ledger.sqlite" in capsys.readouterr().err


def test_a_damaged_ledger_fails(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("ledger.sqlite", "curator.sqlite"):
        raw = (state / name).read_bytes()
        (state / name).write_bytes(raw[:100] + bytes(len(raw) - 100))
        assert main(["ledger", "show", str(state / name)]) == 1
    assert capsys.readouterr().out == ""
