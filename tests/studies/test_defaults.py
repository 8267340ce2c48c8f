"""The defaults are at least as good as the paper's methods, and docs/DEFAULTS.md says what was measured."""

import re
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from studies.defaults import BETTER, EVEN, PAIRS, WORSE, compare, main, markdown
from studies.load import load
from studies.report.arms import looks
from studies.run import run

ROOT = Path(__file__).parents[2]
TOML = ROOT / "studies" / "toml" / "defaults.toml"
SMALL = ["grid.n=[1000]", "grid.epsilon=[0.5, 1.0]", "study.repetitions=25"]
CELL = re.compile(r"(\d+\.\d\d) \[([+-]\d\.\d{3}), ([+-]\d\.\d{3})\]( n\.s\.| worse)?")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of a small part of the study."""
    out = tmp_path_factory.mktemp("defaults") / "out"
    run(load(TOML, SMALL), out, jobs=1)
    return out


def test_no_default_is_worse_in_a_small_part(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Fixed seed. The true differences are 4 standard errors and more; below -2 by chance: 1e-8 (six looks)."""
    sys_argv, sys.argv = sys.argv, ["defaults", str(folder)]
    try:
        assert main() == 0
    finally:
        sys.argv = sys_argv
    printed = capsys.readouterr().out
    assert "gaussian: 6 comparisons: the default is" in printed and "0 worse." in printed
    assert len(CELL.findall(printed)) == 6


def test_a_default_that_is_worse_is_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = run(load(TOML, SMALL), folder, resume=True, jobs=1)
    assert {one.verdict for one in compare(table)} <= {BETTER, EVEN}
    # With the names of the arms exchanged every paper's method is the default.
    (_, sgd, best), _, _ = PAIRS
    names = {best: sgd, sgd: best}
    arms = pa.array([names.get(arm, arm) for arm in table["arm"].to_pylist()])
    turned = table.set_column(table.schema.get_field_index("arm"), table.schema.field("arm"), arms)
    monkeypatch.setattr("studies.defaults.PAIRS", PAIRS[:1])
    assert {one.verdict for one in compare(turned)} == {WORSE}


def test_pairs_are_arms_of_the_study() -> None:
    names = looks(load(TOML).study.arms)
    assert {arm for _, paper, default in PAIRS for arm in (paper, default)} <= set(names)


def test_the_page_has_every_cell_and_counts_them_rightly() -> None:
    page = (ROOT / "docs" / "DEFAULTS.md").read_text("utf-8")
    grid = load(TOML).study.grid
    for features in ("gaussian", "sphere"):
        rows = re.findall(rf"(?m)^\| {features} \| (\d+) \| ([\d.]+) \| (.*) \|$", page)
        assert [(int(n), float(e)) for n, e, _ in rows] == [(n, float(e)) for n in grid.n for e in grid.epsilon]
        cells = [found.groups() for _, _, text in rows for found in CELL.finditer(text)]
        notes = [note for _, _, _, note in cells]
        counts = [notes.count(note) for note in (None, " n.s.", " worse")]
        said = f"{features}: {len(cells)} comparisons: the default is {counts[0]} better, {counts[1]} n.s., 0 worse."
        assert said in page and counts[2] == 0
        for _, low, high, note in cells:
            assert float(low) >= 0 if note is None else float(low) <= 0 <= float(high)


@pytest.mark.slow
@pytest.mark.parametrize("features", ["gaussian", "sphere"])
def test_no_default_is_worse_anywhere(features: str, tmp_path: Path) -> None:
    """100 repetitions with the seed of the page: its table again, up to last digits."""
    table = run(load(TOML, [f"problem.features={features}"]), tmp_path / "out")
    compared = compare(table)
    assert WORSE not in {one.verdict for one in compared}
    page = (ROOT / "docs" / "DEFAULTS.md").read_text("utf-8")
    for line in markdown(features, compared):
        if line.startswith(f"| {features}"):
            assert line in page
