"""What a federation leaves in its folder: who lives is told by a lock, and what a killed keeper left is swept."""

import multiprocessing
import os
import socket
import stat
import subprocess
import sys
from dataclasses import replace
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from deploy import background, commands, federation, keeper, look
from deploy.certs import ensure, read
from deploy.federation import RUNNING, Child, Plan, Record, Runs, State, began, held, is_keeper, is_kept
from deploy.processes import FlowerFailed, private_home
from deploy.superlink import Serving, start_superlink
from protocol.strict import StudyError

SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State(tmp_path / "state").make()


def record(state: State, home: str = "") -> Record:
    plan = Plan(str(state.folder), 2, certs=str(state.certs), keys=True)
    return Record(
        plan, os.getpid(), began(os.getpid()), "1.2.3", home, "127.0.0.1:1", RUNNING, "", {"node-0": Child(7)}
    )


def hold(folder: Path, holds: Event, enough: Event) -> None:
    with held(State(folder)):
        holds.set()
        enough.wait(120)


def test_a_record_is_read_as_it_was_written(state: State) -> None:
    assert federation.read(state) is None
    federation.write(record(state))
    assert federation.read(state) == record(state)
    assert record(state).authority == state.certs / "ca.crt"
    for nonsense in (b"", b"[]", b"{}", b'{"children": {}, "plan": {"state": "x", "unheard": 1}}'):
        state.record.write_bytes(nonsense)
        assert federation.read(state) is None


def test_a_lock_is_held_as_long_as_its_keeper_lives(state: State) -> None:
    assert not is_kept(state)
    holds, enough = SPAWN.Event(), SPAWN.Event()
    other = SPAWN.Process(target=hold, args=(state.folder, holds, enough))
    other.start()
    assert holds.wait(120)
    assert is_kept(state)
    with pytest.raises(Runs, match=r"runs already in .*halftruth status --state"), held(state):
        pass
    other.kill()
    other.join()
    assert not is_kept(state)
    with held(state):
        pass


def test_a_process_that_got_the_number_of_a_keeper_is_not_one(state: State) -> None:
    if not Path("/proc/self/stat").exists():
        pytest.skip("when a process began is read in /proc")
    assert is_keeper(record(state))
    assert not is_keeper(replace(record(state), began="another boot:1"))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert not is_keeper(replace(record(state), keeper=ended.pid))


def test_what_a_killed_keeper_left_is_ended_and_forgotten(state: State, tmp_path: Path) -> None:
    if not Path("/proc/self/environ").exists():
        pytest.skip("processes are looked for in /proc")
    home = tmp_path / "home"
    home.mkdir()
    orphan = subprocess.Popen(["sleep", "600"], env={"FLWR_HOME": str(home), "PATH": os.environ["PATH"]})
    federation.write(record(state, str(home)))
    assert look.status(state).phase == "killed"
    assert background.stop(state)
    assert orphan.wait(60) < 0
    assert not home.exists() and federation.read(state) is None
    assert not background.stop(state)
    assert look.status(state).phase == "down"


def test_nothing_runs_is_an_error_of_those_who_need_it(state: State) -> None:
    for folder in (state, State(state.folder / "nowhere")):
        assert look.keyed_link(folder, needed=False) is None
        with pytest.raises(FlowerFailed, match=r"expected a federation that runs in .*, found none"):
            look.keyed_link(folder)


def test_plans_that_cannot_be_kept_are_refused_before_anything_starts(state: State, tmp_path: Path) -> None:
    plan = Plan(str(state.folder))
    keeper.check(plan)
    ensure(tmp_path / "certs")
    safe = replace(plan, certs=str(tmp_path / "certs"), keys=True)
    keeper.check(safe)
    keeper.check(replace(safe, host="0.0.0.0"))
    for wrong, words in (
        (replace(plan, keys=True), "a key proves nothing without encryption"),
        (replace(plan, host="0.0.0.0"), "expected --certs with it"),
        (replace(plan, certs=str(tmp_path / "none")), "make it with halftruth certs"),
        (
            replace(safe, host="10.0.0.5"),
            r"expected it to hold 10\.0\.0\.5.*halftruth certs .* --host 10\.0\.0\.5 --renew",
        ),
    ):
        with pytest.raises(StudyError, match=words):
            keeper.check(wrong)
    with pytest.raises(StudyError, match=r"expected folders with a node\.toml"):
        background.start(replace(plan, nodes=str(tmp_path)))
    assert not is_kept(state)


def test_a_host_of_another_machine_is_named(state: State, tmp_path: Path) -> None:
    with private_home(tmp_path / "logs") as processes:
        for host in ("192.0.2.1", "nowhere.invalid"):
            with pytest.raises(FlowerFailed, match=rf"--host {host}: expected an address of this machine, but"):
                start_superlink(processes, Serving(host, 8000))


def test_a_keeper_whose_record_does_not_read_is_not_ended_by_guessing(state: State) -> None:
    with held(state):
        state.record.write_text("{")
        with pytest.raises(StudyError, match=r"federation\.json: expected a record of who keeps .*holds .*lock"):
            background.stop(state)


def test_commands_of_a_plan(state: State, tmp_path: Path) -> None:
    ensure(tmp_path / "certs")
    plan = Plan(str(state.folder), 2, certs=str(tmp_path / "certs"), keys=True)
    words = Serving(certs=read(tmp_path / "certs"), keys=True).words(8443)
    assert words[-1] == "--enable-supernode-auth" and "--insecure" not in words
    assert Serving().words(8443)[-1] == "--insecure"
    assert commands.node_words(plan, "127.0.0.1:9")["node-1"][1:] == [
        *("-m", "studies", "node", "--part", "1/2", "--superlink", "127.0.0.1:9"),
        *("--certs", str(tmp_path / "certs" / "ca.crt"), "--key", str(state.keys / "node-1")),
    ]
    for name in ("b", "a"):
        (tmp_path / "nodes" / name).mkdir(parents=True)
        (tmp_path / "nodes" / name / "node.toml").touch()
    words = commands.node_words(Plan(str(state.folder), str(tmp_path / "nodes")), "127.0.0.1:9")
    assert list(words) == ["a", "b"]
    assert words["a"][4:] == ["--config", str(tmp_path / "nodes/a/node.toml"), "--superlink", "127.0.0.1:9"]


def test_what_the_superlink_remembers_is_its_owner_s_alone(tmp_path: Path) -> None:
    """Replies pass through its database, exact sums among them, and whoever made the folder may have left it open."""
    open_folder = State(tmp_path / "open")
    open_folder.folder.mkdir(mode=0o755)
    left = open_folder.database.with_name("superlink.db-wal")
    left.write_bytes(b"")
    left.chmod(0o644)
    with socket.create_server(("127.0.0.1", 0)) as other, private_home(tmp_path / "logs") as processes:
        plan = Plan(str(open_folder.folder), port=other.getsockname()[1], lasting=True)
        kept = keeper.Keeper(plan, processes, print, replace(record(open_folder), plan=plan))
        with pytest.raises(FlowerFailed, match="is taken"):
            kept.start()
    assert [stat.S_IMODE(path.stat().st_mode) for path in (open_folder.database, left)] == [0o600] * 2
