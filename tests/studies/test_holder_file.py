"""Flags that name columns, what the holder is told, and what of it stays on the holder's terminal."""

import json
from pathlib import Path
from typing import Any

import pytest

from studies.cli import main

VOTES = """worker,left,right,model_x,model_y,winner,prompt
ann,apple,pear,1,2,left,p
ann,pear,fig,2,3,tie,p
ann,pear,apple,2,1,left,p
bob,apple,fig,1,3,,p
bob,fig,fig,3,3,tie,p
cem,fig,apple,3,1,right,q
cem,fig,pear,3,2,left,q
ann,apple,pear,1,2,right,q
"""
ITEMS = ("--item-a", "left", "--item-b", "right")


def write(folder: Path, text: str = VOTES) -> Path:
    path = folder / "votes.csv"
    path.write_text(text, encoding="utf-8")
    return path


def fit(capsys: pytest.CaptureFixture[str], path: Path, *words: str) -> tuple[dict[str, Any], str]:
    assert main(["fit", str(path), *words, "--json"]) == 0
    said = capsys.readouterr()
    return json.loads(said.out), said.err


def test_two_ways_to_read_the_items_are_not_decided_for_the_holder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["fit", str(write(tmp_path)), "--trust", "local", "--epsilon", "1", "--state", str(tmp_path / "state")]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "not model_x and model_y with winner or left and right with winner (--item-a, --item-b" in said
    assert "got the columns worker, left, right, model_x, model_y, winner, prompt" in said
    assert not (tmp_path / "state").exists()


def test_a_folder_is_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["fit", str(tmp_path)], ["fit", str(write(tmp_path)), "--features", str(tmp_path)]):
        assert main([*words, "--trust", "clear"]) == 2
        assert "got a folder: name a file in it" in capsys.readouterr().err


def test_flags_name_columns_and_the_holder_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    local = ("--trust", "local", "--epsilon", "1", "--state", str(tmp_path / "state"))
    found, told = fit(capsys, write(tmp_path), *local, *ITEMS)
    assert "labeler: worker (guessed); items: left, right; winner: winner (guessed); question: prompt (guessed)" in told
    assert "Left out: 1 row that compare an item with itself" in told
    assert "1 tie, 1 row without a winner, 1 label whose rows contradict each other" in told
    assert (found["rows"], found["labels"], found["labelers"]) == (7, 6, 3)
    text = json.dumps(found)
    assert not any(word in text for word in ("contradict", "missing", "without a winner", "Columns"))
    found, _ = fit(capsys, tmp_path / "votes.csv", *local, *ITEMS, "--question", "none")
    assert found["labels"] == 5


def test_what_is_told_about_answers_is_nowhere_in_the_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files that differ in ties and missing winners only, fitted with coins that fall alike: the public keys agree."""
    public = ("rows", "labels", "labelers", "guarantee", "warnings", "charged_labels")
    kept = []
    for text in (VOTES, VOTES.replace("tie", "right").replace(",3,,p", ",3,left,p")):
        words = ("--trust", "local", "--epsilon", "1", "--state", str(tmp_path / str(len(kept))), *ITEMS)
        found, _ = fit(capsys, write(tmp_path, text), *words)
        kept.append({key: found[key] for key in public} | {"lines": [sorted(line) for line in found["ranking"]]})
        kept[-1]["comparisons"] = sorted((line["item"], line["comparisons"]) for line in found["ranking"])
    kept[0]["warnings"] = kept[1]["warnings"] = None  # of the estimate, which comes from randomised labels
    assert kept[0] == kept[1]


def test_losers_and_features(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    votes = write(tmp_path, "who,lost,won\na,x,y\nb,y,x\nc,x,z\nd,z,y\ne,y,z\nf,z,x\n")
    (tmp_path / "f.csv").write_text("id,size,kind\nx,1,a\ny,2,b\nz,4,b\n", encoding="utf-8")
    words = ("--trust", "clear", "--labeler", "who", "--winner", "won", "--loser", "lost")
    found, told = fit(capsys, votes, *words)
    assert "labeler: who; loser and winner: lost, won; question" in told
    assert len(found["ranking"]) == 3
    features = ("--features", str(tmp_path / "f.csv"))
    fit(capsys, votes, *words, *features, "--features-columns", "size")
    assert main(["fit", str(votes), *words, *features]) == 2
    assert "item 'x', column kind: expected a finite number, got 'a'" in capsys.readouterr().err
    assert main(["fit", str(votes), *words, "--features-columns", "size"]) == 2
    assert "--features-columns: expected --features with it" in capsys.readouterr().err


def test_features_that_are_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "none.npz"
    assert main(["fit", str(write(tmp_path)), *ITEMS, "--trust", "clear", "--features", str(missing)]) == 2
    assert f"--features: {missing}: expected a file, found none" in capsys.readouterr().err


def test_a_file_cannot_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, "labeler,item_a,item_b,winner\nann,x,y,\x1b[2Jz\n")
    assert main(["fit", str(path), "--trust", "clear"]) == 2
    path = write(tmp_path, "labeler,item_a,item_b,winner,question,\x1b[31m\nann,x,y,up,q,w\n")
    assert main(["fit", str(path), "--trust", "clear", "--winner", "who"]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_items_that_look_alike_are_told_apart_and_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "rater,winner,loser\nr,GPT-4,gpt 4\ns,gpt 4,llama\nt,llama,GPT-4\n"
    _, said = fit(capsys, write(tmp_path, text), "--trust", "clear")
    assert "Different items, though their names look alike: GPT-4 / gpt 4" in said


def test_rows_without_an_item_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "rater,winner,loser\nr,x,y\ns,y,x\nt,x,\n"
    assert main(["fit", str(write(tmp_path, text)), "--trust", "clear"]) == 2
    assert "--unnamed drop-public" in capsys.readouterr().err
    _, said = fit(capsys, write(tmp_path, text), "--trust", "clear", "--unnamed", "drop-public")
    assert "Left out: 1 row without one of two items" in said
