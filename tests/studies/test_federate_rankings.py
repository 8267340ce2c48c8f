"""Rankings that stay on their nodes: what a fit of the whole file gives, bit for bit, for every way to ask them."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client.node_file import build, read_node
from client.sources.choice_table import ChoiceTable
from client.sources.ranking_columns import RankingWanted
from client.sources.ranking_labels import RankingAs, read_ranking_table
from client.sources.table import Table
from protocol.strict import StudyError
from protocol.terms import share
from studies.cli import main
from studies.data.split_nodes import node_toml
from studies.federate.folder import read_facts

SEED = ("--public-data", "--coins", "addressed", "--seed", "7")
Say = pytest.CaptureFixture[str]
# Rankings of two to four items, one labeler with two questions, one ranking without an answer.
LONG = "judge,contest,item,rank\n" + "".join(
    f"{judge},{contest},{item},{rank}\n"
    for judge, contest, order in [
        ("ann", "one", "xyz"),
        ("ann", "two", "wzxy"),
        ("bob", "one", "yxz"),
        ("cem", "one", "zy"),
        ("cem", "three", "xw"),
        ("dee", "one", "wxyz"),
        ("eve", "one", "yw"),
        ("fay", "one", "zwx"),
        ("gus", "one", "xwzy"),
    ]
    for rank, item in enumerate(order, start=1)
)
BEST = """farmer,variety_a,variety_b,variety_c,best,worst
f1,x,y,z,A,C
f2,y,z,w,B,
f3,w,x,y,,C
f4,z,w,x,,
f5,x,z,w,C,A
f6,y,x,z,A,B
"""
WIDE = "judge,x,y,z\n" + "".join(
    f"j{number % 7},{ranks}\n" for number, ranks in enumerate(["1,2,3", "2,1,3", "3,1,", ",1,", "2,3,1", ",,"] * 3)
)
FILES = {
    "long": (LONG, ("--question", "contest", "--unranked", "absent")),
    "best-worst": (BEST, ("--ranking", "best-worst")),
    "wide": (WIDE, ("--ranking", "wide", "--unranked", "last")),
}


def write(folder: Path, form: str) -> tuple[Path, tuple[str, ...]]:
    """A file of rankings and the flags that read it."""
    text, words = FILES[form]
    path = folder / "file.csv"
    path.write_text(text, encoding="utf-8")
    return path, words


def split(folder: Path, form: str, *words: str, nodes: int = 3) -> Path:
    """The folder of a split, whose nodes take addressed coins where the data is public."""
    path, columns = write(folder, form)
    out = folder / "split"
    command = ["data", "split", str(path), "--nodes", str(nodes), "--out", str(out), *columns, *words]
    assert main(command) == 0
    if "--public-data" in words:
        for file in out.glob("node-*/node.toml"):
            text = file.read_text("utf-8")
            file.write_text(text.replace('entropy = "os"', 'entropy = "addressed"\nseed = 7'), encoding="utf-8")
    return out


def said(capsys: Say, command: list[str]) -> dict[str, Any]:
    """The JSON that a command prints."""
    capsys.readouterr()
    code, out = main([*command, "--json"]), capsys.readouterr()
    assert code == 0, out.err
    found: dict[str, Any] = json.loads(out.out)
    return {key: value for key, value in found.items() if key not in ("notes", "state", "charged_labels")}


def tables(out: Path) -> list[Table]:
    """What the nodes of a split hold."""
    sources = [build(read_node(file), {}).source for file in sorted(out.glob("node-*/node.toml"))]
    return [source for source in sources if isinstance(source, Table)]


HELD = [(form, what) for form in FILES for what in ("top", "pair", "pairs:2", "pairs:3")]


@pytest.mark.parametrize(("form", "what"), [way for way in HELD if way != ("wide", "top")])  # it has two best items
def test_nodes_hold_the_labels_of_the_file(tmp_path: Path, form: str, what: str) -> None:
    """Global row numbers, labels by name, whole rankings, and labelers on one node each."""
    out = split(tmp_path, form, "--trust", "clear", "--ranking-as", what)
    facts, nodes = read_facts(out / "server"), tables(out)
    path, wanted = tmp_path / "file.csv", RankingWanted(form, unranked="last" if form == "wide" else None)
    if form == "long":
        wanted = RankingWanted(form, questions=("contest",), unranked="absent")
    table = read_ranking_table(path, False, wanted, RankingAs.parse(what))
    rows = np.concatenate([node.rows_held for node in nodes])
    assert sorted(rows.tolist()) == list(range(len(table.pairs)))
    assert [name for node in nodes for name in node.identities] == [table.identities[row] for row in rows]
    for name in ("values", "missing"):
        held = np.concatenate([getattr(node, name).reveal() for node in nodes])
        assert held.tolist() == getattr(table, name).reveal()[rows].tolist()
    owners = [set(node.labelers) for node in nodes]
    assert len(set.union(*owners)) == sum(map(len, owners)) == len(table.labelers)
    assert np.array_equal(facts.pairs, table.pairs)
    assert facts.problem.digest == table.problem.digest
    assert {type(node) for node in nodes} == {Table if "pair" in what else ChoiceTable}


LOCAL = ("--trust", "local", "--epsilon", "2")
TOP = [
    (("--trust", "clear"), ()),
    (LOCAL, ()),
    (LOCAL, ("--mechanism", "subset-selection", "--estimator", "rr-map")),
    (LOCAL, ("--mechanism", "random-pair", "--estimator", "debiased")),
    (("--trust", "local", "--unit", "labeler", "--cap", "1", "--epsilon", "3"), ()),
]
PAIRS = [
    (("--trust", "clear"), ()),
    (LOCAL, ()),
    (LOCAL, ("--estimator", "one-step")),
    (("--trust", "local", "--unit", "labeler", "--cap", "2", "--epsilon", "3"), ("--estimator", "rr-map")),
]
WAYS = [("top", *way) for way in TOP] + [(what, *way) for what in ("pair", "pairs:2") for way in PAIRS]


@pytest.mark.parametrize("form", ["long", "best-worst"])
@pytest.mark.parametrize(("what", "claim", "how"), WAYS)
def test_the_ranking_of_the_file_bit_for_bit(
    tmp_path: Path, capsys: Say, form: str, what: str, claim: tuple[str, ...], how: tuple[str, ...]
) -> None:
    """Public data with addressed coins; in clear both have a ball, since small files are separable."""
    terms, level = claim[: claim.index("--epsilon")] if "--epsilon" in claim else claim, claim[-1]
    clear = claim == ("--trust", "clear")
    caps = () if clear else ("--labeler-cap" if "--unit" in terms else "--label-cap", level)
    bound = ("--bound", "3", *how)
    out = split(tmp_path, form, "--ranking-as", what, *terms, *caps, *(() if clear else ("--public-data",)))
    federated = said(
        capsys,
        ["federate", str(out / "server"), "--nodes", str(out), "--on", "in-process", *bound]
        + ([] if clear else ["--epsilon", level]),
    )
    path, words = tmp_path / "file.csv", FILES[form][1]
    fitted = said(capsys, ["fit", str(path), *words, "--ranking-as", what, *claim, *bound, *(() if clear else SEED)])
    assert federated == fitted
    assert len({line["estimate"] for line in fitted["ranking"]}) > 1


@pytest.mark.parametrize("what", ["top", "pairs:2"])
@pytest.mark.parametrize("trust", ["clear", "local"])
def test_items_may_be_described(tmp_path: Path, capsys: Say, what: str, trust: str) -> None:
    """Also where a node's rankings are all shorter than the longest of the file."""
    features = tmp_path / "features.csv"
    features.write_text("id,size,sweet\nw,1.5,-1\nx,0.25,2\ny,-1,0.5\nz,0.125,1\n", encoding="utf-8")
    described = ("--features", str(features))
    own = () if trust == "clear" else ("--public-data", "--label-cap", "2")
    out = split(tmp_path, "long", "--ranking-as", what, "--trust", trust, *described, *own, nodes=7)
    if what == "top":
        assert min(node.pairs.shape[1] for node in tables(out)) < 4
    level, bound = () if trust == "clear" else ("--epsilon", "2"), ("--bound", "3")
    command = ["federate", str(out / "server"), "--nodes", str(out), "--on", "in-process", *level, *bound]
    federated = said(capsys, command)
    path, words = tmp_path / "file.csv", (*FILES["long"][1], "--ranking-as", what, "--trust", trust, *described)
    assert federated == said(capsys, ["fit", str(path), *words, *level, *bound, *(SEED if own else ())])
    assert [line["feature"] for line in federated["coefficients"]] == ["size", "sweet"]


