"""A SuperLink: how it serves, and how it is started and waited for, whoever keeps it."""

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from deploy.certs import Certificates
from deploy.commands import join, local_host
from deploy.flower_private import superlink as flower_superlink
from deploy.flwr_command import SuperLink, private_connection
from deploy.ports import HOST, free_port, taken
from deploy.processes import FlowerFailed, Processes, program
from protocol.strict import reason
from server import kernel_cache

SUPERLINK = "superlink"
STARTING = 120.0  # seconds; an idle machine takes two
# Beside the code that is installed, like Python's own: the server's copy of it has another folder every time. Where
# nothing can be written there, as in an image, the environment names a place.
KERNELS = {
    "NUMBA_CACHE_LOCATOR_CLASSES": "server.kernel_cache.Kept",
    kernel_cache.FOLDER: os.environ.get(kernel_cache.FOLDER) or str(Path(kernel_cache.__file__).parent / "__pycache__"),
}
SELDOM = {"FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "1"}  # looks of Flower's executor for a run to start, each a call
ATTEMPTS = 3  # a port may be taken between choosing and using it


@dataclass(frozen=True)
class Serving:
    """How a SuperLink serves: by default only this machine's loopback interface, without encryption.

    `port` 0 is any free one. `keys`: only nodes whose keys are registered may come, which wants `certs`. `database`: a
    file by which it remembers nodes and runs when it is started again.
    """

    host: str = HOST
    port: int = 0
    certs: Certificates | None = None
    keys: bool = False
    database: Path | None = None
    simulation: bool = False

    def words(self, port: int) -> list[str]:
        """The command."""
        words = [sys.executable, "-P", flower_superlink.__file__, program("flower-superlink")]
        words += ["--host", self.host, "--port", str(port)]
        words += ["--disable-runtime-dependency-installation", *(["--simulation"] if self.simulation else [])]
        words += ["--database", str(self.database)] if self.database else []
        if self.certs is None:
            return [*words, "--insecure"]
        words += ["--ssl-certfile", str(self.certs.certificate), "--ssl-keyfile", str(self.certs.key)]
        words += ["--ssl-ca-certfile", str(self.certs.authority)]
        return [*words, "--enable-supernode-auth"] if self.keys else words


def start_superlink(processes: Processes, serving: Serving, **variables: str) -> tuple[SuperLink, str]:
    """Start a SuperLink and wait until it listens; returns the connection to it and its address.

    `variables` are in its environment, and in that of the server's app.
    Raises FlowerFailed where it does not listen in time, or its port is somebody's.
    """
    for _ in range(ATTEMPTS):
        _check_free(serving)
        port = serving.port or free_port()
        processes.start(SUPERLINK, serving.words(port), **{**KERNELS, **SELDOM, **variables})
        if wait_until_ready(processes, SUPERLINK, port):
            address = join(local_host(serving.host), port)
            authority = serving.certs.authority if serving.certs else None
            return private_connection(processes.home, processes.environment, address, authority), address
        if processes.lives(SUPERLINK):
            raise FlowerFailed(
                f"expected the SuperLink to listen within {STARTING:g} seconds, got none; its log: "
                f"{processes.log(SUPERLINK)}"
            )
        processes.forget(SUPERLINK)
    raise FlowerFailed(f"the SuperLink ended {ATTEMPTS} times in vain; its log: {processes.log(SUPERLINK)}")


def _check_free(serving: Serving) -> None:
    """Raise FlowerFailed where the host is not this machine's, or the port is somebody's."""
    try:
        holder = taken(serving.host, serving.port)
    except OSError as error:
        raise FlowerFailed(
            f"--host {serving.host}: expected an address of this machine, but the system says: {reason(error)}"
        ) from None
    if holder:
        raise FlowerFailed(f"port {serving.port} of {serving.host} is taken by {holder}: name another one")


def wait_until_ready(processes: Processes, name: str, port: int) -> bool:
    """Wait until a child listens on its port; false where it ends instead, or needs too long."""
    deadline = time.monotonic() + STARTING
    while time.monotonic() < deadline and processes.lives(name):
        if processes.ready(name, port):
            return True
        time.sleep(0.05)
    return False
