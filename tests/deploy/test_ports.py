"""Ports: who listens is found by the process, not by the port alone."""

import os
import socket

import pytest

from deploy.ports import HOST, free_port, listens, taken


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, HOST), (socket.AF_INET6, "::1")])
def test_who_listens_is_named(family: socket.AddressFamily, host: str) -> None:
    port = free_port()
    assert taken(host, port) is None
    with socket.socket(family) as server:
        try:
            server.bind((host, port))
        except OSError:
            pytest.skip("this machine has no IPv6")
        server.listen()
        assert listens(os.getpid(), port)
        assert not listens(os.getppid(), port)
        found = taken(host, port)
        assert found is not None
        assert f"process {os.getpid()} (" in found
    assert taken(host, port) is None


def test_a_host_of_another_machine_is_not_a_taken_port() -> None:
    with pytest.raises(OSError, match="assign"):
        taken("192.0.2.1", free_port())
