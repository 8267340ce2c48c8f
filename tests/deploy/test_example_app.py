"""An ordinary Flower app in docs/examples, and the same with two lines: both learn, and only one tells nobody.

A Grid in memory carries Flower's own messages; tests/flower_processes/test_flower_example_app.py has real processes.
"""

import difflib
import importlib
import importlib.util
import logging
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Context, RecordDict
from flwr.supercore.task_identity import TaskIdentity

from client.ledger_view import read_labelers
from deploy.plugin.updates import channel_of

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "docs/examples/flower"
HOSPITALS, ROUNDS = 20, 5


def room_of(app: Any, nodes: int, **run_config: Any) -> Any:
    """Nodes in memory, those of test_plugin.py, with partitions from 0 on."""
    spec = importlib.util.spec_from_file_location("plugin_tests", Path(__file__).with_name("test_plugin.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    room = module.Room(app, nodes, **run_config)
    for place, context in enumerate(room.contexts.values()):
        context.node_config["partition-id"] = place
    return room


@pytest.fixture
def learned(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> Callable[[str], tuple[np.ndarray, Any]]:
    """Runs one of the two apps: its model, and the room with all replies."""
    for name in ("_run_id", "_node_id", "_task_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(logging.getLogger("flwr"), "propagate", True)

    def run(name: str) -> tuple[np.ndarray, Any]:
        with monkeypatch.context() as patched:
            patched.syspath_prepend(str(EXAMPLE / name))
            for module in [module for module in sys.modules if module.partition(".")[0] == "health"]:
                patched.delitem(sys.modules, module)
            client, server = (importlib.import_module(f"health.{side}").app for side in ("client", "server"))
            for module in [module for module in sys.modules if module.partition(".")[0] == "health"]:
                del sys.modules[module]
        room = room_of(client, HOSPITALS, rate=0.5)
        caplog.clear()
        with caplog.at_level(logging.INFO, "flwr"):
            server(room, Context(1, 0, {}, RecordDict(), {"rounds": ROUNDS}))
        said = next(line for line in caplog.messages if line.startswith("slopes: "))
        return np.array([float(word) for word in said.split()[1:]]), room

    return run


def test_two_lines_and_their_imports_are_all_that_differs() -> None:
    changed = []
    for name in ("client.py", "server.py", "data.py", "__init__.py"):
        plain, private = ((EXAMPLE / which / "health" / name).read_text("utf-8") for which in ("plain", "private"))
        lines = difflib.unified_diff(plain.splitlines(), private.splitlines(), n=0, lineterm="")
        changed += [line for line in lines if line.startswith("+") and not line.startswith("+++")]
    imports = [line for line in changed if line.startswith("+from ")]
    assert len(imports) == 2 and len(changed) == 4
    guide = (ROOT / "docs/ECOSYSTEM.md").read_text("utf-8")
    assert all(line[1:].strip() in guide for line in changed)


def test_the_private_app_learns_what_the_plain_one_learns(
    learned: Callable[[str], tuple[np.ndarray, Any]], tmp_path: Path
) -> None:
    """A round's mean has a standard error of at most sqrt(worst MSE / d / nodes) a coordinate, five of them together
    sqrt(5) times that, and descent contracts earlier ones: 6 of these, 2e-9 a coordinate.
    """
    plain, open_room = learned("plain")
    assert all("arrays" in reply.content for reply in open_room.replies), "models leave"
    private, room = learned("private")
    channel = channel_of(Decimal(8), Decimal("0.5"), 3)
    noise = np.sqrt(ROUNDS * channel.worst_mse / 3 / HOSPITALS)
    assert (np.abs(private - plain) < 6 * noise).all() and 6 * noise < np.abs(plain[0])
    assert len(room.replies) == HOSPITALS * ROUNDS
    for reply in room.replies:
        assert set(reply.content) == {"report", "channel"}
        assert channel.legal(reply.content["report"]["report"].numpy()[None]).all()
    spent = read_labelers(tmp_path / ".halftruth/health.sqlite")
    assert [one.epsilon for one in spent] == [Decimal(40)] * HOSPITALS
    again, room = learned("private")
    assert (again == private).all(), "the same questions have the same answers, for nothing"
    assert read_labelers(tmp_path / ".halftruth/health.sqlite") == spent
