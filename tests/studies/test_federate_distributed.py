"""Files on several nodes whose answers are summed under masks: the command line's way, over real sessions."""

import json
from pathlib import Path
from typing import Any

import pytest

from client.ledger_view import read_labelers
from client.node_file import read_node
from client.secure.membership import read_pins
from deploy.node_keys import ensure_key
from studies.cli import main

Say = pytest.CaptureFixture[str]
LABELERS, NODES = 40, 3
SEED = ("--public-data", "--coins", "addressed", "--seed", "7")
WIDE = ("--ranking", "wide", "--labeler", "judge")
RANKINGS = "judge,x,y,z\n" + "".join(f"judge-{who:02},{'1,2,3' if who % 5 else '3,2,1'}\n" for who in range(LABELERS))


def votes() -> str:
    """Everybody compares all pairs of three items; nearly all like x best, and z least; some have ties."""
    lines = ["judge,model_a,model_b,winner"]
    for who in range(LABELERS):
        for one, other in (("x", "y"), ("z", "y"), ("x", "z")):
            best = min(one, other) if who % 10 else max(one, other)
            winner = "tie" if (who, one) == (3, "z") or who % 8 == 7 else "model_a" if best == one else "model_b"
            lines.append(f"judge-{who:02},{one},{other},{winner}")
    return "\n".join(lines) + "\n"


def split(folder: Path, *words: str, content: str = "", nodes: int = NODES) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "votes.csv").write_text(content or votes(), encoding="utf-8")
    out = folder / "split"
    command = ["data", "split", str(folder / "votes.csv"), "--nodes", str(nodes), "--trust", "distributed"]
    assert main([*command, "--out", str(out), *words]) == 0
    return out


def said(command: list[str], capsys: Say) -> dict[str, Any]:
    capsys.readouterr()
    code, said = main([*command, "--json"]), capsys.readouterr()
    assert code == 0, said.err
    found: dict[str, Any] = json.loads(said.out)
    return found


def asking(out: Path, *words: str) -> list[str]:
    return ["federate", str(out / "server"), "--nodes", str(out), "--on", "in-process", *words]


def public_coins(out: Path) -> None:
    for file in out.glob("node-*/node.toml"):
        text = file.read_text("utf-8")
        file.write_text(text.replace('entropy = "os"', 'entropy = "addressed"\nseed = 7'), encoding="utf-8")


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        pytest.param(("--epsilon", "1"), (), marks=pytest.mark.slow),
        (("--epsilon", "1", "--ties", "half", "--survivors", "0.75", "--honest", "0.5"), ()),
        pytest.param(("--epsilon", "1", "--ties", "drop", "--mechanism", "binomial"), (), marks=pytest.mark.slow),
        pytest.param(("--epsilon", "1", "--unit", "labeler", "--cap", "2"), (), marks=pytest.mark.slow),
        pytest.param(("--epsilon", "1", "--mechanism", "discrete-gaussian"), WIDE, marks=pytest.mark.slow),
        (("--epsilon", "1", "--unit", "labeler", "--cap", "1"), WIDE),
    ],
)
def test_the_ranking_of_the_file_bit_for_bit(
    tmp_path: Path, capsys: Say, claim: tuple[str, ...], source: tuple[str, ...]
) -> None:
    """Public data with addressed coins: every row adds the noise that it adds in one file, whoever has it."""
    unit = claim[2:6] if "--cap" in claim else ()
    content = RANKINGS if source else ""
    public = () if source else ("--ties-public",)
    out = split(tmp_path, "--public-data", *public, *unit, *source, content=content)
    public_coins(out)
    found = said(asking(out, *claim), capsys)
    fit = ["fit", str(tmp_path / "votes.csv"), "--trust", "distributed", *claim, *public, *source, *SEED]
    fitted, own = said(fit, capsys), {"notes", "state", "charged_labels"}
    assert {k: v for k, v in found.items() if k not in own} == {k: v for k, v in fitted.items() if k not in own}
    assert (found["trust"], found["claimed_epsilon"], found["claimed_delta"]) == ("distributed", 1.0, 1e-5)
    assert found["unit"] == ("labeler" if unit else "label")


def test_a_sum_is_opened_once_and_paid_once(tmp_path: Path, capsys: Say) -> None:
    """At epsilon = 8 the order of 36 of 40 is found; asked again, every stage has the answer that it had."""
    out = split(tmp_path, "--label-cap", "8")
    first = said(asking(out, "--epsilon", "8"), capsys)
    assert [line["item"] for line in first["ranking"]] == ["x", "y", "z"]
    assert (first["coins"], first["mechanism"]) == ("os", "skellam")
    assert said(asking(out, "--epsilon", "8"), capsys) == first
    totals = [one for number in range(NODES) for one in read_labelers(out / f"node-{number}" / "ledger.sqlite")]
    assert len(totals) == LABELERS and all(one.epsilon == 24 for one in totals)  # three labels each
    assert main(asking(out, "--epsilon", "8", "--honest", "0.8")) == 1, "other noise is another sum"
    assert "BUDGET_EXHAUSTED x 3" in capsys.readouterr().err


