"""A run on a SuperLink that is not ours: outcomes come through the log, and the federation lives on."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from studies.flower.nodes import await_nodes, start_nodes
from studies.flower.ports import HOST, free_port
from studies.flower.processes import private_home
from studies.flower.superlink import wait_until_ready
from studies.load import load

Commands = Callable[..., Any]


@pytest.mark.slow
def test_a_running_federation_gives_the_same_numbers(
    command: Commands, small: Path, reference: pa.Table, tmp_path: Path
) -> None:
    user = tmp_path / "flower"
    user.mkdir()
    with private_home(tmp_path / "logs") as federation:
        port = free_port()
        federation.start("lab", ["flower-superlink", "--insecure", "--host", HOST, "--port", str(port)])
        assert wait_until_ready(federation, "lab", port)
        await_nodes(federation, start_nodes(federation, load(small).study, 2, f"{HOST}:{port}"))
        (user / "config.toml").write_text(f'[superlink.lab]\naddress = "{HOST}:{port}"\ninsecure = true\n')
        where = ("--on", "deployment", "--clients", "2", "--superlink", "lab")
        run = command(*where, FLWR_HOME=str(user))
        code, said = run.end()
        assert code == 0, said
        table = pq.read_table(run.out / "results.parquet")
        assert table["runtime"].unique().to_pylist() == ["deployment"]
        assert table.drop_columns("runtime").equals(reference)
        federation.check()
