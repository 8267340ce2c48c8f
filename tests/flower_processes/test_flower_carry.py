"""What idle nodes cost: loops that speak Flower's wire are nodes to a real SuperLink."""

from pathlib import Path

import pytest

from deploy.processes import private_home
from studies.flower.carry import carry


@pytest.mark.slow
@pytest.mark.parametrize("kept", [False, True])
def test_nodes_on_the_wire_are_taken_and_counted(tmp_path: Path, kept: bool) -> None:
    with private_home(tmp_path / "logs") as processes:
        found = carry(processes, 8, tmp_path / "superlink.db" if kept else None)
        processes.check()
    assert found.nodes == 8
    assert 0 < found.look < 1000 and found.rate > 0.1 and found.memory > 1e7
