"""The node files of a study's clients, and the SuperNodes that read them."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from deploy.ports import free_port
from deploy.processes import FlowerFailed, Processes
from deploy.superlink import ATTEMPTS, wait_until_ready
from protocol.decimals import canonical
from protocol.study import Study


def node_toml(study: Study, client: int, clients: int, address: str) -> str:
    """A node file for client `client` out of `clients`: synthetic labels, addressed coins, all arms allowed."""
    trusts = sorted({arm.trust.label for arm in study.arms if arm.trust is not None})
    highest = canonical(max(study.grid.epsilon)) if study.grid.epsilon else '"unlimited"'
    return f"""\
[node]
entropy = "addressed"
seed = {study.seed}

[source]
kind = "synthetic"
client = {client}
clients = {clients}

[policy]
trust = {json.dumps(trusts or ["local"])}
max_epsilon = {highest}
label_cap = "unlimited"
units = ["label", "record", "holder"]
colluding = 0
central_rows = true

[superlink]
address = "{address}"
insecure = true
"""


@dataclass(frozen=True)
class Nodes:
    """SuperNodes by name, each with the words that `halftruth node` is told; `ports` are those they were given."""

    processes: Processes
    words: Mapping[str, Sequence[str]]
    ports: dict[str, int] = field(default_factory=dict)

    def start(self) -> "Nodes":
        """Start them all."""
        for name in self.words:
            self._start(name)
        return self

    def wait(self) -> None:
        """Wait until every node listens, on another port where its own was taken meanwhile. Raises FlowerFailed."""
        for name in self.words:
            for _ in range(ATTEMPTS):
                if wait_until_ready(self.processes, name, self.ports[name]):
                    break
                self.start_again(name)
            else:
                raise FlowerFailed(f"{name} ended {ATTEMPTS} times; its log: {self.processes.log(name)}")

    def start_again(self, name: str) -> None:
        """Start a node anew that has ended."""
        self.processes.forget(name)
        self._start(name)

    def _start(self, name: str) -> None:
        port = self.ports[name] = free_port()
        words = [sys.executable, "-m", "studies", "node", *self.words[name], "--port", str(port)]
        self.processes.start(name, words, PYTHONPATH=import_path(self.processes))


def start_nodes(processes: Processes, study: Study, clients: int, address: str) -> Nodes:
    """Start a SuperNode for every client of a study, whose node files are written here."""
    words = {}
    for client in range(clients):
        file = processes.home / f"node-{client}.toml"
        file.write_text(node_toml(study, client, clients, address), encoding="utf-8")
        words[file.stem] = ("--config", str(file))
    return Nodes(processes, words).start()


def start_node_files(processes: Processes, files: Sequence[Path], address: str) -> Nodes:
    """Start a SuperNode for every node file, named by its folder, whatever SuperLink the file names."""
    words = {file.parent.name: ("--config", str(file), "--superlink", address) for file in files}
    return Nodes(processes, words).start()


def import_path(processes: Processes) -> str:
    """PYTHONPATH of children: where this program was imported from comes first, whatever folder it was started in."""
    return ":".join([str(Path(__file__).parents[1]), *filter(None, [processes.environment.get("PYTHONPATH")])])
