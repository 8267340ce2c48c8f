"""A run on a SuperLink that is not ours: outcomes come through the log, and the federation lives on."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deploy.nodes import start_nodes
from deploy.ports import HOST, free_port
from deploy.processes import private_home
from deploy.superlink import wait_until_ready
from studies.folder import Folder
from studies.load import load
from studies.watch.look import Watch

Commands = Callable[..., Any]


@pytest.mark.slow
def test_a_running_federation_gives_the_same_numbers(
    command: Commands, small: Path, reference: pa.Table, transcribed: Callable[[Path], list[bytes]], tmp_path: Path
) -> None:
    user = tmp_path / "flower"
    user.mkdir()
    with private_home(tmp_path / "logs") as federation:
        port = free_port()
        words = ["flower-superlink", "--insecure", "--host", HOST, "--port", str(port)]
        federation.start("lab", words, HALFTRUTH_TRANSCRIPT=str(tmp_path))
        assert wait_until_ready(federation, "lab", port)
        start_nodes(federation, load(small).study, 2, f"{HOST}:{port}").wait()
        (user / "config.toml").write_text(f'[superlink.lab]\naddress = "{HOST}:{port}"\ninsecure = true\n')
        where = ("--on", "deployment", "--clients", "2", "--superlink", "lab", "--block", "1")
        run = command(*where, FLWR_HOME=str(user))
        code, said = run.end()
        assert code == 0, said
        table = pq.read_table(run.out / "results.parquet")
        assert table["runtime"].unique().to_pylist() == ["deployment"]
        assert table.drop_columns("runtime").equals(reference)
        seen = Watch(Folder(run.out)).look(time.time()).messages  # they came through the log
        assert (seen.rounds, seen.nodes, seen.all, seen.last) == (2, 2, {"answered": 4}, {"answered": 2})
        federation.check()
        _, second = sorted((run.out / "parts").glob("*.parquet"))
        second.unlink()
        (run.out / "results.parquet").unlink()
        again = command(*where, "--resume", FLWR_HOME=str(user))
        code, said = again.end()
        assert code == 0, said
        assert pq.read_table(run.out / "results.parquet").equals(table)
        messages = transcribed(tmp_path)
        assert len(messages) == 2 * (2 + 1), "two nodes answered about two cells, then about the one that was missing"
