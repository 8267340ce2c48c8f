"""`halftruth data split`: the nodes hold together exactly what the file holds, and answer as the file does."""

import json
import stat
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from client.labeler import Node, answer
from client.ledger import DiskLedger
from client.node_file import build, read_node
from client.policy import Policy
from client.sources.columns import Wanted
from client.sources.loading import read_table
from client.sources.table import Table
from protocol.arms import Arm
from protocol.messages import Mechanism, Task, Ties
from protocol.privacy import Unit
from protocol.store import FeatureStore
from protocol.trust import Trust
from server.collect import Collected
from server.estimators import ESTIMATORS
from server.estimators.workspace import Workspace
from server.evidence import Heard, Server, evidence
from server.listening import RoundFailed, complete, listen, quorum
from server.rounds import options
from studies.cli import main
from studies.fit.request import WAYS
from studies.terminal import printable

VOTES = """judge,model_a,model_b,winner,turn
ann,x,y,model_a,1
bob,y,x,model_b,1
ann,z,y,model_b,2
cem,x,z,model_a,1
cem,z,x,model_a,2
ann,x,z,model_b,1
bob,y,z,model_a,1
"""


def split(folder: Path, votes: Path | str, nodes: int, *words: str) -> list[Path]:
    """The node files of a split."""
    if isinstance(votes, str):
        path = folder / "votes.csv"
        path.write_text(votes, encoding="utf-8")
        votes = path
    out = folder / "nodes"
    assert main(["data", "split", str(votes), "--nodes", str(nodes), "--out", str(out), *words]) == 0
    return [out / f"node-{index}" / "node.toml" for index in range(nodes)]


def table_of(node: Node) -> Table:
    assert isinstance(node.source, Table)
    return node.source


def whole(table: Table, trust: Trust) -> Task:
    """A task about all rows of a file, as a server asks it from public facts."""
    level = None if trust is Trust.CLEAR else Decimal(1)
    menu = Mechanism("none") if level is None else Mechanism.of("randomized-response", epsilon=level)
    n = len(table.pairs)
    return Task(bytes(32), trust, Unit.LABEL, table.problem, (menu,), n, level, None, 0, 1)


def estimate(task: Task, nodes: list[Node], check: Callable[..., None] = complete) -> "np.ndarray":
    """What a server estimates from the answers of these nodes."""

    def ask(raws: list[bytes]) -> list[bytes]:
        return [answer(raw, node) for node in reversed(nodes) for raw in raws]

    heard = listen([task], ask, check)[task]
    server = Server(FeatureStore(None), 0)
    seen = Workspace(evidence(server, heard, server.designs(task.problem, task.n, 0)))
    mechanism, estimators = WAYS[task.trust]
    problem = replace(task.problem, bound=Decimal(5))
    return ESTIMATORS[estimators[0]](seen, options(problem, Arm(task.trust, mechanism, estimators[0]))).u


def same_as_whole(table: Table, nodes: list[Table]) -> None:
    rows = np.concatenate([node.rows_held for node in nodes])
    assert sorted(rows.tolist()) == list(range(len(table.pairs)))
    facts = table.facts(rows)
    assert facts is not None
    assert [identity for node in nodes for identity in node.identities] == list(facts.identities)
    assert [node.labelers[owner] for node in nodes for owner in node.owners] == [
        table.labelers[owner] for owner in facts.labelers
    ]
    for name in ("values", "missing"):
        held = np.concatenate([getattr(node, name).reveal() for node in nodes])
        assert held.tolist() == getattr(table, name).reveal()[rows].tolist()
    assert np.array_equal(np.concatenate([node.pairs for node in nodes]), table.pairs[rows])
    assert np.concatenate([node.first for node in nodes]).tolist() == table.first[rows].tolist()
    owners = [set(node.labelers) for node in nodes]
    assert len(set.union(*owners)) == sum(map(len, owners)), "a labeler lives on one node"
    assert {node.items for node in nodes} == {table.items}


def test_nodes_hold_the_file(tmp_path: Path) -> None:
    files = split(tmp_path, VOTES, 2)
    nodes = [build(read_node(file), {}) for file in files]
    same_as_whole(read_table(tmp_path / "votes.csv", False), [table_of(node) for node in nodes])
    assert [len(table_of(node).pairs) for node in nodes] == [3, 4]
    assert all(node.policy.trusts == {Trust.LOCAL} and node.policy.label_cap == 1 for node in nodes)
    assert len({read_node(file).ledger for file in files}) == 2
    for file in files:
        assert {stat.S_IMODE(path.stat().st_mode) for path in file.parent.iterdir()} == {0o600}
    design = np.load(tmp_path / "nodes" / "server" / "design.npy")
    assert np.array_equal(design, read_table(tmp_path / "votes.csv", False).pairs)


