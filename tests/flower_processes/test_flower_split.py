"""A file split over the nodes of a real federation gives the clear estimate of the file, bit for bit."""

import sys
from pathlib import Path

import pytest

from client.labeler import Node, answer
from client.ledger import DiskLedger
from client.policy import Policy
from client.sources.loading import read_table
from protocol.arms import Arm
from protocol.runconfig import write
from protocol.store import FeatureStore
from protocol.study import Cell, Grid, Study
from protocol.trust import Trust
from server.evidence import Server
from server.outcome_record import decode
from server.rounds import play
from studies.cli import main
from studies.flower.nodes import await_nodes
from studies.flower.ports import free_port
from studies.flower.processes import Processes, private_home
from studies.flower.stage import stage, toml
from studies.flower.superlink import start_superlink
from studies.flower.watch import follow_folder

ROOT = Path(__file__).parents[2]
NODES = 3
DEADLINE = 120.0


def start(processes: Processes, folder: Path, address: str) -> tuple[Path, int]:
    """A SuperNode for a folder of a split, which is told where the server is."""
    text = (folder / "node.toml").read_text("utf-8") + f'\n[superlink]\naddress = "{address}"\ninsecure = true\n'
    file, port = folder / f"{folder.name}.toml", free_port()
    file.write_text(text, encoding="utf-8")
    words = [sys.executable, "-m", "studies", "node", "--config", str(file), "--port", str(port)]
    processes.start(file.stem, words, PYTHONPATH=str(ROOT))
    return file, port


@pytest.mark.slow
@pytest.mark.parametrize("name", ["first_names.csv", "german_parties_2009.csv"])
def test_a_deployment_over_split_files(shared_data: Path, tmp_path: Path, name: str) -> None:
    path, out = shared_data / "pairwise" / name, tmp_path / "nodes"
    assert main(["data", "split", str(path), "--nodes", str(NODES), "--out", str(out), "--trust", "clear"]) == 0
    table = read_table(path, False)
    n = len(table.pairs)
    study = Study("split", 0, 1, table.problem, Grid((n,), (), ()), (Arm(Trust.CLEAR, "none", "mle"),))
    policy = Policy(trusts=frozenset({Trust.CLEAR}))
    one = Node(table, policy, DiskLedger(tmp_path / "ledger.sqlite"), "os", FeatureStore(None))
    server = Server(FeatureStore(0), 0)
    (expected,) = play(study, Cell(n, 0, 1), lambda raws: [answer(raw, one) for raw in raws], server)
    with private_home(tmp_path / "logs") as processes:
        outcomes = processes.home / "outcomes"
        outcomes.mkdir()
        config = processes.home / "run.toml"
        config.write_text(toml(write(study, clients=NODES, deadline=DEADLINE)), encoding="utf-8")
        link, address = start_superlink(processes, outcomes, simulation=False)
        nodes = dict(start(processes, out / f"node-{index}", address) for index in range(NODES))
        run = link.run(stage(processes.home / "app"), config, None)
        await_nodes(processes, nodes)
        ((_, lines),) = follow_folder(outcomes, link, run, processes, 2 * DEADLINE)
    (found,) = (decode(line, study) for line in lines)
    assert found.theta.tobytes() == expected.theta.tobytes()
