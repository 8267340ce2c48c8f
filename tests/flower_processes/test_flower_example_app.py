"""The example app of the guides over a real SuperLink and SuperNodes, all started by Flower's own commands."""

import re
import subprocess
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from client.ledger_view import read_labelers
from deploy.flwr_command import SuperLink
from deploy.plugin.updates import channel_of
from deploy.ports import HOST, free_port
from deploy.processes import private_home, program
from deploy.superlink import wait_until_ready

EXAMPLE = Path(__file__).resolve().parents[2] / "docs/examples/flower"
NODES, ROUNDS = 3, 5
Run = Callable[[str], np.ndarray]


@pytest.fixture
def federation(tmp_path: Path) -> Iterator[Run]:
    """Runs an app on a SuperLink with three nodes, each at home in a folder of its own, and gives its model."""
    with private_home(tmp_path / "logs") as processes:
        port = free_port()
        processes.start("lab", ["flower-superlink", "--insecure", "--host", HOST, "--port", str(port)])
        assert wait_until_ready(processes, "lab", port)
        for node in range(NODES):
            home = tmp_path / f"node-{node}"
            home.mkdir()
            words = ["flower-supernode", "--insecure", "--superlink", f"{HOST}:{port}", "--port", str(free_port())]
            said = f"partition-id={node} num-partitions={NODES}"
            processes.start(home.name, [*words, "--node-config", said], HOME=str(home))
        user = tmp_path / "user"
        user.mkdir()
        (user / "config.toml").write_text(f'[superlink.lab]\naddress = "{HOST}:{port}"\ninsecure = true\n')
        environment = processes.environment | {"FLWR_HOME": str(user)}
        deadline = time.monotonic() + 120
        while [node.status for node in SuperLink("lab", environment).nodes()] != ["online"] * NODES:
            processes.check()
            assert time.monotonic() < deadline, "nodes do not come"

        def run(app: str) -> np.ndarray:
            words = [program("flwr"), "run", str(EXAMPLE / app), "lab", "--stream"]
            done = subprocess.run(
                words, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True
            )
            found = re.search(r"slopes: ([-. \d]+)", done.stdout)
            assert found, done.stdout + done.stderr
            return np.array([float(word) for word in found[1].split()])

        yield run
        processes.check()


@pytest.mark.slow
def test_two_lines_make_an_app_private_on_a_real_federation(federation: Run, tmp_path: Path) -> None:
    """Six standard deviations of the noise of five rounds, 2e-9 a coordinate; what is asked again is free."""
    ledgers = [tmp_path / f"node-{node}/.halftruth/health.sqlite" for node in range(NODES)]
    plain = federation("plain")
    assert not any(ledger.exists() for ledger in ledgers)
    private = federation("private")
    noise = np.sqrt(ROUNDS * channel_of(Decimal(8), Decimal("0.5"), 3).worst_mse / 3 / NODES)
    assert (private != plain).all() and (np.abs(private - plain) < 6 * noise).all()
    assert [[one.epsilon for one in read_labelers(ledger)] for ledger in ledgers] == [[Decimal(40)]] * NODES
    assert (federation("private") == private).all()
    assert [[one.epsilon for one in read_labelers(ledger)] for ledger in ledgers] == [[Decimal(40)]] * NODES
