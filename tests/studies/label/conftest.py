"""Pairs and policies to label, and sessions over them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from studies.cli import parsed
from studies.label import opened
from studies.label.session import Session

PAIRS = """\
labeler,item_a,item_b,question
p1,tea,coffee,
p2,tea,coffee,
p1,water,tea,
p1,coffee,tea,
p1,juice,juice,
p1,tea,coffee,in the evening
"""
POLICY = '[policy]\ntrust = ["local"]\nlabel_cap = 2\nmax_epsilon = 1\n'
Open = Callable[..., Session]


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Open]:
    """Opens a session as the command does: `session("--as", "p1", pairs=TEXT, policy=TEXT)`."""
    made: list[Session] = []

    def open_(*words: str, pairs: str = PAIRS, policy: str = POLICY, name: str = "pairs.csv") -> Session:
        (tmp_path / name).write_text(pairs, "utf-8")
        (tmp_path / "policy.toml").write_text(policy, "utf-8")
        files = ("--pairs", str(tmp_path / name), "--policy", str(tmp_path / "policy.toml"))
        told = words if "--config" in words else (*files, *words)
        made.append(opened(parsed(["label", *told])))
        return made[-1]

    yield open_
    for one in made:
        one.joined.end()
