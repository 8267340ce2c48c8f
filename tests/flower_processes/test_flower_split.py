"""`halftruth federate` over real processes: what the same nodes say in one process, and nothing left behind."""

import json
from pathlib import Path
from typing import Any

import pytest

from studies.cli import main

NODES = 3
Say = pytest.CaptureFixture[str]


def printed(capsys: Say, *words: str) -> dict[str, Any]:
    """The JSON that a command prints."""
    capsys.readouterr()
    code, said = main(words), capsys.readouterr()
    assert code == 0, said.err
    found: dict[str, Any] = json.loads(said.out)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "split", "claim"),
    [
        ("cems_choice_ties.csv", ("--trust", "clear"), ()),
        ("first_names.csv", (), ("--epsilon", "1")),
        ("german_parties_2009.csv", ("--trust", "central", "--unit", "labeler", "--cap", "10"), ("--epsilon", "1")),
    ],
)
def test_a_deployment_over_split_files(
    shared_data: Path, tmp_path: Path, capsys: Say, name: str, split: tuple[str, ...], claim: tuple[str, ...]
) -> None:
    """Labels that answered a process repeat it in another one, and the curator replays: at no cost, the same bits."""
    path, out = shared_data / "pairwise" / name, tmp_path / "nodes"
    assert main(["data", "split", str(path), "--nodes", str(NODES), "--out", str(out), *split]) == 0
    state = ("--state", str(tmp_path / "state")) if "central" in split else ()
    words = ("federate", str(out / "server"), "--nodes", str(out), "--json", *claim, *state)
    found = printed(capsys, *words, "--deadline", "120")
    assert not (out / "logs").exists()
    assert found == printed(capsys, *words, "--on", "in-process")
    if claim:
        assert (found["claimed_epsilon"], found["coins"]) == (1.0, "os")
        assert found["unit"] == ("labeler" if "--cap" in split else "label")
        return
    own = {"notes", "state", "charged_labels"}
    fitted = printed(capsys, "fit", str(path), "--trust", "clear", "--json")
    assert {k: v for k, v in found.items() if k not in own} == {k: v for k, v in fitted.items() if k not in own}


@pytest.mark.slow
def test_a_node_that_does_not_start_ends_the_federation_by_name(shared_data: Path, tmp_path: Path, capsys: Say) -> None:
    path, out = shared_data / "pairwise" / "first_names.csv", tmp_path / "nodes"
    assert main(["data", "split", str(path), "--nodes", "2", "--out", str(out)]) == 0
    (out / "node-1" / "votes.csv").unlink()
    assert main(["federate", str(out / "server"), "--nodes", str(out), "--epsilon", "1", "--deadline", "60"]) == 1
    said = capsys.readouterr().err
    assert "node-1 ended" in said and "node-1.log" in said
    assert "votes.csv" in (out / "logs" / "node-1.log").read_text("utf-8")
