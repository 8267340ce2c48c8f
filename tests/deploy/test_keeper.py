"""What a keeper starts again and what it does not: real processes that do nothing, in place of Flower's."""

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deploy import keeper, mending, register_file
from deploy.commands import node_words
from deploy.federation import RUNNING, Plan, Record, State, read
from deploy.keeper import Keeper
from deploy.node_keys import ensure_key, public_half
from deploy.processes import FlowerFailed, private_home
from deploy.register_file import Entry, admitted
from deploy.restarts import EARLY
from deploy.secret_files import PUBLIC, replace
from deploy.superlink import SUPERLINK
from protocol.strict import StudyError

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are looked for in /proc")
SLEEP = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"]
Room = tuple[Keeper, list[str]]


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Room]:
    """A keeper of a SuperLink with an executor and of one node, and what it said."""
    for name in ("GRACE", "GLANCE"):
        monkeypatch.setattr(mending, name, 0.0)
    plan, said = Plan(str(State(tmp_path / "state").make().folder), 1, certs="certs", keys=True), list[str]()
    with private_home(tmp_path / "logs") as processes:
        kept = Keeper(plan, processes, said.append, Record(plan, 1, "", "1", phase=RUNNING))
        for name in (SUPERLINK, "node-0"):
            processes.start(name, SLEEP)
            kept._kept[name] = keeper._Kept()
        script = tmp_path / "flower-superexec"
        script.write_text("import time; time.sleep(600)\n")
        processes.start("executor", [sys.executable, str(script), "--parent-pid", str(processes.id(SUPERLINK))])
        until(lambda: mending._executors(processes) == {SUPERLINK})
        yield kept, said


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_what_ends_is_started_again_as_it_was_and_the_record_says_so(room: Room) -> None:
    kept, said = room
    kept._revive()
    assert said == []
    kept.processes.kill("node-0")
    kept._revive()
    record = read(State(Path(kept.plan.state)))
    assert record is not None and record.children["node-0"].starts == 2
    assert kept.processes.lives("node-0") and record.children["node-0"].process == kept.processes.id("node-0")
    assert said == [f"node-0 ended with signal SIGKILL; its log: {kept.processes.log('node-0')}: started again"]


def test_a_superlink_is_of_no_use_without_its_executor(room: Room) -> None:
    kept, said = room
    kept._revive()
    before = kept.processes.id(SUPERLINK)
    kept.processes.kill("executor")
    kept._revive()
    assert kept.processes.id(SUPERLINK) != before and kept.processes.lives(SUPERLINK)
    assert said[0] == "the executor of superlink ended, without which it is of no use"
    kept._revive()  # the new one's executor is yet to come
    assert len(said) == 2


def test_while_it_starts_there_is_an_end_of_it_and_later_there_is_none(room: Room) -> None:
    kept, said = room
    for ends in range(1, EARLY):
        kept.processes.kill("node-0")
        kept._revive()
        kept._kept["node-0"].due = kept._kept["node-0"].due and 0.0  # a pause is over
        kept._revive()
        assert kept._kept["node-0"].starts == ends + 1
    kept.processes.kill("node-0")
    with pytest.raises(FlowerFailed, match=f"node-0 ended .*, {EARLY} times"):
        kept._revive()
    kept.restarts.for_ever = True
    kept._revive()
    assert said[-1].endswith(": started again in 15 s")
    record = read(State(Path(kept.plan.state)))
    assert record is not None and record.children["node-0"].process == 0


def test_nothing_comes_back_with_a_revoked_key(room: Room) -> None:
    """Its name may have another key by now: that one is somebody else's to use."""
    kept, said = room
    state = State(Path(kept.plan.state))
    old, _ = ensure_key(state.keys / "node-0")
    new, _ = ensure_key(state.folder / "elsewhere")
    entries = [Entry("node-0", old, "1", revoked=True), Entry("node-0", new, "2")]
    replace(state.register, register_file._text(entries), PUBLIC)
    kept.processes.kill("node-0")
    for _ in range(2):
        kept._revive()
    assert not kept.processes.lives("node-0") and len(said) == 1 and said[0].endswith("its key is revoked")
    record = read(state)
    assert record is not None and record.children["node-0"].left
    assert kept._own_key(state, "node-0") not in (old, new)
    state.register.write_text("[[node]]")  # somebody is at it
    kept.processes.kill(SUPERLINK)
    ensure_key(state.keys / SUPERLINK)
    kept._revive()
    assert kept.processes.lives(SUPERLINK) and "nodes.toml: [node 1] expected the key" in said[1]


def test_a_node_file_s_own_key_is_the_one_that_is_registered(tmp_path: Path) -> None:
    """Members of sums under masks know a node by it: it is neither made nor replaced here."""
    state, folder = State(tmp_path / "state").make(), tmp_path / "nodes" / "node-0"
    key, _ = ensure_key(folder / "node.key")
    table = (
        '[node]\nledger = "ledger.sqlite"\n{}[source]\nkind = "table"\nfile = "votes.csv"\n[policy]\nlabel_cap = 1\n'
    )
    (folder / "node.toml").write_text(table.format('key = "node.key"\n'))
    plan = Plan(str(state.folder), str(folder.parent), certs="certs", keys=True)
    words = node_words(plan, "127.0.0.1:1")["node-0"]
    assert words[words.index("--key") + 1] == str(folder / "node.key")
    with private_home(tmp_path / "logs") as processes:
        kept = Keeper(plan, processes, list[str]().append, Record(plan, 1, "", "1"))
        assert kept._own_key(state, "node-0") == key and not (state.keys / "node-0").exists()
        entries = admitted([], {"node-0": key}, state.keys)
        replace(state.register, register_file._text([Entry("node-0", key, "1", revoked=True)]), PUBLIC)
        assert kept._is_revoked(state, "node-0") and kept._own_key(state, "node-0") == key
        (folder / "node.toml").write_text(table.format(""))
        other = kept._own_key(state, "node-0")
        assert other != key and other == public_half(state.keys / "node-0")
    assert [one.key for one in admitted(entries, {"node-0": other}, state.keys)] == [other], (
        "its place is the new one's"
    )
    (folder / "node.toml").write_text("[node]")
    with pytest.raises(StudyError, match=r"node\.toml"):
        node_words(plan, "127.0.0.1:1")
