"""The private parts of Flower that a warm node stands on, looked at before any is used.

A SuperNode with three changes: messages are answered by a callable and not by a program that Flower starts, bundles
are judged by their bytes before anything else looks at them, and pauses between two looks for messages are the node's.
What a client leaves in Flower's Context.state is not kept: budgets are in ledgers.
"""

import hashlib
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module, metadata
from types import ModuleType, SimpleNamespace
from typing import Any

from flwr.app import Context, Message

VERSION = "1.42."
LOOP = "flwr.supernode.start_client_internal"
PARTS = {
    LOOP: (
        "_insert_message",
        "_verify_fab",
        "_push_messages",
        "FAB_VERIFICATION_ERROR",
        "Message",
        "time",
        "log",
        "ERROR",
    ),
    "flwr.supernode.cli.flower_supernode": ("flower_supernode",),
    "flwr.supernode.nodestate.in_memory_nodestate": ("CLIENT_APP_CRASHED_ERROR",),
    "flwr.supernode.nodestate.nodestate": ("NodeState",),
    "flwr.supercore.inflatable.inflatable_object": ("iterate_object_tree",),
    "flwr.supercore.inflatable.inflatable_utils": ("inflate_object_from_contents",),
    "flwr.common.serde": ("message_from_proto", "message_to_proto", "context_from_proto", "context_to_proto"),
    "flwr.proto.message_pb2": ("Message", "Context"),
}
SOURCE = {  # how often the SuperNode's loop says what is changed below
    "            run_id = _pull_and_store_message(\n": 1,
    "            _push_messages(\n": 1,
    "fab_verified = _verify_fab(fab, trusted_entities)": 1,
    'fab.verifications.get("valid_license", "")': 1,
    "state.store_fab(fab)": 1,
    "time.sleep(": 3,
    "time.sleep(3)": 1,
    "(reply_messages := state.get_messages_legacy(is_reply=True))": 1,
}
IDLE = 3  # what Flower sleeps without a message; all its other pauses are for a reply
HEAD = 4  # bytes that say how long the context is


@dataclass(frozen=True)
class Hooks:
    """What a node does itself.

    `answer`: bytes of a reply to a question, within seconds; None where there is none. `accepts`: whether messages of a
    bundle with this SHA-256 are answered. `idle`: let time pass, no message came. `came`, `answered`: one did, and was
    answered.
    """

    answer: Callable[[bytes, float], bytes | None]
    accepts: Callable[[str, bytes], bool]
    idle: Callable[[], None]
    came: Callable[[], None]
    answered: Callable[[], None]


class NoReply(Exception):
    """Flower waits for a reply that nobody will give."""


def unfit() -> str | None:
    """Why the installed Flower is not the one that these changes were made for; None where it is."""
    version = metadata.version("flwr")
    if not version.startswith(VERSION):
        return f"expected flwr {VERSION}x, got {version}"
    for name, parts in PARTS.items():
        try:
            module = import_module(name)
        except ImportError:
            return f"expected {name} in flwr, found none"
        for part in parts:
            if not hasattr(module, part):
                return f"expected {part} in {name}, found none"
    source = inspect.getsource(import_module(LOOP))
    for words, count in SOURCE.items():
        if source.count(words) != count:
            return f"expected {words.strip()!r} {count} times in {LOOP}, got {source.count(words)}"
    if source.index("_verify_fab(fab, trusted_entities)") > source.index("state.store_fab(fab)"):
        return f"expected {LOOP} to judge a bundle before it is stored"
    return None


def run_supernode(words: Sequence[str], hooks: Hooks) -> None:
    """Flower's SuperNode in this process, told `words`; returns when its connection is lost for good."""
    loop = import_module(LOOP)
    pull, push = loop._pull_and_store_message, loop._push_messages
    changes = {
        "time": SimpleNamespace(sleep=lambda seconds: _pause(seconds, hooks)),
        "_verify_fab": lambda fab, trusted: _good(fab, hooks),
        "_pull_and_store_message": lambda **named: _pull(loop, pull, hooks, named),
        "_push_messages": lambda **named: _push(loop, push, hooks, named),
    }
    for name, change in changes.items():
        setattr(loop, name, change)
    sys.argv = ["flower-supernode", *words, "--isolation", "process"]
    import_module("flwr.supernode.cli.flower_supernode").flower_supernode()