def test_one_holder_alone_pays_once_too(tmp_path: Path, capsys: Say) -> None:
    (tmp_path / "votes.csv").write_text(votes(), encoding="utf-8")
    fit = ["fit", str(tmp_path / "votes.csv"), "--trust", "distributed", "--epsilon", "2"]
    first, again = (said([*fit, "--state", str(tmp_path / "state")], capsys) for _ in range(2))
    assert (first["charged_labels"], again["charged_labels"]) == (3 * LABELERS, 0)
    assert first["ranking"] == again["ranking"] and first["claimed_delta"] == 1e-5
    other = said([*fit, "--state", str(tmp_path / "other")], capsys)
    assert other["ranking"] != first["ranking"], "coins of the system's"


def test_nodes_know_each_other_by_their_own_files(tmp_path: Path, capsys: Say) -> None:
    """Each has a key that its owner alone reads, and the same list; one whose list has another key takes no part."""
    out = split(tmp_path)
    lists = [(out / f"node-{number}" / "members").read_text("ascii") for number in range(NODES)]
    assert len(set(lists)) == 1 and [line.split()[2] for line in lists[0].splitlines()] == [
        "node-0",
        "node-1",
        "node-2",
    ]
    keys = {(out / f"node-{number}" / "node.key").read_bytes() for number in range(NODES)}
    assert len(keys) == NODES
    node = read_node(out / "node-1" / "node.toml")
    assert node.members is not None and len(read_pins(node.members).names) == NODES and node.least_members == 3
    assert (node.key or Path()).stat().st_mode & 0o077 == 0
    stranger, _ = ensure_key(tmp_path / "stranger.key")
    lines = lists[0].splitlines()
    (out / "node-2" / "members").write_text("\n".join([f"{stranger.line} somebody", *lines[1:]]) + "\n", "ascii")
    assert main(asking(out, "--epsilon", "1")) == 1
    assert "SESSION_REFUSED x 1 (client 2)" in capsys.readouterr().err
    files = [file.read_bytes() for file in (out / "server").iterdir()]
    assert not [raw for raw in files if b"judge-" in raw or b"PRIVATE" in raw]


def test_fewer_nodes_than_hide_one_are_not_made(tmp_path: Path, capsys: Say) -> None:
    with pytest.raises(AssertionError):
        split(tmp_path, nodes=2)
    assert "--nodes: expected 3 or more for --trust distributed, got 2" in capsys.readouterr().err
    assert not (tmp_path / "split").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--honest", "0.9", "--survivors", "0.8"], "--honest: expected at most the 0.8 of --survivors, got 0.9"),
        (["--survivors", "0"], "--survivors: expected a share of the rows, above 0 and at most 1, got 0"),
        (["--survivors", "nan"], "--survivors"),
        (["--ties", "randomized"], "only --trust local randomises answers one by one"),
        (["--estimator", "rr-mle"], "--estimator: there is a choice for --trust local only"),
        (["--mechanism", "subset-selection"], "--mechanism: expected one of skellam, discrete-gaussian, binomial"),
    ],
)
def test_wrong_use(tmp_path: Path, capsys: Say, words: list[str], told: str) -> None:
    out = split(tmp_path)
    capsys.readouterr()
    assert main(asking(out, "--epsilon", "1", *words)) == 2
    assert told in capsys.readouterr().err


def test_shares_of_rows_are_for_noise_in_shares(tmp_path: Path, capsys: Say) -> None:
    (tmp_path / "votes.csv").write_text(votes(), encoding="utf-8")
    fit = ["fit", str(tmp_path / "votes.csv"), "--trust", "central", "--epsilon", "1", "--survivors", "0.8"]
    assert main(fit) == 2
    assert "--survivors: only --trust distributed has noise in shares" in capsys.readouterr().err


@pytest.mark.slow
def test_the_same_over_real_nodes(tmp_path: Path, capsys: Say) -> None:
    """A SuperLink and three SuperNodes; in this process their ledgers then say the same, for nothing."""
    out = split(tmp_path, "--unit", "labeler", "--cap", "2")
    words = ["--epsilon", "1", "--ties", "half", "--survivors", "0.8"]
    found = said(["federate", str(out / "server"), "--nodes", str(out), *words], capsys)
    assert said(asking(out, *words), capsys) == found
