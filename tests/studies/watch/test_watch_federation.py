"""What `halftruth watch` says of a federation from files: one that runs, ends, fails, or is asked again."""

import asyncio
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from deploy.processes import private_home
from deploy.submit import OUTCOMES
from protocol.arms import Arm
from protocol.strict import StudyError
from protocol.trust import Trust
from server.delivery import ToFolder
from studies.cli import main
from studies.federate.progress import DEPLOYMENT, Progress, kept_in, read_progress
from studies.flower.run import kept_rounds
from studies.folder import Folder
from studies.watch.budgets import Budgets
from studies.watch.look import FINISHED, RUNS, STOPPED, Watch
from studies.watch.serve import application
from studies.watch.show import document

VOTES = "judge,model_a,model_b,winner\n" + "".join(
    f"j{who},{a},{b},model_a\n" for who in range(9) for a, b in ("xy", "yz")
)
BEGUN = Progress(
    "nodes/server", "ab" * 32, ("local", "randomized-response", "rr-mle"), "1", None, 3, 18, DEPLOYMENT, 5.0
)
LINE = "cell-18-0-1: exchange {} with 3 nodes: 1 task, 198 bytes to each, 311 from all; messages so far: {}"
Say = pytest.CaptureFixture[str]


def watched(out: Path, capsys: Say) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["watch", str(out), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.fixture
def asked(tmp_path: Path) -> list[str]:
    (tmp_path / "votes.csv").write_text(VOTES, encoding="utf-8")
    nodes = tmp_path / "nodes"
    assert main(["data", "split", str(tmp_path / "votes.csv"), "--nodes", "3", "--out", str(nodes)]) == 0
    return ["federate", str(nodes / "server"), "--nodes", str(nodes), "--on", "in-process", "--json"]


def test_a_federation_ends_with_its_estimate_in_the_folder(tmp_path: Path, capsys: Say, asked: list[str]) -> None:
    out = tmp_path / "out"
    capsys.readouterr()
    assert main([*asked, "--epsilon", "1", "--out", str(out)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert json.loads((out / "result.json").read_text("utf-8")) == printed
    seen = watched(out, capsys)
    assert (seen["state"], seen["seconds_left"], seen["runtimes"]) == (FINISHED, 0.0, ["in-process"])
    (unit,) = seen["units"]
    assert (unit["n"], unit["finished"], unit["units"]) == (18, 1, 1)
    assert main(["watch", str(out)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert f"federation of {tmp_path}/nodes/server (in-process): finished" in told
    assert f"The estimate: {out / 'result.json'}" in told


def test_one_that_fails_says_why_and_is_asked_again(tmp_path: Path, capsys: Say, asked: list[str]) -> None:
    out = tmp_path / "out"
    assert main([*asked, "--epsilon", "0.75", "--out", str(out)]) == 0
    assert main([*asked, "--epsilon", "0.5", "--out", str(out)]) == 1  # a quarter is left
    assert not (out / "result.json").exists(), "that was another question's"
    assert watched(out, capsys)["state"] == STOPPED
    assert main(["watch", str(out)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "No estimate: expected 18 rows" in told and "BUDGET_EXHAUSTED x 3" in told
    assert "Ask again with the same halftruth federate" in told
    assert main([*asked, "--epsilon", "0.75", "--out", str(out)]) == 0
    assert watched(out, capsys)["state"] == FINISHED


def test_rounds_are_seen_while_it_runs(tmp_path: Path) -> None:
    """As a server of a federation's own writes them, and as they stay when it has ended."""
    out = tmp_path / "out"
    watch, now = Watch(Folder(out)), time.time()
    with pytest.raises(StudyError):
        watch.look(now)
    with (
        kept_in(out, replace(BEGUN, began=now)),
        private_home(out / "logs") as processes,
        kept_rounds(processes, Folder(out)),
    ):
        (processes.home / OUTCOMES).mkdir()
        begun = watch.look(now + 1)
        assert (begun.state, begun.left, begun.messages.rounds) == (RUNS, None, 0)
        server = ToFolder(processes.home / OUTCOMES)
        server.heard(LINE.format(1, "answered: 3"))
        server.heard(LINE.format(2, "answered: 5, late: 1"))
        seen = watch.look(now + 2)
        assert (seen.state, seen.messages.rounds, seen.messages.nodes) == (RUNS, 2, 3)
        assert seen.messages.all == {"answered": 5, "late": 1} and seen.messages.last == {"answered": 2, "late": 1}
    after = watch.look(time.time())
    assert (after.state, after.messages.rounds) == (FINISHED, 2)
    assert after.arms == (Arm(Trust.LOCAL, "randomized-response", "rr-mle"),)
    assert document(after)["fingerprint"] == "ab" * 32


def test_the_page_says_the_same(tmp_path: Path) -> None:
    with kept_in(tmp_path, BEGUN):
        pass
    page = application(Watch(Folder(tmp_path)), Budgets.of([]), 1.0, ["watch"])

    async def look() -> Any:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(page), base_url="http://watch") as client:
            return (await client.get("/seen.json")).json()

    told = asyncio.run(look())
    assert (told["standing"], told["study"], told["errors"]) == ("finished", "federation of nodes/server", [])
    assert told["lines"] == [f"The estimate: {tmp_path / 'result.json'}"] and told["arms"][0][2] == "local"


def test_ctrl_c_is_an_end(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), kept_in(tmp_path, BEGUN):
        raise KeyboardInterrupt
    seen = Watch(Folder(tmp_path)).look(time.time())
    assert (seen.state, seen.failed) == (STOPPED, "interrupted")


def test_other_folders_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(StudyError, match="--out: expected a new or empty folder"), kept_in(tmp_path, BEGUN):
        pass
    assert read_progress(tmp_path) is None
    for text in ("{", "[]", '{"format": 2}', json.dumps({"arm": ["moon", "", ""]})):
        (tmp_path / "federation.json").write_text(text)
        with pytest.raises(StudyError, match=r"federation\.json: expected"):
            read_progress(tmp_path)