@pytest.mark.parametrize("what", ["top", "pair"])
def test_a_central_ranking_is_released_once(tmp_path: Path, capsys: Say, what: str) -> None:
    out = split(tmp_path, "long", "--ranking-as", what, "--trust", "central")
    command = ["federate", str(out / "server"), "--nodes", str(out), "--on", "in-process", "--epsilon", "1"]
    first = said(capsys, [*command, "--state", str(tmp_path / "state")])
    assert (first["claimed_epsilon"], first["unit"], first["coins"]) == (1.0, "label", "os")
    assert first == said(capsys, [*command, "--state", str(tmp_path / "state")])


def test_a_ranking_s_cap_is_shared_by_its_comparisons(tmp_path: Path, capsys: Say) -> None:
    out = split(tmp_path, "long", "--ranking-as", "pairs:3")
    policies = [build(read_node(file), {}).policy for file in sorted(out.glob("node-*/node.toml"))]
    assert {policy.label_cap for policy in policies} == {share(Decimal(1), 3)}
    command = ["federate", str(out / "server"), "--nodes", str(out), "--on", "in-process", "--bound", "3"]
    found = said(capsys, [*command, "--epsilon", "1"])
    assert found["claimed_epsilon"] == pytest.approx(1 / 3)
    capsys.readouterr()
    assert main([*command, "--epsilon", "1.5"]) == 1
    assert "BUDGET_EXHAUSTED x 3" in capsys.readouterr().err


