"""A federation over hosts of a test network: a server and nodes with TLS and keys, each at an address of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAME, PORT = "server.halftruth.test", 8443
ROOT = Path(__file__).parents[2]
RELAY = Path(__file__).with_name("relay.py")
HALFTRUTH = (sys.executable, "-P", "-m", "studies")
ROUNDS = 20
STUDY = f"""
study = {{ name = "rounds", seed = 20226, repetitions = 1 }}
problem = {{ kind = "records", model = "linear", dimension = 4, theta = [1.0, -0.5, 0.25, 0.0], bound = 2 }}
records = {{ features = "uniform(0, 1)", noise = "centred pareto(1.6)", tail = 0.5, moment = 18 }}
grid = {{ n = [600], epsilon = [1.0], delta = [1e-5] }}
arm = [{{ trust = "central", estimator = "descent", rounds = {ROUNDS}, step = 0.1 }}]
"""


@dataclass
class Federation:
    """A server and nodes on hosts. `folder`: everything they write; nodes find the server by its name."""

    folder: Path
    server: Any
    nodes: list[Any]
    children: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    known: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state, self.certs = self.folder / "state", self.folder / "certs"
        self.study = self.folder / "study.toml"
        self.study.write_text(STUDY, encoding="utf-8")
        self.name_server(self.server.address)
        there = self.server.address.rsplit(".", 1)[0]
        addresses = (word for last in (2, 99) for word in ("--host", f"{there}.{last}"))
        self.ok(self.server, "certs", str(self.certs), "--host", NAME, *addresses)

    def name_server(self, address: str, hosts: Sequence[Any] = ()) -> None:
        """Let hosts, or all of them, know the server's name by this address."""
        for host in hosts or (self.server, *self.nodes):
            path = Path("/etc/netns", host.name, "hosts")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"127.0.0.1 localhost\n{address} {NAME}\n", encoding="ascii")  # in place: it is mounted
            self.known.append(path)

    def forget_names(self) -> None:
        """Remove what name_server wrote."""
        for path in set(self.known):
            path.unlink()
            path.parent.rmdir()

    def start_server(self) -> None:
        """Start the server at the address of its host."""
        words = ["server", "--state", str(self.state), "--host", self.server.address, "--port", str(PORT)]
        self.start("server", self.server, *words, "--certs", str(self.certs))
        until(lambda: self.halftruth(self.server, "status", "--state", str(self.state)).returncode == 0)

    def start_node(self, at: int, port: int = PORT) -> None:
        """Start node `at`, registered under the name of its number."""
        key = self.folder / f"node-{at}"
        if not key.exists():
            self.ok(self.nodes[at], "keys", "new", str(key))
            register = ("keys", "register", f"node-{at}", f"{key}.pub", "--state", str(self.state))
            self.ok(self.server, *register)
        words = ["node", "--part", f"{at}/{len(self.nodes)}", "--superlink", f"{NAME}:{port}", "--key", str(key)]
        self.start(f"node-{at}", self.nodes[at], *words, "--certs", str(self.certs / "ca.crt"))

    def start(self, name: str, host: Any, *words: str) -> None:
        """Start a command on a host."""
        log = self.folder / f"{name}.log"
        self.children[name] = host.start([*HALFTRUTH, *words], log, PYTHONPATH=str(ROOT), FLWR_HOME=self._home(host))

    def start_relay(self, host: Any, port: int, *flags: str) -> None:
        """Start a bad line on a host: what is sent to its own `port` goes to the server."""
        words = [sys.executable, str(RELAY), f"127.0.0.1:{port}", f"{self.server.address}:{PORT}", *flags]
        self.children["relay"] = host.start(words, self.folder / "relay.log")
        until(lambda: "->" in self.said("relay"))

    def stop(self, name: str) -> None:
        """End a command, as an operator does."""
        child = self.children.pop(name)
        os.killpg(child.pid, signal.SIGTERM)
        child.wait(timeout=120)

    def run_study(self, out: str, *words: str) -> "subprocess.Popen[bytes]":
        """Start the study on the server's host."""
        told = ["--on", "deployment", "--federation", str(self.state), "--out", str(self.folder / out), *words]
        self.start(out, self.server, "run", str(self.study), *told)
        return self.children[out]

    def rounds(self) -> int:
        """How many rounds all nodes have answered, as Flower's log counts their replies."""
        log = self.state / "logs" / "superlink.log"
        return log.read_text("utf-8", errors="replace").count("Push replies from node") // len(self.nodes)

    def said(self, name: str) -> str:
        """What a command has said."""
        return (self.folder / f"{name}.log").read_text("utf-8", errors="replace")

    def online(self) -> int:
        """How many nodes the server has."""
        return int(json.loads(self.ok(self.server, "status", "--state", str(self.state), "--json"))["online"])

    def ok(self, host: Any, *words: str) -> str:
        """What a command prints that succeeds."""
        done = self.halftruth(host, *words)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return str(done.stdout)

    def halftruth(self, host: Any, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a command on a host to its end."""
        done: subprocess.CompletedProcess[str] = host.run(
            [*HALFTRUTH, *words], PYTHONPATH=str(ROOT), FLWR_HOME=self._home(host)
        )
        return done

    def _home(self, host: Any) -> str:
        path = self.folder / f"home-{host.name}"
        path.mkdir(exist_ok=True)
        return os.fspath(path)


def until(holds: Callable[[], bool], within: float = 240) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + within
    while not holds():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.5)
