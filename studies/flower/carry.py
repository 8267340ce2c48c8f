"""`python -m studies.flower.carry`: what idle nodes cost a real SuperLink: hundreds register, and ask for messages.

The nodes are loops that speak Flower's wire, since so many processes would not fit on one machine.
"""

import argparse
import base64
import http.client
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from flwr.proto.fleet_pb2 import (
    ActivateNodeRequest,
    ActivateNodeResponse,
    PullMessagesRequest,
    RegisterNodeFleetRequest,
)
from flwr.proto.node_pb2 import Node

from deploy.ending import PROC
from deploy.ports import HOST
from deploy.processes import FlowerFailed, Processes, private_home
from deploy.superlink import SUPERLINK, Serving, start_superlink
from studies.terminal import print_line

NODES = (10, 100, 1_000)
CALLS = 400  # of nodes that ask whether there is a message
AT_ONCE = 4
KEPT = 3.0  # seconds without a request after which a connection is not used again: Flower closes it after five
BEAT = (
    1800.0  # seconds to the next sign of life that a node promises: more than this lasts, and as much as Flower takes
)


@dataclass
class Caller:
    """A node on the wire: a key of its own, and a connection that it keeps."""

    port: int

    def __post_init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP384R1())
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        self._public = self._key.public_key().public_bytes(serialization.Encoding.PEM, form)
        self._talk = http.client.HTTPConnection(HOST, self.port, timeout=60)
        self._node, self._last = Node(), 0.0

    def come(self) -> None:
        """Register and say that it is here."""
        self._post("register-node", RegisterNodeFleetRequest(public_key=self._public).SerializeToString())
        here = ActivateNodeRequest(public_key=self._public, heartbeat_interval=BEAT)
        answer = ActivateNodeResponse.FromString(self._post("activate-node", here.SerializeToString()))
        self._node = Node(node_id=answer.node_id)

    def look(self) -> None:
        """Ask once whether there is a message."""
        self._post("pull-messages", PullMessagesRequest(node=self._node).SerializeToString())

    def leave(self) -> None:
        """Close the connection."""
        self._talk.close()

    def _post(self, path: str, body: bytes) -> bytes:
        now = datetime.now(UTC).isoformat()
        signature = self._key.sign(now.encode("ascii"), ec.ECDSA(hashes.SHA256()))
        words = {"flwr-timestamp": now, "Content-Type": "application/protobuf"}
        for name, raw in (("flwr-public-key", self._public), ("flwr-signature", signature)):
            words[name] = base64.b64encode(raw).decode("ascii")
        if time.monotonic() - self._last > KEPT:
            self._talk.close()  # the next request opens it again
        self._talk.request("POST", f"/v1/fleet/{path}", body, words)
        answer = self._talk.getresponse()
        content, self._last = answer.read(), time.monotonic()
        if answer.status != http.client.OK:
            raise FlowerFailed(f"expected status 200 of {path}, got {answer.status}: {content[:200]!r}")
        return content


@dataclass(frozen=True)
class Carried:
    """What `nodes` nodes cost a SuperLink: CPU milliseconds to come, and a look for messages; looks that it answered
    each second; its resident memory in bytes.
    """

    nodes: int
    coming: float
    look: float
    rate: float
    memory: int


def carry(processes: Processes, nodes: int, database: Path | None) -> Carried:
    """Start a SuperLink, let nodes come, and let them ask. Raises FlowerFailed."""
    _, address = start_superlink(processes, Serving(database=database))
    link, port = processes.id(SUPERLINK), int(address.rpartition(":")[2])
    callers = [Caller(port) for _ in range(nodes)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        before, idle = _cpu(link), time.monotonic()
        list(pool.map(Caller.come, callers))
        there, begun = _cpu(link), time.monotonic()
        list(pool.map(_ask, [callers[part::AT_ONCE] for part in range(AT_ONCE)]))
        after, ended = _cpu(link), time.monotonic()
    for caller in callers:
        caller.leave()
    time.sleep(2)
    rest = (_cpu(link) - after) / (time.monotonic() - ended)  # what it spends when nobody asks
    memory = int((PROC / str(link) / "statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    coming = (there - before - rest * (begun - idle)) / nodes
    look = (after - there - rest * (ended - begun)) / CALLS
    return Carried(nodes, 1e3 * coming, 1e3 * look, CALLS / (ended - begun), memory)


def _ask(callers: Sequence[Caller]) -> None:
    """The share of one thread: its callers look in turn."""
    for index in range(CALLS // AT_ONCE):
        callers[index % len(callers)].look()


def _cpu(process: int) -> float:
    fields = (PROC / str(process) / "stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    """Measure and print."""
    argparse.ArgumentParser(prog="python -m studies.flower.carry", description=__doc__).parse_args()
    for kept in (False, True):
        for nodes in NODES:
            with tempfile.TemporaryDirectory() as folder, private_home(Path(folder) / "logs") as processes:
                found = carry(processes, nodes, Path(folder) / "superlink.db" if kept else None)
            print_line(
                f"{nodes:5} nodes, state in {'a database' if kept else 'memory'}: CPU of the SuperLink "
                f"{found.coming:.1f} ms for a node to come, {found.look:.1f} a look; {found.rate:.0f} looks a second; "
                f"{found.memory / 1e6:.0f} MB; load {os.getloadavg()[0]:.1f}"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
