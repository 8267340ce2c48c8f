"""One of four nodes lies, over real processes with TLS, keys, a register and signed tasks: nothing of it counts."""

import importlib.util
import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from client.labeler import answer
from client.node import node_of
from deploy.certs import ensure
from deploy.federation import State
from deploy.flwr_command import SuperLink
from deploy.node_keys import ensure_key, read_public
from deploy.nodes import import_path
from deploy.ports import HOST, free_port
from deploy.processes import Processes, private_home
from deploy.register_file import change, registered
from deploy.stage import stage, toml
from deploy.superlink import Serving, start_superlink
from protocol.runconfig import LET_THROUGH, write
from protocol.store import FeatureStore
from protocol.study import Cell, Study, cells
from server.curator import SimulatedCurator
from server.delivery import ROUNDS_FILE
from server.evidence import Server
from server.listening import quorum
from server.outcome import Outcome
from server.outcome_record import cell_name, decode
from server.rounds import play
from studies.load import Loaded, load

NODES, LIAR, ROWS, SECONDS = 4, 3, 60, 600
LIES = Path(__file__).with_name("liar.py")
# Without a clear arm, where there is no range to be out of.
STUDY = """
study = {{ name = "byzantine", seed = 5, repetitions = {repetitions} }}
problem = {{ kind = "records", model = "mean", dimension = 3, bound = 2 }}
records = {{ features = "pareto(1.6)", tail = 0.5, moment = 16 }}
grid = {{ n = [60], epsilon = [0.9], delta = [1e-5] }}
arm = [
  {{ trust = "central", estimator = "mean" }},
  {{ trust = "local", estimator = "mean", mechanism = "piecewise" }},
]
"""
SAID = {
    "NaN": "finite",
    "one infinity": "finite",
    "a wrong shape": "of shape",
    "out of range": "",
    "another node's rows": "a report about rows that are not the node's",
    "rows of nobody": "a report about rows that are not the node's",
    "unsigned": "a report without a signature",
    "another key": "a report that is not under the node's key",
    "another node's reply": "a report that is not under the node's key",
    "a reply to another task": "a report about another task",
    "no reply": "expected the bytes of a reply",
}
SILENT = "too few replies"  # no letter at all, for the server


@pytest.fixture(scope="module")
def lies() -> list[str]:
    """The lies that the node tells, by repetition."""
    spec = importlib.util.spec_from_file_location("liar", LIES)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return list(module.LIES)


@dataclass(frozen=True)
class Lab:
    """A federation of three honest nodes and a liar. `outcomes`: where its server leaves them."""

    folder: Path
    processes: Processes
    link: SuperLink
    loaded: Loaded

    @property
    def outcomes(self) -> Path:
        """Where the server leaves outcomes."""
        return self.folder / "outcomes"

    def run(self, study: Study, **config: Any) -> str:
        """Run a study live to its end, and return what the server said in its log."""
        for old in self.outcomes.iterdir():
            old.unlink()
        told = {**write(study), LET_THROUGH: json.dumps(self.loaded.truth.tolist()), "clients": NODES, "block": 1}
        told |= {"deadline": 100.0, "mode": "live", **config}
        path = self.folder / "run.toml"
        path.write_text(toml(told), encoding="utf-8")
        run = self.link.run(self.folder / "app", path, None)
        deadline = time.monotonic() + SECONDS
        while not (self.outcomes / "done").exists() and not (self.outcomes / "failed.txt").exists():
            self.processes.check()
            assert time.monotonic() < deadline, self.processes.log("superlink").read_text()[-2000:]
            time.sleep(0.1)
        while not self.link.status(run)[0].startswith("finished:"):
            assert time.monotonic() < deadline
        with self.link.follow(run) as child:
            said, _ = child.communicate(timeout=SECONDS)
        return said

    def outcomes_of(self, cell: Cell) -> list[Outcome]:
        """What the server estimated."""
        lines = (self.outcomes / f"{cell_name(cell)}.jsonl").read_text("utf-8").splitlines()
        return [decode(line, self.loaded.study) for line in lines]