@pytest.mark.parametrize("what", ["top", "pairs:2"])
def test_the_server_is_told_nothing_that_follows_from_a_rank(tmp_path: Path, what: str) -> None:
    """Also not which top choices are the third of a row, whose number is that of a tie."""
    folders = []
    for turn in range(3):
        (tmp_path / str(turn)).mkdir()
        lines = BEST.splitlines()
        answers = ["A,B", "B,C", "C,", ",", "C,A", "A,C"]
        text = [
            lines[0],
            *(line.rsplit(",", 2)[0] + "," + answers[(at + turn) % 6] for at, line in enumerate(lines[1:])),
        ]
        path = tmp_path / str(turn) / "file.csv"
        path.write_text("\n".join(text) + "\n", encoding="utf-8")
        out = tmp_path / str(turn) / "split"
        words = ["--ranking", "best-worst", "--ranking-as", what, "--nodes", "2", "--out", str(out)]
        assert main(["data", "split", str(path), *words]) == 0
        folders.append({file.name: file.read_bytes() for file in sorted((out / "server").iterdir())})
        if what == "top":
            public = tmp_path / f"public-{turn}"
            words[-1] = str(public)
            assert main(["data", "split", str(path), *words, "--ties-public"]) == 0
            assert not (public / "server" / "ties.npy").exists()
    assert folders[0] == folders[1] == folders[2]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--ranking-as", "pairs:9"), "no ranking here has more than 6 comparisons"),
        (("--ranking-as", "pairs:2", "--trust", "central"), "one noisy sum cannot share epsilon"),
        (("--trust", "central", "--unit", "labeler", "--cap", "2"), "a noisy sum of top choices protects a label"),
        (("--ranking-as", "most"), "--ranking-as: expected top, pair or pairs:M"),
    ],
)
def test_what_a_split_refuses(tmp_path: Path, capsys: Say, words: tuple[str, ...], expected: str) -> None:
    path, columns = write(tmp_path, "long")
    assert main(["data", "split", str(path), "--nodes", "2", "--out", str(tmp_path / "s"), *columns, *words]) == 2
    assert expected in capsys.readouterr().err
    assert not (tmp_path / "s").exists()