def opened(question: bytes) -> tuple[Message, Context]:
    """What `Hooks.answer` is asked: a message, and the configurations of node and run."""
    serde, wire = import_module("flwr.common.serde"), import_module("flwr.proto.message_pb2")
    size = HEAD + int.from_bytes(question[:HEAD], "big")
    message = serde.message_from_proto(wire.Message.FromString(question[size:]))
    return message, serde.context_from_proto(wire.Context.FromString(question[HEAD:size]))


def closed(reply: Message) -> bytes:
    """What `Hooks.answer` answers."""
    return bytes(import_module("flwr.common.serde").message_to_proto(reply).SerializeToString())


def _pause(seconds: float, hooks: Hooks) -> None:
    if seconds != IDLE:
        raise NoReply
    hooks.idle()


def _good(fab: Any, hooks: Hooks) -> bool:
    computed = hashlib.sha256(fab.content).hexdigest()  # whatever the server says that it is
    return bool(computed == fab.hash_str) and hooks.accepts(computed, fab.content)


def _pull(loop: ModuleType, pull: Callable[..., int | None], hooks: Hooks, named: dict[str, Any]) -> int | None:
    """Flower's own, which judges every bundle here; whatever a server makes it stumble over is refused likewise."""
    state, came = named["state"], []

    def receive() -> Any:
        came.append(named["receive"]())
        return came[-1]

    state.create_task = lambda **task: 1  # nobody but this process answers: there are no tasks to acquire
    changed = {"receive": receive, "get_fab": _licensed(named["get_fab"]), "trusted_entities": {"this node": ""}}
    try:
        return pull(**{**named, **changed})
    except Exception as error:
        if not came or came[0] is None:
            raise  # there is no connection
        loop.log(loop.ERROR, "A message was refused: %s", type(error).__name__)
        message = came[0][0]
        loop._insert_message(loop.Message(loop.FAB_VERIFICATION_ERROR, reply_to=message), state, named["object_store"])
        return int(message.metadata.run_id)


def _licensed(get_fab: Callable[..., Any]) -> Callable[..., Any]:
    """Flower asks for a signature of its hub before it asks `_verify_fab`: this node needs none."""

    def get(fab_hash: str, run_id: int) -> Any:
        fab = get_fab(fab_hash, run_id)
        if fab.hash_str != fab_hash:
            raise ValueError("expected the bundle of the run, got another")
        fab.verifications["valid_license"] = "none"
        return fab

    return get


def _push(loop: ModuleType, push: Callable[..., None], hooks: Hooks, named: dict[str, Any]) -> None:
    """Answer what was pulled, then Flower's own, which sends all replies that there are."""
    state, store = named["state"], named["object_store"]
    hooks.came()
    for message in state.get_messages_legacy(is_reply=False):
        name = message.metadata.message_id
        state.record_message_processing_start(name)
        loop._insert_message(_reply(loop, message, state, store, hooks), state, store)
        state.record_message_processing_end(name)
    try:
        push(**named)
    except NoReply:
        loop.log(loop.ERROR, "A message came twice, and is not answered again.")
    hooks.answered()


def _reply(loop: ModuleType, message: Any, state: Any, store: Any, hooks: Hooks) -> Any:
    """The reply to a message, or Flower's own error of a client that stopped."""
    serde, wire = import_module("flwr.common.serde"), import_module("flwr.proto.message_pb2")
    crashed = import_module("flwr.supernode.nodestate.in_memory_nodestate").CLIENT_APP_CRASHED_ERROR
    name = message.metadata.message_id
    try:
        context = state.get_run_series_context(state.get_run(message.metadata.run_id).series_id)
        head = serde.context_to_proto(context).SerializeToString()
        body = serde.message_to_proto(_whole(name, store)).SerializeToString()
        raw = hooks.answer(len(head).to_bytes(HEAD, "big") + head + body, message.metadata.ttl)
        reply = None if not raw else serde.message_from_proto(wire.Message.FromString(raw))
    except Exception as error:  # whatever a server makes a reader of messages do
        loop.log(loop.ERROR, "A message was not answered: %s", type(error).__name__)
        reply = None
    store.delete(name)
    if reply is None or reply.metadata.reply_to_message_id != name:
        return loop.Message(crashed, reply_to=message)
    return reply


def _whole(name: str, store: Any) -> Any:
    """A message with its content, whose objects were stored one by one."""
    trees = import_module("flwr.supercore.inflatable.inflatable_object").iterate_object_tree
    inflate = import_module("flwr.supercore.inflatable.inflatable_utils").inflate_object_from_contents
    contents = {tree.object_id: store.get(tree.object_id) for tree in trees(store.get_object_tree(name))}
    message = inflate(name, contents)
    message.metadata.__dict__["_message_id"] = name
    return message
