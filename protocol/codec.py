"""Messages <-> bytes. Strict: what is not canonical, complete and in range is a WireError, never a guess."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from protocol import halftruth_pb2 as wire
from protocol.arrays import decode_array, encode_array
from protocol.decimals import canonical, decimal
from protocol.errors import WireError, refused
from protocol.messages import Code, Coins, Kind, Mechanism, Payload, Refusal, Report, Runs, Task, Ties
from protocol.numerics import BYTES as NUMERICS_BYTES
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.trust import Trust

M = TypeVar("M", bound=Message)
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
        problem=_problem_message(task.problem),
        menu=[_mechanism_message(item) for item in task.menu],
        round=task.round,
        attempt=task.attempt,
        n=task.n,
        epsilon=_text(task.epsilon),
        delta=_text(task.delta),
        first_repetition=task.first_repetition,
        repetitions=task.repetitions,
        rows=_run_messages(task.rows),
        theta=None if task.theta is None else encode_array(task.theta),
        exponent=task.exponent,
        ties=int(task.ties),  # type: ignore[arg-type]
        cap=task.cap,
        cohort=task.cohort,
        modulus=task.modulus,
    )
    return message.SerializeToString(deterministic=True)


def decode_task(raw: bytes) -> Task:
    """Read a task. Raises WireError naming the field that does not fit."""
    message = _parse(wire.Task(), raw, "task")
    with refused("task"):
        if len(message.study) != DIGEST or not message.menu or not 1 <= message.n < 1 << 32:
            raise ValueError("expected a study fingerprint of 32 bytes, a menu, and 1 <= n < 2^32")
        if message.repetitions < 1 or message.first_repetition + message.repetitions > 1 << 32:
            raise ValueError(f"expected a block of repetitions, got {message.repetitions}")
        theta = decode_array(message.theta) if message.HasField("theta") else None
        if theta is not None and theta.dtype.kind != "f":
            raise ValueError(f"expected float64 theta, got {theta.dtype}")
        return Task(
            study=message.study,
            trust=Trust(message.trust),
            unit=Unit(message.unit),
            problem=_problem(message.problem),
            menu=tuple(_mechanism(item) for item in message.menu),
            n=message.n,
            epsilon=_decimal(message.epsilon, "epsilon"),
            delta=_decimal(message.delta, "delta"),
            first_repetition=message.first_repetition,
            repetitions=message.repetitions,
            round=message.round,
            attempt=message.attempt,
            rows=_runs(message.rows),
            theta=theta,  # type: ignore[arg-type]
            exponent=message.exponent if message.HasField("exponent") else None,
            ties=Ties(message.ties),
            cap=message.cap,
            cohort=message.cohort,
            modulus=message.modulus,
        )


# Replies


def encode_report(report: Report) -> bytes:
    """A report's canonical bytes, which a node's key may sign."""
    payload = report.payload
    bits = payload.kind is Kind.SYMBOLS and payload.outcomes == 2
    message = wire.Report(
        task=report.task,
        rows=_run_messages(report.rows),
        groups=_run_messages(report.groups),
        payload=wire.Payload(
            kind=int(payload.kind),  # type: ignore[arg-type]
            values=encode_array(payload.values, bits=bits),
            counts=None if payload.counts is None else encode_array(payload.counts),
        ),
        mechanism=_mechanism_message(report.mechanism),
        table=report.table,
        coins=int(report.coins),  # type: ignore[arg-type]
        numerics=report.numerics,
    )
    return message.SerializeToString(deterministic=True)


def decode_report(raw: bytes) -> Report:
    """Read a report. Raises WireError naming the field that does not fit."""
    message = _parse(wire.Report(), raw, "report")
    with refused("report"):
        if len(message.task) != DIGEST or len(message.table) not in (0, DIGEST):
            raise ValueError("expected a task id and a table hash of 32 bytes")
        if len(message.numerics) != NUMERICS_BYTES:
            raise ValueError(f"expected a numerics fingerprint of {NUMERICS_BYTES} bytes")
        return Report(
            task=message.task,
            rows=_runs(message.rows),
            payload=_payload(message.payload),
            mechanism=_mechanism(message.mechanism),
            table=message.table,
            coins=Coins(message.coins),
            numerics=message.numerics,
            groups=_runs(message.groups),
        )


def encode_reply(reports: list[tuple[bytes, bytes]]) -> bytes:
    """One message out of (report bytes, signature) pairs, one per channel used."""
    signed = [wire.SignedReport(report=raw, signature=signature) for raw, signature in reports]
    return wire.Reply(reports=signed).SerializeToString(deterministic=True)


def encode_refusal(refusal: Refusal) -> bytes:
    """One message that says no, with a code and nothing else."""
    message = wire.Refusal(task=refusal.task, code=int(refusal.code))  # type: ignore[arg-type]
    return wire.Reply(refusal=message).SerializeToString(deterministic=True)


def decode_reply(raw: bytes) -> list[Signed] | Refusal:
    """Read what a client sent for one task: reports, or a refusal; never both, never neither."""
    message = _parse(wire.Reply(), raw, "reply")
    with refused("reply"):
        if message.HasField("refusal") == bool(message.reports):
            raise ValueError("expected either reports or a refusal")
        if message.HasField("refusal"):
            if len(message.refusal.task) != DIGEST:
                raise ValueError("expected a task id of 32 bytes")
            return Refusal(message.refusal.task, Code(message.refusal.code))
    return [Signed(decode_report(item.report), item.report, item.signature) for item in message.reports]


# Bundles


def encode_bundle(messages: list[bytes]) -> bytes:
    """Several messages as one: a cell's tasks on their way out, their replies on their way back."""
    return wire.Bundle(messages=messages).SerializeToString(deterministic=True)


