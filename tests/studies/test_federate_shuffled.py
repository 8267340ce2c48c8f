"""Files on several nodes whose answers go through a shuffler: the command line's way, with a real service."""

import json
from pathlib import Path
from typing import Any

import pytest

from client.ledger_view import read_labelers
from deploy.node_keys import ensure_key, public_path, read_public
from deploy.sealing_keys import ensure_sealing_key
from deploy.shuffler import serving
from deploy.shuffler_file import ShufflerFile
from server.register import read_register
from server.signatures import public_key
from studies.cli import main

LABELERS, NODES = 60, 3
Say = pytest.CaptureFixture[str]


def votes(folder: Path) -> Path:
    """Everybody compares all pairs of three items; nearly all like x best, and z least."""
    lines = ["judge,model_a,model_b,winner"]
    for who in range(LABELERS):
        for one, other in (("x", "y"), ("z", "y"), ("x", "z")):
            best = min(one, other) if who % 10 else max(one, other)
            lines.append(f"judge-{who:02},{one},{other},{'model_a' if best == one else 'model_b'}")
    path = folder / "votes.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def split(tmp_path: Path) -> Path:
    return _split(tmp_path)


def _split(tmp_path: Path) -> Path:
    out = tmp_path / "split"
    words = ["--nodes", str(NODES), "--trust", "shuffled", "--label-cap", "3", "--out", str(out)]
    assert main(["data", "split", str(votes(tmp_path)), *words]) == 0
    return out


def keys(folder: Path) -> ShufflerFile:
    """All keys, a register, and what the shuffler's file would say."""
    ensure_sealing_key(folder / "sealing.key")
    ensure_key(folder / "server.key")
    nodes = []
    for number in range(NODES):
        public, _ = ensure_key(folder / f"node-{number}" / "node.key")
        nodes.append(f'[[node]]\nname = "n{number}"\nkey = "{public.line}"\nid = "{number + 1}"\n')
    (folder / "nodes.toml").write_text("\n".join(nodes))
    server = public_key(read_public(public_path(folder / "server.key")).line, "server")
    return ShufflerFile(
        "127.0.0.1:0", None, None, folder / "state.sqlite", read_register(folder / "nodes.toml"), server, least=2
    )


def _named(node: str, address: str) -> str:
    """A node's file whose last lines, and whose key, are no comments any more."""
    head, told = node.replace('# key = "node.key"   ', 'key = "node.key"   ').split("# [shuffler]")
    told = told.replace("\n# ", "\n").replace("shuffler.example.org:9443", address)
    told = told.replace('root_certificates = "shuffler-ca.crt"', "insecure = true")
    return f"{head}[shuffler]{told}".replace('"sealing.key.pub"', '"../sealing.key.pub"')


def test_a_ranking_through_a_shuffler(split: Path, monkeypatch: pytest.MonkeyPatch, capsys: Say) -> None:
    """At epsilon = 2 and 54 of 60 votes for the same order, it is found; labels pay the claim of the task."""
    words = ["federate", str(split / "server"), "--nodes", str(split), "--on", "in-process", "--json"]
    words += ["--epsilon", "2", "--delta", "1e-3"]
    with serving(keys(split)) as address:
        for number in range(NODES):
            file = split / f"node-{number}" / "node.toml"
            file.write_text(_named(file.read_text("utf-8"), address), "utf-8")
        at = split / "shuffler.toml"
        at.write_text(f'[shuffler]\naddress = "{address}"\ninsecure = true\nsealing_key = "sealing.key"\n')
        monkeypatch.setenv("HALFTRUTH_SHUFFLER", str(at))
        monkeypatch.setenv("HALFTRUTH_KEY", str(split / "server.key"))
        capsys.readouterr()
        code, said = main([*words, "--transcript", str(split / "kept")]), capsys.readouterr()
        assert code == 0, said.err
        found: dict[str, Any] = json.loads(said.out)
        assert main(words) == 0  # the same task: the same reports, for nothing
        assert json.loads(capsys.readouterr().out)["ranking"] == found["ranking"]
    assert [line["item"] for line in found["ranking"]] == ["x", "y", "z"]
    assert (found["trust"], found["claimed_epsilon"], found["claimed_delta"]) == ("shuffled", 2.0, 1e-3)
    assert found["computed_epsilon"] > 2
    totals = [one for number in range(NODES) for one in read_labelers(split / f"node-{number}" / "ledger.sqlite")]
    assert len(totals) == LABELERS
    assert all(one.epsilon == 6 for one in totals)  # three labels each
    kept, told = ["audit", "transcript", str(split / "kept"), "--trust"], []
    for promise in (["shuffled", "--epsilon", "2"], ["shuffled", "--epsilon", "1"], ["local", "--epsilon", "2"]):
        code = main([*kept, *promise])
        told.append((code, capsys.readouterr().out))
    assert [code for code, _ in told] == [0, 1, 1], told
    assert "randomized-response at 2, by way of a shuffler: 3" in told[0][1]
    assert "a claim of 2 above 1" in told[1][1] and "asks for shuffled where local was promised" in told[2][1]


def test_a_split_for_a_shuffler_says_what_is_missing(tmp_path: Path, capsys: Say) -> None:
    out = _split(tmp_path)
    assert "docs/SHUFFLING.md" in capsys.readouterr().out
    assert main(["federate", str(out / "server"), "--nodes", str(out), "--on", "in-process", "--epsilon", "2"]) == 2
    assert "[shuffler] expected where shuffled answers go" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--ties", "half"], ["--ties", "drop"], ["--unit", "labeler", "--cap", "2"]])
def test_what_a_shuffler_does_not_protect_is_refused(split: Path, capsys: Say, words: list[str]) -> None:
    command = ["federate", str(split / "server"), "--nodes", str(split), "--on", "in-process", "--epsilon", "2"]
    assert main([*command, *words]) == 2
    assert capsys.readouterr().err


def test_one_holder_alone_has_nobody_to_shuffle_with(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        main(["fit", str(votes(tmp_path)), "--trust", "shuffled", "--epsilon", "1"])
