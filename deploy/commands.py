"""The commands that a federation's nodes are started with, and how its server is reached from this machine."""

import sys
from pathlib import Path

from client.node_file import NodeFileError, read_node
from deploy.federation import Plan, State
from deploy.ports import HOST
from protocol.strict import StudyError

NODE_FILE = "node.toml"


def node_words(plan: Plan, address: str) -> dict[str, list[str]]:
    """The command of each node by its name."""
    if isinstance(plan.nodes, str):
        folders = sorted(file.parent for file in Path(plan.nodes).glob(f"*/{NODE_FILE}"))
        if not folders:
            raise StudyError(f"--nodes: expected folders with a node.toml in {plan.nodes}, found none")
        which = {folder.name: ["--config", str(folder / NODE_FILE)] for folder in folders}
    else:
        which = {f"node-{part}": ["--part", f"{part}/{plan.nodes}"] for part in range(plan.nodes)}
    where = ["--superlink", address]
    if plan.certs is not None:
        where += ["--certs", str(Path(plan.certs) / "ca.crt")]
    command = [sys.executable, "-m", "studies", "node"]
    return {
        name: [*command, *words, *where, *(["--key", str(key_of(plan, name))] if plan.keys else [])]
        for name, words in which.items()
    }


def key_of(plan: Plan, name: str) -> Path:
    """Where the private key of a node is: the one that its own file names, which members of sessions know it by, or one
    of the federation's. Raises StudyError for a node file that does not read.
    """
    if isinstance(plan.nodes, str):
        try:
            own = read_node(Path(plan.nodes) / name / NODE_FILE).key
        except NodeFileError as error:
            raise StudyError(str(error)) from None
        if own is not None:
            return own
    return State(Path(plan.state)).keys / name


def local_host(host: str) -> str:
    """By which host this machine itself reaches a server that listens on `host`."""
    return {"0.0.0.0": HOST, "::": "::1"}.get(host, host)


def join(host: str, port: int) -> str:
    """Host and port as an address.

    >>> join("::1", 8443)
    '[::1]:8443'
    """
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
