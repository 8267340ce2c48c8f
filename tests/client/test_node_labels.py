"""A node without a node file: labels and policy named by flags, and nothing written but the ledger."""

from pathlib import Path

import pytest

from client.node import keys_of, node_of
from client.node_file import NodeFileError, build, read_node
from client.table_file import TableFile
from deploy.node_keys import ensure_key
from protocol.strict import StudyError

VOTES = "labeler,item_a,item_b,winner\nann,x,y,item_a\nbob,y,z,item_b\n"
POLICY = '[policy]\ntrust = ["local"]\nlabel_cap = 1.5\n'


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    path = tmp_path / "labels" / "votes.csv"
    path.parent.mkdir()
    path.write_text(VOTES, encoding="utf-8")
    return path


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy" / "policy.toml"
    path.parent.mkdir()
    path.write_text(POLICY, encoding="utf-8")
    return path


def test_a_policy_and_labels_make_a_node(labels: Path, policy: Path) -> None:
    node = read_node(policy, labels)
    assert isinstance(node.source, TableFile)
    assert (node.source.file, node.source.public, node.entropy) == (labels, False, "os")
    assert node.ledger == labels.with_name("votes.csv.ledger.sqlite")
    other = labels.with_name("other.sqlite")
    assert read_node(policy, labels, other).ledger == other
    policy.write_text('[node]\nledger = "mine.sqlite"\n' + POLICY)
    assert read_node(policy, labels).ledger == policy.with_name("mine.sqlite")
    assert read_node(policy, labels, other).ledger == other


def test_nothing_is_written_but_the_ledger(labels: Path, policy: Path, tmp_path: Path) -> None:
    before = set(tmp_path.rglob("*"))
    build(read_node(policy, labels), {})
    made = set(tmp_path.rglob("*")) - before
    assert labels.with_name("votes.csv.ledger.sqlite") in made
    assert {path.name.removesuffix("-wal").removesuffix("-shm") for path in made} == {"votes.csv.ledger.sqlite"}


def test_a_message_is_answered_by_the_node_that_the_flags_named(labels: Path, policy: Path) -> None:
    config = {"config": str(policy), "labels": str(labels)}
    build(read_node(policy, labels), {})
    assert node_of(config | {"ledger": str(labels.with_name("votes.csv.ledger.sqlite"))}, {}).entropy == "os"
    with pytest.raises(StudyError, match="expected an absolute path"):
        node_of(config | {"labels": "votes.csv"}, {})
    with pytest.raises(StudyError, match="unknown key"):
        node_of(config | {"partition-id": 0}, {})


def test_a_key_beside_a_file_signs(labels: Path, policy: Path, tmp_path: Path) -> None:
    ensure_key(tmp_path / "node.key")
    config = {"config": str(policy), "labels": str(labels)}
    assert keys_of(config).sign is None
    assert keys_of(config | {"key": str(tmp_path / "node.key")}).sign is not None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[source]\nfile = "votes.csv"\n' + POLICY, r"\[source\] file: expected none beside --labels"),
        ("source = 3\n" + POLICY, r"\[source\] expected a table, got 3"),
        ("node = 3\n" + POLICY, r"\[node\] expected a table, got 3"),
        ('[source]\nkind = "synthetic"\nclient = 0\nclients = 1\n' + POLICY, "unknown key 'file'"),
        ("", "expected the key 'policy'"),
    ],
)
def test_a_policy_file_that_does_not_fit_is_named(labels: Path, policy: Path, text: str, words: str) -> None:
    policy.write_text(text)
    with pytest.raises(NodeFileError, match=words) as error:
        read_node(policy, labels)
    assert str(policy) in str(error.value)
