"""What `halftruth watch --budgets` says is left: what a node would still pay, and no labeler's name."""

import json
import os
import time
from decimal import Decimal
from pathlib import Path

import pytest

from client.ledger_store import writing
from protocol.strict import StudyError
from studies.cli import main
from studies.watch.budgets import Budget, Budgets
from studies.watch.nodes import words_of

ROWS = [("ann", "tea", "mate"), ("ann", "mate", "tea"), ("bob", "tea", "coffee"), ("bob", "coffee", "mate")] * 5
CAPS = "label_cap = 2\nlabeler_cap = 20\ndelta_cap = 0.001\nlabeler_delta_cap = 0.1"
Told = pytest.CaptureFixture[str]


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    """Two nodes of a file that was split, without a ledger yet."""
    file, out = tmp_path / "votes.csv", tmp_path / "nodes"
    lines = [f"{who}{at % 3},{a},{b},{a}" for at, (who, a, b) in enumerate(ROWS)]
    file.write_text("labeler,item_a,item_b,winner\n" + "\n".join(lines) + "\n", encoding="utf-8")
    assert main(["data", "split", str(file), "--nodes", "2", "--label-cap", "2", "--out", str(out)]) == 0
    return out


def ask(nodes: Path, epsilon: str, code: int = 0) -> None:
    """One question to both nodes, in this process."""
    where = ["--nodes", str(nodes), "--on", "in-process"]
    assert main(["federate", str(nodes / "server"), *where, "--epsilon", epsilon]) == code


def test_what_is_left_is_what_a_node_still_pays(nodes: Path, capsys: Told) -> None:
    budgets = Budgets.of([nodes])
    assert [(one.node, one.note, one.lefts) for one in budgets.look()] == [
        (name, "no ledger yet: nothing was spent", ()) for name in ("node-0", "node-1")
    ]
    ask(nodes, "1.5")
    for one in budgets.look():
        (left,) = one.lefts
        assert (left.spent, left.cap, left.left, left.used_up, one.tasks) == (Decimal("1.5"), 2, Decimal("0.5"), 0, 1)
    ask(nodes, "0.6", code=1)  # more than is left
    ask(nodes, "0.5")  # all of it
    for one in budgets.look():
        (left,) = one.lefts
        assert (left.left, left.used_up, one.owners) == (0, 3, "3 labelers")
    assert "BUDGET_EXHAUSTED" in capsys.readouterr().err


def test_every_total_under_a_cap_is_told(nodes: Path) -> None:
    ask(nodes, "1")
    file = nodes / "node-0" / "node.toml"
    file.write_text(file.read_text("utf-8").replace("label_cap = 2", CAPS), encoding="utf-8")
    (one,) = Budgets.of([file]).look()
    assert [(each.whose, each.total, each.cap) for each in one.lefts] == [
        ("label", "ε", 2),
        ("label", "δ", Decimal("0.001")),
        ("labeler", "ε", 20),
        ("labeler", "δ", Decimal("0.1")),
    ]
    epsilon, of_labelers = one.lefts[0], one.lefts[2]
    assert epsilon.spent == 1 and of_labelers.spent >= 2 and of_labelers.spent % 1 == 0
    assert words_of(epsilon) == ("1", "2", "1", "0")


def test_a_cap_that_was_lowered_leaves_nothing(nodes: Path) -> None:
    ask(nodes, "1")
    file = nodes / "node-0" / "node.toml"
    file.write_text(file.read_text("utf-8").replace("label_cap = 2", "label_cap = 0.5"), encoding="utf-8")
    (one,) = Budgets.of([file]).look()
    assert (one.lefts[0].left, one.lefts[0].used_up) == (0, 3)


def test_a_ledger_alone_says_what_was_spent(nodes: Path) -> None:
    ask(nodes, "1")
    (one,) = Budgets.of([nodes / "node-0" / "ledger.sqlite"]).look()
    (left,) = one.lefts
    assert (left.spent, left.cap, left.left) == (1, None, None) and "name the node file" in one.note


def test_a_ledger_is_read_again_where_it_changed_only(nodes: Path) -> None:
    ask(nodes, "1")
    budgets = Budgets.of([nodes / "node-0"])
    first = budgets.look()
    assert budgets.look()[0] is first[0]
    ledger = nodes / "node-0" / "ledger.sqlite"
    ledger.write_bytes(b"torn")
    os.utime(ledger, (time.time() + 5,) * 2)
    (torn,) = budgets.look()
    assert torn.note.startswith("cannot be read now") and not torn.lefts


def test_a_ledger_that_is_being_written_is_read(nodes: Path) -> None:
    ask(nodes, "1")
    with writing(nodes / "node-0" / "ledger.sqlite", 1.0):
        (one,) = Budgets.of([nodes / "node-0"]).look()
    assert one.lefts[0].spent == 1


def test_the_command_needs_no_run_and_names_no_labeler(nodes: Path, capsys: Told) -> None:
    ask(nodes, "2")
    capsys.readouterr()
    assert main(["watch", "--budgets", str(nodes)]) == 0
    shown = capsys.readouterr().out
    assert "node-0" in shown and "a label, ε" in shown and "by 3 labelers" in shown
    assert main(["watch", "--budgets", str(nodes), "--json"]) == 0
    told = capsys.readouterr().out
    found = json.loads(told)
    assert found["state"] is None
    assert [one["left"][0] | {"node": one["node"]} for one in found["budgets"]] == [
        {"whose": "label", "total": "ε", "spent": "2", "cap": "2", "left": "0", "used_up": 3, "node": f"node-{at}"}
        for at in range(2)
    ]
    assert not any(who in shown + told for who in ("ann", "bob"))


def test_what_has_no_budget_is_said(tmp_path: Path, capsys: Told) -> None:
    file = tmp_path / "node.toml"
    file.write_text(
        '[node]\nentropy = "addressed"\nseed = 1\n[source]\nkind = "synthetic"\nclient = 0\nclients = 1\n'
        '[policy]\nlabel_cap = "unlimited"\n',
        encoding="utf-8",
    )
    assert Budgets.of([file]).look() == [Budget(tmp_path.name, note="made-up labels, which have no budget")]
    for wrong, words in ((tmp_path / "nowhere", "found no"), (Path(os.devnull), "found no")):
        with pytest.raises(StudyError, match=words):
            Budgets.of([wrong])
    (tmp_path / "empty").mkdir()
    with pytest.raises(StudyError, match=r"expected node\.toml"):
        Budgets.of([tmp_path / "empty"])
    assert main(["watch"]) == 2
    assert "--budgets PATH, got neither" in capsys.readouterr().err
