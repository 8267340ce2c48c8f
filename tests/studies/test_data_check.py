"""`halftruth data check`: every finding on a file that has it, and what it says of files that cannot be used."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.strict import StudyError
from studies.cli import main, parsed
from studies.data.check_show import show
from studies.data.findings import ERROR, KINDS, NOTE, WARNING
from studies.data.look import look
from studies.data.look_names import skeleton
from studies.holder_file import read_file

HEAD = "labeler,item_a,item_b,winner\n"


def checked(path: Path, *flags: str) -> dict[str, Any]:
    return look(parsed(["data", "check", str(path), *flags])).as_json()


def of(folder: Path, text: str, *flags: str) -> dict[str, Any]:
    path = folder / "votes"
    path.write_text(text, encoding="utf-8")
    return checked(path, *flags)


def found(report: dict[str, Any]) -> dict[str, tuple[int, list[int]]]:
    return {finding["code"]: (finding["count"], finding["lines"]) for finding in report["findings"]}


def test_kinds_say_what_they_mean() -> None:
    for code, kind in KINDS.items():
        assert code == code.lower() and " " not in code
        assert kind.severity in (ERROR, WARNING, NOTE) and kind.means
        assert kind.severity == NOTE or kind.todo or code in ("contradictions", "position", "few-comparisons")


def test_a_file_without_fault(tmp_path: Path) -> None:
    report = of(tmp_path, HEAD + "r,x,y,x\nr,y,z,y\ns,x,y,y\ns,y,z,z\n")
    assert report["usable"] and report["error"] is None and report["findings"] == []
    assert report["file"] == {
        "format": "CSV",
        "unit": "line",
        "compression": None,
        "encoding": "UTF-8",
        "delimiter": ",",
        "columns": ["labeler", "item_a", "item_b", "winner"],
        "records": 4,
    }
    assert report["flags"] == "--labeler labeler --item-a item_a --item-b item_b --winner winner --question none"
    assert report["counts"]["rows of a labeler"] == {"least": 2, "median": 2.0, "most": 2}
    assert report["columns"][0] == {"what": "labeler", "names": ["labeler"], "guessed": True}
    given = of(tmp_path, (tmp_path / "votes").read_text(), *report["flags"].split())
    assert {column["guessed"] for column in given["columns"]} == {False}
    assert given["counts"] == report["counts"]


@pytest.mark.parametrize(
    ("rows", "code", "count", "lines"),
    [
        ("r,x,y,up\ns,x,y,down\ns,y,x,up\n", "unknown-outcome", 3, [2, 3]),
        ("r,x,y,tie\ns,x,y,draw\n", "ties", 2, [2, 3]),
        ("r,x,y,x\ns,x,y,\n", "no-winner", 1, [3]),
        ("r,x,y,x\n,x,y,y\n", "no-name", 1, [3]),
        ("r,x,y,x\ns,x,,x\n", "unnamed", 1, [3]),
        ("r,x,y,x\ns,y,y,y\n", "same-item", 1, [3]),
        ("r,x,y,x\nr,x,y,x\nr,x,y,x\n", "repeated", 2, [3, 4]),
        ("r,x,y,x\nr,y,x,x\n", "swapped", 1, [3]),
        ("r,x,y,x\nr,y,x,y\nr,x,y,y\n", "contradictions", 1, [3]),
        ("".join(f"r,x,y{i},x\n" for i in range(4)), "one-answer", 1, [2]),
        ("".join(f"r{i},x{i % 7},y{i % 9},item_a\n" for i in range(60)), "position", 60, []),
        ("".join(f"r{i},x,y,{'xy'[i > 5]}\n" for i in range(12)), "sorted-by-answer", 12, []),
        ("r,x,y,x\ns,z,u,z\n", "unconnected", 2, []),
        ("r,x,y,x\ns,y,z,z\n", "one-way", 3, []),
        ("r,x,y,x\n", "few-comparisons", 1, []),
        ("r,Model 1,y,y\ns,model-1,y,y\n", "near-equal", 1, [3]),
        ("r,cafe\u0301,y,y\ns,caf\u00e9,y,y\n", "several-spellings", 1, [3]),
        ("r,x\u200b,y,y\n", "invisible", 1, [2]),
        (f"{2**53 + 1},x,y,y\n", "beyond-2^53", 1, [2]),
        ("r,NA,y,y\n", "like-nothing", 1, [2]),
        ("r,b,y,y\n", "read-as-items", 1, []),
        (f"r,{'long ' * 40},y,y\n", "long-text", 1, [2]),
    ],
)
def test_findings_about_comparisons(tmp_path: Path, rows: str, code: str, count: int, lines: list[int]) -> None:
    report = of(tmp_path, HEAD + rows)
    assert found(report)[code] == (count, lines)
    assert report["usable"] == (KINDS[code].severity != ERROR)


def test_all_unknown_outcomes_are_named_with_their_first_line(tmp_path: Path) -> None:
    report = of(tmp_path, HEAD + "r,x,y,1\nr,x,z,0\ns,x,y,1\ns,x,z,x\n")
    (finding,) = [finding for finding in report["findings"] if finding["code"] == "unknown-outcome"]
    assert (finding["lines"], finding["examples"]) == ([2, 3], ["'1' (2 times)", "'0' (1 times)"])
    assert not report["usable"]
    assert of(tmp_path, (tmp_path / "votes").read_text().replace("s,x,z,x", "s,x,z,0"), "--winner-coding", "1/0")[
        "usable"
    ]


def test_everything_is_reported_before_what_keeps_a_file_from_being_used(tmp_path: Path) -> None:
    report = of(tmp_path, "item_a,item_b,winner\nx,y,tie\ny,y,x\nx,,x\nx,z,up\n")
    assert set(found(report)) >= {"no-labelers", "same-item", "unnamed", "unknown-outcome", "ties"}
    assert (report["usable"], report["kind"], report["counts"]["rows"]) == (False, "comparisons", 2)
    report = of(tmp_path, HEAD + "r,x,y,x\nr,x,y\n")
    assert "line 3: expected 4 fields, got 3" in report["error"]
    report = of(tmp_path, "a,b\nx,y\n")
    assert "two columns of items" in report["error"] and "--ranking long" in report["error"]


def test_wins_pairs_in_cells_and_rows_left_out(tmp_path: Path) -> None:
    report = of(tmp_path, "home,away,home_wins,away_wins\na,b,2,1\nb,c,1,1\n", "--labeler", "none")
    assert (report["usable"], report["counts"]["rows"], report["counts"]["labels"]) == (True, 5, 5)
    assert "--wins home_wins,away_wins" in report["flags"]
    assert not of(tmp_path, "home,away,home_wins,away_wins\na,b,2,x\n", "--labeler", "none")["usable"]
    report = of(tmp_path, 'pair,best\n"x,y",x\n"x,y",y\n', "--labeler", "none", "--pair", "pair", "--winner", "best")
    assert report["usable"] and "--pair pair --winner best" in report["flags"]
    report = of(tmp_path, HEAD + "r,x,,x\nr,x,y,y\n", "--unnamed", "drop-public")
    assert report["usable"] and found(report)["unnamed-left-out"] == (1, [2])


def test_rankings(tmp_path: Path, shared_data: Path) -> None:
    report = of(tmp_path, "judge,A,B,C\nj,1,2,3\nk,1,1,2\nk,1,2,2\n", "--ranking", "wide")
    assert (report["kind"], report["counts"]["rankings"], report["counts"]["items"]) == ("rankings", 3, 3)
    assert found(report) == {"tied-ranks": (2, [3, 4]), "repeated": (1, [])}
    nascar = checked(shared_data / "rankings" / "nascar_2002_long.csv", "--labeler", "none", "--unranked", "absent")
    assert nascar["counts"]["items of a ranking"] == {"least": 43, "median": 43.0, "most": 43}


def test_numbers(tmp_path: Path, shared_data: Path) -> None:
    report = of(tmp_path, 'x,y,name\n1,2,a\n,NaN,b\n"1,000",inf,c\n1e200,3,d\nx,4,e\n5,5,f\n6,6,g\n7,7,h\n')
    assert found(report) == {
        "empty-cells": (1, [3]),
        "thousands": (1, [4]),
        "too-large": (1, [5]),
        "no-number": (1, [6]),
        "not-finite": (2, [3, 4]),
        "no-comparisons": (1, []),
    }
    assert [(column["column"], column["unusable"]) for column in report["numbers"]] == [("x", 3), ("y", 2)]
    assert of(tmp_path, (tmp_path / "votes").read_text(), "--columns", "name")["usable"] is False
    assert "expected one column 'w'" in of(tmp_path, "x\n1\n", "--columns", "w")["error"]
    heavy = shared_data / "heavy_tailed"
    assert "three-digits" not in found(checked(heavy / "cities.csv", "--records"))
    assert "no-mean" in found(checked(heavy / "quakes.csv", "--records"))
    assert "no-variance" in found(checked(heavy / "cities.csv", "--records"))
    assert checked(heavy / "fires.parquet", "--records")["file"]["records"] == 203785


@pytest.mark.parametrize(
    ("cells", "codes"),
    [
        (("1.234", "2.000", "17"), {"three-digits": (2, [2, 3])}),
        (("1.234", "0.500", "17"), {}),
        (("1.234", "2.5"), {}),
        (("1.234", "1500"), {}),
        (("12", "17"), {}),
        (("1.234.567", "1.234,50", "12,34,567"), {"thousands": (3, [2, 3, 4])}),
        (("$5", "12 %", "(3.50)", "-€7"), {"dressed": (4, [2, 3, 4, 5])}),
    ],
)
def test_numbers_as_people_write_them(tmp_path: Path, cells: tuple[str, ...], codes: dict[str, Any]) -> None:
    """A point that may part thousands is read as a point, which is said while no number of the column denies it."""
    text = "\n".join(("x,id", *(f'"{cell}",r{row}' for row, cell in enumerate(cells)))) + "\n"
    assert found(of(tmp_path, text)) == {**codes, "no-comparisons": (1, [])}


def test_records_whose_keys_differ(tmp_path: Path) -> None:
    rows = [{"rater": "r", "winner": "x", "loser": "y"}, {"rater": "r", "winner": "x", "loser": "z", "note": 1}]
    report = of(tmp_path, "\n".join(map(json.dumps, rows)))
    assert found(report)["other-keys"] == (1, [2])
    assert report["usable"]


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_the_command_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: tuple[str, ...]) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(HEAD + "r,x\x1b[31m,y,y\nr,x,y,up\n", encoding="utf-8")
    assert main(["data", "check", str(path), *flags]) == 1
    said = capsys.readouterr().out
    assert "\x1b" not in said and "unknown-outcome" in said
    if flags:
        assert json.loads(said)["usable"] is False
    else:
        assert said.rstrip().endswith("cannot be used as it is: see the lines with !!.")
    assert list(tmp_path.iterdir()) == [path]
    path.write_text(HEAD + "r,x,y,y\ns,x,y,x\n", encoding="utf-8")
    assert main(["data", "check", str(path), *flags]) == 0
    assert main(["data", "check", str(tmp_path / "none.csv"), *flags]) == 2
    assert main(["data", "check", str(path), "--features", str(tmp_path), *flags]) == 2


def sides(text: str) -> Iterator[str]:
    yield from (text, text.upper(), text.replace(" ", "-"), f" {text}")


@given(st.text(alphabet="abc 12", min_size=1))
@settings(max_examples=50)
def test_names_that_look_alike_share_a_skeleton(text: str) -> None:
    assert len({skeleton(way) for way in sides(text)}) == 1


CELLS = st.sampled_from(
    [
        "",
        " ",
        "x",
        "y",
        "X",
        "x ",
        "1",
        "0",
        "-1",
        "1.0",
        "tie",
        "left",
        "item_a",
        "NA",
        "nan",
        "x,y",
        "a\nb",
        '"',
        "\u0301",
    ]
)
HEADERS = st.sampled_from(
    [
        ("labeler", "item_a", "item_b", "winner"),
        ("winner", "loser", "judge", "prompt"),
        ("home", "away", "home_wins", "away_wins"),
        ("judge", "pair", "winner", "turn"),
        ("race", "rank", "driver", "judge"),
        ("a", "b", "c", "d"),
    ]
)
FLAGS = st.sampled_from(
    [
        (),
        ("--labeler", "none"),
        ("--unnamed", "drop-public"),
        ("--labeler", "none", "--unnamed", "drop-public"),
        ("--winner-coding", "1/0/-1"),
        ("--pair", "pair", "--winner", "winner"),
        ("--question", "none"),
    ]
)


@given(HEADERS, st.lists(st.tuples(CELLS, CELLS, CELLS, CELLS), max_size=8), FLAGS, st.booleans())
@settings(max_examples=200)
def test_a_file_can_be_used_exactly_where_it_is_read(
    tmp_path_factory: pytest.TempPathFactory,
    header: tuple[str, ...],
    rows: list[tuple[str, ...]],
    flags: tuple[str, ...],
    nested: bool,
) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    with path.open("w", newline="", encoding="utf-8") as file:
        if nested:
            file.writelines(json.dumps(dict(zip(header, row, strict=True))) + "\n" for row in rows)
        else:
            csv.writer(file).writerows([header, *rows])
    args = parsed(["data", "check", str(path), *flags])
    args.public_data = False
    try:
        read_file(args)
        used = True
    except StudyError:
        used = False
    try:
        report = look(args)
    except StudyError:  # flags that do not fit together
        assert not used
        return
    json.dumps(report.as_json())
    show(report)
    assert report.usable == used or report.kind == "records", report.as_json()
