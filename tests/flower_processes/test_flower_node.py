"""`halftruth node`: files are checked where their owner sees it, and the server's word changes nothing."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from client.ledger import DiskLedger
from client.node_file import SyntheticLabels, read_node
from deploy.node_keys import ensure_key
from deploy.nodes import node_toml
from deploy.processes import program
from protocol.trust import Trust
from studies.cli import main
from studies.load import load

PIN = "ab" * 32
TABLE = """
[node]
entropy = "os"
ledger = "ledger.db"
[source]
kind = "table"
file = "votes.csv"
[policy]
label_cap = 2
[superlink]
address = "example.org:8443"
root_certificates = "ca.crt"
key = "node.key"
"""


@pytest.fixture(autouse=True)
def key(tmp_path: Path) -> None:
    """The key that the node file names."""
    ensure_key(tmp_path / "node.key")


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What the process would have become."""
    seen: list[list[str]] = []

    def become(path: str, words: list[str], environment: dict[str, str]) -> int:
        seen.append(words)
        assert environment["FLWR_TELEMETRY_ENABLED"] == "0"
        return 0

    monkeypatch.setattr(os, "execve", become)
    return seen


def test_a_node_with_labels_becomes_a_supernode(tmp_path: Path, executed: list[list[str]]) -> None:
    (tmp_path / "node.toml").write_text(TABLE)
    (tmp_path / "votes.csv").write_text("labeler,item_a,item_b,winner\nann,x,y,x\nbob,x,y,y\n")
    assert main(["node", "--config", str(tmp_path / "node.toml"), "--port", "9999"]) == 0
    (words,) = executed
    assert words[1:] == [
        *("-P", "-m", "deploy.supernode", "--"),  # and no other program to fall back to, beside somebody's labels
        *("--superlink", "example.org:8443", "--node-config", f'config="{tmp_path}/node.toml"'),
        *("--root-certificates", f"{tmp_path}/ca.crt", "--auth-supernode-private-key", f"{tmp_path}/node.key"),
        *("--host", "127.0.0.1", "--port", "9999"),
    ]


def start(tmp_path: Path, text: str) -> int:
    (tmp_path / "node.toml").write_text(text)
    (tmp_path / "votes.csv").write_text("labeler,item_a,item_b,winner\nann,x,y,x\nbob,x,y,y\n")
    return main(["node", "--config", str(tmp_path / "node.toml")])


def test_the_stock_executor_is_flower_s_own_program(tmp_path: Path, executed: list[list[str]]) -> None:
    assert start(tmp_path, TABLE.replace("[node]", '[node]\nexecutor = "stock"')) == 0
    assert executed[0][0] == program("flower-supernode")
    assert executed[0][1] == "--superlink"


@pytest.mark.parametrize(
    ("old", "new", "pins"),
    [
        ("[node]", '[node]\nexecutor = "warm"', []),
        ("[policy]", f'[policy]\nbundles = ["{PIN}", "{PIN.upper()}"]', ["--pin", PIN, "--pin", PIN]),
    ],
)
def test_a_node_that_insists_on_its_own_code_has_no_other_to_fall_back_to(
    tmp_path: Path, executed: list[list[str]], old: str, new: str, pins: list[str]
) -> None:
    assert start(tmp_path, TABLE.replace(old, new)) == 0
    assert executed[0][1 : 5 + len(pins)] == ["-P", "-m", "deploy.supernode", *pins, "--"]


