"""`halftruth federate` about records: what one file gives, from nodes that hold parts of it, and a server with none."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from client.labeler import Node, answer
from client.ledger_view import read_entries
from client.node_file import build, read_node
from client.sources.record_table import RecordTable
from protocol.privacy import Unit
from protocol.strict import StudyError
from protocol.trust import Trust
from server.release_file import read_releases
from studies import in_process
from studies.cli import main
from studies.federate.record_split import read_record_split
from studies.fit.state import CURATOR

N, NODES = 60, 3
ADDRESSED = ("--public-data", "--coins", "addressed", "--seed", "7")
LINEAR = ("--columns", "x,z=yes", "--intercept", "--response", "y", "--model", "linear")
STEPS = ("--rounds", "4", "--step", "0.2")
Say = pytest.CaptureFixture[str]


def records(folder: Path, seed: int = 3) -> Path:
    """A file of 60 records of 12 people with 4 to 11 each; some numbers are missing, and z is yes of one person."""
    random = np.random.default_rng(seed)
    lines = ["id,who,x,w,y,z"]
    for row in range(N):
        x, w, y = (repr(float(value)) for value in random.pareto(2.5, 3) + 1)
        who = row % 12 if row < 48 else 0 if row < 55 else 5
        w = "" if row in (4, 16, 40) else w
        lines.append(f"c{row},p{who},{x},{w},{y},{'yes' if who == 3 else 'no'}")
    path = folder / "losses.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def split(path: Path, *words: str, name: str = "nodes") -> Path:
    """The folder of a split."""
    out = path.parent / name
    assert main(["data", "split", str(path), "--records", "--nodes", str(NODES), "--out", str(out), *words]) == 0
    return out


def printed(capsys: Say, *words: str) -> dict[str, Any]:
    """The JSON that a command prints."""
    capsys.readouterr()
    code, said = main([*words, "--json"]), capsys.readouterr()
    assert code == 0, said.err
    found: dict[str, Any] = json.loads(said.out)
    return found


def federate(out: Path, capsys: Say, *words: str) -> dict[str, Any]:
    return printed(capsys, "federate", str(out / "server"), "--nodes", str(out), "--on", "in-process", *words)


def tables(out: Path) -> list[RecordTable]:
    """What the nodes read."""
    found = [build(read_node(out / f"node-{index}" / "node.toml"), {}).source for index in range(NODES)]
    assert all(isinstance(table, RecordTable) for table in found)
    return [table for table in found if isinstance(table, RecordTable)]


@pytest.mark.parametrize(
    ("columns", "trust", "asked"),
    [
        (("--columns", "x"), "clear", ()),
        (("--columns", "x,w", "--missing", "zero", "--centre", "w=1", "--scale", "w=2"), "clear", ()),
        ((*LINEAR, "--id", "id"), "clear", STEPS),
        ((*LINEAR, "--holder", "who", "--unit", "holder"), "clear", STEPS),
        (
            ("--columns", "x,w", "--response", "z=yes", "--model", "logistic", "--missing", "drop-public"),
            "clear",
            STEPS,
        ),
        (("--columns", "x"), "local", ("--epsilon", "2", "--tail", "0.5", "--moment", "9")),
        ((*LINEAR, "--id", "id", "--holder", "who"), "local", ("--epsilon", "2", "--threshold", "3", *STEPS)),
        ((*LINEAR, "--id", "id"), "central", ("--epsilon", "2", "--threshold", "3", *STEPS, "--batches", "disjoint")),
        ((*LINEAR, "--holder", "who", "--unit", "holder"), "central", ("--epsilon", "2", "--threshold", "3", *STEPS)),
        (
            ("--columns", "x,w", "--holder", "who", "--unit", "holder", "--missing", "drop-public"),
            "central",
            ("--epsilon", "2", "--estimator", "algorithm-3", "--threshold", "3"),
        ),
        (("--columns", "x", "--id", "id"), "central", ("--epsilon", "2", "--threshold", "private")),
        (
            ("--columns", "x", "--id", "id"),
            "central",
            ("--epsilon", "2", "--threshold", "3", "--aggregate", "trimmed-mean", "--trim", "0.1"),
        ),
    ],
)
def test_the_estimate_of_the_file_bit_for_bit(
    tmp_path: Path, capsys: Say, columns: tuple[str, ...], trust: str, asked: tuple[str, ...]
) -> None:
    """In clear, and with addressed coins of public data: JSON writes every bit of a float."""
    path = records(tmp_path)
    coins = () if trust == "clear" else ADDRESSED
    rows = ("--central-rows",) if "trimmed-mean" in asked else ()
    found = federate(split(path, *columns, *coins, "--trust", trust, *rows), capsys, *asked)
    whole = printed(capsys, "records", str(path), *columns, *coins, "--trust", trust, *asked)
    own = {"dropped", "charged_rows", "accuracy", "notes", "warnings"}
    assert set(found["warnings"]) <= set(whole["warnings"])  # of tails only who holds all records is told
    assert {k: v for k, v in found.items() if k not in own} == {k: v for k, v in whole.items() if k not in own}
    assert found["rows"] == (12 if "--unit" in columns else 57 if "drop-public" in columns else N)
    assert any(found["estimate"].values())


def test_any_names_and_texts_of_a_file_come_through(tmp_path: Path, capsys: Say) -> None:
    """Quotes, delimiters, line breaks, what JSON escapes and TOML does not, and a column that is called like ours."""
    path, random = tmp_path / "odd.parquet", np.random.default_rng(1)
    texts = ["a", "b=c", None]
    columns = {
        'x"w;é😀\x7f': random.pareto(2, 30) + 1,
        "row": random.normal(size=30),
        "id": [f'a,{row}\n"x' for row in range(30)],
        "who": [f"h{row % 7}" for row in range(30)],
        "c": [texts[row % 3] if row < 20 else "a" for row in range(30)],
    }
    pq.write_table(pa.table(columns), path)
    x = next(iter(columns))
    words = ("--columns", f"{x},c=b=c", "--response", "row", "--model", "linear", "--id", "id", "--holder", "who")
    words += ("--unit", "holder", "--missing", "drop-public", "--trust", "clear", "--centre", f"{x}=1.5")
    found = federate(split(path, *words), capsys, *STEPS)
    whole = printed(capsys, "records", str(path), *words, *STEPS)
    assert (found["estimate"], found["rows"]) == (whole["estimate"], 7)


def test_nodes_hold_the_file_and_whole_holders(tmp_path: Path) -> None:
    out = split(records(tmp_path), *LINEAR, "--id", "id", "--holder", "who")
    held = tables(out)
    assert sorted(np.concatenate([table.rows_held for table in held]).tolist()) == list(range(N))
    assert sum(len(table.labelers) for table in held) == len({name for table in held for name in table.labelers}) == 12
    facts = read_record_split(out / "server")
    assert facts.held == tuple(len(table.rows_held) for table in held)
    assert (facts.trust, facts.facts.unit, facts.facts.names) == (Trust.LOCAL, Unit.RECORD, ("x", "z=yes", "intercept"))
    for file in (path for node in range(NODES) for path in (out / f"node-{node}").iterdir()):
        assert file.name == "ledger.sqlite" or file.stat().st_mode & 0o77 == 0
    header = (out / "node-0" / "records.csv").read_text("utf-8").splitlines()[0]
    assert header == '"x","z","y","id","who","row"', "no column that nobody asks for"


@pytest.mark.parametrize("unit", [("--id", "id", "--holder", "who"), ("--holder", "who", "--unit", "holder")])
def test_the_server_is_told_nothing_that_follows_from_a_value_and_no_name(
    tmp_path: Path, unit: tuple[str, ...]
) -> None:
    told = []
    for seed in (3, 4):
        (tmp_path / str(seed)).mkdir()
        server = split(records(tmp_path / str(seed), seed), *LINEAR, *unit, "--threshold", "3") / "server"
        assert [file.name for file in server.iterdir()] == ["server.toml"]
        told.append((server / "server.toml").read_text("utf-8"))
    assert told[0] == told[1]
    assert not [name for name in ("c1", "p1", "p11") if f'"{name}"' in told[0] or f"{name}," in told[0]]


def test_rounds_are_paid_once_and_released_once(tmp_path: Path, capsys: Say) -> None:
    out, state = (
        split(records(tmp_path), *LINEAR, "--id", "id", "--trust", "central", "--threshold", "3"),
        tmp_path / "s",
    )
    words = ("--epsilon", "1", "--delta", "1e-6", *STEPS, "--state", str(state))
    first = federate(out, capsys, *words)
    released = read_releases(state / CURATOR)
    assert len(released) == 4
    assert first == federate(out, capsys, *words)
    assert read_releases(state / CURATOR) == released
    entries = [read_entries(out / f"node-{index}" / "ledger.sqlite") for index in range(NODES)]
    assert [sum(entry.labels for entry in node) for node in entries] == [20, 20, 20]
    assert (first["claimed_epsilon"], first["claimed_delta"], first["unit"], first["coins"]) == (
        1,
        1e-6,
        "record",
        "os",
    )
    assert first["accuracy"].startswith("Bounded at 3 a coordinate; noise of standard deviation")
    command = ["federate", str(out / "server"), "--nodes", str(out), "--on", "in-process", *words]
    (state / CURATOR).unlink()
    assert main(command) == 1, "old sums with fresh noise would average it away"
    assert "BUDGET_EXHAUSTED" in capsys.readouterr().err


def test_a_run_goes_on_after_a_crash(tmp_path: Path, capsys: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node dies in the third round: what the others answered and the curator released is there, and paid."""
    out, state = (
        split(records(tmp_path), *LINEAR, "--id", "id", "--trust", "central", "--threshold", "3"),
        tmp_path / "s",
    )
    words, calls = ("--epsilon", "1", *STEPS, "--state", str(state)), list[bytes]()

    def crash(raw: bytes, node: Node) -> bytes:
        calls.append(raw)
        if len(calls) == 2 * NODES + 2:
            raise KeyboardInterrupt
        return answer(raw, node)

    with monkeypatch.context() as patched:
        patched.setattr(in_process, "reply", crash)
        assert main(["federate", str(out / "server"), "--nodes", str(out), "--on", "in-process", *words]) == 130
    released = [release.values for release in read_releases(state / CURATOR)]
    assert len(released) == 2
    found = federate(out, capsys, *words)
    assert [release.values for release in read_releases(state / CURATOR)][:2] == released
    assert found == federate(out, capsys, *words)
    entries = [read_entries(out / f"node-{index}" / "ledger.sqlite") for index in range(NODES)]
    assert [sum(entry.labels for entry in node) for node in entries] == [20, 20, 20]


