"""A warm node: what it has read once, it reads again as soon as anything of it has changed."""

import os
from pathlib import Path
from typing import Any

import pytest

from client import node
from client.ledger import DiskLedger
from client.sources.reading import SourceError
from client.warm import Warm

NODE = """
[node]
entropy = "os"
ledger = "ledger.db"
[source]
kind = "table"
file = "votes.csv"
items = "items.csv"
[policy]
label_cap = 2
"""


@pytest.fixture
def config(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "node.toml").write_text(NODE)
    (tmp_path / "votes.csv").write_text("labeler,item_a,item_b,winner\nann,x,y,x\n")
    (tmp_path / "items.csv").write_text("item\nx\ny\n")
    DiskLedger(tmp_path / "ledger.db")
    node.forget()
    return {"config": str(tmp_path / "node.toml")}


def replaced(path: Path, old: str, new: str) -> None:
    """Another content of the same size, in the same place, at the same time of last change."""
    before = path.stat()
    path.write_text(path.read_text().replace(old, new))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_what_did_not_change_is_read_once(config: dict[str, Any]) -> None:
    warm = Warm()
    warm.prepare(config, {})
    first = node.node_of(config, {})
    warm.prepare(config, {})
    assert node.node_of(config, {}) is first


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [("votes.csv", "y,x", "y,y"), ("items.csv", "x\ny", "y\nx"), ("node.toml", "label_cap = 2", "label_cap = 1")],
)
def test_what_changed_is_read_again(config: dict[str, Any], tmp_path: Path, name: str, old: str, new: str) -> None:
    warm = Warm()
    warm.prepare(config, {})
    first = node.node_of(config, {})
    replaced(tmp_path / name, old, new)
    warm.prepare(config, {})
    second = node.node_of(config, {})
    assert second is not first
    warm.prepare(config, {})
    assert node.node_of(config, {}) is second


def test_a_file_that_cannot_be_read_any_more_is_not_answered_from_memory(
    config: dict[str, Any], tmp_path: Path
) -> None:
    warm = Warm()
    warm.prepare(config, {})
    replaced(tmp_path / "votes.csv", "y,x", "y,z")
    with pytest.raises(SourceError):
        warm.prepare(config, {})
    with pytest.raises(SourceError):
        node.node_of(config, {})


def test_a_virtual_node_has_no_file_to_watch() -> None:
    with pytest.raises(ValueError, match="study"):
        Warm().prepare({"partition-id": 0, "num-partitions": 1}, {"study": "no study"})