def test_pins_and_the_stock_executor_exclude_each_other(
    tmp_path: Path, executed: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    text = TABLE.replace("[node]", '[node]\nexecutor = "stock"').replace("[policy]", f'[policy]\nbundles = ["{PIN}"]')
    assert start(tmp_path, text) == 2
    assert 'expected "warm" with [policy] bundles' in capsys.readouterr().err
    assert executed == []


@pytest.mark.parametrize("terminal", [True, False])
def test_counts_that_depend_on_answers_are_for_a_terminal_and_not_for_a_log(
    tmp_path: Path,
    executed: list[list[str]],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    terminal: bool,
) -> None:
    (tmp_path / "node.toml").write_text(TABLE)
    (tmp_path / "votes.csv").write_text("labeler,item_a,item_b,winner\nann,x,y,tie\nbob,x,y,\ncem,x,x,tie\n")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    assert main(["node", "--config", str(tmp_path / "node.toml")]) == 0
    told = capsys.readouterr().err
    assert "Left out: 1 row that compare an item with itself" in told
    assert ("1 tie, 1 row without a winner" in told) == ("For you alone" in told) == terminal
    assert len(executed) == 1


def test_a_node_says_that_its_ledger_is_new(
    tmp_path: Path, executed: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "node.toml").write_text(TABLE)
    (tmp_path / "votes.csv").write_text("labeler,item_a,item_b,winner\nann,x,y,x\n")
    told = []
    for _ in range(2):
        assert main(["node", "--config", str(tmp_path / "node.toml")]) == 0
        told.append(capsys.readouterr().err)
    assert f"New ledger {tmp_path / 'ledger.db'}: if this node had one, end it and bring that back" in told[0]
    assert "New ledger" not in told[1]


def test_a_node_that_a_federation_here_starts_connects_to_its_superlink(
    tmp_path: Path, executed: list[list[str]]
) -> None:
    """Over the loopback interface, whatever address, certificates and key its file has for elsewhere."""
    (tmp_path / "node.toml").write_text(TABLE)
    (tmp_path / "votes.csv").write_text("labeler,item_a,item_b,winner\nann,x,y,x\nbob,x,y,y\n")
    assert (
        main(["node", "--config", str(tmp_path / "node.toml"), "--port", "9999", "--superlink", "127.0.0.1:8001"]) == 0
    )
    (words,) = executed
    assert words[1:] == [
        *("-P", "-m", "deploy.supernode", "--"),
        *("--superlink", "127.0.0.1:8001", "--node-config", f'config="{tmp_path}/node.toml"', "--insecure"),
        *("--host", "127.0.0.1", "--port", "9999"),
    ]


def test_a_file_that_cannot_be_used_stops_the_node_before_anybody_asks(
    tmp_path: Path, executed: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "node.toml").write_text(TABLE)
    (tmp_path / "votes.csv").write_text("labeler,item_a,item_b,winner\nann,x,y,z\n")
    assert main(["node", "--config", str(tmp_path / "node.toml")]) == 1
    assert "votes.csv" in capsys.readouterr().err
    assert executed == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TABLE.split("[superlink]")[0], "[superlink]"),
        (TABLE.replace("label_cap", "lable_cap"), "lable_cap"),
        ("not toml", "expected TOML"),
    ],
)
def test_a_wrong_node_file_is_wrong_use(
    tmp_path: Path, executed: list[Any], capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    (tmp_path / "node.toml").write_text(text)
    assert main(["node", "--config", str(tmp_path / "node.toml")]) == 2
    assert said in capsys.readouterr().err
    assert executed == []


def test_a_study_s_nodes_allow_what_its_arms_need_and_no_more(small: Path, tmp_path: Path) -> None:
    study = load(small, ["grid.epsilon=[0.5, 1e-3]"]).study
    (tmp_path / "node.toml").write_text(node_toml(study, 2, 3, "127.0.0.1:4000"))
    node = read_node(tmp_path / "node.toml")
    assert node.source == SyntheticLabels(2, 3)
    assert node.policy.trusts == {Trust.CLEAR, Trust.LOCAL, Trust.CENTRAL}
    assert str(node.policy.max_epsilon) == "0.5"
    assert (node.entropy, node.seed) == ("addressed", study.seed)
    assert node.superlink is not None
    assert node.superlink.address == "127.0.0.1:4000"


@pytest.mark.parametrize(
    ("file", "mode", "said"),
    [
        ("votes.csv", 0o644, "Others on this machine can read"),
        ("votes.csv", 0o600, ""),
        ("ledger.db", 0o640, "expected a ledger for its owner only"),
        ("node.key", 0o644, "expected a key that only its owner can read"),
    ],
)
def test_what_others_could_read_is_said_of_labels_and_refused_of_ledgers_and_keys(
    tmp_path: Path, executed: list[Any], capsys: pytest.CaptureFixture[str], file: str, mode: int, said: str
) -> None:
    (tmp_path / "node.toml").write_text(TABLE)
    (tmp_path / "votes.csv").write_text("labeler,item_a,item_b,winner\nann,x,y,x\n")
    (tmp_path / "votes.csv").chmod(0o600)
    DiskLedger(tmp_path / "ledger.db")
    (tmp_path / file).chmod(mode)
    assert main(["node", "--config", str(tmp_path / "node.toml")]) == (0 if file == "votes.csv" else 1)
    told = capsys.readouterr().err
    assert said in told and ("chmod 600" in told) == bool(said)
    assert len(executed) == (file == "votes.csv")


def test_a_key_that_is_no_key_stops_the_node_before_anybody_asks(
    tmp_path: Path, executed: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "votes.csv").write_text("labeler,item_a,item_b,winner\nann,x,y,x\n")
    (tmp_path / "node.toml").write_text(TABLE.replace("label_cap = 2", 'label_cap = 2\nserver_key = "server.pub"'))
    assert main(["node", "--config", str(tmp_path / "node.toml")]) == 1
    assert "server.pub: expected a public key" in capsys.readouterr().err
    assert executed == []