def test_a_threshold_may_be_chosen_and_rows_shown_where_nodes_allow_it(tmp_path: Path, capsys: Say) -> None:
    out = split(records(tmp_path), "--columns", "x", "--id", "id", "--trust", "central", "--label-cap", "2")
    words = ("--epsilon", "2", "--state", str(tmp_path / "s"))
    chosen = federate(out, capsys, *words, "--threshold", "private")
    assert (chosen["coins"], chosen["accuracy"]) == ("os", None)
    assert chosen == federate(out, capsys, *words, "--threshold", "private")
    trimmed = ("--threshold", "3", "--aggregate", "trimmed-mean", "--trim", "0.1")
    command = ["federate", str(out / "server"), "--nodes", str(out), "--on", "in-process", *words, *trimmed]
    assert main(command) == 2
    assert "nodes of this split show no rows to a curator: --central-rows there" in capsys.readouterr().err


def test_local_reports_are_repeated(tmp_path: Path, capsys: Say) -> None:
    out = split(records(tmp_path), *LINEAR, "--holder", "who", "--unit", "holder", "--label-cap", "2")
    words = ("--epsilon", "2", "--tail", "0.5", "--moment", "9", *STEPS)
    first = federate(out, capsys, *words)
    assert first == federate(out, capsys, *words, "--trust", "local", "--unit", "holder")
    assert (first["coins"], first["mechanism"], first["charged_rows"]) == ("os", "piecewise", None)
    again = ["federate", str(out / "server"), "--nodes", str(out), "--on", "in-process", "--epsilon", "1"]
    assert main([*again, "--threshold", "2", *STEPS]) == 1
    assert "label_cap = 2" in capsys.readouterr().err