def decode_bundle(raw: bytes) -> list[bytes]:
    """Read a bundle; its messages are not decoded yet. Raises WireError."""
    return list(_parse(wire.Bundle(), raw, "bundle").messages)


# Parts


def _parse(message: M, raw: bytes, what: str) -> M:
    try:
        message.ParseFromString(raw)
    except DecodeError:
        raise WireError(f"expected the bytes of a {what}, got {len(raw)} bytes that do not parse") from None
    message.DiscardUnknownFields()
    if message.SerializeToString(deterministic=True) != raw:
        raise WireError(f"expected a canonical {what} without unknown fields, got {len(raw)} other bytes")
    return message


def _text(value: Decimal | None) -> str:
    return "" if value is None else canonical(value)


def _decimal(text: str, name: str) -> Decimal | None:
    if not text:
        return None
    value = decimal(text, name)
    if canonical(value) != text:
        raise ValueError(f"expected {name} as {canonical(value)!r}, got {text!r}")
    return value


def _mechanism_message(mechanism: Mechanism) -> wire.Mechanism:
    parameters = [wire.Parameter(name=name, value=canonical(value)) for name, value in mechanism.parameters]
    return wire.Mechanism(name=mechanism.name, parameters=parameters)


def _mechanism(message: wire.Mechanism) -> Mechanism:
    names = [item.name for item in message.parameters]
    if not message.name or names != sorted(set(names)):
        raise ValueError(f"expected a mechanism with a name and sorted parameters, got {message.name!r}")
    values = [_decimal(item.value, item.name) for item in message.parameters]
    if None in values:
        raise ValueError(f"expected a value for each parameter of {message.name!r}")
    return Mechanism(message.name, tuple(zip(names, values, strict=True)))  # type: ignore[arg-type]


def _run_messages(runs: Runs | None) -> list[wire.Run]:
    if runs is None:
        return []
    if not runs.runs:
        raise ValueError("expected at least one row in a message, got none")
    return [wire.Run(start=start, step=step, count=count) for start, step, count in runs]


def _runs(messages: Iterable[wire.Run]) -> Runs | None:
    runs = tuple((item.start, item.step, item.count) for item in messages)
    return Runs(runs) if runs else None


def _problem_message(problem: Problem) -> wire.Problem:
    return wire.Problem(
        kind=problem.kind,
        model=problem.model,
        dimension=problem.dimension,
        features=problem.features,
        sum_zero=problem.sum_zero,
        bound=_text(problem.bound),
        design=None if problem.design is None else encode_array(problem.design),
    )


def _problem(message: wire.Problem) -> Problem:
    design = decode_array(message.design) if message.HasField("design") else None
    return Problem(
        dimension=message.dimension,
        features=message.features,
        sum_zero=message.sum_zero,
        bound=_decimal(message.bound, "bound"),
        design=design,  # type: ignore[arg-type]
        kind=message.kind,
        model=message.model,
    )


def _payload(message: wire.Payload) -> Payload:
    kind = Kind(message.kind)
    values = decode_array(message.values)
    counts = decode_array(message.counts) if message.HasField("counts") else None
    expected = {
        Kind.SYMBOLS: ("u1", 2),
        Kind.EXACT_SUMS: ("f8", 3),
        Kind.ROWS: ("f8", 3),
        Kind.RESIDUES: ("u8", 2),
    }
    dtype, axes = expected[kind]
    if values.dtype.str[1:] != dtype or values.ndim != axes:
        raise ValueError(f"expected {dtype} values of {axes} axes for {kind.name}, got {values.dtype} {values.shape}")
    if (counts is not None) != (kind is Kind.EXACT_SUMS):
        raise ValueError(f"expected counts exactly for EXACT_SUMS, got kind {kind.name}")
    if counts is not None and (counts.dtype.str[1:] != "u8" or counts.shape != values.shape[1:2]):
        raise ValueError(f"expected one uint64 count a group, got {counts.dtype} {counts.shape}")
    outcomes = 0
    if kind is Kind.SYMBOLS:
        outcomes = 2 if message.values.dtype == wire.DTYPE_BIT else 256
    return Payload(kind, values, counts, outcomes)  # type: ignore[arg-type]
