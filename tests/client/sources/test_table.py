"""A holder's file: what is read, what is one label, and what is an error that names its place."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.sources import ProblemUnknown
from client.sources.table import SourceError, Table, label_identity, read_table
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
    assert table.pairs.tolist() == [[1, 2], [2, 0], [0, 1]]
    assert table.pairs.dtype == np.int32
    assert table.values.reveal().tolist() == [0, 1, 1]
    assert table.labelers == ("r1", "r2")
    assert table.owners.tolist() == [0, 1, 0]


def test_every_way_to_name_a_winner(tmp_path: Path) -> None:
    rows = ["r,left,right,item_a", "r,left,up,left", "r,up,right,a", "r,down,up,item_b", "r,up,top,top", "r,top,left,b"]
    table = read(tmp_path, "\n".join(["labeler_id,item_a,item_b,winner", *rows]))
    assert table.values.reveal().tolist() == [0, 0, 0, 1, 1, 1]


def test_a_winner_that_could_mean_both_is_an_error(tmp_path: Path) -> None:
    table = read(tmp_path, "labeler,item_a,item_b,winner\nr,a,b,a\nr,a,c,item_a\n")
    assert table.values.reveal().tolist() == [0, 0]
    with pytest.raises(SourceError, match=r"line 2, field winner: 'a' names one item and the place of the other"):
        read(tmp_path, "labeler,item_a,item_b,winner\nr,b,a,a\n")


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
    assert facts.reversed.tolist() == [0, 1, 1, 1, 1, 0]


def test_the_lowest_row_stands_for_a_label_below_any_n(votes: Table, desk: Any) -> None:
    for n in range(1, 7):
        task = replace(desk.task(votes), n=n)
        expected = [row for row in range(n) if row != 3]
        assert votes.rows(task).numbers().tolist() == expected


@settings(max_examples=100, deadline=None)
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


def test_names_beyond_the_precision_of_floats_stay_apart(shared_data: Path) -> None:
    assert len(read_table(shared_data / "quirks" / "q12_huge_numbers.csv", False).labelers) == 3
    assert len(read_table(shared_data / "quirks" / "q08_bom.csv", False).pairs) == 2
    assert len(read_table(shared_data / "quirks" / "q10_non_numeric_ids.csv", False).items) == 7


@pytest.mark.parametrize("name", ["first_names.csv", "german_parties_2009.csv"])
def test_real_files_hold_fifteen_labels_a_labeler(shared_data: Path, name: str) -> None:
    table = read_table(shared_data / "pairwise" / name, False)
    assert (len(table.pairs), table.label_count, len(table.labelers), len(table.items)) == (2880, 2880, 192, 6)
    assert set(Counter(table.owners.tolist()).values()) == {15}


HEAD = "labeler,item_a,item_b,winner\nr1,x,y,item_a\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "line 1: expected one column out of"),
        ("labeler,item_a,item_b,winner\n", "expected at least one comparison"),
        ("item_a,item_b,winner\nx,y,item_a\n", "line 1: expected one column out of"),
        ("labeler,labeler_id,item_a,item_b,winner\n", "line 1: expected one column out of"),
        ("labeler,item_a,item_a,item_b,winner\n", "line 1: expected one column 'item_a'"),
        ("labeler,item_a,winner\n", "line 1: expected one column 'item_b'"),
        (HEAD + "r2,z,z,item_a\n", "line 3: expected two different items, got 'z' against itself"),
        (HEAD + "r2,cafe\u0301,caf\u00e9,item_a\n", "line 3: expected two different items"),
        (HEAD + "r2,y,z,tie\n", "line 3, field winner: expected a winner, got 'tie': ties and missing winners are not"),
        (HEAD + "r2,y,z,\n", "line 3, field winner: expected a winner, got ''"),
        (HEAD + "r2,y,z,left\n", "line 3, field winner: expected 'item_a', 'item_b', 'y' or 'z', got 'left'"),
        (HEAD + "r2,y,z,1\n", "line 3, field winner: expected 'item_a'"),
        (HEAD + "\n\n,y,z,item_a\n", "line 5, field labeler: expected a name, got an empty field"),
        (HEAD + "r2,, z,item_a\n", "line 3, field item_a: expected a name"),
        (HEAD + "r2,y,z\n", "line 3: expected 4 fields, got 3"),
        (HEAD + "r2,y,z,item_a,more\n", "line 3: expected 4 fields, got 5"),
        (HEAD + 'r2,"y,z,item_a\n', "line 3: expected comma-separated values"),
        (HEAD.encode() + b"r2,\xff\xfe,z,item_a\n", "expected UTF-8"),
        ('labeler,item_a,item_b,winner\nr1,"x\nx",y,item_a\nr2,z,z,item_a\n', "line 4: expected two different items"),
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
