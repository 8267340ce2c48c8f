"""Python in the guides runs as it stands there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = [
    pytest.param(block, id=f"{page.stem}-{place}")
    for page in sorted((ROOT / "docs").glob("ECOSYSTEM.md"))
    for place, block in enumerate(re.findall(r"(?s)```python\n(.*?)```", page.read_text("utf-8")))
]


@pytest.mark.parametrize("block", EXAMPLES)
def test_an_example_runs(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "example", "exec"), {"__name__": "example"})
