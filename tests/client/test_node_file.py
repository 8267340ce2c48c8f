"""The node's own file: strict, and the only thing that says what a node is."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client.labeler import answer
from client.node import node_of
from client.node_file import NodeFileError, SuperLink, SyntheticLabels, build, read_node
from client.sources.columns import Wanted
from client.sources.synthetic import read_truth, write_truth
from client.sources.table import Table
from client.table_file import TableFile
from protocol.codec import decode_reply, encode_task
from protocol.messages import Code, Coins, Mechanism, Refusal, Task
from protocol.privacy import Unit
from protocol.runconfig import DEFAULT_STUDY, read, write
from protocol.strict import StudyError
from protocol.study import cells
from protocol.trust import Trust
from server.tasks import offers
from studies.flower.node_command import NODE_EXAMPLES

SYNTHETIC = """
[node]
entropy = "addressed"
seed = 7
[source]
kind = "synthetic"
client = 1
clients = 3
[policy]
trust = ["clear", "local", "central"]
label_cap = "unlimited"
max_epsilon = "unlimited"
"""
TABLE = """
[node]
entropy = "os"
ledger = "state/ledger.sqlite"
[source]
kind = "table"
file = "votes.csv"
[policy]
label_cap = 1.5
[superlink]
address = "127.0.0.1:9000"
root_certificates = "ca.crt"
key = "node.key"
"""
VOTES = "labeler,item_a,item_b,winner\nann,x,y,item_a\nbob,y,z,item_b\n"
CONFIG = {**write(read({}).study), "truth": write_truth(np.array([1.0, 0.5, 0.0, -0.5, -1.0]))}
_watching: list[list[str]] = []
_hooked: list[bool] = []


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], Path]:
    """A node file with a votes file beside it."""

    def write_file(text: str) -> Path:
        (tmp_path / "votes.csv").write_text(VOTES, "utf-8")
        path = tmp_path / "node.toml"
        path.write_text(text, "utf-8")
        return path

    return write_file


def _hook(event: str, args: tuple[object, ...]) -> None:
    if event == "open":
        for paths in _watching:
            paths.append(str(args[0]))


@contextmanager
def watching() -> Iterator[list[str]]:
    """Paths that are opened meanwhile. An audit hook stays for good, so it is added once."""
    if not _hooked:
        _hooked.append(True)
        sys.addaudithook(_hook)
    paths: list[str] = []
    _watching.append(paths)
    try:
        yield paths
    finally:
        _watching[:] = [other for other in _watching if other is not paths]


def tasks() -> list[bytes]:
    study = read(CONFIG).study
    (cell,) = cells(study)
    return [encode_task(offer.task) for offer in offers(study, cell) if offer.task]


def test_a_file_says_what_a_node_is(written: Callable[[str], Path]) -> None:
    path = written(TABLE)
    node = read_node(path)
    assert node.source == TableFile(path.parent / "votes.csv", public=False)
    assert node.ledger == path.parent / "state" / "ledger.sqlite"
    assert node.superlink == SuperLink("127.0.0.1:9000", False, path.parent / "ca.crt", path.parent / "node.key")
    assert node.entropy == "os" and node.seed is None
    assert node.policy.trusts == {Trust.LOCAL} and str(node.policy.label_cap) == "1.5"
    assert read_node(written(SYNTHETIC)).source == SyntheticLabels(1, 3)


def test_paths_are_absolute_or_relative_to_the_file(written: Callable[[str], Path]) -> None:
    assert read_node(written(TABLE.replace("votes.csv", "/data/votes.csv"))).source == TableFile(
        Path("/data/votes.csv"), public=False
    )


def test_a_node_of_a_file_has_its_own_coins_and_ledger(written: Callable[[str], Path]) -> None:
    path = written(TABLE)
    build(read_node(path), {})
    assert (path.parent / "state" / "ledger.sqlite").exists()
    node = node_of({"config": str(path)}, {"study": "not even TOML ["})
    assert node.coins is Coins.OS and node.seed is None and node.ledger.durable


@pytest.mark.parametrize("left", ["nothing", "an empty file"])
def test_a_ledger_lost_while_its_node_runs_is_not_made_anew_by_the_next_message(
    written: Callable[[str], Path], left: str
) -> None:
    """Each message may have a process of its own, which opens the ledger for itself."""
    path = written(TABLE)
    ledger = path.parent / "state" / "ledger.sqlite"
    build(read_node(path), {})
    ledger.unlink()
    if left == "an empty file":
        ledger.touch()
    node = node_of({"config": str(path)}, {})
    assert isinstance(node.source, Table)
    one = Decimal(1)
    menu = (Mechanism.of("randomized-response", epsilon=one),)
    task = Task(bytes(32), Trust.LOCAL, Unit.LABEL, node.source.problem, menu, 2, one, None, 0, 1)
    reply = decode_reply(answer(encode_task(task), node))
    assert isinstance(reply, Refusal) and reply.code is Code.LEDGER_UNAVAILABLE
    assert ledger.exists() == (left == "an empty file") and (not ledger.exists() or not ledger.stat().st_size)


def test_a_synthetic_node_answers_as_the_same_part_of_a_simulation(written: Callable[[str], Path]) -> None:
    path = written(SYNTHETIC)
    mine = node_of({"config": str(path)}, CONFIG)
    virtual = node_of({"partition-id": 1, "num-partitions": 3}, CONFIG)
    for raw in tasks():
        assert answer(raw, mine) == answer(raw, virtual)
        assert not isinstance(decode_reply(answer(raw, mine)), Refusal)


def test_the_seed_of_a_run_never_reaches_a_node_with_a_file(written: Callable[[str], Path]) -> None:
    other = {**CONFIG, "study": DEFAULT_STUDY.replace("seed = 7", "seed = 8")}
    with pytest.raises(StudyError, match="expected the study's"):
        node_of({"config": str(written(SYNTHETIC))}, other)
    public = TABLE.replace('entropy = "os"', 'entropy = "addressed"\nseed = 5').replace(
        'file = "votes.csv"', 'file = "votes.csv"\npublic = true'
    )
    path = written(public)
    (path.parent / "state").mkdir()
    assert node_of({"config": str(path)}, other).seed == 5


def test_secret_coins_for_synthetic_labels(written: Callable[[str], Path]) -> None:
    node = build(read_node(written(SYNTHETIC.replace("addressed", "os"))), CONFIG)
    assert node.coins is Coins.OS and node.seed is None


@pytest.mark.parametrize("key", ["config", "file", "ledger", "source", "study", "truth", "design"])
def test_a_run_that_names_a_path_makes_the_client_read_nothing(
    written: Callable[[str], Path], tmp_path: Path, key: str
) -> None:
    """Whatever key a server puts a path into, no file of the client is opened because of it."""
    bait = tmp_path / "bait.toml"
    bait.write_text(SYNTHETIC, "utf-8")
    mine = written(TABLE)
    (mine.parent / "state").mkdir()
    for node_config in ({"partition-id": 0, "num-partitions": 1}, {"config": str(mine)}, {}):
        with watching() as opened:
            try:
                node = node_of(node_config, {**CONFIG, key: str(bait)})
            except ValueError:
                continue
            finally:
                assert not [path for path in opened if "bait" in path]
        assert node.ledger.durable == ("config" in node_config)
    with watching() as opened:
        bait.read_bytes()
    assert [path for path in opened if "bait" in path], "the watcher sees a file that is opened"


def test_a_node_is_made_once_a_process_and_few_are_kept() -> None:
    def parts(index: int) -> Any:
        return node_of({"partition-id": index, "num-partitions": 9}, CONFIG)

    first = parts(0)
    assert parts(0) is first
    for index in range(1, 9):
        parts(index)
    assert parts(0) is not first


@pytest.mark.parametrize(
    ("node_config", "reason"),
    [
        ({}, "expected the key 'partition-id'"),
        ({"partition-id": 3, "num-partitions": 3}, "partition-id: expected an integer in 0..2"),
        ({"partition-id": "0", "num-partitions": 3}, "partition-id: expected an integer"),
        ({"config": "node.toml"}, "config: expected an absolute path"),
        ({"config": 7}, "config: expected a non-empty string"),
        ({"config": "/nowhere/node.toml"}, "/nowhere/node.toml: expected a node file, found none"),
        ({"config": "/nowhere/node.toml", "partition-id": 0}, "unknown key 'partition-id'"),
    ],
)
def test_a_node_configuration_that_does_not_fit_is_refused(node_config: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        node_of(node_config, CONFIG)


@pytest.mark.parametrize(
    ("text", "old", "new", "reason"),
    [
        (SYNTHETIC, "[node]", "[nodes]", r"unknown key 'nodes'; did you mean 'node'"),
        (SYNTHETIC, "[node]", "[node", "expected TOML"),
        (SYNTHETIC, '"addressed"', '"random"', r"\[node\] entropy: expected one of"),
        (SYNTHETIC, "seed = 7", "", r"\[node\] seed: expected it exactly for synthetic labels .*, found none"),
        (SYNTHETIC, "seed = 7", "seed = -1", r"\[node\] seed: expected an integer"),
        (SYNTHETIC, "seed = 7", 'seed = 7\nledger = "x"', r"\[node\] ledger: expected it exactly .*, found one"),
        (SYNTHETIC, "client = 1", "client = 3", r"\[source\] client: expected an integer in 0..2"),
        (SYNTHETIC, "client = 1", 'file = "x"', r"unknown key 'file'"),
        (SYNTHETIC, "clients = 3", "", r"expected the key 'clients'"),
        (SYNTHETIC, "kind", "kin", r"unknown key 'kin'; did you mean 'kind'"),
        (SYNTHETIC, '"synthetic"', '"csv"', r"\[source\] kind: expected one of"),
        (SYNTHETIC, 'label_cap = "unlimited"', "label_cap = 3", r"\[policy\] expected \"unlimited\" caps"),
        (SYNTHETIC, 'label_cap = "unlimited"', "", r"expected the key 'label_cap'"),
        (TABLE, 'ledger = "state/ledger.sqlite"', "", r"\[node\] ledger: expected it exactly .*, found none"),
        (TABLE, 'entropy = "os"', 'entropy = "os"\nseed = 1', r"\[node\] seed: expected it exactly .*, found one"),
        (TABLE, 'entropy = "os"', 'entropy = "addressed"\nseed = 1', r'entropy: expected "os" for labels not declared'),
        (TABLE, 'file = "votes.csv"', "", r"expected the key 'file'"),
        (TABLE, 'file = "votes.csv"', 'file = "votes.csv"\npublic = 1', r"\[source\] public: expected true or false"),
        (TABLE, 'root_certificates = "ca.crt"', "", r"root_certificates: expected it exactly unless insecure"),
        (TABLE, 'root_certificates = "ca.crt"', "insecure = true", r"\[superlink\] key: expected none with insecure"),
        (TABLE, "key =", "keys =", r"unknown key 'keys'"),
    ],
)
def test_what_does_not_fit_is_named(written: Callable[[str], Path], text: str, old: str, new: str, reason: str) -> None:
    assert old in text
    path = written(text.replace(old, new, 1))
    with pytest.raises(NodeFileError, match=reason) as caught:
        read_node(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "[1, true]", '["1"]', "[NaN]", "[1e999]", "[1" + "0" * 400 + "]", "[1"]
)
def test_a_truth_that_is_none_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(StudyError, match="expected"):
        read_truth(text)


def test_a_truth_of_another_dimension_is_refused() -> None:
    with pytest.raises(StudyError, match="expected 5 finite coordinates"):
        node_of({"partition-id": 0, "num-partitions": 1}, {**CONFIG, "truth": "[1.0]"})


def test_a_truth_comes_back_bit_for_bit() -> None:
    values = np.array([0.1, -5e-324, 1e308, 1 / 3, -0.0])
    assert read_truth(write_truth(values)).tobytes() == values.tobytes()


def test_a_file_names_columns_items_and_features(written: Callable[[str], Path]) -> None:
    keys = (
        'items = "items.csv"\nlabeler = "who"\nitem_a = "a"\nitem_b = "b"\nwinner = "won"\nrow = "row"\nquestions = []'
    )
    path = written(TABLE.replace('file = "votes.csv"', f'file = "votes.csv"\n{keys}'))
    source = read_node(path).source
    columns = Wanted("who", "a", "b", "won", questions=(), row="row")
    assert source == TableFile(path.parent / "votes.csv", False, columns, path.parent / "items.csv")
    (path.parent / "votes.csv").write_text("row,who,a,b,won\n4,ann,x,y,x\n", "utf-8")
    (path.parent / "items.csv").write_text("item\ny\nx\nz\n", "utf-8")
    table = source.read()
    assert (table.items, table.rows_held.tolist(), table.pairs.tolist()) == (("y", "x", "z"), [4], [[1, 0]])
    coded = 'labeler = "who"\nitem_a = "a"\nitem_b = "b"\nwinner = "won"\nquestions = []\ncoding = "1/0/-1"'
    source = read_node(written(TABLE.replace('file = "votes.csv"', f'file = "votes.csv"\n{coded}'))).source
    (path.parent / "votes.csv").write_text("who,a,b,won\nann,x,y,0\nann,x,z,-1\nbob,z,x,1\n", "utf-8")
    assert isinstance(source, TableFile)
    assert source.read().values.reveal().tolist() == [2, 1, 1]
    keys = 'features = "f.csv"\nfeatures_columns = ["size"]\nquestions = ["turn", "topic"]\nloser = "l"'
    source = read_node(written(TABLE.replace('file = "votes.csv"', f'file = "votes.csv"\n{keys}'))).source
    assert isinstance(source, TableFile)
    assert (source.features, source.features_columns) == (path.parent / "f.csv", ("size",))
    assert (source.columns.questions, source.columns.loser) == (("turn", "topic"), "l")
    counts = 'labeler = "none"\npair = "p"\nwins = ["a", "b"]\nunnamed = "drop-public"'
    source = read_node(written(TABLE.replace('file = "votes.csv"', f'file = "votes.csv"\n{counts}'))).source
    (path.parent / "votes.csv").write_text('p,a,b\n"x,y",1,0\n,4,4\n"y,x",2,1\n', "utf-8")
    assert isinstance(source, TableFile)
    table = source.read()
    assert (len(table.pairs), table.unnamed, int(table.values.reveal().sum())) == (4, 1, 2)


@pytest.mark.parametrize(
    "keys",
    [
        "row = 1",
        'questions = "turn"',
        "questions = [1]",
        "features_columns = []",
        "item_c = 1",
        'coding = "1"',
        'wins = "a"',
        "pair = 1",
    ],
)
def test_a_column_that_is_no_name_is_refused(written: Callable[[str], Path], keys: str) -> None:
    path = written(TABLE.replace('file = "votes.csv"', f'file = "votes.csv"\n{keys}'))
    with pytest.raises(NodeFileError, match=keys.split(" ")[0]):
        read_node(path)


@pytest.mark.parametrize("example", ["help", "deploy"])
def test_examples_are_node_files(tmp_path: Path, example: str) -> None:
    text = (Path(__file__).parents[2] / "deploy" / "node.toml").read_text(encoding="utf-8")
    if example == "help":
        shown = NODE_EXAMPLES.partition("[node]")[2].partition("\n\n")[0]
        text = "[node]" + "\n".join(line.strip() for line in shown.split("\n"))
    path = tmp_path / "node.toml"
    path.write_text(text, encoding="utf-8")
    node = read_node(path)
    assert node.entropy == "os"  # the default: real privacy needs nothing to be chosen
    assert node.policy.trusts == {Trust.LOCAL}
    assert node.superlink is not None
    assert node.superlink.key == tmp_path / "node.key"


def test_levels_are_of_labelers_in_the_file(written: Callable[[str], Path]) -> None:
    """A name that is misspelt would leave somebody without the level that was meant for them."""
    levels = '[policy.levels]\n"{}" = 0.5\n'
    node = build(read_node(written(TABLE + levels.format("ann"))), {})
    assert [str(node.policy.level_of(name)) for name in ("ann", "bob")] == ["0.5", "10"]
    with pytest.raises(StudyError, match="expected labelers of the file, got 1 names of none"):
        build(read_node(written(TABLE + levels.format("anne"))), {})
    with pytest.raises(NodeFileError, match="expected none for synthetic labels"):
        read_node(written(SYNTHETIC.replace('"clear", ', "") + levels.format("ann")))
