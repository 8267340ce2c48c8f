"""A holder's file: what is read, what is one label, and what is an error that names its place."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.sources import ProblemUnknown
from client.sources.columns import Wanted
from client.sources.loading import read_items, read_table
from client.sources.outcomes import TIE
from client.sources.reading import SourceError
from client.sources.table import PrivateCounts, Table, label_identity
from protocol.messages import Task
from protocol.trust import Trust


def write(folder: Path, content: str | bytes) -> Path:
    path = folder / "votes.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(folder: Path, content: str | bytes) -> Table:
    return read_table(write(folder, content), public=False)


def test_items_pairs_and_labels(tmp_path: Path) -> None:
    table = read(tmp_path, "labeler,item_a,item_b,winner\nr1,b,c,item_a\nr2,c,a,item_b\nr1,a,b,b\n")
    assert table.items == ("a", "b", "c")
    assert table.pairs.tolist() == [[1, 2], [0, 2], [0, 1]], "in the order of names"
    assert table.pairs.dtype == np.int32
    assert table.values.reveal().tolist() == [0, 0, 1]
    assert table.labelers == ("r1", "r2")
    assert table.owners.tolist() == [0, 1, 0]


def test_every_way_to_name_a_winner(tmp_path: Path) -> None:
    rows = ["r,left,right,item_a", "r,left,up,left", "r,up,right,a", "r,down,up,item_b", "r,up,top,top", "r,top,left,b"]
    table = read(tmp_path, "\n".join(["labeler_id,item_a,item_b,winner", *rows]))
    won = [table.items[pair[value]] for pair, value in zip(table.pairs, table.values.reveal(), strict=True)]
    assert won == ["left", "left", "up", "up", "top", "left"]


def test_rows_of_one_labeler_and_pair_are_one_label(votes: Table, desk: Any) -> None:
    assert votes.label_count == 5
    local, clear = desk.task(votes), desk.task(votes, Trust.CLEAR)
    assert votes.rows(local).numbers().tolist() == [0, 1, 2, 4, 5]
    assert votes.rows(desk.task(votes, Trust.CENTRAL)).numbers().tolist() == [0, 1, 2, 4, 5]
    assert votes.rows(clear).numbers().tolist() == [0, 1, 2, 3, 4, 5]
    assert votes.identities[0] == votes.identities[3]
    assert len(set(votes.identities)) == 5
    facts = votes.facts(np.arange(6))
    assert facts is not None


def test_the_lowest_row_stands_for_a_label_below_any_n(votes: Table, desk: Any) -> None:
    for n in range(1, 7):
        task = replace(desk.task(votes), n=n)
        expected = [row for row in range(n) if row != 3]
        assert votes.rows(task).numbers().tolist() == expected


@settings(max_examples=100)
@given(st.tuples(*[st.text(max_size=4)] * 3), st.tuples(*[st.text(max_size=4)] * 3))
def test_an_identity_names_labeler_and_unordered_pair(one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
    same = one[0] == other[0] and sorted(one[1:]) == sorted(other[1:])
    assert (label_identity(*one) == label_identity(*other)) == same
    assert label_identity(*one, question="q") != label_identity(*one)


def test_an_identity_is_pinned() -> None:
    """Ledgers of people depend on it: another value would forget every answer."""
    expected = "ed1fa4e0b4d6b9d53708d3cadddb12b47868d1b3bd5b5aea479c8ba553fbf2f4"
    assert label_identity("r001", "Tim", "Lucas").hex() == expected


def test_the_problem_must_be_exactly_the_file(votes: Table, desk: Any) -> None:
    task: Task = desk.task(votes)
    votes.check(task)
    design = np.array(votes.pairs)
    flipped, other = design.copy(), design.copy()
    flipped[2] = flipped[2, ::-1]
    other[4] = [0, 1]
    problems = [
        replace(task.problem, design=flipped),
        replace(task.problem, design=other),
        replace(task.problem, design=design[:5]),
        replace(task.problem, dimension=4),
        replace(task.problem, features="gaussian", design=None),
        replace(task.problem, features="values", design=np.ones((6, 3))),
    ]
    for problem in problems:
        with pytest.raises(ProblemUnknown):
            votes.check(replace(task, problem=problem))
    with pytest.raises(ProblemUnknown):
        votes.check(replace(task, n=7))


def test_unicode_forms_are_one_name_and_sorted_by_code_point(tmp_path: Path) -> None:
    rows = [
        "Zoë,caf\u00e9,naïve,item_a",
        "Zoe\u0308,cafe\u0301,東京,item_b",
        "李雷,Ñandú,café,Ñandú",
        "李雷,🍣,naïve,item_b",
    ]
    table = read(tmp_path, "\n".join(["labeler,item_a,item_b,winner", *rows]))
    assert table.items == tuple(sorted({"café", "naïve", "東京", "Ñandú", "🍣"}))
    assert table.labelers == ("Zoë", "李雷")


def test_a_byte_order_mark_windows_line_ends_and_quoted_fields(tmp_path: Path) -> None:
    raw = (
        '\ufefflabeler,note,item_a,item_b,winner\r\nr1,"two\r\nlines, ""quoted""",x,y,item_b\r\n\r\nr2,,y,z,item_a\r\n'
    )
    table = read(tmp_path, raw)
    assert table.values.reveal().tolist() == [1, 0]
    assert table.items == ("x", "y", "z")


