"""Commands in the guides are commands: their words and flags exist. Small ones are run by other tests."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from studies.cli import parsed

ROOT = Path(__file__).parents[1]
NOT_A_WORD = re.compile(r" 2?> ?\S+| \[.*\]| &(?= |$)|\s{3,}.*$")  # where output goes, what may be left out, a caption
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
HALFTRUTH = re.compile(r"^[!$ ]*(?:\.venv/bin/)?halftruth (.*)$")


def _commands(text: str) -> Iterator[str]:
    for block in re.findall(r"(?s)```[^\n]*\n(.*?)```", text):
        for line in block.replace("\\\n", " ").splitlines():
            for part in re.split(r" && | \|\|? ", line):
                if found := HALFTRUTH.match(part):
                    yield found[1]


COMMANDS = [
    pytest.param(command, id=f"{page.stem}: {command}"[:100])
    for page in PAGES
    for command in dict.fromkeys(_commands(page.read_text("utf-8")))
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_a_guide_is_one(command: str) -> None:
    words = shlex.split(NOT_A_WORD.sub("", command), comments=True)
    try:
        parsed(words)
    except SystemExit as ended:
        if ended.code:  # --help and --version end with 0
            pytest.fail(f"halftruth {command}")


def test_there_are_many() -> None:
    assert len(COMMANDS) > 100
