"""A reply with what the server knows of its sender: who it is, what it was asked, and why it may not count."""

import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

import numpy as np

from protocol.codec import Signed, decode_reply
from protocol.errors import WireError
from protocol.messages import Refusal, Report, Runs, Task
from server.register import Known, Register
from server.signatures import signed_by

HEAD = struct.Struct("<I")  # bytes of what is known of a stored reply
MANY = "more reports than mechanisms that were offered"  # a node sends one through each, or fewer


class Sent(bytes):
    """A reply as it arrived, no bytes at all where it may not count: then `fault` says why.

    `sender` is the node's name in the register, or Flower's number for it; `task` the id of the task it answers.
    """

    sender: str
    task: bytes
    fault: str

    def __new__(cls, raw: bytes, sender: str, task: bytes, fault: str = "") -> Self:
        """The bytes, with their sender."""
        self = super().__new__(cls, b"" if fault else raw)
        self.sender, self.task, self.fault = sender, task, fault
        return self


class Addressed(bytes):
    """Something to ask that goes to some clients only: `to` are their names, as in `Sent.sender`."""

    to: frozenset[str]

    def __new__(cls, raw: bytes, to: Iterable[str]) -> Self:
        """The bytes, and whom they are for."""
        self = super().__new__(cls, raw)
        self.to = frozenset(to)
        return self


def for_client(asked: Iterable[bytes], name: str) -> list[bytes]:
    """What of a round a client is asked: what is for everybody, and what is for it.

    >>> for_client([b"a", Addressed(b"b", ["client 1"])], "client 0")
    [b'a']
    """
    return [raw for raw in asked if not isinstance(raw, Addressed) or name in raw.to]


def stored(reply: bytes) -> bytes:
    """A reply with all that is known of it, as bytes; `restored` is the inverse."""
    known = [reply.sender, reply.fault, reply.task.hex()] if isinstance(reply, Sent) else []
    head = json.dumps(known).encode()
    return HEAD.pack(len(head)) + head + reply


def restored(raw: bytes) -> bytes:
    """What `stored` was given. Raises ValueError for other bytes."""
    if len(raw) < HEAD.size:
        raise ValueError("expected a stored reply, got fewer bytes than its head has")
    end = HEAD.size + HEAD.unpack_from(raw)[0]
    known, reply = json.loads(raw[HEAD.size : end]), raw[end:]
    if not known:
        return reply
    sender, fault, task = known
    return Sent(reply, sender, bytes.fromhex(task), fault)


def fault_of(known: Known | None, raw: bytes, tasks: Mapping[bytes, Task]) -> str:
    """Why a node's reply to one of `tasks` (by id) may not count; empty where nothing speaks against it.

    Every report in it has to answer one of the tasks, signed by the key that the register has for the node, about rows
    that the register gives it, and there are no more of them than mechanisms were offered. What is no reply at all is
    for its reader to say.
    """
    why = stranger(known)
    if why or known is None:
        return why
    try:
        answer = decode_reply(raw)
    except WireError:
        return ""
    if isinstance(answer, Refusal):
        return ""
    if len(answer) > 1 and len(answer) > max(len(task.menu) for task in tasks.values()):
        return MANY  # before thousands of signatures are checked
    return fault_in(known, answer, tasks)


def stranger(known: Known | None) -> str:
    """Why nothing of a node may count; empty where something may."""
    if known is None:
        return "a node that is not in the register"
    return "a node whose key is revoked" if known.revoked else ""


def fault_in(known: Known, reports: Sequence[Signed], tasks: Mapping[bytes, Task]) -> str:
    """Why one of a node's reports about `tasks` (by id) may not count; empty where nothing speaks against them."""
    for signed in reports:
        if not signed.signature:
            return "a report without a signature"
        if not signed_by(known.key, signed.raw, signed.signature):
            return "a report that is not under the node's key"
        if signed.report.task not in tasks:
            return "a report about another task"
        if not _own(known, signed.report, tasks[signed.report.task]):
            return "a report about rows that are not the node's"
    return ""


def fault_now(register: Register, reply: Sent, tasks: Mapping[bytes, Task]) -> str:
    """Why a reply that was let through earlier may not count under this register; empty where nothing speaks against.

    Its sender is looked for by name, of which one is heard at most: what a key signed that was revoked since is under
    another one.
    """
    if reply.fault:
        return reply.fault
    named = [known for known in register.nodes if node_words(known.name) == reply.sender]
    return fault_of(next((known for known in named if not known.revoked), next(iter(named), None)), reply, tasks)


def node_words(name: str | int) -> str:
    """What a node is called in messages: by its name in the register, or by Flower's number."""
    return f"node {name}"


def _own(known: Known, report: Report, task: Task) -> bool:
    if known.count is None:
        return True
    rows = report.rows or task.rows or Runs.of(range(task.n))
    if rows.count > known.count:  # before a few bytes make billions of numbers
        return False
    return known.holds(np.asarray(rows.numbers()))