@pytest.fixture(scope="module")
def lab(lies: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Everything started, every node online and registered with its rows."""
    folder = tmp_path_factory.mktemp("byzantine")
    (folder / "study.toml").write_text(STUDY.format(repetitions=len(lies)))
    (folder / "outcomes").mkdir()
    stage(folder / "app")
    certs, _ = ensure(folder / "certs")
    for name in (*(f"node-{node}" for node in range(NODES)), "stranger", "server"):
        ensure_key(folder / name)
    with private_home(folder / "logs") as processes:
        given = {"HALFTRUTH_OUTCOMES": str(folder / "outcomes"), "HALFTRUTH_KEY": str(folder / "server")}
        given |= {"HALFTRUTH_NODES": str(State(folder).register)}
        link, address = start_superlink(processes, Serving(certs=certs, keys=True), **given)
        register(folder, link)
        for node in range(NODES):
            start(processes, folder, address, node)
        deadline = time.monotonic() + SECONDS
        while sum(node.status == "online" for node in link.nodes()) < NODES:
            processes.check()
            assert time.monotonic() < deadline
            time.sleep(2)  # a question starts a program
        yield Lab(folder, processes, link, load(folder / "study.toml"))


def register(folder: Path, link: SuperLink) -> None:
    """Give every node its rows."""
    part = ROWS // NODES

    def all_of_them(entries: Sequence[Any]) -> Sequence[Any]:
        for node in range(NODES):
            name = f"node-{node}"
            rows = f"{node * part}:{(node + 1) * part}"
            entries = registered(entries, name, read_public(folder / f"{name}.pub"), rows)
        return entries

    change(State(folder), link, all_of_them)


def start(processes: Processes, folder: Path, address: str, node: int) -> None:
    """Start an honest node, or the liar."""
    key, ca = str(folder / f"node-{node}"), str(folder / "certs/ca.crt")
    words = [sys.executable, "-m", "studies", "node", "--part", f"{node}/{NODES}", "--superlink", address]
    words += ["--certs", ca, "--key", key]
    if node == LIAR:
        words = [sys.executable, str(LIES), "--", "--superlink", address, "--root-certificates", ca]
        words += ["--auth-supernode-private-key", key, "--host", HOST, "--port", str(free_port())]
        words += ["--node-config", f"partition-id={node} num-partitions={NODES}"]
    processes.start(f"node-{node}", words, PYTHONPATH=import_path(processes), LIAR_KEYS=str(folder))


def expected(loaded: Loaded, cell: Cell, clients: Sequence[int]) -> list[bytes]:
    """Estimates from these nodes alone, in one process."""
    config = {**write(loaded.study), LET_THROUGH: json.dumps(loaded.truth.tolist())}
    nodes = [node_of({"partition-id": client, "num-partitions": NODES}, config) for client in clients]

    def ask(tasks: list[bytes]) -> list[bytes]:
        return [answer(raw, node) for node in nodes for raw in tasks]

    server = Server(FeatureStore(loaded.study.seed), loaded.study.seed, SimulatedCurator(loaded.study.seed))
    return [outcome.theta.tobytes() for outcome in play(loaded.study, cell, ask, server, quorum)]


def left_out(lies: list[str], names: Sequence[str]) -> str:
    """Cells of other lies, as a run's configuration leaves them out."""
    found = sum(1 << place for place, name in enumerate(lies) if name not in names)
    return f"{found:x}" if found else ""


@pytest.mark.slow  # tests/flower/test_signed_apps.py tells the same lies in one process
def test_an_estimate_is_as_without_the_liar_who_is_named(lab: Lab, lies: list[str]) -> None:
    names = ("the truth", *SAID, SILENT)
    assert set(lies) == set(names)
    (lab.folder / "told.txt").write_text("")
    said = lab.run(lab.loaded.study, finished=left_out(lies, names))
    assert (lab.outcomes / "done").exists(), (lab.outcomes / "failed.txt").read_text()
    assert (lab.folder / "told.txt").read_text("utf-8").splitlines() == list(names)
    for name in names:
        cell = cells(lab.loaded.study, 1)[lies.index(name)]
        found = lab.outcomes_of(cell)
        there = range(NODES) if name == "the truth" else range(LIAR)
        assert [outcome.theta.tobytes() for outcome in found] == expected(lab.loaded, cell, there), name
        warned = {text for outcome in found for text in outcome.warnings if "rejected" in text}
        assert warned == ({"reports-rejected: 1 report rejected (node node-3)"} if name in SAID else set()), name
        if name != "the truth":
            assert all("rows-missing: 15 answers missing over all rounds" in outcome.warnings for outcome in found), (
                name
            )
        if name in SAID:
            assert re.search(f"rejected: node node-3: .*{SAID[name]}", said), name
    assert "node node-3: unreadable" in said and "0 replies to 2 tasks" in said
    summary, lied = said[said.rindex("messages so far") :], len(names) - 2
    assert f"answered: {NODES * len(names) - 1}, rejected: {2 * lied}, unreadable: 1" in summary
    assert "node node-3" in summary and "node node-0" not in summary


@pytest.mark.slow
@pytest.mark.parametrize("name", [SILENT, *SAID])
def test_a_strict_run_fails_and_names_the_liar(lab: Lab, lies: list[str], name: str) -> None:
    """The first cell, whose truth is kept for a replay, and the lie's."""
    lab.run(lab.loaded.study, mode="strict", finished=left_out(lies, ("the truth", name)))
    assert "node node-3" in (lab.outcomes / "failed.txt").read_text()
    assert (lab.outcomes / f"{cell_name(cells(lab.loaded.study, 1)[0])}.jsonl").exists()


@pytest.mark.slow  # tests/server/test_pulling.py holds up a round in one process
def test_what_is_announced_and_not_uploaded_holds_up_nobody(lab: Lab, lies: list[str]) -> None:
    """Flower waits three minutes for it, more where it comes bit by bit. Rounds end by their deadline without it."""
    deadline, names = 20.0, lies[:2]
    (lab.folder / "stalls").touch()
    said = lab.run(lab.loaded.study, finished=left_out(lies, names), deadline=deadline, quorum=str(NODES - 1))
    (lab.folder / "stalls").unlink()
    assert (lab.outcomes / "done").exists(), (lab.outcomes / "failed.txt").read_text()
    first, second = (float(line.split()[0]) for line in (lab.outcomes / ROUNDS_FILE).read_text("utf-8").splitlines())
    assert second - first < 3 * deadline
    for name in names:
        cell = cells(lab.loaded.study, 1)[lies.index(name)]
        found = lab.outcomes_of(cell)
        assert [outcome.theta.tobytes() for outcome in found] == expected(lab.loaded, cell, range(LIAR)), name
    assert said.count("node node-3: missing (no reply within 20 s (deadline))") == len(names)
    assert "a reply holds up the others" in said
    assert f"answered: {len(names) * (NODES - 1)}" in said[said.rindex("messages so far") :]
