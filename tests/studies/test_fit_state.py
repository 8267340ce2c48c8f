"""The state folder of fits: what is missed when it is lost, and who is taken for whom."""

import json
from pathlib import Path
from typing import Any

import pytest

from client.ledger_view import read_labelers
from studies.cli import main

Say = pytest.CaptureFixture[str]
LOCAL = ("--trust", "local", "--epsilon", "1")
NAMELESS = (*LOCAL, "--labeler", "none")


def write(folder: Path, name: str, *rows: str, header: str = "labeler,item_a,item_b,winner") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("\n".join((header, *rows, "")), encoding="utf-8")
    return path


def nameless(folder: Path, name: str, *rows: str) -> Path:
    return write(folder, name, *rows, header="item_a,item_b,winner")


def fitted(capsys: Say, *words: object) -> tuple[dict[str, Any], str]:
    """The JSON that a fit prints, and what it says beside."""
    assert main(["fit", *map(str, words), "--json"]) == 0
    said = capsys.readouterr()
    return json.loads(said.out), said.err


def odd(found: dict[str, Any]) -> list[str]:
    return [warning for warning in found["warnings"] if "answered in this folder before" in warning]


def test_a_ledger_is_not_made_in_silence(tmp_path: Path, capsys: Say) -> None:
    votes, state = write(tmp_path, "votes.csv", "r1,x,y,x", "r2,x,y,y"), ("--state", tmp_path / "state")
    ledger = tmp_path / "state" / "ledger.sqlite"
    assert f"New ledger {ledger}: if this folder had one, bring that back" in fitted(capsys, votes, *LOCAL, *state)[1]
    assert "New ledger" not in fitted(capsys, votes, *LOCAL, *state)[1]
    assert "New ledger" not in fitted(capsys, votes, "--trust", "clear", "--bound", "1", "--state", tmp_path / "no")[1]
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize("left", [b"", None])
def test_a_lost_ledger_is_missed_and_nobody_answers_anew(left: bytes | None, tmp_path: Path, capsys: Say) -> None:
    """Made anew it would give each label a second answer through the same table, with other coins, for nothing."""
    votes, state = write(tmp_path, "votes.csv", "r1,x,y,x", "r2,x,y,y"), ("--state", tmp_path / "state")
    first, _ = fitted(capsys, votes, *LOCAL, *state)
    ledger = tmp_path / "state" / "ledger.sqlite"
    kept = ledger.read_bytes()
    ledger.unlink()
    if left is not None:
        ledger.write_bytes(left)
    assert main(["fit", *map(str, (votes, *LOCAL, *state))]) == 1
    assert "expected the ledger of what was spent and answered in this folder, found none" in capsys.readouterr().err
    ledger.write_bytes(kept)
    ledger.chmod(0o600)
    second, _ = fitted(capsys, votes, *LOCAL, *state)
    assert second["ranking"] == first["ranking"]
    assert second["charged_labels"] == 0


def test_rows_of_another_file_without_labelers_are_not_taken_for_these_in_silence(tmp_path: Path, capsys: Say) -> None:
    """Two unrelated files of one name: the second's rows are never looked at, which has to be said."""
    one = nameless(tmp_path / "one", "votes.csv", *["x,y,x"] * 40)
    other = nameless(tmp_path / "other", "votes.csv", *["x,y,y"] * 40)
    state = ("--state", tmp_path / "state")
    first, _ = fitted(capsys, one, *NAMELESS, *state)
    assert odd(first) == []
    second, _ = fitted(capsys, other, *NAMELESS, *state)
    assert (second["charged_labels"], second["ranking"]) == (0, first["ranking"])
    (warning,) = odd(second)
    assert "40 of 40 labelers of this file, which are only named by their places in it" in warning
    assert str(one.resolve()) in warning and "these rows are not looked at" in warning
    apart, _ = fitted(capsys, other, *NAMELESS, "--state", tmp_path / "apart")
    assert (odd(apart), apart["charged_labels"]) == ([], 40)


def test_a_file_without_labelers_may_grow_at_its_end_and_nothing_else(tmp_path: Path, capsys: Say) -> None:
    rows, state = ["x,y,x", "y,z,y", "x,z,z"], ("--state", tmp_path / "state")
    fitted(capsys, nameless(tmp_path, "votes.csv", *rows), *NAMELESS, *state)
    assert odd(fitted(capsys, nameless(tmp_path, "votes.csv", *rows, "x,y,y"), *NAMELESS, *state)[0]) == []
    (warning,) = odd(fitted(capsys, nameless(tmp_path, "votes.csv", *rows[::-1]), *NAMELESS, *state)[0])
    assert "before this one changed" in warning


def test_people_of_one_name_are_told_of_once_a_file(tmp_path: Path, capsys: Say) -> None:
    state = ("--state", tmp_path / "state")
    one = write(tmp_path, "one.csv", "ann,x,y,x", "bob,x,y,y")
    other = write(tmp_path, "other.csv", "ann,x,z,x", "cem,x,z,z")
    assert odd(fitted(capsys, one, *LOCAL, *state)[0]) == []
    (warning,) = odd(fitted(capsys, other, *LOCAL, *state)[0])
    assert "1 of 2 labelers of this file" in warning and "who has one name is taken for one person" in warning
    assert odd(fitted(capsys, other, *LOCAL, *state)[0]) == []
    spent = {one.labeler: one.epsilon for one in read_labelers(tmp_path / "state" / "ledger.sqlite")}
    assert spent == {"ann": 2, "bob": 1, "cem": 1}


def test_a_list_of_files_that_is_none_is_not_passed_over(tmp_path: Path, capsys: Say) -> None:
    votes, state = write(tmp_path, "votes.csv", "r1,x,y,x", "r2,x,y,y"), ("--state", tmp_path / "state")
    fitted(capsys, votes, *LOCAL, *state)
    (tmp_path / "state" / "files.json").write_text("[1]", encoding="utf-8")
    assert main(["fit", *map(str, (votes, *LOCAL, *state))]) == 1
    assert "expected the list of files that paid here" in capsys.readouterr().err