def test_other_nodes_than_those_of_the_split_are_named(tmp_path: Path, capsys: Say) -> None:
    out = split(records(tmp_path), *LINEAR, "--id", "id", "--threshold", "3")
    command = ["federate", str(out / "server"), "--nodes", str(out), "--on", "in-process", "--epsilon", "1", *STEPS]
    (out / "node-1").rename(out / "node-7")
    assert main(command) == 2
    assert "expected the 3 nodes of the split in" in (said := capsys.readouterr().err)
    assert "found 3: without node-1, with node-7" in said
    (out / "node-7").rename(out / "node-1")
    own = out / "node-1" / "records.csv"
    own.write_text("\n".join(own.read_text("utf-8").splitlines()[:-2]) + "\n", encoding="utf-8")
    assert main(command) == 1
    assert "node-1 has 18 rows, and had 20 when the file was split" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--epsilon", "1", "--trust", "central"], "the nodes of this split answer --trust local, --unit record"),
        (["--epsilon", "1", "--unit", "label"], "--unit label: the nodes of this split answer"),
        (["--epsilon", "1", "--ties", "coin"], "--ties: the nodes of this split have records, and no labels"),
        (["--epsilon", "1", "--state", "s"], "--state: only for the curator"),
        (["--epsilon", "1", "--delta", "1e-5"], "--delta: the claim of piecewise has none"),
        (["--epsilon", "1", "--mechanism", "laplace"], "--mechanism: expected one of"),
        (["--epsilon", "1", "--sparsity", "2"], "--sparsity: this estimator has no such option"),
        (["--epsilon", "1", "--rounds", "100000"], "rounds"),
        (["--epsilon", "1", "--bound", "-1"], "--bound: expected a number > 0"),
        (["--epsilon", "2"], "label_cap = 1: ask for less"),
        ([], "--epsilon: expected a level for --trust local"),
    ],
)
def test_wrong_use_is_told_before_anybody_is_asked(tmp_path: Path, capsys: Say, words: list[str], said: str) -> None:
    out = split(records(tmp_path), *LINEAR, "--id", "id", "--threshold", "3")
    command = ["federate", str(out / "server"), "--nodes", str(out), "--on", "in-process", *STEPS, *words]
    assert main(command) == 2
    assert said in capsys.readouterr().err
    assert not list(out.glob("node-*/ledger.sqlite"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--columns", "x"], "--id: expected a column of ids"),
        (["--columns", "x", "--id", "id", "--labeler", "who"], "--labeler: a file of records has none"),
        (["--columns", "x", "--id", "id", "--unit", "label"], "--unit: expected one of record, holder, got label"),
        (["--columns", "x", "--id", "id", "--labeler-cap", "2"], "--labeler-cap: only for --unit record with --holder"),
        (["--columns", "x", "--id", "id", "--central-rows"], "--central-rows: only for --trust central"),
        (["--columns", "x", "--id", "id", "--seed", "2"], "--seed: the system's coins have none"),
        (["--columns", "x", "--id", "id", "--tail", "2"], "--tail: expected a number in (0, 1], got 2"),
        (["--columns", "x", "--id", "id", "--nodes", "61"], "--nodes: expected 1..60, the number of records, got 61"),
        (["--columns", "q", "--id", "id"], "expected one column 'q'"),
        ([], "--columns: expected the features of --records"),
    ],
)
def test_a_split_that_does_not_fit_makes_nothing(tmp_path: Path, capsys: Say, words: list[str], said: str) -> None:
    out = tmp_path / "nodes"
    command = ["data", "split", str(records(tmp_path)), "--records", "--nodes", "2", "--out", str(out), *words]
    assert main(command) == 2
    assert said in capsys.readouterr().err
    assert not out.exists()


