"""How to cite: the file that says it, and the package that it is about."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_citation_names_this_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    said = (ROOT / "CITATION.cff").read_text("utf-8")
    assert re.search(r"(?m)^version: (.*)$", said)[1] == project["version"]  # type: ignore[index]
    assert re.search(r"(?m)^license: (.*)$", said)[1] == project["license"]  # type: ignore[index]
    assert said.count("\n  - type: article\n") == 2


def test_every_package_says_that_it_is_typed() -> None:
    assert all((ROOT / name / "py.typed").is_file() for name in ("client", "deploy", "protocol", "server", "studies"))
