"""The bundle that Flower ships: the packages that cross the border and nothing else, the same bytes every time."""

import importlib
import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from importlib import metadata
from pathlib import Path

from deploy.skew import own_version
from protocol.runconfig import LET_THROUGH, RunConfig, Scalar
from protocol.version import DISTRIBUTION

PACKAGES = ("client", "protocol", "server")
RECIPE = """\
[project]
name = "{name}"
version = "{version}"
description = "Learning from people who do not trust the server"
license = {{ file = "LICENSE" }}
dependencies = ["flwr>=1.42,<1.43"]

[tool.flwr.app]
publisher = "{name}"
fab-format-version = 1
flwr-version-target = "1.42.0"

[tool.flwr.app.components]
serverapp = "server.app:app"
clientapp = "client.app:app"

[tool.flwr.app.config]
"""


def stage(folder: Path) -> Path:
    """Copy client, protocol and server as they are imported here into a new folder, with a pyproject.toml of its own.

    Neither the checkout's name nor files that lie in it matter; two stagings of one code give one bundle hash.
    """
    folder.mkdir(parents=True)
    for package in PACKAGES:
        source = Path(importlib.import_module(package).__file__ or "").parent
        for path in sorted(source.rglob("*.py")):
            target = folder / package / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    shutil.copyfile(_licence(), folder / "LICENSE")
    recipe = RECIPE.format(name=DISTRIBUTION, version=own_version())
    (folder / "pyproject.toml").write_text(recipe + toml(declared()), encoding="utf-8")
    return folder


def declared() -> dict[str, Scalar]:
    """Every key of a run's configuration with a value of its type: Flower takes no other keys."""
    texts = dict.fromkeys(("study", "design", "task", "finished", LET_THROUGH), "")
    return {field.name: field.default for field in fields(RunConfig) if field.default is not MISSING} | texts


def toml(table: Mapping[str, Scalar]) -> str:
    """A flat table as TOML lines.

    >>> print(toml({"clients": 3, "mode": "strict", "text": 'two "words"'}), end="")
    clients = 3
    mode = "strict"
    text = "two \\"words\\""
    """
    return "".join(f"{key} = {_literal(value)}\n" for key, value in table.items())


def _literal(value: Scalar) -> str:
    """JSON's literals are TOML's, but for DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _licence() -> Path:
    return next(path for path in _licences() if path.is_file())


def _licences() -> Iterator[Path]:
    """Beside the packages in a checkout, among the metadata of an installation."""
    yield Path(importlib.import_module("protocol").__file__ or "").parents[1] / "LICENSE"
    for file in metadata.files(DISTRIBUTION) or ():
        if file.name == "LICENSE":
            yield Path(str(file.locate()))
