"""Items described by numbers: files, and what is refused with item and column."""

from pathlib import Path

import numpy as np
import pytest

from client.sources.columns import Wanted
from client.sources.item_features import read_item_features
from client.sources.loading import read_table
from client.sources.reading import SourceError

CSV = "id,size,weight,kind\nx,1,0.5,big\ny,2,-1e3,small\nz,0,,big\n"


def write(folder: Path, text: str, name: str = "features.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def archive(folder: Path, **arrays: np.ndarray) -> Path:
    np.savez(folder / "features.npz", **arrays)  # type: ignore[arg-type]
    return folder / "features.npz"


def test_columns_are_chosen_and_items_found_by_name(tmp_path: Path) -> None:
    features = read_item_features(write(tmp_path, CSV.replace(",,", ",7,")), ("weight", "size"))
    assert features.columns == ("weight", "size")
    assert features.of(("y", "x")).tolist() == [[-1000.0, 2.0], [0.5, 1.0]]
    with pytest.raises(SourceError, match="expected features of every item, got none of 'w'"):
        features.of(("x", "w"))


def test_an_archive_holds_items_and_features(tmp_path: Path) -> None:
    path = archive(tmp_path, items=np.array(["x", "y"]), features=np.array([[1, 2], [3, 4]], dtype=np.int32))
    assert read_item_features(path).values.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert read_item_features(path, ("1",)).values.tolist() == [[2.0], [4.0]]
    with pytest.raises(SourceError, match=r"expected columns out of 0\.\.1, got '2'"):
        read_item_features(path, ("2",))


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        (
            CSV,
            ("size", "weight"),
            "item 'z', column weight: expected a finite number, got an empty cell: .*--features-co",
        ),
        (CSV, ("size", "height"), "header: expected one column 'height', got the columns id, size"),
        ("id,a\nx,nan\n", None, "item 'x', column a: expected a finite number, got 'nan'"),
        ('id,a\nx,"1,200"\n', None, "expected a finite number without separators of thousands, got '1,200'"),
        ("id,a\nx,1_000\n", None, "expected a finite number without separators of thousands, got '1_000'"),
        ("id,a\nx,$9\n", None, "expected a finite number without a currency, a percent sign or brackets"),
        ("id,a\nx,1e999\n", None, "item 'x', column a: expected a finite number"),
        ("id,a\nx,1\nx,2\n", None, "expected every item once, got 'x' again"),
        ("id,a\n,1\n", None, "line 2, field id: expected a name"),
        ("id,item,a\nx,y,1\n", None, "header: expected one column of ids"),
        ("a,b\n1,2\n", None, "header: expected one column of ids"),
        ("id,a\n", None, "expected at least one item and one column"),
        ("id\nx\n", None, "expected at least one item and one column"),
    ],
)
def test_what_describes_no_items(tmp_path: Path, text: str, columns: tuple[str, ...] | None, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        read_item_features(write(tmp_path, text), columns)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"items": np.array(["x"])}, "expected arrays 'items' and 'features', got items"),
        (
            {"items": np.array(["x"], dtype=object), "features": np.ones((1, 1))},
            "expected an .npz file of plain arrays",
        ),
        ({"items": np.array([1.5]), "features": np.ones((1, 1))}, "expected names"),
        ({"items": np.array(["x", "y"]), "features": np.ones((1, 1))}, "as many names as rows"),
        ({"items": np.array(["x"]), "features": np.array([[np.inf]])}, "item 'x', column 0: expected a finite number"),
        ({"items": np.array(["x"]), "features": np.array([["1"]])}, "expected names"),
    ],
)
def test_archives_that_describe_no_items(tmp_path: Path, arrays: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(SourceError, match=message):
        read_item_features(archive(tmp_path, **arrays))


def test_a_table_asks_about_differences(tmp_path: Path) -> None:
    features = read_item_features(write(tmp_path, CSV), ("size",))
    votes = write(tmp_path, "labeler,loser,winner\nann,y,x\nann,z,y\n", "votes.csv")
    table = read_table(votes, False, features=features)
    problem = table.problem
    assert (problem.features, problem.dimension, problem.sum_zero) == ("values", 1, False)
    assert problem.design is not None
    assert problem.design.tolist() == [[1.0], [-2.0]]
    flat = read_item_features(write(tmp_path, "id,a\nx,3e300\ny,3\nz,1\n"), None)
    with pytest.raises(SourceError, match="rescale the features"):
        read_table(votes, False, features=flat)


def test_real_features_of_real_contests(shared_data: Path) -> None:
    path = shared_data / "pairwise" / "flatlizards_features.csv"
    with pytest.raises(
        SourceError, match=r"item 'lizard[0-9]*', column .*: expected a finite number, got an empty cell"
    ):
        read_item_features(path)
    features = read_item_features(path, ("SVL", "head.length"))
    table = read_table(path.with_name("flatlizards_contests.csv"), False, Wanted("none"), features=features)
    assert (len(table.pairs), table.problem.dimension) == (100, 2)
