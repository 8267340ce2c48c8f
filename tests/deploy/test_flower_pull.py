"""A SuperNode's loop with Flower's real parts and a server that lies: what is refused, and that nothing is raised."""

import hashlib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, Message, RecordDict

from deploy.bundles import built
from deploy.flower_private import supernode as flower_supernode
from deploy.stage import stage

Objects = import_module("flwr.supercore.inflatable.inflatable_object")
NODE, RUN = 7, 11
REFUSED, CRASHED = 7, 8


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    home = tmp_path_factory.mktemp("home")
    return built(stage(home / "app"), home)


@pytest.fixture(autouse=True)
def task_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages can be made, as inside a Flower task of the server."""
    for name in ("_run_id", "_node_id", "_task_id"):
        monkeypatch.setattr(import_module("flwr.supercore.task_identity").TaskIdentity, name, RUN)


class Server:
    """What a SuperLink says to a node, in one process: a run whose bundle has this hash, and these bytes for it."""

    def __init__(self, announced: str, named: str, content: bytes) -> None:
        self.state: Any = (
            import_module("flwr.supernode.nodestate")
            .NodeStateFactory(import_module("flwr.supercore.object_store").ObjectStoreFactory())
            .state()
        )
        self.state.set_node_id(NODE)
        self.run = import_module("flwr.supercore.run").Run.create_empty(RUN)
        self.run.fab_hash = announced
        self.fab = import_module("flwr.supercore.fab").Fab(named, content, {})
        self.sent: list[Any] = []
        content_of = RecordDict({"bundle": ArrayRecord({"bytes": Array(np.arange(3, dtype=np.uint8))})})
        message = Message(content_of, NODE, "query")
        message.metadata.__dict__["_message_id"] = message.object_id
        self.tree = Objects.get_object_tree(message)
        self.objects = {name: each.deflate() for name, each in Objects.get_all_nested_objects(message).items()}
        self.message = import_module("flwr.app.message").remove_content_from_message(message)

    def ask(self, accepts: bool, answer: Callable[[bytes, float], bytes | None]) -> Any:
        """The reply that a node gives it."""
        loop = import_module(flower_supernode.LOOP)
        hooks = flower_supernode.Hooks(answer, lambda *about: accepts, lambda: None, lambda: None, lambda: None)
        changed = pytest.MonkeyPatch()
        changed.setattr(loop, "_verify_fab", lambda fab, trusted: flower_supernode._good(fab, hooks))
        store = self.state.object_store
        pulled = flower_supernode._pull(
            loop,
            loop._pull_and_store_message,
            hooks,
            {
                "state": self.state,
                "object_store": store,
                "node_config": {},
                "receive": lambda: (self.message, self.tree),
                "get_run": lambda run: self.run,
                "get_fab": lambda name, run: self.fab,
                "pull_object": lambda run, name: self.objects[name],
                "confirm_message_received": lambda run, name: None,
                "trusted_entities": None,
            },
        )
        assert pulled == RUN
        send = lambda message, tree, seconds: self.sent.append(message) or (set(), "")  # noqa: E731
        flower_supernode._push(
            loop,
            loop._push_messages,
            hooks,
            {"state": self.state, "object_store": store, "send": send, "push_object": lambda *about: None},
        )
        changed.undo()
        (reply,) = self.sent
        assert reply.metadata.reply_to_message_id == self.message.metadata.message_id
        return reply


def never(question: bytes, seconds: float) -> bytes:
    raise AssertionError("asked about a bundle that was refused")


def echo(question: bytes, seconds: float) -> bytes:
    message, context = flower_supernode.opened(question)
    assert context.node_id == NODE and seconds == message.metadata.ttl
    return flower_supernode.closed(Message(message.content, reply_to=message))


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_a_message_goes_through_whole_and_its_reply_as_well(bundle: bytes) -> None:
    server = Server(sha(bundle), sha(bundle), bundle)
    reply = server.ask(True, echo)
    assert not reply.has_error()
    assert server.state.get_tasks() == [], "nobody else could acquire it"


def test_a_bundle_that_is_not_pinned_is_refused_with_a_fixed_error(bundle: bytes) -> None:
    error = Server(sha(bundle), sha(bundle), bundle).ask(False, never).error
    assert (error.code, error.reason) == (REFUSED, "The FAB could not be verified.")


@pytest.mark.parametrize("announced", ["good", "bad"])
@pytest.mark.parametrize("named", ["good", "bad"])
@pytest.mark.parametrize("shipped", ["garbage", "changed"])
def test_a_lie_about_a_bundle_is_refused_and_ends_nothing(
    bundle: bytes, announced: str, named: str, shipped: str
) -> None:
    """Where hash and bytes agree everywhere it is no lie, and the bundle is no bundle, or one that no pin names."""
    content = b"no bundle" if shipped == "garbage" else bundle + b"\0"
    hashes = {"good": sha(bundle), "bad": sha(content)}
    pinned = shipped == "garbage"  # garbage is refused even where any bundle would do
    error = Server(hashes[announced], hashes[named], content).ask(pinned, never).error
    assert (error.code, error.reason) == (REFUSED, "The FAB could not be verified.")


@pytest.mark.parametrize("raw", [None, b"", b"no message"])
def test_without_an_answer_the_server_gets_flower_s_own_error(bundle: bytes, raw: bytes | None) -> None:
    error = Server(sha(bundle), sha(bundle), bundle).ask(True, lambda question, seconds: raw).error
    assert (error.code, error.reason) == (CRASHED, "ClientApp stopped responding.")


def test_a_lost_connection_is_not_swallowed(tmp_path: Path) -> None:
    def lost() -> None:
        raise ConnectionError("gone")

    loop = import_module(flower_supernode.LOOP)
    hooks = flower_supernode.Hooks(never, lambda *about: True, lambda: None, lambda: None, lambda: None)
    state = Server("", "", b"").state
    named = {"state": state, "object_store": state.object_store, "receive": lost, "get_fab": None}
    others = {"node_config": {}, "get_run": None, "pull_object": None, "confirm_message_received": None}
    with pytest.raises(ConnectionError):
        flower_supernode._pull(loop, loop._pull_and_store_message, hooks, {**named, **others, "trusted_entities": None})
