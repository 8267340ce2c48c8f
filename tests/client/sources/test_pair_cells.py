"""Both items of a pair in one cell: whatever stands between them, found once, shown, or given."""

from pathlib import Path

import pytest

from client.sources.columns import Wanted
from client.sources.loading import read_table
from client.sources.pair_cells import SEPARATORS
from client.sources.reading import SourceError
from client.sources.table import Table

ONE = Wanted("none", winner="winner", both="pair")


def table(folder: Path, cells: list[str], wanted: Wanted = ONE) -> Table:
    path = folder / "votes.csv"
    rows = "".join(f'"{cell}",first\n' for cell in cells)
    path.write_text(f"pair,winner\n{rows}", encoding="utf-8")
    return read_table(path, False, wanted)


@pytest.mark.parametrize("between", SEPARATORS)
def test_what_parts_every_cell_is_found_and_shown(tmp_path: Path, between: str) -> None:
    found = table(tmp_path, [f"x{between}y", f" y{between}z "])
    assert found.items == ("x", "y", "z")
    assert f"between them: {between!r} (guessed)" in found.columns.describe(ONE)  # type: ignore[call-arg]
    assert table(tmp_path, [f"x{between.upper()}y", f"y{between}z"]).identities == found.identities


def test_names_may_hold_what_parts_other_files(tmp_path: Path) -> None:
    assert table(tmp_path, ["gpt-4/0613, llama|7b", "a, c"]).items == ("a", "c", "gpt-4/0613", "llama|7b")
    assert table(tmp_path, ["f(x), g(x)"]).items == ("f(x)", "g(x)")


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (
            ["x,y", "x"],
            r"line 3, field pair: expected two items with one ',' between them, got 'x'\. .*--pair-separator",
        ),
        (["x,y", "y,z", "x,y,z"], "line 4, field pair: expected two items with one ',' between them, got 'x,y,z'"),
        (["x vs y", "y vs "], "line 3, field pair: expected two items with one ' vs ' between"),
        (["x"], "line 2, field pair: expected two items with one ',' or ';' or"),
        (["x,"], "line 2, field pair: expected two items with one"),
        (["(x, y)"], "line 2, field pair: expected two items with one"),
        (["['x', 'y']"], "line 2, field pair: expected two items with one"),
        (
            ["a, b vs c", "b vs a, c"],
            "field pair: expected one way to part its cells, got ',' and ' vs ': .*--pair-sep",
        ),
    ],
)
def test_cells_that_do_not_part_name_their_line(tmp_path: Path, cells: list[str], message: str) -> None:
    with pytest.raises(SourceError, match=message):
        table(tmp_path, cells)


def test_a_separator_that_is_given(tmp_path: Path) -> None:
    cells = ["a, b vs c", "b vs a, c"]
    given = Wanted("none", winner="winner", both="pair", between=" vs ")
    found = table(tmp_path, cells, given)
    assert found.items == ("a, b", "a, c", "b", "c")
    assert "between them: ' vs '" in (said := found.columns.describe(given)) and "vs ' (guessed)" not in said  # type: ignore[call-arg]
    with pytest.raises(SourceError, match="line 2, field pair: expected two items with one ';' between"):
        table(tmp_path, cells, Wanted("none", winner="winner", both="pair", between=";"))


def test_an_empty_cell_is_a_missing_item(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="line 3, field pair: expected a name, got an empty field"):
        table(tmp_path, ["x;y", ""])
    dropped = Wanted("none", winner="winner", both="pair", unnamed="drop-public")
    assert table(tmp_path, ["x;y", ""], dropped).unnamed == 1
    with pytest.raises(SourceError, match="expected at least one comparison"):
        table(tmp_path, [""], dropped)
