"""`halftruth federate` over real processes: what the same nodes say in one process, and nothing left behind."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client.ledger_view import read_entries
from server.release_file import read_releases
from studies.cli import main
from studies.fit.state import CURATOR

NODES = 3
ADDRESSED = ("--public-data", "--coins", "addressed", "--seed", "7")
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
    kept = tmp_path / "kept"
    found = printed(capsys, *words, "--deadline", "120", "--transcript", str(kept))
    assert not (out / "logs").exists()
    trust = split[split.index("--trust") + 1] if "--trust" in split else "local"
    assert main(["audit", "transcript", str(kept), "--trust", trust, *claim]) == 0
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


@pytest.mark.slow
@pytest.mark.parametrize("coins", [(), ADDRESSED], ids=["os", "addressed"])
def test_a_deployment_over_split_records(tmp_path: Path, capsys: Say, coins: tuple[str, ...]) -> None:
    """Three rounds: nodes and curator repeat what they committed, addressed coins give the file's bits."""
    random, path, out = np.random.default_rng(3), tmp_path / "losses.csv", tmp_path / "nodes"
    rows = zip(range(60), *(random.pareto(2.5, (2, 60)) + 1).tolist(), strict=True)
    path.write_text("id,x,y\n" + "".join(f"c{row},{x!r},{y!r}\n" for row, x, y in rows), encoding="utf-8")
    about = ("--columns", "x", "--intercept", "--response", "y", "--model", "linear", "--id", "id")
    about += ("--trust", "central", "--threshold", "3", *coins)
    assert main(["data", "split", str(path), "--records", "--nodes", "2", "--out", str(out), *about]) == 0
    asked = ("--epsilon", "1", "--rounds", "3", "--step", "0.2")
    words = ("federate", str(out / "server"), "--nodes", str(out), "--json", *asked)
    words += () if coins else ("--state", str(tmp_path / "state"))
    found = printed(capsys, *words, "--deadline", "120")
    assert not (out / "logs").exists()
    assert found == printed(capsys, *words, "--on", "in-process")
    assert (found["claimed_epsilon"], found["unit"]) == (1.0, "record")
    if coins:
        assert found["estimate"] == printed(capsys, "records", str(path), *about, *asked, "--json")["estimate"]
    else:
        paid = [read_entries(out / f"node-{index}" / "ledger.sqlite") for index in range(2)]
        assert [sum(entry.labels for entry in entries) for entries in paid] == [30, 30]
        assert len(read_releases(tmp_path / "state" / CURATOR)) == 3