def test_what_a_federation_refuses(tmp_path: Path, capsys: Say) -> None:
    pairs, top = tmp_path / "pairs", tmp_path / "top"
    for folder, what in ((pairs, "pair"), (top, "top")):
        folder.mkdir()
        split(folder, "long", "--ranking-as", what)
    for folder, words, expected in (
        (pairs, ["--mechanism", "subset-selection"], "--mechanism: there is a choice for a ranking's top choice"),
        (top, ["--estimator", "one-step"], "--estimator: expected one of"),
        (top, ["--ties", "drop"], "--ties drop"),
    ):
        server = str(folder / "split" / "server")
        command = ["federate", server, "--nodes", str(folder / "split"), "--on", "in-process", "--epsilon", "1"]
        assert main([*command, *words]) == 2
        assert expected in capsys.readouterr().err
    facts = top / "split" / "server" / "server.toml"
    facts.write_text(facts.read_text("utf-8").replace('"top"', '"best"'), encoding="utf-8")
    with pytest.raises(StudyError, match=r"\[split\] ranking_as: expected top"):
        read_facts(top / "split" / "server")


def test_a_node_file_by_hand(tmp_path: Path) -> None:
    """Rankings in any form, as their holder has them."""
    text = node_toml('label_cap = "unlimited"\n', public=False, described=False)
    source = 'kind = "table"\nfile = "file.csv"\nranking = "best-worst"\nranking_as = "pairs:2"\nquestions = []\n'
    head, _, tail = text.partition("[source]\n")
    _, _, policy = tail.partition("\n\n[policy]")
    path = tmp_path / "node.toml"
    write(tmp_path, "best-worst")

    def read(source: str) -> Table:
        path.write_text(f"{head}[source]\n{source}\n[policy]{policy}", encoding="utf-8")
        found = build(read_node(path), {}).source
        assert isinstance(found, Table)
        return found

    assert read(source).pairs.shape == (12, 2)
    assert isinstance(read(source.replace("pairs:2", "top")), ChoiceTable)
    for wrong, expected in (
        (source.replace('ranking = "best-worst"\n', ""), "ranking_as: expected the key 'ranking' with it"),
        (source.replace("best-worst", "short"), r"\[source\] ranking: expected one of"),
        (source + 'winner = "best"\n', r"\[source\] unknown key 'winner'"),
        (source.replace("pairs:2", "pairs"), "expected top, pair or pairs:M"),
    ):
        with pytest.raises(ValueError, match=expected) as failed:
            read(wrong)
        assert str(path) in str(failed.value)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("3,a,x,1", "3,a,y,2", "4,b,x,1", "4,b,y,2"), None),
        (("3,a,x,1", "3,a,y,2", "3,b,x,1", "3,b,y,2"), "expected a row number beyond the rows of the ranking before"),
        (("-1,a,x,1", "-1,a,y,2"), "expected a row number, got '-1'"),
        (("0,a,x,1", "0,a,q,2"), "expected items of the public list, got 'q'"),
    ],
)
def test_row_numbers_and_items_are_those_of_the_split(
    tmp_path: Path, lines: tuple[str, ...], expected: str | None
) -> None:
    path = tmp_path / "rankings.csv"
    path.write_text("\n".join(("row,labeler,item,rank", *lines, "")), encoding="utf-8")
    wanted = RankingWanted("long", row="row", unranked="last")
    if expected is not None:
        with pytest.raises(ValueError, match=expected):
            read_ranking_table(path, False, wanted, RankingAs(1), items=("y", "x"))
        return
    table = read_ranking_table(path, False, wanted, RankingAs(1), items=("y", "x"))
    assert table.rows_held.tolist() == [3, 4]
    assert table.pairs.tolist() == [[1, 0], [1, 0]]
