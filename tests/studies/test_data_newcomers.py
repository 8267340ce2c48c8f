"""`halftruth data check` on files of newcomers: sheets, money, headers that are none."""

import zipfile
from pathlib import Path
from typing import Any

import pytest

from studies.cli import parsed
from studies.data.look import look


def checked(path: Path, *flags: str) -> dict[str, Any]:
    return look(parsed(["data", "check", str(path), *flags])).as_json()


def of(folder: Path, text: str, *flags: str) -> dict[str, Any]:
    path = folder / "votes"
    path.write_text(text, encoding="utf-8")
    return checked(path, *flags)


def test_numbers_in_clothes_and_columns_of_text(tmp_path: Path) -> None:
    rows = 'a,"$1,200.50",12%,x\nb,$90,3 %,y\nc,(45),,z\nd,45 €,1,w\ne,4,2,v\n'
    report = of(tmp_path, "id,amount,share,note\n" + rows, "--records")
    dressed = [(one["count"], one["lines"]) for one in report["findings"] if one["code"] == "dressed"]
    assert not report["usable"] and dressed == [(4, [2, 3, 4, 5]), (2, [2, 3])]
    assert [(one["what"], one["names"]) for one in report["columns"]] == [
        ("numbers", ["amount", "share"]),
        ("text, which was not looked at", ["id", "note"]),
    ]


@pytest.mark.parametrize(
    ("text", "flags", "message"),
    [
        ("labeler,item_a,item_b,winner,winner\nr,x,y,x,y\n", (), "expected one column 'winner', got the columns"),
        ("r1,x,y,x\nr1,y,z,z\n", (), "Does the first line name the columns, each once?"),
        ("Survey of 2024,,,\nlabeler,item_a,item_b,winner\n", (), "Does the first line name the columns, each once?"),
        ("who,Product A,Product B,Best\nr,x,y,x\n",
         ("--item-a", "Product_A", "--item-b", "Product B", "--winner", "Best"),
         "expected one column 'Product_A' (did you mean 'Product A'?), got the columns"),
    ],
)  # fmt: skip
def test_what_a_newcomer_s_header_is_told(tmp_path: Path, text: str, flags: tuple[str, ...], message: str) -> None:
    assert message in of(tmp_path, text, "--labeler", "none", *flags)["error"]


def test_a_spreadsheet_is_told_from_text(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "votes.xlsx", "w") as sheet:
        sheet.writestr("xl/workbook.xml", "<x/>")
    assert (
        "got a zip archive, as spreadsheets are: save the sheet as CSV UTF-8"
        in checked(tmp_path / "votes.xlsx")["error"]
    )
    (tmp_path / "latin").write_bytes("labeler,item_a,item_b,winner\nr,Käse,y,x\n".encode("cp1252"))
    assert "iconv -f WINDOWS-1252 -t UTF-8" in checked(tmp_path / "latin")["error"]


@pytest.mark.parametrize(
    ("index", "code", "most"), [(1.5, "no-variance", "--tail below 0.5"), (0.6, "no-mean", "no --tail")]
)
def test_which_moments_a_tail_has(tmp_path: Path, index: float, code: str, most: str) -> None:
    """Quantiles of a law of this index: no more than --tail V with 1 + V below it may be assumed."""
    values = "".join(f"{((place + 0.5) / 2000) ** (-1 / index)!r}\n" for place in range(2000))
    report = of(tmp_path, f"x\n{values}", "--records")
    (said,) = (one["examples"][0] for one in report["findings"] if one["code"] == code)
    assert "x: tail index" in said and most in said
