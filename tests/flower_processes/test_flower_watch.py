"""Runs over Flower that are watched: what a page is told while one runs, is stopped, goes on and ends."""

import json
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from studies.flower.run import RUNTIMES

Commands = Callable[..., Any]
ROOT = Path(__file__).parents[2]
CELLS, NODES = 40, 2


@contextmanager
def served(out: Path, port: int = 0) -> Iterator[str]:
    """The address of the live view of a folder."""
    words = [sys.executable, "-m", "studies", "watch", str(out), "--serve", "--port", str(port)]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:\d+/", child.stdout.readline())
        assert found is not None
        try:
            yield found[0]
        finally:
            child.send_signal(signal.SIGINT)
            assert child.wait(20) in (0, 130)


def told(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{url}seen.json", timeout=30) as reply:
        found: dict[str, Any] = json.load(reply)
        return found


def await_told(url: str, holds: Callable[[dict[str, Any]], bool], within: float = 240) -> dict[str, Any]:
    """What the page is told, as soon as something holds of it."""
    deadline = time.monotonic() + within
    while not holds(found := told(url)):
        assert time.monotonic() < deadline, found
        time.sleep(0.1)
    return found


def finished(found: dict[str, Any]) -> int:
    return sum(each["finished"] for each in found.get("units", []))


@pytest.mark.slow
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_run_is_watched_through_restarts_of_either_side(
    runtime: str, command: Commands, small: Path, tmp_path: Path
) -> None:
    study = tmp_path / "study.toml"
    study.write_text(small.read_text("utf-8").replace("repetitions = 2", f"repetitions = {CELLS}"), encoding="utf-8")
    words = ("--on", runtime, "--clients", str(NODES), "--block", "1")
    with served(tmp_path / "out") as url:
        assert told(url)["state"] is None
        run = command(*words, study=study)
        during = await_told(url, lambda found: finished(found) >= 2)
        assert (during["state"], during["runtimes"], during["nodes"]) == ("runs", [runtime], NODES)
        assert during["seconds_left"] > 0 and during["errors"]
    run.process.send_signal(signal.SIGINT)
    with served(tmp_path / "out", int(url.rstrip("/").rpartition(":")[2])) as again:
        assert again == url
        assert run.end()[0] == 130
        stopped = told(url)
        assert stopped["state"] == "stopped" and 2 <= finished(stopped) < CELLS
        run = command(*words, "--resume", study=study)
        await_told(url, lambda found: found["state"] == "runs" and finished(found) > finished(stopped))
        assert run.end()[0] == 0
        ended = told(url)
    assert (ended["state"], finished(ended), ended["seconds_left"]) == ("finished", CELLS, 0)
    assert ended["rounds"] >= CELLS and ended["messages"] == {"answered": NODES * ended["rounds"]}
    assert ended["last_round"] == {"answered": NODES}
