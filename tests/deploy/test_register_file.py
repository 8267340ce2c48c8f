"""The register of nodes: one key a name, one name a key, rotation, revocation, and the SuperLink told first."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from deploy.federation import State
from deploy.flwr_command import Seen, SuperLink
from deploy.node_keys import PublicKey, ensure_key
from deploy.processes import FlowerFailed
from deploy.register_file import Entry, admitted, change, read, registered, revoked
from protocol.strict import StudyError
from server.register import read_register


@dataclass
class Book:
    """What a SuperLink does with keys, as Flower 1.42 does: a key is taken once, even after its node has left."""

    keys: dict[str, str] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)

    def nodes(self) -> list[Seen]:
        return [Seen(node, "unregistered" if node in self.gone else "registered") for node in self.keys.values()]

    def register(self, file: Path) -> str:
        line = file.read_text().strip()
        if line in self.keys:
            raise FlowerFailed("[code: 23] Public key already in use.")
        self.keys[line] = str(1000 + len(self.keys))
        return self.keys[line]

    def unregister(self, node: str) -> None:
        assert node in self.keys.values() and node not in self.gone
        self.gone.add(node)

    @property
    def live(self) -> set[str]:
        return {node.id for node in self.nodes() if node.status == "registered"}


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> list[PublicKey]:
    folder = tmp_path_factory.mktemp("keys")
    return [ensure_key(folder / f"key-{index}")[0] for index in range(4)]


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State(tmp_path / "state")


def put(state: State, book: Book, name: str, key: PublicKey, rows: str | None = None, old: str | None = None) -> Entry:
    def how(now: Sequence[Entry]) -> Sequence[Entry]:
        return registered(now, name, key, rows, old)

    return next(entry for entry in change(state, cast(SuperLink, book), how) if entry.key == key)


def test_the_server_reads_what_was_registered(state: State, keys: list[PublicKey]) -> None:
    book = Book()
    put(state, book, "anna", keys[0], "0:720,1440:2160")
    put(state, book, "ben", keys[1])
    anna, ben = read_register(state.register).nodes
    assert (anna.name, anna.id, anna.rows) == ("anna", 1000, ((0, 720), (1440, 2160)))
    assert (ben.name, ben.id, ben.rows) == ("ben", 1001, None)
    assert [PublicKey.of(node.key) for node in (anna, ben)] == keys[:2]
    assert book.live == {"1000", "1001"}


def test_the_same_again_changes_nothing_but_rows(state: State, keys: list[PublicKey]) -> None:
    book = Book()
    first = put(state, book, "anna", keys[0], "0:5")
    before = state.register.read_bytes()
    assert put(state, book, "anna", keys[0]) == first
    assert put(state, book, "anna", keys[0], "0:5") == first
    assert state.register.read_bytes() == before
    assert put(state, book, "anna", keys[0], "0:7").rows == "0:7"
    assert len(book.keys) == 1


def test_another_key_or_another_name_is_an_error_that_names_both(state: State, keys: list[PublicKey]) -> None:
    book = Book()
    put(state, book, "anna", keys[0])
    with pytest.raises(StudyError) as other_key:
        put(state, book, "anna", keys[1])
    assert all(key.fingerprint in str(other_key.value) for key in keys[:2])
    assert "--replaces anna" in str(other_key.value)
    with pytest.raises(StudyError, match="this key is registered as anna"):
        put(state, book, "ben", keys[0])
    with pytest.raises(StudyError, match=r"--replaces carl: expected a node of the register, found anna"):
        put(state, book, "ben", keys[1], old="carl")
    assert len(book.keys) == 1


def test_a_new_key_under_the_same_name_takes_its_rows(state: State, keys: list[PublicKey]) -> None:
    book = Book()
    put(state, book, "anna", keys[0], "0:5")
    assert put(state, book, "anna", keys[1], old="anna") == Entry("anna", keys[1], "1001", "0:5")
    assert [(entry.key, entry.revoked) for entry in read(state.register)] == [(keys[0], True), (keys[1], False)]
    assert book.live == {"1001"}
    put(state, book, "anna", keys[2], old="anna")
    assert [entry.revoked for entry in read(state.register)] == [True, True, False]
    assert book.live == {"1002"}


def test_a_revoked_key_comes_back_under_no_name(state: State, keys: list[PublicKey]) -> None:
    book = Book()
    put(state, book, "anna", keys[0], "0:5")
    put(state, book, "anna", keys[1], old="anna")
    forgetful = Book()  # no memory but the register's: Flower's own database may be gone
    for name, old in (("anna", None), ("anna", "anna"), ("ben", None), ("ben", "anna")):
        with pytest.raises(StudyError, match="this key was revoked"):
            put(state, forgetful, name, keys[0], old=old)
    change(state, cast(SuperLink, forgetful), lambda now: revoked(now, "anna"))
    with pytest.raises(StudyError, match=r"this key was revoked as anna"):
        put(state, forgetful, "ben", keys[1])
    assert [entry.revoked for entry in read(state.register)] == [True, True] and not forgetful.live


def test_a_node_that_takes_over_has_the_rows_and_the_old_one_is_revoked(state: State, keys: list[PublicKey]) -> None:
    book = Book()
    put(state, book, "ward-a", keys[0], "0:5")
    put(state, book, "ward-b", keys[1], old="ward-a")
    old, new = read(state.register)
    assert (old.name, old.revoked, new.name, new.rows) == ("ward-a", True, "ward-b", "0:5")
    assert book.live == {new.node}
    with pytest.raises(StudyError, match="this key was revoked"):
        put(state, book, "ward-a", keys[0])


def test_revoking_works_without_a_server_and_the_next_start_agrees(state: State, keys: list[PublicKey]) -> None:
    book = Book()
    put(state, book, "anna", keys[0])
    put(state, book, "ben", keys[1])
    with pytest.raises(StudyError, match=r"carl: expected a node of the register, found anna, ben"):
        change(state, None, lambda now: revoked(now, "carl"))
    change(state, None, lambda now: revoked(now, "anna"))
    assert book.live == {"1000", "1001"}
    change(state, cast(SuperLink, book), lambda now: now)
    assert book.live == {"1001"}
    with pytest.raises(StudyError, match="start halftruth server"):
        change(state, None, lambda now: registered(now, "carl", keys[2]))


def test_a_superlink_that_forgot_is_told_again(state: State, keys: list[PublicKey]) -> None:
    put(state, Book(), "anna", keys[0])
    fresh = Book({"other": "7"})
    change(state, cast(SuperLink, fresh), lambda now: now)
    assert [entry.node for entry in read(state.register)] == [fresh.keys[keys[0].line]]


def test_a_change_that_was_interrupted_is_finished(state: State, keys: list[PublicKey]) -> None:
    book = Book({keys[0].line: "1000"})  # the SuperLink was told, the register was not written
    assert put(state, book, "anna", keys[0]).node == "1000"
    book.keys |= {keys[1].line: "1001", keys[2].line: "1002"}  # by hand: who is who is not known here
    with pytest.raises(FlowerFailed, match="already in use"):
        put(state, book, "ben", keys[1])


@pytest.mark.parametrize(
    ("name", "rows", "words"),
    [("an na", None, "expected 1 to 64 letters"), ("anna", "5:3", "expected increasing runs"), ("ben", "3:9", "row 3")],
)
def test_what_the_server_could_not_read_is_not_written(
    state: State, keys: list[PublicKey], name: str, rows: str | None, words: str
) -> None:
    book = Book()
    put(state, book, "carl", keys[0], "0:5")
    before = state.register.read_bytes()
    with pytest.raises(StudyError, match=words):
        put(state, book, name, keys[1], rows)
    assert state.register.read_bytes() == before
    assert len(book.keys) == 1


def test_nodes_of_this_machine_come_and_go_with_the_shape_and_others_stay(state: State, keys: list[PublicKey]) -> None:
    own = {name: ensure_key(state.keys / name)[0] for name in ("node-0", "node-1", "node-2")}
    few = {name: own[name] for name in ("node-0", "node-1")}
    book = Book()
    change(state, cast(SuperLink, book), lambda now: admitted(now, own, state.keys))
    put(state, book, "guest", keys[0])
    change(state, cast(SuperLink, book), lambda now: admitted(now, few, state.keys))
    assert [entry.name for entry in read(state.register)] == ["node-0", "node-1", "guest"]
    assert len(book.live) == 3
    change(state, cast(SuperLink, book), lambda now: revoked(now, "node-1"))
    (state.keys / "node-1").unlink()
    (state.keys / "node-1.pub").unlink()
    few["node-1"] = ensure_key(state.keys / "node-1")[0]
    change(state, cast(SuperLink, book), lambda now: admitted(now, few, state.keys))
    assert [(entry.name, entry.revoked) for entry in read(state.register)] == [
        ("node-0", False),
        ("node-1", True),
        ("guest", False),
        ("node-1", False),
    ]
    assert len(book.live) == 3


def test_a_smaller_shape_does_not_forget_what_was_revoked(state: State) -> None:
    own = {name: ensure_key(state.keys / name)[0] for name in ("node-0", "node-1")}
    few = {"node-0": own["node-0"]}
    change(state, cast(SuperLink, Book()), lambda now: admitted(now, own, state.keys))
    change(state, None, lambda now: revoked(now, "node-1"))
    change(state, cast(SuperLink, Book()), lambda now: admitted(now, few, state.keys))
    with pytest.raises(StudyError, match="this key was revoked"):
        change(state, cast(SuperLink, Book()), lambda now: admitted(now, own, state.keys))
