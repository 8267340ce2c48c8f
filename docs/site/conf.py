"""How the documentation becomes a site: the pages of docs/, tutorials that run, and a reference of docstrings."""

import atexit
import os
import re
import shutil
import sys
import tempfile
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

project = "halftruth"
author = copyright = "The halftruth authors"
version = release = metadata.version("halftruth")
language = "en-GB"

extensions = ["myst_nb", "sphinx.ext.autodoc"]
root_doc = "docs/site/index"
include_patterns = [
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "docs/*.md",
    "docs/examples/**/*.md",
    "docs/site/**",
]
html_theme = "furo"
html_title = f"halftruth {version}"
html_copy_source = False

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
# A command of a tutorial that fails ends the build, and tables are as wide as in a terminal.
profile = tempfile.mkdtemp(prefix="halftruth-docs-")
atexit.register(shutil.rmtree, profile, ignore_errors=True)
startup = Path(profile, "profile_default/startup")
startup.mkdir(parents=True)
shutil.copy(ROOT / "docs/site/tutorial_commands.py", startup)
os.environ |= {"IPYTHONDIR": profile, "COLUMNS": "150"}
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300  # of one cell; the machine may be busy
nb_execution_in_temp = True
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "show-inheritance": False}

PARAGRAPHS = re.compile(r"^(Guarantee|Source|Raises|Shapes|Attributes)\b")


def _plain(_app: object, _what: str, _name: str, _thing: object, _options: object, lines: list[str]) -> None:
    """Docstrings are plain text with code between backticks: say so in reStructuredText."""
    done: list[str] = []
    for line in lines:
        if PARAGRAPHS.match(line) and done and done[-1]:
            done.append("")
        done.append(line if line.lstrip().startswith((">>>", "...")) else _marked(line))
    lines[:] = done


def _marked(line: str) -> str:
    parts = line.split("`")
    if len(parts) % 2 == 0:  # a lone backtick is a character
        return re.sub(r"([\\*|_`])", r"\\\1", line)
    return "".join(
        f"``{part}``" if place % 2 else re.sub(r"([\\*|_])", r"\\\1", part) for place, part in enumerate(parts)
    )


def setup(app: object) -> None:
    """Sphinx's hook."""
    app.connect("autodoc-process-docstring", _plain)  # type: ignore[attr-defined]
