"""`halftruth node` by flags: what a node is and where it connects, and words for flags that do not fit."""

import argparse
from pathlib import Path

import pytest

from client.node_file import NodeFileError, SuperLink
from deploy.certs import ensure
from deploy.node_keys import ensure_key
from studies.flower.node_command import add_arguments, supernode_arguments
from studies.flower.node_flags import Chosen, chosen

NODE = '[node]\nledger = "ledger.sqlite"\n[source]\nkind = "table"\nfile = "votes.csv"\n[policy]\nlabel_cap = 1\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    ensure(tmp_path / "certs")
    ensure_key(tmp_path / "node.key")
    (tmp_path / "votes.csv").write_text("labeler,item_a,item_b,winner\nann,x,y,item_a\n")
    (tmp_path / "policy.toml").write_text("[policy]\nlabel_cap = 1\n")
    (tmp_path / "node.toml").write_text(NODE)
    link = '[superlink]\naddress = "example.org:8443"\nroot_certificates = "certs/ca.crt"\nkey = "node.key"\n'
    (tmp_path / "linked.toml").write_text(NODE + link)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def flags(*words: str) -> Chosen:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return chosen(parser.parse_args(words))


SAFE = ("--superlink", "example.org:8443", "--certs", "certs/ca.crt", "--key", "node.key")


def test_labels_and_a_policy(folder: Path) -> None:
    found = flags("--labels", "votes.csv", "--policy", "policy.toml", *SAFE)
    assert found.node is not None
    assert supernode_arguments(found.link, found.config) == [
        *("--superlink", "example.org:8443", "--node-config"),
        f'config="{folder}/policy.toml" labels="{folder}/votes.csv" key="{folder}/node.key"',
        *("--root-certificates", f"{folder}/certs/ca.crt", "--auth-supernode-private-key", f"{folder}/node.key"),
    ]
    ledger = flags("--labels", "votes.csv", "--policy", "policy.toml", "--ledger", "l.sqlite", *SAFE)
    assert f' ledger="{folder}/l.sqlite" ' in ledger.config
    assert ledger.node is not None
    assert ledger.node.ledger == folder / "l.sqlite"


def test_a_node_file_with_and_without_another_server(folder: Path) -> None:
    certs, key = folder / "certs" / "ca.crt", folder / "node.key"
    assert flags("--config", "linked.toml").link == SuperLink("example.org:8443", False, certs, key)
    here = flags("--config", "linked.toml", "--superlink", "127.0.0.1:9000")
    assert here.link == SuperLink("127.0.0.1:9000", True, None, None)
    assert here.config == f'config="{folder}/linked.toml"'
    assert flags("--config", "node.toml", *SAFE).link == SuperLink("example.org:8443", False, certs, key)


def test_a_part_of_synthetic_labels(folder: Path) -> None:
    found = flags("--part", "1/4", "--superlink", "[::1]:8000")
    assert (found.node, found.config) == (None, "partition-id=1 num-partitions=4")
    assert flags("--part", "0/1", *SAFE).config == f'partition-id=0 num-partitions=1 key="{folder}/node.key"'


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--config", "node.toml"), r"expected a table \[superlink\] with the address, or --superlink"),
        (("--config", "linked.toml", "--key", "node.key"), "expected --superlink with them"),
        (("--config", "node.toml", "--ledger", "l.sqlite"), "expected --labels with them"),
        (("--labels", "votes.csv", *SAFE), "expected --policy policy.toml with it"),
        (("--labels", "nowhere.csv", "--policy", "policy.toml", *SAFE), "--labels: expected a file, found none"),
        (("--labels", "votes.csv", "--policy", "no.toml", *SAFE), "--policy: expected a file, found none"),
        (("--config", "node.toml", "--superlink", "example.org:8443"), "expected --certs ca.crt"),
        (("--config", "node.toml", "--superlink", "[::1]:8000", "--key", "node.key"), "expected --certs with it"),
        (("--part", "0/2"), "expected --superlink HOST:PORT with it"),
        (("--part", "2/2", *SAFE), "expected I/K with 0 <= I < K"),
        (("--part", "x", *SAFE), "expected I/K with 0 <= I < K"),
    ],
)
def test_flags_that_do_not_fit(folder: Path, words: tuple[str, ...], message: str) -> None:
    with pytest.raises(NodeFileError, match=message):
        flags(*words)
