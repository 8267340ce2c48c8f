"""A federation with TLS and keys over hosts of its own: cables that are cut, lines that lose, a server that moves."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from studies.load import load
from studies.run import run

NODES = ("node0", "node1", "node2")
BAD = ("--delay", "0.02", "--stall", "0.02", "--pause", "0.5", "--cut", "0.002")


@pytest.fixture
def federation(hosts: Callable[..., Any], beside: Callable[[str], Any], tmp_path: Path) -> Iterator[Any]:
    """A server and three nodes, online."""
    server, *nodes = hosts(["server", *NODES])
    made = beside("federation").Federation(tmp_path, server, nodes)
    try:
        made.start_server()
        for at in range(len(nodes)):
            made.start_node(at)
        beside("federation").until(lambda: made.online() == len(nodes))
        yield made
    finally:
        made.forget_names()


@pytest.mark.slow
def test_a_cut_of_half_a_minute_over_slow_lines(federation: Any) -> None:
    for node in federation.nodes:
        node.limit()
    child = federation.run_study("out")
    cut(federation, federation.nodes[1], 25.0)
    assert_bits(federation, child, "out")


@pytest.mark.slow
def test_a_cut_that_is_long_enough_for_the_node_to_be_given_up(federation: Any) -> None:
    child = federation.run_study("out")
    cut(federation, federation.nodes[2], 75.0)
    assert_bits(federation, child, "out")


@pytest.mark.slow
def test_a_line_that_delays_stalls_and_resets(federation: Any, beside: Callable[[str], Any]) -> None:
    node, port = federation.nodes[0], 8500
    federation.start_relay(node, port, *BAD)
    federation.stop("node-0")
    beside("federation").until(lambda: federation.online() == len(NODES) - 1)
    federation.name_server("127.0.0.1", [node])
    federation.start_node(0, port)
    beside("federation").until(lambda: federation.online() == len(NODES))
    assert_bits(federation, federation.run_study("out"), "out")


@pytest.mark.slow
def test_a_server_that_comes_back_at_another_address(federation: Any, beside: Callable[[str], Any]) -> None:
    child = federation.run_study("out")
    wait_for_round(federation, 3)
    federation.stop("server")
    assert child.wait(timeout=240) != 0  # nobody is there to ask: said, not waited for
    federation.server.move(federation.server.address.rsplit(".", 1)[0] + ".99")
    federation.name_server(federation.server.address)
    federation.start_server()
    beside("federation").until(lambda: federation.online() == len(NODES))
    assert_bits(federation, federation.run_study("out", "--resume"), "out")


def cut(federation: Any, node: Any, seconds: float) -> None:
    """Cut a node off in the middle of the study, and heal it."""
    wait_for_round(federation, 3)
    node.cut()
    time.sleep(seconds)
    node.heal()


def wait_for_round(federation: Any, count: int) -> None:
    """Wait until that many rounds were answered."""
    deadline = time.monotonic() + 240
    while federation.rounds() < count:
        assert time.monotonic() < deadline, federation.said("out")
        time.sleep(0.1)


def assert_bits(federation: Any, child: Any, out: str) -> None:
    """The study ends well, with the bits of one process."""
    assert child.wait(timeout=400) == 0, federation.said(out)
    found = pq.read_table(federation.folder / out / "results.parquet").drop_columns("runtime")
    expected = run(load(federation.study), federation.folder / "expected", jobs=1).drop_columns("runtime")
    assert found.equals(expected)