def test_ids_are_text(tmp_path: Path) -> None:
    rows = [
        "007,GPT-4,None,item_a",
        "7,NA,null,item_b",
        "1e5,nan,inf,item_a",
        "100000,True,GPT-4,item_b",
        " 7 ,GPT-4,NA,b",
    ]
    table = read(tmp_path, "\n".join(["labeler,item_a,item_b,winner", *rows]))
    assert table.labelers == tuple(sorted(["007", "7", "1e5", "100000"]))
    assert set(table.items) == {"GPT-4", "None", "NA", "null", "nan", "inf", "True"}


HEAD = "labeler,item_a,item_b,winner\nr1,x,y,item_a\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "expected a header and records, got an empty file"),
        ("\n \n", "expected a header and records, got an empty file"),
        ("a,b\n", "header: expected two columns of items and one that says who won"),
        ("labeler,item_a,item_b,winner\nr,x,x,tie\n", "expected at least one comparison of two items"),
        ("labeler,item_a,item_b,winner\n", "expected at least one comparison"),
        ("item_a,item_b,winner\nx,y,item_a\n", "header: expected a column that says who answered .--labeler NAME"),
        ("labeler,labeler_id,item_a,item_b,winner\n", "expected one column of labelers, not labeler and labeler_id"),
        (
            "labeler,item_a,item_a,item_b,winner\n",
            "expected one column 'item_a', got the columns labeler, item_a, item_a",
        ),
        ("labeler,item_a,winner\n", "header: expected two columns of items .* got the columns labeler, item_a, winner"),
        (HEAD + "r2,y,z,up\n", "line 3, field winner: expected one of 'item_a', 'item_b', 'tie', 'y', 'z', got 'up'"),
        (HEAD + "r2,y,z,1\n", "line 3, field winner: expected one of 'item_a'.* --winner-coding"),
        (HEAD + "\n\n,y,z,item_a\n", "line 5, field labeler: expected a name, got an empty field"),
        (HEAD + "r2,, z,item_a\n", "line 3, field item_a: expected a name"),
        (HEAD + "r2,y,z\n", "line 3: expected 4 fields, got 3"),
        (HEAD + "r2,y,z,item_a,more\n", "line 3: expected 4 fields, got 5"),
        (HEAD + 'r2,"y,z,item_a\n', "line 3: expected comma-separated values"),
        (HEAD.encode() + b"r2,\xff\xfe,z,item_a\n", "expected UTF-8"),
        ('labeler,item_a,item_b,winner\nr1,"x\nx",y,item_a\nr2,,z,item_a\n', "line 4, field item_a: expected a name"),
    ],
)
def test_the_first_line_that_does_not_fit_is_named(tmp_path: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(SourceError, match=message) as caught:
        read(tmp_path, content)
    assert "votes.csv" in str(caught.value)


def test_printing_a_table_tells_no_label_and_no_labeler(votes: Table) -> None:
    text = repr(votes) + repr(votes.facts(np.arange(6)))
    assert "ann" not in text
    assert "content" not in text


def test_ties_are_a_third_value(tmp_path: Path, desk: Any) -> None:
    table = read(tmp_path, "labeler,item_a,item_b,winner\nr1,x,y,tie\nr1,x,z,Draw\nr1,y,z,z\n")
    assert table.values.reveal().tolist() == [TIE, TIE, 1]
    assert table.private_counts() == PrivateCounts(ties=2, missing=0, contradictions=0)
    assert desk.task(table).n == 3


def test_a_missing_winner_is_the_same_label_whichever_way_its_row_is_written(tmp_path: Path, desk: Any) -> None:
    """Under a claim every row answers: which rows have no winner would tell something. In clear they are left out."""
    table = read(tmp_path, "labeler,item_a,item_b,winner\nr1,x,y,\nr2,y,x,\nr3,x,y,y\n")
    assert table.labels(desk.task(table), 0, np.arange(3)).reveal().tolist() == [0, 0, 1]
    assert table.rows(desk.task(table)).numbers().tolist() == [0, 1, 2]
    assert table.rows(desk.task(table, Trust.CENTRAL)).numbers().tolist() == [0, 1, 2]
    assert table.rows(desk.task(table, Trust.CLEAR)).numbers().tolist() == [2]
    assert table.private_counts() == PrivateCounts(ties=0, missing=2, contradictions=0)


def test_contradictions_are_counted_in_either_order(tmp_path: Path) -> None:
    rows = ["r1,x,y,x", "r1,y,x,x", "r2,x,y,x", "r2,y,x,y", "r3,x,y,tie", "r3,y,x,tie", "r4,x,y,tie", "r4,x,y,x"]
    table = read(tmp_path, "\n".join(["labeler,item_a,item_b,winner", *rows, "r1,x,y,", ""]))
    assert table.private_counts() == PrivateCounts(ties=3, missing=1, contradictions=2)


def test_what_a_file_without_labels_would_show_is_all_that_is_public(tmp_path: Path) -> None:
    """Files that differ in their answers only, in any shape: the public parts are the same."""
    shapes = [
        ("labeler,item_a,item_b,winner", "r,y,x,x", "r,y,x,y"),
        ("labeler,loser,winner", "r,y,x", "r,x,y"),
        ("labeler,item_a,item_b,winner", "r,x,y,x\nq,x,y,x", "r,y,x,y\nq,x,y,x"),
        ("labeler,home,away,result", "r,y,x,-1\nq,y,x,0", "r,y,x,1\nq,y,x,0"),
    ]
    for header, one, other in shapes:
        coding = Wanted(coding="1/0/-1" if "result" in header else None)
        tables = [read_table(write(tmp_path, f"{header}\n{rows}\n"), False, coding) for rows in (one, other)]
        assert tables[0].values.reveal().tolist() != tables[1].values.reveal().tolist()
        assert tables[0].problem.digest == tables[1].problem.digest
        assert tables[0].identities == tables[1].identities
        assert repr(tables[0]) == repr(tables[1])


def test_rows_about_one_item_are_dropped_and_counted(tmp_path: Path) -> None:
    table = read(tmp_path, "labeler,item_a,item_b,winner\nr1,x,x,x\nr1,x,y,x\nr2,caf\u00e9,cafe\u0301,tie\n")
    assert (table.dropped, table.pairs.tolist(), table.items) == (2, [[0, 1]], ("x", "y"))


def test_numbered_rows_answer_by_their_numbers(tmp_path: Path, desk: Any) -> None:
    text = "row,labeler,item_a,item_b,winner\n2,r1,y,x,x\n5,r2,x,y,y\n7,r2,y,x,x\n"
    table = read_table(write(tmp_path, text), False, Wanted(row="row"), items=("z", "y", "x"))
    pairs = np.array([[0, 1]] * 8, dtype=np.int32)
    pairs[[2, 5, 7]] = [2, 1]  # by name, whatever the public list says
    whole = desk.task(table)
    task = replace(whole, n=8, problem=replace(whole.problem, dimension=3, design=pairs))
    table.check(task)
    assert table.rows(task).numbers().tolist() == [2, 5]
    assert table.rows(replace(task, n=5)).numbers().tolist() == [2]
    assert table.labels(task, 0, np.array([5, 2])).reveal().tolist() == [1, 0]
    facts = table.facts(np.array([5, 2]))
    assert facts is not None
    assert list(facts.identities) == [label_identity("r2", "x", "y"), label_identity("r1", "x", "y")]
    with pytest.raises(ProblemUnknown):
        table.check(replace(task, problem=replace(task.problem, design=pairs[:, ::-1].copy())))
    with pytest.raises(ProblemUnknown):
        table.check(replace(task, n=9))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("1,r,x,y,x\n1,r,y,z,z", "line 3, field row: expected a row number above the one before, got '1'"),
        ("-1,r,x,y,x", "line 2, field row: expected a row number"),
        ("1.0,r,x,y,x", "line 2, field row: expected a row number"),
        ("99999999999,r,x,y,x", "line 2, field row: expected a row number"),
        (",r,x,y,x", "line 2, field row: expected a name"),
        ("1,r,x,y,x\n2,r,z,z,z", "expected one comparison of two items in every line"),
        ("1,r,x,w,x", "line 2: expected items of the public list, got 'w'"),
    ],
)
def test_numbered_rows_that_do_not_fit(tmp_path: Path, rows: str, message: str) -> None:
    path = write(tmp_path, f"row,labeler,item_a,item_b,winner\n{rows}\n")
    with pytest.raises(SourceError, match=message):
        read_table(path, False, Wanted(row="row"), items=("x", "y", "z"))


