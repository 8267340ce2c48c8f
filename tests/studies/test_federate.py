"""`halftruth federate`: what a fit of the whole file gives, from a server that knows public facts only."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protocol.privacy import Unit
from protocol.strict import StudyError
from protocol.trust import Trust
from studies.cli import main
from studies.federate.folder import read_facts
from studies.fit.state import CURATOR

VOTES = """judge,model_a,model_b,winner
ann-marie,x,y,model_a
bob-barker,y,x,model_b
ann-marie,z,y,tie
cem-yilmaz,x,z,model_a
cem-yilmaz,z,x,model_b
ann-marie,x,z,model_b
bob-barker,y,z,
dee-light,x,y,model_b
dee-light,y,z,model_b
dee-light,z,x,tie
"""
SEED = ("--public-data", "--coins", "addressed", "--seed", "7")
Say = pytest.CaptureFixture[str]


def split(folder: Path, votes: Path | str, *words: str, nodes: int = 3) -> Path:
    """The folder of a split."""
    folder.mkdir(exist_ok=True)
    if isinstance(votes, str):
        path = folder / "votes.csv"
        path.write_text(votes, encoding="utf-8")
        votes = path
    out = folder / "split"
    assert main(["data", "split", str(votes), "--nodes", str(nodes), "--out", str(out), *words]) == 0
    return out


def federate(out: Path, capsys: Say, *words: str) -> dict[str, Any]:
    """What the command prints of a quick federation."""
    capsys.readouterr()
    command = ["federate", str(out / "server"), "--nodes", str(out), "--on", "in-process", "--json", *words]
    code, said = main(command), capsys.readouterr()
    assert code == 0, said.err
    found: dict[str, Any] = json.loads(said.out)
    return found


def fit(path: Path, capsys: Say, *words: str) -> dict[str, Any]:
    """What a fit of the whole file prints."""
    capsys.readouterr()
    code, said = main(["fit", str(path), "--json", *words]), capsys.readouterr()
    assert code == 0, said.err
    found: dict[str, Any] = json.loads(said.out)
    return found


def public_coins(out: Path) -> None:
    """Let the nodes of public data take addressed coins, as a fit can."""
    for file in out.glob("node-*/node.toml"):
        text = file.read_text("utf-8")
        file.write_text(text.replace('entropy = "os"', 'entropy = "addressed"\nseed = 7'), encoding="utf-8")


def same(federated: dict[str, Any], fitted: dict[str, Any]) -> None:
    """All that both print alike; JSON writes every bit of a float."""
    own = {"notes", "state", "charged_labels"}
    assert {k: v for k, v in federated.items() if k not in own} == {k: v for k, v in fitted.items() if k not in own}


@pytest.mark.parametrize("name", ["german_parties_2009.csv", "cems_choice_ties.csv"])
def test_the_clear_ranking_of_the_file_bit_for_bit(shared_data: Path, tmp_path: Path, capsys: Say, name: str) -> None:
    """Also where ties count half, and rows without a winner are left out."""
    path = shared_data / "pairwise" / name
    same(federate(split(tmp_path, path, "--trust", "clear"), capsys), fit(path, capsys, "--trust", "clear"))


@pytest.mark.parametrize(
    "claim",
    [
        ("--epsilon", "1"),
        ("--epsilon", "1", "--ties", "drop"),
        ("--epsilon", "1", "--ties", "randomized"),
        ("--epsilon", "4", "--unit", "labeler", "--cap", "2"),
        ("--epsilon", "2", "--estimator", "debiased", "--bound", "5"),
    ],
)
def test_the_local_ranking_of_the_file_bit_for_bit(tmp_path: Path, capsys: Say, claim: tuple[str, ...]) -> None:
    """Public data with addressed coins: every label is randomised as in one file."""
    unit = claim[2:] if "--cap" in claim else ()
    caps = ("--labeler-cap", "4") if unit else ("--label-cap", "2")
    out = split(tmp_path, VOTES, "--public-data", "--ties-public", *unit, *caps)
    public_coins(out)
    public = ("--ties-public",) if "drop" in claim else ()
    fitted = fit(tmp_path / "votes.csv", capsys, "--trust", "local", *claim, *public, *SEED)
    same(federate(out, capsys, *claim), fitted)


def test_items_may_be_described(shared_data: Path, tmp_path: Path, capsys: Say) -> None:
    folder = shared_data / "pairwise"
    words = ("--features", str(folder / "flatlizards_features.csv"), "--features-columns", "SVL,head.length,head.width")
    words, path = (*words, "--labeler", "none"), folder / "flatlizards_contests.csv"
    out = split(tmp_path, path, "--trust", "clear", *words)
    federated = federate(out, capsys)
    assert [line["feature"] for line in federated["coefficients"]] == ["SVL", "head.length", "head.width"]
    same(federated, fit(path, capsys, "--trust", "clear", *words))


@pytest.mark.parametrize("unit", [(), ("--unit", "labeler", "--cap", "2")])
def test_a_central_ranking_is_released_once(tmp_path: Path, capsys: Say, unit: tuple[str, ...]) -> None:
    out, state = split(tmp_path, VOTES, "--trust", "central", *unit), tmp_path / "state"
    words = ("--epsilon", "1", "--delta", "1e-6", "--state", str(state))
    first = federate(out, capsys, *words)
    assert (first["claimed_epsilon"], first["claimed_delta"], first["coins"]) == (1.0, 1e-6, "os")
    assert first["unit"] == ("labeler" if unit else "label")
    assert first["ranking"] == federate(out, capsys, *words)["ranking"], "a second run replays the release"
    assert (state / CURATOR).exists()


def test_a_curator_that_lost_its_ledger_has_to_be_paid_again(tmp_path: Path, capsys: Say) -> None:
    """Otherwise the nodes' old sums would get fresh noise for nothing, as often as somebody likes."""
    out, state = split(tmp_path, VOTES, "--trust", "central"), tmp_path / "state"
    words = ("--epsilon", "1", "--state", str(state))
    federate(out, capsys, *words)
    (state / CURATOR).unlink()
    command = ["federate", str(out / "server"), "--nodes", str(out), "--on", "in-process", *words]
    assert main(command) == 1
    said = capsys.readouterr().err
    assert "BUDGET_EXHAUSTED x 3" in said and "let holders raise the caps of their policies" in said


