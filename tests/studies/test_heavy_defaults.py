"""The defaults for heavy tails are at least as good as what is printed, and docs/HEAVY_DEFAULTS.md says so."""

import re
import sys
from pathlib import Path

import pytest

from studies.defaults import BETTER, WORSE
from studies.heavy_defaults import DIMENSIONS, GRADIENT_MOMENTS, compared, descents, main, markdown, means
from studies.heavy_runs import LAWS, of_tail, results
from studies.load import load

ROOT = Path(__file__).parents[2]
TOML = ROOT / "studies" / "toml"
PAGE = ROOT / "docs" / "HEAVY_DEFAULTS.md"
CELL = re.compile(r"(\d+\.\d\d) \[([+-]\d+\.\d{3}), ([+-]\d+\.\d{3})\]( n\.s\.| worse)?")


def test_no_default_is_worse_in_a_small_part(tmp_path: Path) -> None:
    """Fixed seed. The true differences are 6 standard errors and more; below -2 by chance: 1e-14 (four looks)."""
    small = ["grid.n=[1000]", "grid.epsilon=[1.0]", "study.repetitions=30"]
    views = [results("heavy-defaults", [*of_tail(v), *small], tmp_path / v) for v in ("0.2", "0.9")]
    lines = list(markdown(views))
    assert lines[0].startswith("| v | d | n | epsilon | Algorithm 1 / clipped mean | Algorithm 3")
    assert lines[-1] == "4 comparisons: the default is 4 better, 0 n.s., 0 worse."
    assert [len(CELL.findall(line)) for line in lines] == [0, 0, 2, 2, 0, 0]


def test_descents_in_a_small_part(tmp_path: Path) -> None:
    """Fixed seed; the true differences are 5 standard errors and more (three looks: below -2 by chance 1e-11)."""
    small = ["grid.n=[2000]", "grid.epsilon=[1.0]", "study.repetitions=8"]
    assert {one.verdict for one in compared(results("heavy-descent", small, tmp_path))} == {BETTER}


def test_algorithm_1_is_for_one_number(tmp_path: Path) -> None:
    small = ["grid.n=[100]", "grid.epsilon=[1.0]", "study.repetitions=2", "problem.dimension=2"]
    found = compared(results("heavy-defaults", small, tmp_path))
    assert [one.heading for one in found] == ["Algorithm 3 / clipped mean"]


def test_a_folder_that_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mean-0.2-1").mkdir()
    (tmp_path / "mean-0.2-1" / "study.json").write_text("{}", "utf-8")
    monkeypatch.setattr(sys, "argv", ["heavy_defaults", str(tmp_path)])
    assert main() == 2
    assert "studies.heavy_defaults:" in capsys.readouterr().err


def test_the_page_has_every_cell_and_counts_them_rightly() -> None:
    page = PAGE.read_text("utf-8")
    tables = [part for part in page.split("\n\n") if part.startswith("| v | d | n | epsilon |")]
    grids = [load(TOML / f"{name}.toml").study.grid for name in ("heavy-defaults", "heavy-descent")]
    places = [[(v, d) for d in DIMENSIONS for v in LAWS], [(v, 5) for v in GRADIENT_MOMENTS]]
    assert len(tables) == 2
    for table, grid, own in zip(tables, grids, places, strict=True):
        rows = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
        wanted = [[v, str(d), str(n), f"{float(e):g}"] for v, d in own for n in grid.n for e in grid.epsilon]
        assert [row[:4] for row in rows] == wanted
        cells = [found.groups() for row in rows for cell in row[4:] for found in CELL.finditer(cell)]
        notes = [note for _, _, _, note in cells]
        better, even = notes.count(None), notes.count(" n.s.")
        said = f"{len(cells)} comparisons: the default is {better} better, {even} n.s., 0 worse."
        assert said in page and " worse" not in notes
        for _, low, high, note in cells:
            assert float(low) >= 0 if note is None else float(low) <= 0 <= float(high)


@pytest.mark.slow
def test_no_default_is_worse_anywhere(tmp_path: Path) -> None:
    """100 repetitions with the seeds of the page: its tables again."""
    page = PAGE.read_text("utf-8")
    for views in (means(tmp_path), descents(tmp_path)):
        assert WORSE not in {one.verdict for view in views for one in compared(view)}
        for line in markdown(views):
            assert line in page