def test_flags_of_records_are_for_records(tmp_path: Path, capsys: Say) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("labeler,item_a,item_b,winner\np1,x,y,x\np2,x,y,y\n", encoding="utf-8")
    command = ["data", "split", str(path), "--nodes", "2", "--out", str(tmp_path / "nodes")]
    assert main([*command, "--columns", "x"]) == 2
    assert "--columns: only a file of records has one: add --records" in capsys.readouterr().err
    assert main(command) == 0
    out = tmp_path / "nodes"
    assert main(["federate", str(out / "server"), "--nodes", str(out), "--epsilon", "1", "--rounds", "3"]) == 2
    assert "--rounds: only for nodes with records" in capsys.readouterr().err
    assert main(["federate", str(out / "server"), "--nodes", str(out), "--epsilon", "1", "--estimator", "x"]) == 2
    assert "--estimator: expected one of" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("rows = [20, 20, 20]", "rows = []", "rows: expected 1 to"),
        ("rows = [20, 20, 20]", "rows = [20, -1]", "rows: expected an integer in 1.."),
        ('model = "linear"', 'model = "probit"', "model: expected one of"),
        ('whose = "', 'whose = "z', "whose: expected 64 hexadecimal digits"),
        ("threshold = 3", "threshold = nan", "threshold to be finite"),
        ("threshold = 3", "thresold = 3", "did you mean 'threshold'"),
        ("[assumed]", "", "expected the key"),
    ],
)
def test_a_server_s_folder_that_is_not_whole_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    file = split(records(tmp_path), *LINEAR, "--id", "id", "--threshold", "3") / "server" / "server.toml"
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(StudyError) as failed:
        read_record_split(file.parent)
    assert said in str(failed.value) and str(file) in str(failed.value)
