"""Messages <-> bytes. Strict: what is not canonical, complete and in range is a WireError, never a guess."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from protocol import halftruth_pb2 as wire
from protocol.arrays import decode_array, encode_array
from protocol.codec_parts import (
    checked_runs,
    decimal_of,
    decode_mechanism,
    decode_payload,
    decode_problem,
    decode_runs,
    encode_mechanism,
    encode_payload,
    encode_problem,
    encode_runs,
    parse,
    text_of,
)
from protocol.errors import WireError, refused
from protocol.messages import Code, Coins, Mechanism, Refusal, Report, Task, Ties
from protocol.numerics import BYTES as NUMERICS_BYTES
from protocol.privacy import Unit
from protocol.trust import Trust

DIGEST = 32


@dataclass(frozen=True)
class Signed:
    """A report as it arrived: its exact bytes, its id, and the signature over them."""

    report: Report
    raw: bytes
    signature: bytes

    @property
    def id(self) -> bytes:
        """SHA-256 of the report's bytes, without the signature."""
        return hashlib.sha256(self.raw).digest()

    @property
    def public_id(self) -> bytes:
        """SHA-256 of the report without its payload: names it wherever a hash of an exact sum would tell the sum."""
        message = wire.Report.FromString(self.raw)
        message.ClearField("payload")
        return hashlib.sha256(message.SerializeToString(deterministic=True)).digest()


def identity(raw: bytes) -> bytes:
    """A task's or report's id: SHA-256 of its bytes.

    >>> identity(b"").hex()[:8]
    'e3b0c442'
    """
    return hashlib.sha256(raw).digest()


# Tasks


def encode_task(task: Task) -> bytes:
    """A task's canonical bytes; `identity` of them is its id."""
    message = wire.Task(
        study=task.study,
        trust=int(task.trust),  # type: ignore[arg-type]
        unit=int(task.unit),  # type: ignore[arg-type]
        problem=encode_problem(task.problem),
        menu=[encode_mechanism(item) for item in task.menu],
        round=task.round,
        attempt=task.attempt,
        n=task.n,
        epsilon=text_of(task.epsilon),
        delta=text_of(task.delta),
        first_repetition=task.first_repetition,
        repetitions=task.repetitions,
        rows=encode_runs(task.rows),
        theta=None if task.theta is None else encode_array(task.theta),
        exponent=task.exponent,
        ties=int(task.ties),  # type: ignore[arg-type]
        cap=task.cap,
        cohort=task.cohort,
        modulus=task.modulus,
        groups=None if task.groups is None else encode_array(task.groups),
        map=None if task.map is None else encode_array(task.map),
        coordinates=encode_runs(task.coordinates),
        centre=None if task.centre is None else encode_array(task.centre),
    )
    return message.SerializeToString(deterministic=True)


def decode_task(raw: bytes) -> Task:
    """Read a task. Raises WireError naming the field that does not fit."""
    message = parse(wire.Task(), raw, "task")
    with refused("task"):
        if len(message.study) != DIGEST or not message.menu or not 1 <= message.n < 1 << 32:
            raise ValueError("expected a study fingerprint of 32 bytes, a menu, and 1 <= n < 2^32")
        if message.repetitions < 1 or message.first_repetition + message.repetitions > 1 << 32:
            raise ValueError(f"expected a block of repetitions, got {message.repetitions}")
        groups = decode_array(message.groups) if message.HasField("groups") else None
        if groups is not None and (groups.dtype.str[1:], groups.shape) != ("i4", (message.n,)):
            raise ValueError(f"expected int32 groups of shape ({message.n},), got {groups.dtype} {groups.shape}")
        problem = decode_problem(message.problem)
        return Task(
            study=message.study,
            trust=Trust(message.trust),
            unit=Unit(message.unit),
            problem=problem,
            menu=tuple(decode_mechanism(item) for item in message.menu),
            n=message.n,
            epsilon=decimal_of(message.epsilon, "epsilon"),
            delta=decimal_of(message.delta, "delta"),
            first_repetition=message.first_repetition,
            repetitions=message.repetitions,
            round=message.round,
            attempt=message.attempt,
            rows=decode_runs(message.rows),
            theta=_decode_points(message, "theta"),
            exponent=message.exponent if message.HasField("exponent") else None,
            ties=Ties(message.ties),
            cap=message.cap,
            cohort=message.cohort,
            modulus=message.modulus,
            groups=groups,  # type: ignore[arg-type]
            map=_decode_map(message, problem.reduced_dimension),
            coordinates=decode_runs(message.coordinates),
            centre=_decode_points(message, "centre"),
        )


def _decode_points(message: wire.Task, name: Literal["theta", "centre"]) -> NDArray[np.float64] | None:
    if not message.HasField(name):
        return None
    points = decode_array(getattr(message, name))
    if points.dtype.kind != "f":
        raise ValueError(f"expected float64 {name}, got {points.dtype}")
    return points.astype(np.float64, copy=False)


