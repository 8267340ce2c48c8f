"""A server whose bundle would read a node's labels: neither unpacked nor imported, whatever the server says of it."""

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from deploy.bundles import built, sha256, staged_bundle
from deploy.flwr_command import SuperLink
from deploy.nodes import node_toml
from deploy.ports import HOST, free_port
from deploy.processes import FlowerFailed, Processes, private_home
from deploy.stage import stage, toml
from deploy.superlink import KERNELS, wait_until_ready
from deploy.watch import follow_folder
from protocol.runconfig import LET_THROUGH, write
from studies.load import Loaded, load

ROOT = Path(__file__).parents[2]
MARK = "HALFTRUTH_TEST_NODE"  # in the environment of nodes only: others that import the bundle have nothing to steal
STUDY = """
study = { name = "small", seed = 11, repetitions = 2 }
problem = { kind = "pairwise", dimension = 4, features = "gaussian", theta = [0.75, 0.25, -0.25, -0.75], bound = 3.0 }
grid = { n = [200], epsilon = [1.0] }
arm = [
  { trust = "clear", estimator = "mle" },
  { trust = "local", mechanism = "randomized-response", estimator = "rr-mle" },
]
"""
STEAL = f"""
import os, pathlib
if os.environ.get({MARK!r}):
    labels = pathlib.Path(os.environ["LABELS"]).read_bytes()
    pathlib.Path(os.environ["STOLEN"], os.environ[{MARK!r}]).write_bytes(labels)
"""
HONEST = "from flwr.superlink.cli import flower_superlink; flower_superlink()"
LYING = """
import os, pathlib
from flwr.superlink.servicer.fleet import fleet_handlers
honest = fleet_handlers.get_fab
def lie(request, state):
    answer = honest(request, state)  # with its hash
    answer.fab.content = pathlib.Path(os.environ["SHIPPED"]).read_bytes()
    return answer
fleet_handlers.get_fab = lie
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    """A study that any number of nodes can answer."""
    path = tmp_path_factory.mktemp("study") / "study.toml"
    path.write_text(STUDY, encoding="utf-8")
    return load(path)


def evil(folder: Path) -> Path:
    """An app like ours that reads the node's labels as soon as anything of it is imported."""
    app = stage(folder)
    for name in ("__init__.py", "app.py"):
        path = app / "client" / name
        path.write_text(path.read_text("utf-8") + STEAL, encoding="utf-8")
    return app


@dataclass
class Federation:
    """A SuperLink, and nodes with Flower homes of their own, that run one small study."""

    processes: Processes
    loaded: Loaded
    folder: Path

    def __post_init__(self) -> None:
        self.port = free_port()
        self.stolen, self.outcomes = self.folder / "stolen", self.folder / "outcomes"
        self.stolen.mkdir()
        self.outcomes.mkdir()
        (self.folder / "labels.csv").write_text("labeler,item_a,item_b,winner\nann,x,y,x\n")
        self.link = SuperLink("here", self.processes.environment)
        text = f'[superlink.here]\naddress = "{HOST}:{self.port}"\ninsecure = true\n'
        (self.processes.home / "config.toml").write_text(text)

    def start(self, code: str = HONEST, **variables: str) -> None:
        """Start the SuperLink."""
        options = ["--insecure", "--host", HOST, "--port", str(self.port), "--disable-runtime-dependency-installation"]
        command = [sys.executable, "-c", code, *options]
        self.processes.start("superlink", command, HALFTRUTH_OUTCOMES=str(self.outcomes), **KERNELS, **variables)
        assert wait_until_ready(self.processes, "superlink", self.port), self.log("superlink")

    def node(self, client: int, clients: int, head: str = "", policy: str = "") -> None:
        """Start a node with lines of its own in its file."""
        name, port = f"node-{client}", free_port()
        text = node_toml(self.loaded.study, client, clients, f"{HOST}:{self.port}")
        text = text.replace("[node]\n", f"[node]\n{head}\n").replace("[policy]\n", f"[policy]\n{policy}\n")
        (self.folder / f"{name}.toml").write_text(text)
        self.home(client).mkdir()
        self.processes.start(
            name,
            [sys.executable, "-m", "studies", "node", "--config", f"{self.folder / name}.toml", "--port", str(port)],
            **{MARK: name, "STOLEN": str(self.stolen), "LABELS": str(self.folder / "labels.csv")},
            FLWR_HOME=str(self.home(client)),
            HALFTRUTH_HOME=str(self.processes.home),
            PYTHONPATH=str(ROOT),
        )

    def home(self, client: int) -> Path:
        """Where Flower unpacks bundles on a node."""
        return self.folder / f"home-{client}"

    def log(self, name: str) -> str:
        """What a process said."""
        return self.processes.log(name).read_text("utf-8")

    def play(self, app: Path, clients: int, mode: str) -> dict[str, list[str]]:
        """Run the study with an app, and return the outcomes of each cell. Raises FlowerFailed."""
        told = write(self.loaded.study, clients=clients, mode=mode, deadline=120.0)
        told[LET_THROUGH] = json.dumps(self.loaded.truth.tolist())
        config = self.processes.home / "run.toml"
        config.write_text(toml(told), encoding="utf-8")
        run_id = self.link.run(app, config, None)
        how = (self.outcomes, self.link, run_id, self.processes.home, 300, self.processes.check)
        return {str(cell): lines for cell, lines in follow_folder(*how)}