def test_labels_answer_once(tmp_path: Path, capsys: Say) -> None:
    out = split(tmp_path, VOTES)
    first = federate(out, capsys, "--epsilon", "1")
    assert federate(out, capsys, "--epsilon", "1", "--trust", "local", "--unit", "label") == first
    assert (first["coins"], first["state"], first["charged_labels"]) == ("os", None, None)


def test_a_node_s_ledger_is_not_made_in_silence(tmp_path: Path, capsys: Say) -> None:
    """Nodes start at every run, and one whose ledger got lost answers anew: its holder has to hear of it."""
    out = split(tmp_path, VOTES)
    command = ["federate", str(out / "server"), "--nodes", str(out), "--on", "in-process", "--epsilon", "1"]
    told = []
    for run in range(3):
        if run == 2:
            (out / "node-1" / "ledger.sqlite").unlink()
        capsys.readouterr()
        assert main(command) == 0
        told.append([line for line in capsys.readouterr().err.splitlines() if line.startswith("New ledger")])
    assert [len(lines) for lines in told] == [3, 0, 1]
    assert f"{out / 'node-1' / 'ledger.sqlite'}: if this node had one" in told[2][0]


@pytest.mark.parametrize(
    "words", [(), ("--trust", "central", "--unit", "labeler", "--cap", "2"), ("--trust", "distributed")]
)
def test_the_server_is_told_nothing_that_follows_from_an_answer_and_no_name(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    answers = ["model_a", "model_b", "tie", ""]
    lines = VOTES.splitlines()
    folders = []
    for turn in range(3):
        other = [
            lines[0],
            *(f"{line.rpartition(',')[0]},{answers[(row + turn) % 4]}" for row, line in enumerate(lines[1:])),
        ]
        server = split(tmp_path / str(turn), "\n".join(other), *words) / "server"
        folders.append({file.name: file.read_bytes() for file in sorted(server.iterdir())})
    assert folders[0] == folders[1] == folders[2]
    for name in ("ann", "bob", "cem", "dee"):
        assert not [file for file, raw in folders[0].items() if name.encode() in raw]


def test_what_was_written_is_read(tmp_path: Path) -> None:
    facts = read_facts(split(tmp_path, VOTES, "--unit", "labeler", "--cap", "2", "--ties-public") / "server")
    assert (facts.terms.trust, facts.terms.unit, facts.terms.cap, facts.nodes) == (Trust.LOCAL, Unit.LABELER, 2, 3)
    assert facts.ties is not None and facts.groups is not None
    assert facts.ties.tolist() == [row in (2, 9) for row in range(10)]
    assert facts.groups.tolist() == [0, 1, 0, 2, 2, 0, 1, 3, 3, 3]
    assert len(facts.rows) == 2 + 2 + 1 + 2, "cem's two rows are one label"
    assert (len(facts.labelers), facts.label_count) == (4, 9)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("server.toml", "[split]", "expected the key"),
        ("server.toml", "not toml", "expected TOML"),
        ("server.toml", None, "found none: make one with halftruth data split"),
        ("design.npy", np.zeros((10, 2)), "design.npy: expected an array of int32 with 2 axes"),
        ("design.npy", np.full((10, 2), 3, dtype=np.int32), "expected item numbers in 0..2"),
        ("design.npy", "no array", "design.npy: expected an .npy file"),
        ("rows.npy", np.arange(11), "rows.npy: expected increasing row numbers below 10"),
        ("rows.npy", np.array([3, 2]), "rows.npy: expected increasing row numbers"),
        ("rows.npy", None, "rows.npy: expected an array, found none"),
        ("groups.npy", np.zeros(9, dtype=np.int32), "groups.npy: expected 10 numbers"),
        ("items.csv", "item\nx\nx\nz\n", "expected different names"),
    ],
)
def test_a_folder_that_is_not_whole_is_named(
    tmp_path: Path, capsys: Say, name: str, content: "np.ndarray | str | None", said: str
) -> None:
    out = split(tmp_path, VOTES, "--unit", "labeler", "--cap", "2")
    path = out / "server" / name
    if content is None:
        path.unlink()
    elif isinstance(content, str):
        path.write_text(content, encoding="utf-8")
    else:
        np.save(path, content)
    with pytest.raises(StudyError) as failed:
        read_facts(out / "server")
    assert said in str(failed.value) and str(out / "server") in str(failed.value)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--epsilon", "1", "--trust", "central"],
            "the nodes of this split answer --trust local, --unit label: leave it",
        ),
        (["--epsilon", "1", "--unit", "labeler"], "--unit labeler: the nodes of this split answer"),
        (["--epsilon", "1", "--cap", "5"], "--cap 5: the nodes of this split answer"),
        (["--epsilon", "1", "--ties", "drop"], "split the file with --ties-public"),
        (["--epsilon", "1", "--ties", "half"], "half a win cannot be randomised"),
        (["--epsilon", "1", "--delta", "1e-5"], "--delta: only a central, distributed or shuffled guarantee has one"),
        (["--epsilon", "1", "--state", "s"], "--state: only for the curator"),
        (["--epsilon", "1", "--deadline", "5"], "--on in-process: expected --nodes with it, and no --deadline"),
        ([], "--epsilon: expected a level for --trust local"),
    ],
)
def test_wrong_use(tmp_path: Path, capsys: Say, words: list[str], said: str) -> None:
    out = split(tmp_path, VOTES)
    assert main(["federate", str(out / "server"), "--nodes", str(out), "--on", "in-process", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_level_above_the_cap_of_nodes_names_file_field_and_flag(tmp_path: Path, capsys: Say) -> None:
    out = split(tmp_path, VOTES)
    assert "Over all tasks a label spends at most epsilon = 1 (--label-cap)" in capsys.readouterr().out
    file = out / "node-0" / "node.toml"
    assert "label_cap = 1  # epsilon of a label over all tasks: halftruth data split --label-cap\n" in file.read_text()
    command = ["federate", str(out / "server"), "--nodes", str(out), "--on", "in-process"]
    assert main([*command, "--epsilon", "2"]) == 2
    said = capsys.readouterr().err
    assert f"{file} has [policy] label_cap = 1: ask for less" in said
    assert said.endswith("halftruth data split --label-cap\n")
    assert not (out / "node-0" / "ledger.sqlite").exists()
    assert main([*command, "--epsilon", "0.75"]) == 0
    capsys.readouterr()
    assert main([*command, "--epsilon", "0.5"]) == 1  # a quarter is left
    said = capsys.readouterr().err
    assert f"in [policy] of {file} and its like, label_cap = 1 and max_epsilon = 10" in said
    assert main([*command, "--epsilon", "0.75"]) == 0  # answered before


@pytest.mark.parametrize(
    ("flags", "epsilon", "said"),
    [
        (("--unit", "labeler", "--cap", "2"), "1.5", "labeler_cap = 1: ask for less"),
        (("--label-cap", "unlimited"), "11", "max_epsilon = 10: ask for less, or write a larger one there"),
    ],
)
def test_other_caps_are_named_too(tmp_path: Path, capsys: Say, flags: tuple[str, ...], epsilon: str, said: str) -> None:
    out = split(tmp_path, VOTES, *flags)
    command = ["federate", str(out / "server"), "--nodes", str(out), "--on", "in-process", "--epsilon", epsilon]
    assert main(command) == 2
    assert said in capsys.readouterr().err


def test_other_nodes_than_those_of_the_split_are_refused(tmp_path: Path, capsys: Say) -> None:
    out = split(tmp_path, VOTES)
    (out / "node-1" / "node.toml").rename(out / "node-1" / "other.toml")
    command = ["federate", str(out / "server"), "--nodes", str(out), "--on", "in-process", "--epsilon", "1"]
    assert main(command) == 2
    assert "--nodes: expected the 3 nodes of the split" in capsys.readouterr().err


def test_labels_that_have_no_estimate_end_with_the_reason(tmp_path: Path, capsys: Say) -> None:
    out = split(tmp_path, "labeler,item_a,item_b,winner\np1,x,y,x\np2,x,y,x\n", "--trust", "clear", nodes=2)
    command = ["federate", str(out / "server"), "--nodes", str(out), "--on", "in-process"]
    assert main(command) == 1
    assert "the labels are separable" in capsys.readouterr().err
    assert main([*command, "--bound", "5"]) == 0