@pytest.mark.parametrize(
    ("text", "words", "wanted"),
    [
        ("home,away,home_wins,away_wins\na,b,5,4\nb,a,2,3\na,c,1,1\n", ("--labeler", "none"), Wanted("none")),
        ("judge,home,away,home_wins,away_wins\nr,a,b,5,4\nr,b,a,2,3\ns,a,c,1,1\n", (), Wanted()),
        (
            "".join(
                json.dumps(
                    {"judge": who, "prompt": f"{who} " + "ask " * 99, "turn": 1, "chosen": good, "rejected": bad}
                )
                + "\n"
                for who, good, bad in (
                    ("r", "long " * 99, ""),
                    ("r", "x", "y"),
                    ("s", "", "x"),
                    ("t", "y", "long " * 99),
                )
            ),
            (),
            Wanted(),
        ),
    ],
)
def test_nodes_hold_counted_wins_and_long_texts(
    tmp_path: Path, text: str, words: tuple[str, ...], wanted: Wanted
) -> None:
    files = split(tmp_path, text, 2, *words)
    nodes = [table_of(build(read_node(file), {})) for file in files]
    same_as_whole(read_table(tmp_path / "votes.csv", False, wanted), nodes)


def test_a_split_is_deterministic_and_balanced(shared_data: Path, tmp_path: Path) -> None:
    kept = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        files = split(tmp_path / name, shared_data / "pairwise" / "first_names.csv", 4)
        kept.append([(file.parent / "votes.csv").read_bytes() for file in files])
    assert kept[0] == kept[1]
    assert {len(raw.splitlines()) for raw in kept[0]} == {2880 // 4 + 1}


@pytest.mark.parametrize("name", ["first_names.csv", "german_parties_2009.csv"])
@pytest.mark.parametrize("nodes", [2, 5])
def test_a_federation_gives_the_clear_estimate_of_the_file_bit_for_bit(
    shared_data: Path, tmp_path: Path, name: str, nodes: int
) -> None:
    path = shared_data / "pairwise" / name
    files = split(tmp_path, path, nodes, "--trust", "clear")
    table = read_table(path, False)
    task = whole(table, Trust.CLEAR)
    one = Node(table, build(read_node(files[0]), {}).policy, DiskLedger(tmp_path / "ledger"), "os", FeatureStore(None))
    federated = estimate(task, [build(read_node(file), {}) for file in files])
    assert federated.tobytes() == estimate(task, [one]).tobytes()


def test_ties_and_missing_winners_are_federated_too(shared_data: Path, tmp_path: Path) -> None:
    """Ties count half. Rows without a winner are not sent in clear, so a round that insists on every row fails."""
    path = shared_data / "pairwise" / "cems_choice_ties.csv"
    files = split(tmp_path, path, 3, "--trust", "clear")
    table, nodes = read_table(path, False), [build(read_node(file), {}) for file in files]
    task = replace(whole(table, Trust.CLEAR), ties=Ties.HALF)
    one = Node(table, nodes[0].policy, DiskLedger(tmp_path / "ledger"), "os", FeatureStore(None))
    assert estimate(task, nodes, quorum).tobytes() == estimate(task, [one], quorum).tobytes()
    with pytest.raises(RoundFailed, match=r"expected 4545 rows .* got 4454"):
        estimate(task, nodes)


def test_coins_follow_the_rows_of_the_whole_file(tmp_path: Path) -> None:
    """Public data with addressed coins: every label is randomised as in the one file."""
    files = split(tmp_path, VOTES, 3, "--public-data")
    for file in files:
        text = file.read_text("utf-8").replace('entropy = "os"', 'entropy = "addressed"\nseed = 7')
        file.write_text(text, encoding="utf-8")
    table = read_table(tmp_path / "votes.csv", public=True)
    one = Node(table, Policy(), DiskLedger(tmp_path / "ledger"), "addressed", FeatureStore(None), 7)
    seen: list[bytes] = []

    def check(heard: Sequence[Heard], unread: object) -> None:
        assert heard[0].collected.symbols is not None
        seen.append(heard[0].collected.symbols.tobytes())

    for nodes in ([one], [build(read_node(file), {}) for file in files]):
        estimate(whole(table, Trust.LOCAL), nodes, check)
    assert seen[0] == seen[1]


def test_a_federation_answers_a_local_task_once(tmp_path: Path) -> None:
    files = split(tmp_path, VOTES, 3)
    task = whole(read_table(tmp_path / "votes.csv", False), Trust.LOCAL)
    seen: list[Collected] = []

    def check(heard: Sequence[Heard], unread: object) -> None:
        seen.append(heard[0].collected)

    for _ in range(2):
        estimate(task, [build(read_node(file), {}) for file in files], check)
    assert [collected.rows.tolist() for collected in seen] == [list(range(7))] * 2
    assert seen[0].symbols is not None and seen[1].symbols is not None
    assert seen[0].symbols.tobytes() == seen[1].symbols.tobytes()


def test_a_node_refuses_another_files_pairs(tmp_path: Path) -> None:
    files = split(tmp_path, VOTES, 2)
    task = whole(read_table(tmp_path / "votes.csv", False), Trust.LOCAL)
    assert task.problem.design is not None
    design = task.problem.design[:, ::-1].copy()
    codes = []

    def check(heard: Sequence[Heard], unread: object) -> None:
        codes.extend(heard[0].collected.refusals)
        raise RuntimeError

    other = replace(task, problem=replace(task.problem, design=design))
    nodes = [build(read_node(file), {}) for file in files]
    with pytest.raises(RuntimeError):
        estimate(other, nodes, check)
    assert [code.name for code in codes] == ["PROBLEM_UNKNOWN"]


names = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=6).filter(lambda text: text.strip())
words = st.sampled_from(["item_a", "tie", "draw", "b", "-1", "0", "007", "NaN", 'a"b', "x\r\ny", "=1", "caf\u00e9"])
record = st.tuples(names, names | words, names | words, st.sampled_from([0, 1, 2, 3]), names)


