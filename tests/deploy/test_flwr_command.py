"""What Flower's command says is understood whatever the environment asks of terminals."""

import os
from pathlib import Path

import pytest

from deploy.flwr_command import COLOURS, private_connection
from deploy.ports import HOST, free_port
from deploy.processes import QUIET, FlowerFailed


def test_an_environment_that_forces_colours_gives_json_all_the_same(tmp_path: Path) -> None:
    environment = {**os.environ, **QUIET, **dict.fromkeys(COLOURS, "1"), "FLWR_HOME": str(tmp_path)}
    superlink = private_connection(tmp_path, environment, f"{HOST}:{free_port()}")
    with pytest.raises(FlowerFailed, match=r"failed: \{'success': False"):  # nobody is there, as JSON said
        superlink.nodes()
