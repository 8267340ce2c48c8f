"""docs/DATA.md: its tables are what the command says today, and it names every kind of finding."""

from pathlib import Path

import pytest

from studies.data.findings import KINDS
from studies.data.table import FOLDERS, section

PAGE = Path(__file__).resolve().parents[2] / "docs" / "DATA.md"
SLOW = {"heavy_tailed"}  # half a minute: wide files and long ones


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in FOLDERS]
)
def test_the_table_is_what_the_command_says(shared_data: Path, name: str) -> None:
    pytest.importorskip("zstandard")
    assert "\n".join(section(shared_data, name)) + "\n" in PAGE.read_text(encoding="utf-8")


def test_every_file_of_comparisons_is_in_the_table(shared_data: Path) -> None:
    for folder, cases in FOLDERS.items():
        files = {path.name for path in (shared_data / folder).iterdir() if path.suffix != ".md"}
        assert files <= {name for name, _ in cases}, folder


def test_every_kind_of_finding_is_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [code for code in KINDS if f"`{code}`" not in page] == []