def _decode_map(message: wire.Task, dimension: int) -> NDArray[np.float64] | None:
    if not message.HasField("map"):
        return None
    linear = decode_array(message.map)
    if (linear.dtype.str[1:], linear.shape) != ("f8", (dimension, dimension)):
        raise ValueError(f"expected a float64 map of {dimension} coordinates, got {linear.dtype} {linear.shape}")
    return linear.astype(np.float64, copy=False)


# Replies


def encode_report(report: Report) -> bytes:
    """A report's canonical bytes, which a node's key may sign.

    Fields go in the order of their numbers, so the bytes are those of the fields before the payload, of the payload,
    and of those behind it: many reports have the last in common.
    """
    message = wire.Report(task=report.task)
    for runs, added in ((report.rows, message.rows), (report.groups, message.groups)):
        for start, step, count in checked_runs(runs):
            added.add(start=start, step=step, count=count)
    head = message.SerializeToString(deterministic=True)
    return head + encode_payload(report.payload) + _tail(report.mechanism, report.table, report.coins, report.numerics)


@lru_cache(maxsize=256)
def _tail(mechanism: Mechanism, table: bytes, coins: Coins, numerics: bytes) -> bytes:
    message = wire.Report(
        mechanism=encode_mechanism(mechanism),
        table=table,
        coins=int(coins),  # type: ignore[arg-type]
        numerics=numerics,
    )
    return message.SerializeToString(deterministic=True)


def decode_report(raw: bytes) -> Report:
    """Read a report. Raises WireError naming the field that does not fit."""
    message = parse(wire.Report(), raw, "report")
    with refused("report"):
        if len(message.task) != DIGEST or len(message.table) not in (0, DIGEST):
            raise ValueError("expected a task id and a table hash of 32 bytes")
        if len(message.numerics) != NUMERICS_BYTES:
            raise ValueError(f"expected a numerics fingerprint of {NUMERICS_BYTES} bytes")
        return Report(
            task=message.task,
            rows=decode_runs(message.rows),
            payload=decode_payload(message.payload),
            mechanism=decode_mechanism(message.mechanism),
            table=message.table,
            coins=Coins(message.coins),
            numerics=message.numerics,
            groups=decode_runs(message.groups),
        )


def encode_reply(reports: list[tuple[bytes, bytes]], statement: bytes = b"") -> bytes:
    """One message out of (report bytes, signature) pairs, one per channel used; a session's input with a statement."""
    message = wire.Reply(statement=statement)
    for raw, signature in reports:
        message.reports.add(report=raw, signature=signature)
    return message.SerializeToString(deterministic=True)


def encode_refusal(refusal: Refusal) -> bytes:
    """One message that says no, with a code and nothing else."""
    message = wire.Refusal(task=refusal.task, code=int(refusal.code))  # type: ignore[arg-type]
    return wire.Reply(refusal=message).SerializeToString(deterministic=True)


def sign_reply(raw: bytes, sign: Callable[[bytes], bytes]) -> bytes:
    """A reply of ours with the signature of each of its reports; a refusal as it is."""
    message = wire.Reply.FromString(raw)
    for item in message.reports:
        item.signature = sign(item.report)
    return message.SerializeToString(deterministic=True)


def decode_reply(raw: bytes) -> list[Signed] | Refusal:
    """Read what a client sent for one task: reports, or a refusal; never both, never neither."""
    found, statement = decode_input(raw)
    if statement:
        raise WireError("expected a reply without a statement, got one of a session")
    return found


def decode_input(raw: bytes) -> tuple[list[Signed] | Refusal, bytes]:
    """Read a member's input in a session: a reply about all its tasks, and what it states; nothing where it refuses."""
    message = parse(wire.Reply(), raw, "reply")
    with refused("reply"):
        if message.statement and message.HasField("refusal"):
            raise ValueError("expected a refusal without a statement")
        if message.HasField("refusal") == bool(message.reports):
            raise ValueError("expected either reports or a refusal")
        if message.HasField("refusal"):
            if len(message.refusal.task) != DIGEST:
                raise ValueError("expected a task id of 32 bytes")
            return Refusal(message.refusal.task, Code(message.refusal.code)), b""
    reports = [Signed(decode_report(item.report), item.report, item.signature) for item in message.reports]
    return reports, message.statement


# Bundles


def encode_bundle(messages: Sequence[bytes], signature: bytes = b"") -> bytes:
    """Several messages as one: a cell's tasks on their way out, their replies on their way back."""
    return wire.Bundle(messages=messages, signature=signature).SerializeToString(deterministic=True)


def decode_bundle(raw: bytes) -> list[bytes]:
    """Read a bundle of replies, each of which signs for itself; they are not decoded yet. Raises WireError."""
    messages, signature = decode_tasks(raw)
    if signature:
        raise WireError(f"expected a bundle without a signature, got one of {len(signature)} bytes")
    return messages


def decode_tasks(raw: bytes) -> tuple[list[bytes], bytes]:
    """Read a bundle of tasks and its signature, empty where it has none; neither is checked. Raises WireError."""
    bundle = parse(wire.Bundle(), raw, "bundle")
    return list(bundle.messages), bundle.signature
