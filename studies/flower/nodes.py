"""The node files of a study's clients, and the SuperNodes that read them."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from protocol.decimals import canonical
from protocol.study import Study
from studies.flower.ports import free_port
from studies.flower.processes import FlowerFailed, Processes
from studies.flower.superlink import ATTEMPTS, wait_until_ready


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

[superlink]
address = "{address}"
insecure = true
"""


def start_nodes(processes: Processes, study: Study, clients: int, address: str) -> dict[Path, int]:
    """Start a SuperNode for every client; returns their node files and ports."""
    files = [_write(processes.home, study, client, clients, address) for client in range(clients)]
    return {file: _start(processes, file) for file in files}


def await_nodes(processes: Processes, nodes: Mapping[Path, int]) -> None:
    """Wait until every node listens, on another port where its own was taken meanwhile. Raises FlowerFailed."""
    for file, port in nodes.items():
        for _ in range(ATTEMPTS):
            if wait_until_ready(processes, file.stem, port):
                break
            processes.forget(file.stem)
            port = _start(processes, file)
        else:
            raise FlowerFailed(f"{file.stem} ended {ATTEMPTS} times; its log: {processes.log(file.stem)}")


def _start(processes: Processes, file: Path) -> int:
    port = free_port()
    words = [sys.executable, "-m", "studies", "node", "--config", str(file), "--port", str(port)]
    processes.start(file.stem, words, PYTHONPATH=_import_path(processes))
    return port


def _write(home: Path, study: Study, client: int, clients: int, address: str) -> Path:
    file = home / f"node-{client}.toml"
    file.write_text(node_toml(study, client, clients, address), encoding="utf-8")
    return file


def _import_path(processes: Processes) -> str:
    """Where this program was imported from comes first, whatever folder it was started in."""
    return ":".join([str(Path(__file__).parents[2]), *filter(None, [processes.environment.get("PYTHONPATH")])])
