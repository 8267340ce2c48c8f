"""The commands that a federation's nodes are started with, and how its server is reached from this machine."""

import sys
from pathlib import Path

from deploy.federation import Plan, State
from deploy.ports import HOST
from protocol.strict import StudyError


def node_words(plan: Plan, address: str) -> dict[str, list[str]]:
    """The command of each node by its name."""
    if isinstance(plan.nodes, str):
        folders = sorted(file.parent for file in Path(plan.nodes).glob("*/node.toml"))
        if not folders:
            raise StudyError(f"--nodes: expected folders with a node.toml in {plan.nodes}, found none")
        which = {folder.name: ["--config", str(folder / "node.toml")] for folder in folders}
    else:
        which = {f"node-{part}": ["--part", f"{part}/{plan.nodes}"] for part in range(plan.nodes)}
    where = ["--superlink", address]
    if plan.certs is not None:
        where += ["--certs", str(Path(plan.certs) / "ca.crt")]
    keys = State(Path(plan.state)).keys
    command = [sys.executable, "-m", "studies", "node"]
    return {
        name: [*command, *words, *where, *(["--key", str(keys / name)] if plan.keys else [])]
        for name, words in which.items()
    }


def local_host(host: str) -> str:
    """By which host this machine itself reaches a server that listens on `host`."""
    return {"0.0.0.0": HOST, "::": "::1"}.get(host, host)


def join(host: str, port: int) -> str:
    """Host and port as an address.

    >>> join("::1", 8443)
    '[::1]:8443'
    """
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