def test_questions_are_part_of_a_label(tmp_path: Path) -> None:
    text = "labeler,item_a,item_b,winner,question,turn\nr,x,y,x,q,1\nr,x,y,y,q,2\nr,y,x,x,p,1\n"
    path = write(tmp_path, text)
    counts = [
        read_table(path, False, Wanted(questions=named)).label_count for named in (None, (), ("turn",), ("question",))
    ]
    assert counts == [3, 1, 2, 2]
    assert read_table(path, False, Wanted(questions=("turn",))).identities[1] == label_identity("r", "x", "y", "2")
    both = label_identity("r", "x", "y", '["q", "2"]')
    assert read_table(path, False).identities[1] == both


def test_the_order_of_columns_names_no_label_anew(tmp_path: Path) -> None:
    """A label under a second name would be charged, and answered for, as if it had never been."""
    path = write(tmp_path, "labeler,item_a,item_b,winner,question,turn\nr,x,y,x,q,1\n")
    moved = tmp_path / "moved.csv"
    moved.write_text("turn,question,labeler,item_b,item_a,winner\n1,q,r,y,x,x\n")
    tables = [
        read_table(path, False),
        read_table(moved, False),
        read_table(path, False, Wanted(questions=("turn", "question"))),
    ]
    assert {tuple(table.identities) for table in tables} == {(label_identity("r", "x", "y", '["q", "1"]'),)}


def test_without_labelers_every_row_is_one(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, "item_a,item_b,winner\nx,y,x\nx,y,x\n"), False, Wanted(labeler="none"))
    assert (table.label_count, len(table.labelers)) == (2, 2)


def test_a_public_list_of_items(tmp_path: Path) -> None:
    path = tmp_path / "items.csv"
    path.write_text('item,note\nz,1\n"two\nlines",2\n', encoding="utf-8")
    assert read_items(path) == ("z", "two\nlines")
    path.write_text("item\nz\ny\nz\n", encoding="utf-8")
    with pytest.raises(SourceError, match="line 4, field item: expected different names, got 'z' again"):
        read_items(path)
    path.write_text("name\nz\n", encoding="utf-8")
    with pytest.raises(SourceError, match="expected one column 'item'"):
        read_items(path)
