"""Ports of this machine: free ones, whether it is our own process that listens, and who else does."""

import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

HOST = "127.0.0.1"
LISTENING = "0A"
PROC, TABLES = Path("/proc"), ("tcp", "tcp6")


def free_port() -> int:
    """A port that was free a moment ago: whoever takes it has to be asked by `listens` whether it got it."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def listens(process: int, port: int) -> bool:
    """Whether this very process listens on the port of this machine.

    Without /proc, whether anybody does on the loopback interface.
    """
    if not (PROC / "self" / "net" / "tcp").exists():
        with socket.socket() as probe:
            return probe.connect_ex((HOST, port)) == 0
    sockets = set(_listening(port))
    return bool(sockets) and not sockets.isdisjoint(_open_files(process))


def taken(host: str, port: int) -> str | None:
    """Who has a port that cannot be listened on, in words; None where it is free.

    Raises OSError for a host that is not this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: one that just ended does not count
        try:
            probe.bind((host, port))
            probe.listen()
            return None
        except PermissionError:
            return "this user may not listen on it"
        except OSError:
            if not any(_listening(port)) and PROC.is_dir():
                raise  # not the port, then, but the host
    return _holder(port) or "another user's program"


def _listening(port: int) -> Iterator[str]:
    """Sockets that listen on a port, as /proc/PID/fd names them."""
    for table in TABLES:
        with suppress(OSError):  # without IPv6
            for line in (PROC / "self" / "net" / table).read_text("ascii").splitlines()[1:]:
                words = line.split()
                if words[3] == LISTENING and int(words[1].rpartition(":")[2], 16) == port:
                    yield f"socket:[{words[9]}]"


def _holder(port: int) -> str | None:
    sockets = set(_listening(port))
    for name in filter(str.isdecimal, os.listdir(PROC) if PROC.is_dir() else ()):
        if not sockets.isdisjoint(_open_files(int(name))):
            with suppress(OSError):
                words = (PROC / name / "cmdline").read_bytes().decode(errors="replace").split("\0")
                return f"process {name} ({' '.join(words).strip()[:80]})"
    return None


def _open_files(process: int) -> set[str]:
    found = set()
    with suppress(OSError):  # the process is gone
        for name in os.listdir(PROC / str(process) / "fd"):
            with suppress(OSError):  # closed in the meantime
                found.add(os.readlink(PROC / str(process) / "fd" / name))
    return found
