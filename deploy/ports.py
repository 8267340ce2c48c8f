"""Ports of the loopback interface: free ones, and whether it is our own process that listens."""

import os
import socket
from contextlib import suppress
from pathlib import Path

HOST = "127.0.0.1"
LISTENING = "0A"


def free_port() -> int:
    """A port that was free a moment ago: whoever takes it has to be asked by `listens` whether it got it."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def listens(process: int, port: int) -> bool:
    """Whether this very process listens on the port of the loopback interface.

    Without /proc, whether anybody does.
    """
    if not Path("/proc/self/net/tcp").exists():
        with socket.socket() as probe:
            return probe.connect_ex((HOST, port)) == 0
    lines = (line.split() for line in Path("/proc/self/net/tcp").read_text("ascii").splitlines()[1:])
    sockets = {f"socket:[{f[9]}]" for f in lines if f[3] == LISTENING and int(f[1].partition(":")[2], 16) == port}
    return bool(sockets) and not sockets.isdisjoint(_open_files(process))


def _open_files(process: int) -> set[str]:
    found = set()
    with suppress(OSError):  # the process is gone
        for name in os.listdir(f"/proc/{process}/fd"):
            with suppress(OSError):  # closed in the meantime
                found.add(os.readlink(f"/proc/{process}/fd/{name}"))
    return found
