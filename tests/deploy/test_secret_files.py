"""Files that are whole or not there: what a full disk leaves stands in nobody's way, and is said with its name."""

import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deploy import background, certs, keeper, node_keys, secret_files
from deploy.federation import RUNNING, Plan, Record, State
from deploy.processes import FlowerFailed, private_home
from deploy.superlink import SUPERLINK
from studies.cli import main


@contextmanager
def full_disk() -> Iterator[None]:
    """No file may grow: what a full disk does, with another number."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_file_is_whole_and_its_owner_s_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    with full_disk(), pytest.raises(OSError, match=str(path)):
        secret_files.write_new(path, b"once")
    assert list(tmp_path.iterdir()) == []
    secret_files.write_new(path, b"once")
    with pytest.raises(FileExistsError, match=str(path)):
        secret_files.write_new(path, b"twice")
    with full_disk(), pytest.raises(OSError, match=str(path)):
        secret_files.replace(path, b"twice")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"once", 0o600)
    secret_files.replace(path, b"twice", secret_files.PUBLIC)
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"twice", 0o644)
    assert list(tmp_path.iterdir()) == [path]


def test_keys_and_certificates_are_made_when_there_is_room_again(tmp_path: Path) -> None:
    with full_disk():
        for make in (lambda: node_keys.ensure_key(tmp_path / "key"), lambda: certs.ensure(tmp_path / "certs")):
            with pytest.raises(OSError, match=str(tmp_path)):
                make()
    assert node_keys.ensure_key(tmp_path / "key")[1]
    assert set(certs.ensure(tmp_path / "certs")[1]) == {certs.CA, certs.CA_KEY, certs.CERTIFICATE, certs.KEY}


def test_a_federation_without_room_does_not_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with full_disk(), pytest.raises(FlowerFailed, match=rf"{tmp_path}/state: expected room"):
        background.start(Plan(str(tmp_path / "state"), 1))
    assert not list((tmp_path / "state").glob("*.json"))
    assert main(("up", "--nodes", "1", "--port", "99999", "--state", str(tmp_path / "state"))) == 2
    assert "--port: expected 0 (any free one) to 65535, got 99999" in capsys.readouterr().err


def test_a_federation_that_runs_outlives_a_full_disk(tmp_path: Path) -> None:
    plan, said = Plan(str(State(tmp_path / "state").make().folder)), list[str]()
    with private_home(tmp_path / "logs") as processes:
        processes.start(SUPERLINK, ["sleep", "600"])
        kept = keeper.Keeper(plan, processes, said.append, Record(plan, 1, "", "1", phase=RUNNING))
        kept._kept[SUPERLINK] = keeper._Kept()
        processes.kill(SUPERLINK)
        with full_disk():
            kept._revive()
        assert processes.lives(SUPERLINK) and kept._kept[SUPERLINK].starts == 2
    assert said[0].startswith("superlink ended with signal SIGKILL") and said[0].endswith(": started again")
    assert said[1].startswith("what halftruth status shows is old: ")
