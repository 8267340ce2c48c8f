"""A private SuperLink: its own port of the loopback interface, its own Flower home, no database that outlives it."""

import os
import time
from pathlib import Path

from deploy.flwr_command import SuperLink, private_connection
from deploy.ports import HOST, free_port
from deploy.processes import FlowerFailed, Processes
from server import kernel_cache

SUPERLINK = "superlink"
STARTING = 120.0  # seconds; an idle machine takes two
# Beside the code that is installed, like Python's own: the server's copy of it has another folder every time. Where
# nothing can be written there, as in an image, the environment names a place.
KERNELS = {
    "NUMBA_CACHE_LOCATOR_CLASSES": "server.kernel_cache.Kept",
    kernel_cache.FOLDER: os.environ.get(kernel_cache.FOLDER) or str(Path(kernel_cache.__file__).parent / "__pycache__"),
}
ATTEMPTS = 3  # a port may be taken between choosing and using it


def start_superlink(
    processes: Processes, outcomes: Path, *, simulation: bool, **variables: str
) -> tuple[SuperLink, str]:
    """Start a SuperLink that writes outcomes to a folder; returns the connection to it and its address.

    `variables` are in its environment, and in that of the server's app.
    Raises FlowerFailed where it does not listen in time.
    """
    for _ in range(ATTEMPTS):
        port = free_port()
        words = ["flower-superlink", "--insecure", "--host", HOST, "--port", str(port)]
        words += ["--disable-runtime-dependency-installation", *(["--simulation"] if simulation else [])]
        processes.start(SUPERLINK, words, HALFTRUTH_OUTCOMES=str(outcomes), **KERNELS, **variables)
        if wait_until_ready(processes, SUPERLINK, port):
            address = f"{HOST}:{port}"
            return private_connection(processes.home, processes.environment, address, None), address
        if processes.lives(SUPERLINK):
            raise FlowerFailed(f"expected the SuperLink to listen within {STARTING:g} seconds, got none")
        processes.forget(SUPERLINK)
    raise FlowerFailed(f"the SuperLink ended {ATTEMPTS} times in vain; its log: {processes.log(SUPERLINK)}")


def wait_until_ready(processes: Processes, name: str, port: int) -> bool:
    """Wait until a child listens on its port; false where it ends instead, or needs too long."""
    deadline = time.monotonic() + STARTING
    while time.monotonic() < deadline and processes.lives(name):
        if processes.ready(name, port):
            return True
        time.sleep(0.05)
    return False