@settings(max_examples=60)
@given(st.lists(record, min_size=1, max_size=8), st.integers(1, 3))
@example([("r", "x", "0\r1", 0, "q\r")], 1)
@example([("r", "item_a", "item_b", 1, "q"), ("r", "tie", "draw", 2, "q")], 1)
def test_a_table_written_and_read_is_the_same(records: list[tuple[str, str, str, int, str]], nodes: int) -> None:
    import json
    import tempfile

    lines = [
        json.dumps({"judge": who, "left": a, "right": b, "winner": ["left", "right", "tie", ""][won], "question": what})
        for who, a, b, won, what in records
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "votes"
        path.write_text("\n".join(lines), encoding="utf-8")
        try:
            table = read_table(path, False)
        except ValueError:
            return  # no pair of two items, or a name that is a word for the other side
        count = min(nodes, len(table.labelers))
        files = split(Path(folder), path, count)
        same_as_whole(table, [table_of(build(read_node(file), {})) for file in files])


def test_rows_without_labelers_keep_their_names(tmp_path: Path) -> None:
    files = split(tmp_path, VOTES.replace("judge", "note"), 3, "--labeler", "none")
    table = read_table(tmp_path / "votes.csv", False, Wanted("none"))
    same_as_whole(table, [table_of(build(read_node(file), {})) for file in files])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--nodes", "4"], "--nodes: expected 1..3, the number of labelers, got 4"),
        (["--nodes", "0"], "--nodes: expected 1..3"),
        (["--nodes", "2", "--label-cap", "0"], "--label-cap"),
        (["--nodes", "2", "--label-cap", "nan"], "--label-cap"),
        (["--nodes", "2", "--labeler", "who"], "expected one column 'who', got the columns judge, model_a"),
    ],
)
def test_wrong_use(words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(VOTES, encoding="utf-8")
    assert main(["data", "split", str(path), "--out", str(tmp_path / "nodes"), *words]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "nodes").exists()


def test_a_folder_in_use_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    split(tmp_path, VOTES, 2)
    words = ["data", "split", str(tmp_path / "votes.csv"), "--nodes", "2", "--out", str(tmp_path / "nodes")]
    assert main(words) == 2
    assert "expected a new or empty folder" in capsys.readouterr().err


def test_what_is_guessed_and_what_is_private_is_told_the_holder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    votes = VOTES + "dan,x,y,tie,1\ndan,x,z,,1\ndan,x,x,tie,1\ndan,y,x,model_a,1\n"
    split(tmp_path, votes, 2)
    said = capsys.readouterr()
    assert "labeler: judge (guessed); items: model_a, model_b (guessed)" in said.err
    assert "Left out: 1 row that compare an item with itself" in said.err
    assert "1 tie, 1 row without a winner, 1 label whose rows contradict" in said.err
    assert "ties" not in said.out
    assert printable(said.err.replace("\n", "")) == said.err.replace("\n", "")
