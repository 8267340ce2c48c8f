"""Hosts of a test network: network namespaces with addresses of their own, on one switch, all on this machine."""

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

BROADBAND = "10mbit"


def unavailable() -> str | None:
    """Why this machine has no network namespaces to offer; None where it has."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    probe = f"ht{os.getpid()}x"
    done = subprocess.run(["ip", "netns", "add", probe], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return f"network namespaces are not allowed here: {done.stderr.strip()}"
    subprocess.run(["ip", "netns", "delete", probe], check=True)
    return None


@dataclass
class Host:
    """A namespace with one address; `cable` is its end of the wire, `port` the switch's end of it."""

    name: str
    address: str
    switch: str
    cable: str
    port: str
    running: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def words(self, command: Sequence[str]) -> list[str]:
        """A command as it is started on this host."""
        return ["ip", "netns", "exec", self.name, *command]

    def start(self, command: Sequence[str], log: Path, **variables: str) -> "subprocess.Popen[bytes]":
        """Start a command on this host, in a process group of its own; its output is appended to `log`."""
        with log.open("ab") as file:
            child = subprocess.Popen(
                self.words(command),
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.running.append(child)
        return child

    def run(self, command: Sequence[str], within: float = 240, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run a command on this host to its end."""
        return subprocess.run(
            self.words(command),
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=within,
        )

    def cut(self) -> None:
        """Pull the cable out."""
        _ip("-n", self.switch, "link", "set", self.port, "down")

    def heal(self) -> None:
        """Put the cable in again."""
        _ip("-n", self.switch, "link", "set", self.port, "up")

    def limit(self, rate: str = BROADBAND) -> None:
        """Let at most `rate` through, both ways."""
        shape = ("root", "tbf", "rate", rate, "burst", "32kbit", "latency", "400ms")
        subprocess.run(["tc", "-n", self.name, "qdisc", "replace", "dev", self.cable, *shape], check=True)
        subprocess.run(["tc", "-n", self.switch, "qdisc", "replace", "dev", self.port, *shape], check=True)

    def move(self, address: str) -> None:
        """Give the host another address, as of a machine that was replaced."""
        _ip("-n", self.name, "address", "flush", "dev", self.cable)
        _ip("-n", self.name, "address", "add", f"{address}/24", "dev", self.cable)
        self.address = address

    def received(self) -> int:
        """Bytes that came in through the cable."""
        return self._counted("rx_bytes")

    def sent(self) -> int:
        """Bytes that went out through the cable."""
        return self._counted("tx_bytes")

    def _counted(self, what: str) -> int:
        done = self.run(["cat", f"/sys/class/net/{self.cable}/statistics/{what}"])
        return int(done.stdout)


@contextmanager
def network(names: Sequence[str]) -> Iterator[list[Host]]:
    """Hosts by these names on one switch; whatever still runs on them is killed at the end, by namespace."""
    mark = f"ht{os.getpid() % 100_000}"
    subnet = f"10.{70 + os.getpid() % 100}.{os.getpid() // 100 % 250}"
    switch = f"{mark}-switch"
    hosts = [
        Host(f"{mark}-{name}", f"{subnet}.{at + 2}", switch, f"{mark}c{at}", f"{mark}p{at}")
        for at, name in enumerate(names)
    ]
    made: list[str] = []
    try:
        for name in (switch, *(host.name for host in hosts)):
            _ip("netns", "add", name)
            made.append(name)
            _ip("-n", name, "link", "set", "lo", "up")
        _ip("-n", switch, "link", "add", "bridge", "type", "bridge")
        _ip("-n", switch, "link", "set", "bridge", "up")
        for host in hosts:
            _plug(host)
        yield hosts
    finally:
        for name in made:
            _clear(name)
        for child in (child for host in hosts for child in host.running):
            child.wait()


def _plug(host: Host) -> None:
    _ip("-n", host.name, "link", "add", host.cable, "type", "veth", "peer", "name", host.port)
    _ip("-n", host.name, "link", "set", host.port, "netns", host.switch)
    _ip("-n", host.switch, "link", "set", host.port, "master", "bridge")
    _ip("-n", host.switch, "link", "set", host.port, "up")
    _ip("-n", host.name, "address", "add", f"{host.address}/24", "dev", host.cable)
    _ip("-n", host.name, "link", "set", host.cable, "up")


def _clear(name: str) -> None:
    """End every process of a namespace, then the namespace."""
    deadline = time.monotonic() + 20
    while (left := _processes(name)) and time.monotonic() < deadline:
        for process in left:
            subprocess.run(["kill", "-9", process], capture_output=True, check=False)
        time.sleep(0.1)
    _ip("netns", "delete", name)


def _processes(name: str) -> list[str]:
    return subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=True).stdout.split()


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)
