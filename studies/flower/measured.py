"""A federation to measure: stock or warm executors, with all that protects it or with nothing, playing many rounds."""

import json
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from deploy.bundles import built, sha256
from deploy.certs import Certificates, ensure
from deploy.federation import State
from deploy.flwr_command import SuperLink
from deploy.node_keys import PublicKey, ensure_key
from deploy.nodes import import_path, node_toml
from deploy.processes import FlowerFailed, Processes, private_home
from deploy.register_file import admitted, change
from deploy.stage import stage, toml
from deploy.superlink import SUPERLINK, Serving, start_superlink
from deploy.watch import follow_folder
from protocol.runconfig import LET_THROUGH, write
from server.delivery import ROUNDS_FILE
from studies.flower.calls import LOUD, calls_of
from studies.flower.looks import Look, Measured, watched
from studies.load import Loaded, load

PATIENCE = 1800.0  # seconds for a round
COMING = 600.0  # seconds until all nodes are there
ASKING = 3.0  # seconds between two questions for the nodes, each of which starts a program
STUDY = """
study = {{ name = "private-sco", seed = 20226, repetitions = 1 }}
problem = {{ kind = "records", model = "linear", dimension = {dimension}, theta = {theta}, bound = 2 }}
records = {{ features = "uniform(0, 1)", noise = "centred pareto(1.6)", tail = 0.5, moment = 18 }}
grid = {{ n = [{records}], epsilon = [1.0], delta = [1e-5] }}
arm = [{{ trust = "central", estimator = "descent", rounds = {rounds}, step = 0.1 }}]
"""


@dataclass(frozen=True)
class Setting:
    """`executor` "stock" or "warm"; `careful`: TLS, node keys, signed reports and tasks, and where warm also pins."""

    executor: str
    careful: bool


@dataclass(frozen=True)
class Work:
    """How much is asked: of `clients` nodes, `rounds` times, about `records` records of `dimension` numbers."""

    clients: int
    rounds: int
    records: int
    dimension: int


def measure(setting: Setting, work: Work, idle: float = 0.0, loud: bool = False) -> tuple[Measured, float]:
    """Play the rounds over processes of this machine, and look at them; CPU seconds a second before, idle, as well.

    `loud`: the SuperLink prints its calls, which are counted, and costs more. Raises RunFailed where the run fails.
    """
    with tempfile.TemporaryDirectory() as name, private_home(Path(name) / "logs") as processes:
        loaded = study_of(work, processes.home)
        with watched(processes.home) as looks:
            federation = _Federation(processes, setting, loaded, loud)
            federation.start(work.clients)
            resting = _idle(looks, idle)
            rounds = federation.play(work)
        calls = list(calls_of(processes.log(SUPERLINK))) if loud else []
    if len(rounds) < 2:
        raise FlowerFailed(f"expected a run of at least two rounds, got {len(rounds)}")
    return Measured(rounds, looks, calls), resting


def study_of(work: Work, folder: Path) -> Loaded:
    """The study of such rounds, written into a folder."""
    theta = [1 / work.dimension**0.5] * work.dimension
    path = folder / "study.toml"
    text = STUDY.format(dimension=work.dimension, theta=theta, records=work.records, rounds=work.rounds)
    path.write_text(text, encoding="utf-8")
    return load(path)


def _idle(looks: list[Look], seconds: float) -> float:
    """CPU seconds a second while nobody asks anything."""
    if not seconds:
        return 0.0
    time.sleep(seconds / 2)  # until pauses are long
    before = looks[-1]
    time.sleep(seconds)
    after = looks[-1]
    return sum(after.spent.values()) / (after.at - before.at) - sum(before.spent.values()) / (after.at - before.at)


@dataclass
class _Federation:
    processes: Processes
    setting: Setting
    loaded: Loaded
    loud: bool = False

    def start(self, clients: int) -> None:
        """Start SuperLink and nodes, and wait until all nodes are there."""
        home = self.processes.home
        self.state, self.outcomes, self.app = State(home / "state").make(), home / "outcomes", stage(home / "app")
        self.outcomes.mkdir()
        self.state.keys.mkdir(exist_ok=True)
        certs = ensure(self.state.certs)[0] if self.setting.careful else None
        self.link, address = self._superlink(certs)
        pin = sha256(built(self.app, home)) if self.setting.careful and self.setting.executor == "warm" else None
        keys = {}
        for client in range(clients):
            keys[f"node-{client}"] = self._key(f"node-{client}")
        if self.setting.careful:
            change(self.state, self.link, lambda entries: admitted(entries, keys, self.state.keys))
        for client in range(clients):
            self._node(client, clients, address, certs, pin)
        deadline = time.monotonic() + COMING
        while sum(node.status == "online" for node in self.link.nodes()) < clients:
            self.processes.check()
            if time.monotonic() > deadline:
                raise FlowerFailed(f"expected {clients} nodes within {COMING:g} seconds")
            time.sleep(ASKING)

    def play(self, work: Work) -> list[tuple[float, str]]:
        """Run the study; when each round was answered, and what was said of it."""
        told = write(self.loaded.study, clients=work.clients, deadline=PATIENCE)
        told[LET_THROUGH] = json.dumps(self.loaded.truth.tolist())
        config = self.processes.home / "run.toml"
        config.write_text(toml(told), encoding="utf-8")
        run = self.link.run(self.app, config, None)
        for _ in follow_folder(self.outcomes, self.link, run, self.processes.home, PATIENCE, self.processes.check):
            pass
        lines = (self.outcomes / ROUNDS_FILE).read_text("utf-8").splitlines()
        return [(float(at), words) for at, _, words in (line.partition(" ") for line in lines)]

    def _key(self, name: str) -> PublicKey:
        return ensure_key(self.state.keys / name)[0]

    def _superlink(self, certs: Certificates | None) -> tuple[SuperLink, str]:
        given = {"HALFTRUTH_OUTCOMES": str(self.outcomes), **(LOUD if self.loud else {})}
        if certs is not None:
            self._key("server")
            given |= {"HALFTRUTH_NODES": str(self.state.register), "HALFTRUTH_KEY": str(self.state.server_key)}
        return start_superlink(self.processes, Serving(certs=certs, keys=certs is not None), **given)

    def _node(self, client: int, clients: int, address: str, certs: Certificates | None, pin: str | None) -> None:
        name = f"node-{client}"
        text = node_toml(self.loaded.study, client, clients, address)
        text = text.replace("[node]\n", f'[node]\nexecutor = "{self.setting.executor}"\n')
        flags = ["--superlink", address]
        if certs is not None:
            mine = f'[policy]\nserver_key = "{self.state.server_key}.pub"\nbundles = ["{pin}"]\n'
            text = text.replace("[policy]\n", mine) if pin else text
            flags += ["--certs", str(certs.authority), "--key", str(self.state.keys / name)]
        file = self.processes.home / f"{name}.toml"
        file.write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "studies", "node", "--config", str(file), *flags]
        self.processes.start(name, command, PYTHONPATH=import_path(self.processes))
