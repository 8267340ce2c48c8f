"""Parts of messages <-> protobuf, shared by tasks and reports."""

from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache
from typing import TypeVar

import numpy as np
from google.protobuf.message import DecodeError, Message
from numpy.typing import NDArray

from protocol import halftruth_pb2 as wire
from protocol.arrays import AnyArray, decode_array, encode_array, encode_residues
from protocol.decimals import canonical, decimal
from protocol.errors import WireError
from protocol.messages import Kind, Mechanism, Payload, Runs
from protocol.problem import Problem

M = TypeVar("M", bound=Message)
FEW_BYTES = 16  # of a payload that others are likely to have as well


def parse(message: M, raw: bytes, what: str) -> M:
    """The message of canonical bytes. Raises WireError."""
    try:
        message.ParseFromString(raw)
    except DecodeError:
        raise WireError(f"expected the bytes of a {what}, got {len(raw)} bytes that do not parse") from None
    message.DiscardUnknownFields()
    if message.SerializeToString(deterministic=True) != raw:
        raise WireError(f"expected a canonical {what} without unknown fields, got {len(raw)} other bytes")
    return message


def text_of(value: Decimal | None) -> str:
    """A decimal as the wire spells it; empty for None."""
    return "" if value is None else canonical(value)


def decimal_of(text: str, name: str) -> Decimal | None:
    """A decimal in its one spelling; None for empty. Raises ValueError."""
    if not text:
        return None
    value = decimal(text, name)
    if canonical(value) != text:
        raise ValueError(f"expected {name} as {canonical(value)!r}, got {text!r}")
    return value


def encode_mechanism(mechanism: Mechanism) -> wire.Mechanism:
    """A mechanism as a message."""
    parameters = [wire.Parameter(name=name, value=canonical(value)) for name, value in mechanism.parameters]
    return wire.Mechanism(name=mechanism.name, parameters=parameters)


def decode_mechanism(message: wire.Mechanism) -> Mechanism:
    """A mechanism with a name and sorted parameters. Raises ValueError."""
    names = [item.name for item in message.parameters]
    if not message.name or names != sorted(set(names)):
        raise ValueError(f"expected a mechanism with a name and sorted parameters, got {message.name!r}")
    values = [decimal_of(item.value, item.name) for item in message.parameters]
    if None in values:
        raise ValueError(f"expected a value for each parameter of {message.name!r}")
    return Mechanism(message.name, tuple(zip(names, values, strict=True)))  # type: ignore[arg-type]


def checked_runs(runs: Runs | None) -> tuple[tuple[int, int, int], ...]:
    """Runs as a message has them; none where all rows are meant. Raises ValueError for no rows."""
    if runs is None:
        return ()
    if not runs.runs:
        raise ValueError("expected at least one row in a message, got none")
    return runs.runs


def encode_runs(runs: Runs | None) -> list[wire.Run]:
    """Rows as messages; none where all are meant. Raises ValueError for no rows."""
    return [wire.Run(start=start, step=step, count=count) for start, step, count in checked_runs(runs)]


def decode_runs(messages: Iterable[wire.Run]) -> Runs | None:
    """Rows, None where all are meant."""
    runs = tuple((item.start, item.step, item.count) for item in messages)
    return Runs(runs) if runs else None


def encode_problem(problem: Problem) -> wire.Problem:
    """A problem as a message."""
    return wire.Problem(
        kind=problem.kind,
        model=problem.model,
        dimension=problem.dimension,
        features=problem.features,
        sum_zero=problem.sum_zero,
        bound=text_of(problem.bound),
        design=None if problem.design is None else encode_array(problem.design),
        choices=problem.choices if problem.kind == "choice" else 0,
        sizes=None if problem.sizes is None else encode_array(problem.sizes),
        scales=[canonical(scale) for scale in problem.scales],
    )


def decode_problem(message: wire.Problem) -> Problem:
    """A problem; raises ValueError where its fields do not fit."""
    design = decode_array(message.design) if message.HasField("design") else None
    if bool(message.choices) != (message.kind == "choice"):
        raise ValueError(f"expected a number of choices exactly for top choices, got {message.choices}")
    return Problem(
        dimension=message.dimension,
        features=message.features,
        sum_zero=message.sum_zero,
        bound=decimal_of(message.bound, "bound"),
        design=design,  # type: ignore[arg-type]
        kind=message.kind,
        model=message.model,
        choices=message.choices or 2,
        sizes=decode_array(message.sizes) if message.HasField("sizes") else None,  # type: ignore[arg-type]
        scales=tuple(_scale(text) for text in message.scales),
    )


def _scale(text: str) -> Decimal:
    value = decimal_of(text, "a scale")
    if value is None:
        raise ValueError("expected a scale, got an empty one")
    return value


def encode_payload(payload: Payload) -> bytes:
    """The bytes of a report that has nothing but this payload."""
    values, bits = payload.values, payload.kind is Kind.SYMBOLS and payload.outcomes == 2
    if values.dtype == np.uint8 and values.nbytes <= FEW_BYTES and payload.counts is None:
        return _few(payload.kind, values.tobytes(), values.shape, bits)
    if payload.kind is Kind.RESIDUES:
        packed = encode_residues(values.astype(np.uint64, copy=False), payload.bits)
        return wire.Report(
            payload=wire.Payload(kind=int(Kind.RESIDUES), values=packed)  # type: ignore[arg-type]
        ).SerializeToString(deterministic=True)
    return _encode_payload(payload.kind, values, payload.counts, bits)


@lru_cache(maxsize=1024)
def _few(kind: Kind, values: bytes, shape: tuple[int, ...], bits: bool) -> bytes:
    """Of a few small integers: many reports say the same."""
    return _encode_payload(kind, np.frombuffer(values, dtype=np.uint8).reshape(shape), None, bits)


def _encode_payload(kind: Kind, values: AnyArray, counts: NDArray[np.uint64] | None, bits: bool) -> bytes:
    message = wire.Payload(
        kind=int(kind),  # type: ignore[arg-type]
        values=encode_array(values, bits=bits),
        counts=None if counts is None else encode_array(counts),
    )
    return wire.Report(payload=message).SerializeToString(deterministic=True)


def decode_payload(message: wire.Payload) -> Payload:
    """A payload whose kind, dtype and axes fit. Raises ValueError."""
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
    if kind is Kind.SYMBOLS and message.values.dtype == wire.DTYPE_BIT:
        axes = max(axes, min(values.ndim, axes + 1))  # a set of choices a row: one bit a choice
    if (message.values.dtype == wire.DTYPE_RESIDUE) != (kind is Kind.RESIDUES):
        raise ValueError(f"expected packed integers exactly for RESIDUES, got kind {kind.name}")
    if values.dtype.str[1:] != dtype or values.ndim != axes:
        raise ValueError(f"expected {dtype} values of {axes} axes for {kind.name}, got {values.dtype} {values.shape}")
    if (counts is not None) != (kind is Kind.EXACT_SUMS):
        raise ValueError(f"expected counts exactly for EXACT_SUMS, got kind {kind.name}")
    if counts is not None and (counts.dtype.str[1:] != "u8" or counts.shape != values.shape[1:2]):
        raise ValueError(f"expected one uint64 count a group, got {counts.dtype} {counts.shape}")
    outcomes = 0
    if kind is Kind.SYMBOLS:
        outcomes = 2 if message.values.dtype == wire.DTYPE_BIT else 256
    return Payload(kind, values, counts, outcomes, message.values.bits)  # type: ignore[arg-type]
