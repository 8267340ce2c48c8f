"""The test network itself: cables that are cut cut, slow ones are slow, and the relay does to bytes what it says."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

RELAY = Path(__file__).with_name("relay.py")
ECHO = """
import socket
with socket.create_server(("0.0.0.0", 7000)) as door:
    while True:
        client, _ = door.accept()
        with client:
            while part := client.recv(65536):
                client.sendall(part)
"""
SAY = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=3) as line:
    sent = b"x" * int(sys.argv[3])
    line.sendall(sent)
    got = b""
    while len(got) < len(sent) and (part := line.recv(65536)):
        got += part
    sys.exit(got != sent)
"""


@pytest.fixture
def pair(hosts: Callable[..., Any], tmp_path: Path) -> tuple[Any, Any]:
    """A server that repeats what it hears on port 7000, and a client."""
    server, client = hosts(["server", "client"])
    server.start([sys.executable, "-c", ECHO], tmp_path / "echo.log")
    _until(lambda: _says(client, server.address) == 0)
    return server, client


def test_a_cut_cable_carries_nothing_until_it_is_healed(pair: tuple[Any, Any]) -> None:
    server, client = pair
    client.cut()
    assert _says(client, server.address) != 0
    client.heal()
    _until(lambda: _says(client, server.address) == 0)


def test_a_limited_cable_is_as_slow_as_it_says(pair: tuple[Any, Any]) -> None:
    server, client = pair
    client.limit("4mbit")
    before = time.monotonic()
    assert _says(client, server.address, size=500_000) == 0
    assert time.monotonic() - before > 0.8  # 4 million bits at 4 Mbit/s


def test_a_host_can_get_another_address(pair: tuple[Any, Any]) -> None:
    server, client = pair
    server.move(server.address.rsplit(".", 1)[0] + ".99")
    _until(lambda: _says(client, server.address) == 0)


def test_a_relay_delays_and_cuts(pair: tuple[Any, Any], tmp_path: Path) -> None:
    server, client = pair
    there = f"{server.address}:7000"
    for port, flags in ((7100, ("--delay", "0.3")), (7200, ("--cut", "1"))):
        server.start([sys.executable, str(RELAY), f"{server.address}:{port}", there, *flags], tmp_path / "relay.log")
    _until(lambda: _says(client, server.address, 7100) == 0)
    before = time.monotonic()
    assert _says(client, server.address, 7100) == 0
    assert time.monotonic() - before > 0.6
    _until(lambda: "7200" in (tmp_path / "relay.log").read_text())
    assert _says(client, server.address, 7200) != 0


def _says(client: Any, address: str, port: int = 7000, size: int = 10) -> int:
    code: int = client.run([sys.executable, "-c", SAY, address, str(port), str(size)]).returncode
    return code


def _until(holds: Callable[[], bool], within: float = 30) -> None:
    deadline = time.monotonic() + within
    while not holds():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)
