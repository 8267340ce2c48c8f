"""Node files about records: what they say, what their policies have to name, and nodes that share a study's rows."""

from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from client.labeler import answer
from client.ledger_view import read_entries
from client.node_file import NodeFileError, build, read_node
from client.record_file import RecordFile
from client.sources.numbers import Scales
from client.sources.record_columns import RecordColumns
from client.sources.record_table import RecordTable
from protocol.arms import Arm
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.record_law import RecordLaw
from protocol.store import FeatureStore
from protocol.study import Cell, Grid, Study
from protocol.trust import Trust
from server.curator import SimulatedCurator
from server.evidence import Server
from server.rounds import play

NODE = """
[node]
ledger = "ledger.sqlite"
[source]
kind = "records"
file = "records.csv"
features = ["x", "group=b"]
response = "y"
model = "linear"
id = "id"
holder = "who"
missing = "zero"
intercept = true
centre = {x = 1.5}
scale = {x = 2}
[policy]
trust = ["local", "central"]
units = ["record"]
label_cap = 4
"""
LINES = "row,id,who,x,group,y\n0,i,ann,0.5,a,1\n1,j,ann,,b,2\n2,k,bob,3,a,-4\n"


def written(folder: Path, text: str = NODE, lines: str = LINES) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "records.csv").write_text(lines, "utf-8")
    path = folder / "node.toml"
    path.write_text(text, "utf-8")
    return path


def test_a_node_file_names_the_columns_of_records(tmp_path: Path) -> None:
    node = read_node(written(tmp_path))
    scales = Scales({"x": Decimal("1.5")}, {"x": Decimal(2)})
    columns = RecordColumns(
        ("x", "group=b"), "linear", Unit.RECORD, "y", "id", "who", None, "zero", intercept=True, scales=scales
    )
    assert node.source == RecordFile(tmp_path / "records.csv", False, columns)
    source = build(node, {}).source
    assert isinstance(source, RecordTable)
    assert sorted(source.held.reveal()[0].tolist()) == [[[-0.5, 0.0, 1.0]], [[0.0, 1.0, 1.0]], [[0.75, 0.0, 1.0]]]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('units = ["record"]', "", r"\[policy\] expected trust, and units = \[\"record\"\].*got \['label'\]"),
        ('units = ["record"]', 'units = ["record", "holder"]', r"units = \[\"record\"\]"),
        ('trust = ["local", "central"]', "", "it does not name trust"),
        ('id = "id"\n', "", r"\[source\] id: expected a column of ids"),
        ("features = ", "feature = ", "feature"),
        ('model = "linear"', 'model = "median"', r"\[source\] model"),
        ('response = "y"\n', "", r"\[source\] response: expected one for models that have one"),
        ('missing = "zero"', 'missing = "drop"', r"\[source\] missing"),
        ("scale = {x = 2}", "scale = {x = 0}", r"\[source\] expected scales > 0"),
        ("scale = {x = 2}", 'scale = {x = "wide"}', r"\[source.scale\] x"),
        ("scale = {x = 2}", "scale = {y2 = 2}", r"\['y2'\]"),
        ('kind = "records"', 'kind = "record"', r"\[source\] kind"),
        ("[node]\n", '[node]\nentropy = "addressed"\nseed = 1\n', "not declared public"),
        ("[policy]", "[policy.levels]\nanna = 1\n[policy]", "expected labelers of the file"),
    ],
)
def test_a_node_file_that_does_not_fit_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in NODE
    with pytest.raises((NodeFileError, ValueError), match=said):
        build(read_node(written(tmp_path, NODE.replace(old, new))), {})


def test_records_without_ids_may_be_trusted_to_nobody_or_all(tmp_path: Path) -> None:
    clear = NODE.replace('id = "id"\n', "").replace('["local", "central"]', '["clear"]')
    assert build(read_node(written(tmp_path, clear)), {}).policy.trusts == {Trust.CLEAR}


def study(arm: Arm, unit: Unit, n: int) -> Study:
    problem = Problem(3, "records", False, None, kind="records", model="linear")
    law = RecordLaw(per_holder=1 if unit is Unit.RECORD else 0)
    return Study("ours", 0, 1, problem, Grid((n,), (Decimal(1),), (Decimal("1e-5"),)), (arm,), records=law)


DESCENT = (("rounds", Decimal(4)), ("step", Decimal("0.1")), ("threshold", Decimal(2)))


def test_nodes_that_share_the_rows_of_a_study_answer_as_one(tmp_path: Path) -> None:
    """Coins are addressed, so that noise is the same: sums of records are exact however they are split."""
    table = NODE.replace('id = "id"', 'id = "id"\nrow = "row"\npublic = true')
    table = table.replace("[node]", '[node]\nentropy = "addressed"\nseed = 5')
    head, *lines = LINES.splitlines()
    parts = {"whole": lines, "first": lines[:1], "second": lines[1:]}
    paths = {name: written(tmp_path / name, table, "\n".join([head, *part])) for name, part in parts.items()}
    nodes = {name: build(read_node(path), {}) for name, path in paths.items()}
    found = []
    for names in (["whole"], ["first", "second"]):
        server = Server(FeatureStore(None), 0, SimulatedCurator(5))
        (outcome,) = play(
            study(Arm(Trust.CENTRAL, "gaussian", "descent", DESCENT), Unit.RECORD, 3),
            Cell(3, 0, 1),
            lambda raws, names=names: [answer(raw, nodes[name]) for name in names for raw in raws],  # type: ignore[misc]
            server,
        )
        found.append(outcome)
    assert (found[0].theta == found[1].theta).all()
    assert np.abs(found[0].theta).max() > 0
    assert str(found[0].claim) == "(epsilon = 1, delta = 0.00001) per record; neighbours: replace one record"
    assert [sum(entry.labels for entry in read_entries(tmp_path / name / "ledger.sqlite")) for name in parts] == [
        3,
        1,
        2,
    ]