def unpacked(home: Path) -> list[str]:
    """Bundles that were unpacked in a Flower home."""
    return sorted(path.name for path in (home / "apps").glob("*"))


def test_a_bundle_that_steals_labels_is_run_by_the_stock_executor_only(study: Loaded, tmp_path: Path) -> None:
    with private_home(tmp_path / "logs") as processes:
        federation = Federation(processes, study, tmp_path)
        federation.start()
        app = evil(processes.home / "app")
        federation.node(0, 3)
        federation.node(1, 3, policy=f'bundles = ["{sha256(staged_bundle())}"]')
        federation.node(2, 3, head='executor = "stock"')
        assert federation.play(app, 3, "live"), "the two that do not pin it answer"
        processes.check()
        assert "FAB verification failed" not in federation.log("node-0")
        assert "FAB verification failed" in federation.log("node-1")
        assert sorted(os.listdir(federation.stolen)) == ["node-2"], "the attack is real, and two nodes were safe"
        assert unpacked(federation.home(0)) == unpacked(federation.home(1)) == []
        assert len(unpacked(federation.home(2))) == 1


@pytest.mark.slow  # tests/deploy/test_flower_pull.py does the same to Flower's own state
def test_a_server_that_names_one_bundle_and_ships_another_is_refused_and_ends_no_node(
    study: Loaded, tmp_path: Path
) -> None:
    shipped = tmp_path / "shipped.fab"
    (tmp_path / "build").mkdir()
    shipped.write_bytes(built(evil(tmp_path / "build" / "app"), tmp_path / "build"))
    with private_home(tmp_path / "logs") as processes:
        federation = Federation(processes, study, tmp_path)
        federation.start(LYING + HONEST, SHIPPED=str(shipped))
        good = stage(processes.home / "app")
        federation.node(0, 2)
        federation.node(1, 2, policy=f'bundles = ["{sha256(staged_bundle())}"]')
        for _ in range(2):  # they are asked again, so they live
            with pytest.raises(FlowerFailed, match="expected replies of 2 nodes, got none: failed: 2"):
                federation.play(good, 2, "live")
            (federation.outcomes / "failed.txt").unlink()
            processes.check()
        for client in range(2):
            assert federation.log(f"node-{client}").count("FAB verification failed") == 2
            assert unpacked(federation.home(client)) == []
        assert os.listdir(federation.stolen) == []


@pytest.mark.slow
def test_the_stock_executor_and_the_warm_one_give_the_same_bits(study: Loaded, tmp_path: Path) -> None:
    """Those of the warm one are compared with in-process wherever a deployment is tested."""
    answers = []
    for executor in ("stock", "warm"):
        folder = tmp_path / executor
        folder.mkdir()
        with private_home(folder / "logs") as processes:
            federation = Federation(processes, study, folder)
            federation.start()
            for client in range(2):
                federation.node(client, 2, head=f'executor = "{executor}"')
            answers.append(federation.play(stage(processes.home / "app"), 2, "strict"))
    assert answers[0] == answers[1] != {}
