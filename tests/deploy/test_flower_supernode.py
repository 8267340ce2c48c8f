"""Flower's private parts: the installed one fits, another is told, and then a node keeps its word."""

import io
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from deploy import skew, supernode
from deploy.flower_private import supernode as flower_supernode
from deploy.skew import own_version
from protocol.version import DISTRIBUTION

ROOT = Path(__file__).parents[2]
PIN = "ab" * 32


def test_the_installed_flower_is_the_one_that_a_node_was_made_for() -> None:
    assert flower_supernode.unfit() is None


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("VERSION", "1.41.", "expected flwr 1.41.x, got 1.42"),
        ("PARTS", {"flwr.nowhere": ("a",)}, "expected flwr.nowhere in flwr, found none"),
        ("PARTS", {"flwr.common.serde": ("nothing",)}, "expected nothing in flwr.common.serde, found none"),
        ("SOURCE", {"time.sleep(3)": 2}, "expected 'time.sleep(3)' 2 times in"),
    ],
)
def test_another_flower_is_told(monkeypatch: pytest.MonkeyPatch, name: str, value: object, said: str) -> None:
    monkeypatch.setattr(flower_supernode, name, value)
    assert said in str(flower_supernode.unfit())


def test_with_another_flower_a_node_becomes_the_stock_one_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    became: list[list[str]] = []

    def become(program: str, words: list[str]) -> None:
        became.append(words)
        raise SystemExit(0)

    monkeypatch.setattr(flower_supernode, "VERSION", "1.41.")
    monkeypatch.setattr(os, "execv", become)
    with pytest.raises(SystemExit):
        supernode.main(["--or", "/bin/flower-supernode", "--", "--insecure"])
    assert became == [["/bin/flower-supernode", "--insecure"]]
    assert "warning: Flower's own executor answers, with the server's code: expected flwr 1.41.x" in (
        capsys.readouterr().err
    )


def test_with_another_flower_a_node_that_insists_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flower_supernode, "VERSION", "1.41.")
    with pytest.raises(SystemExit, match="and the node file allows no other"):
        supernode.main(["--pin", PIN, "--", "--insecure"])


def test_a_node_is_imported_without_what_it_does_not_need() -> None:
    """Its SuperNode never holds a label: no client, no protocol, no server in it."""
    code = "import sys, deploy.supernode; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not {"client", "protocol", "server", "studies"} & set(done.stdout.split())


def test_there_is_one_name_of_this_distribution() -> None:
    assert skew.DISTRIBUTION == DISTRIBUTION


def bundle(version: str) -> bytes:
    """The least that says a version."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("pyproject.toml", f'[project]\nversion = "{version}"\n')
    return packed.getvalue()


OURS = bundle(own_version())


@pytest.mark.parametrize(
    ("pins", "content", "good"),
    [
        ((), OURS, True),
        ((PIN,), OURS, True),
        (("cd" * 32,), OURS, False),
        ((), bundle("99.0.0"), False),
        ((PIN,), bundle("99.0.0"), False),
        ((), b"no archive", False),
        ((), bundle('1"'), False),
    ],
)
def test_pins_and_versions_decide(
    monkeypatch: pytest.MonkeyPatch, pins: tuple[str, ...], content: bytes, good: bool
) -> None:
    asked: list[Callable[[str, bytes], bool]] = []
    monkeypatch.setattr(supernode.Executor, "keep", lambda executor: None)
    monkeypatch.setattr(os, "_exit", lambda code: sys.exit(code))
    monkeypatch.setattr(flower_supernode, "run_supernode", lambda words, hooks: asked.append(hooks.accepts))
    with pytest.raises(SystemExit):
        supernode.main([word for pin in pins for word in ("--pin", pin)] + ["--"])
    assert asked[0](PIN, content) is good
