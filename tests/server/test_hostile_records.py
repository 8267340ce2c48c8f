"""Lies about records, as bytes: what no mechanism can have said never reaches an aggregate, and stops nobody else."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol import halftruth_pb2 as wire
from protocol.codec import Signed, decode_reply, decode_task, encode_reply, encode_report, encode_task, identity
from protocol.errors import WireError
from protocol.messages import Kind, Payload, Report, Task
from protocol.study import Cell
from server.collect import Collected, Mail, collect
from server.rounds import play
from studies.in_process import in_process
from studies.load import build

CLIENTS, N, FIRST = 3, 12, 4  # the second client, of rows 4 to 7, lies
ARMS: dict[str, dict[str, Any]] = {
    "clear": {"trust": "clear", "estimator": "mean"},
    "piecewise": {"trust": "local", "mechanism": "piecewise", "estimator": "mean"},
    "duchi": {"trust": "local", "mechanism": "duchi", "estimator": "mean"},
    "priv-unit": {"trust": "local", "mechanism": "priv-unit", "estimator": "mean"},
    "laplace": {"trust": "local", "mechanism": "laplace", "estimator": "mean"},
    "rows": {"trust": "central", "estimator": "mean", "aggregate": "trimmed-mean", "trim": Decimal("0.25")},
    "sums": {"trust": "central", "estimator": "mean"},
    "sums in length": {"trust": "central", "estimator": "mean", "aggregate": "centred-clipping"},
}
ILLEGAL: dict[str, Sequence[str]] = {  # what a value of a report may not be, beside NaN, inf and 1e300
    "clear": [],
    "piecewise": ["half", "far"],
    "duchi": ["half", "far"],
    "priv-unit": ["half", "far"],
    "laplace": ["half"],
    "rows": ["far"],
    "sums": ["half", "far"],
    "sums in length": ["half", "far"],
}


@cache
def asked(name: str) -> tuple[Task, tuple[bytes, ...]]:
    """The first task of an arm, and the bytes that each client answers."""
    content = {
        "study": {"name": "lies", "seed": 5, "repetitions": 2},
        "problem": {"kind": "records", "model": "mean", "dimension": 2},
        "records": {"features": "pareto(1.6)", "tail": Decimal("0.5"), "moment": 16},
        "grid": {"n": [N], "epsilon": [1], "delta": [Decimal("1e-5")]},
        "arm": [ARMS[name]],
    }
    loaded = build(content, Path())
    room, seen = in_process(loaded.study, loaded.theta, CLIENTS), list[tuple[list[bytes], list[bytes]]]()

    def ask(raws: list[bytes]) -> list[bytes]:
        seen.append((raws, room.ask(raws)))
        return seen[-1][1]

    assert list(play(loaded.study, Cell(N, 0, 2), ask, room.server))
    (raw,), replies = seen[0]
    return decode_task(raw), tuple(replies)


def report_of(reply: bytes) -> Report:
    found: Any = decode_reply(reply)
    assert isinstance(found[0], Signed)
    return found[0].report


def heard(name: str, lie: bytes) -> tuple[Collected, tuple[str, ...]]:
    """What a server makes of honest replies and a lie in the place of the second."""
    task, honest = asked(name)
    name_of = identity(encode_task(task))
    mail = Mail.open([honest[0], lie, honest[2]], [name_of])
    return collect(task, name_of, mail), mail.unread


def others_only(name: str, found: Collected) -> None:
    """The lie is in nothing; what the others said is there, bit for bit."""
    reports = [report_of(reply).payload.values for reply in (asked(name)[1][0], asked(name)[1][2])]
    assert found.rows.tolist() == [*range(FIRST), *range(2 * FIRST, N)] and len(found.accepted) == 2
    if found.sums is not None:
        assert (found.sums == (reports[0] + reports[1])[:, 0]).all()
    else:
        assert found.values is not None and (found.values == np.concatenate(reports, axis=1)).all()


def lied(name: str, change: Callable[[Payload], Payload]) -> bytes:
    report = report_of(asked(name)[1][1])
    return encode_reply([(encode_report(replace(report, payload=change(report.payload))), b"")])


def one_value(value: float) -> Callable[[Payload], Payload]:
    def change(payload: Payload) -> Payload:
        values = np.array(payload.values, dtype=np.float64)
        values[1, -1, 0] = value
        return replace(payload, values=values)

    return change


def outside(name: str, kind: str) -> float:
    """A finite number that a row, or a sum, cannot have: a value between those of its grid, or one beyond all."""
    task, honest = asked(name)
    largest = float(np.abs(report_of(honest[1]).payload.values).max())
    unit = 2.0 ** (task.exponent if task.exponent is not None else -60)
    return largest * 1e6 if kind == "far" else (unit / 2 if task.exponent is not None else largest * (1 + 2.0**-50) / 3)


@pytest.mark.parametrize("name", ARMS)
def test_honest_bytes_are_heard(name: str) -> None:
    found, unread = heard(name, asked(name)[1][1])
    assert found.rows.tolist() == list(range(N)) and not found.rejected and not unread


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
@pytest.mark.parametrize("name", ARMS)
def test_no_number_reaches_an_aggregate_that_is_none(name: str, value: float) -> None:
    found, unread = heard(name, lied(name, one_value(value)))
    others_only(name, found)
    assert len(found.rejected) + len(unread) == 1


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name, kinds in ILLEGAL.items() for kind in kinds])
def test_what_the_mechanism_cannot_say_reaches_no_aggregate(name: str, kind: str) -> None:
    found, _ = heard(name, lied(name, one_value(outside(name, kind))))
    others_only(name, found)
    assert len(found.rejected) == 1


SHAPES: dict[str, Callable[[Payload], Payload]] = {
    "a row less": lambda payload: replace(payload, values=payload.values[:, :-1]),
    "a repetition less": lambda payload: replace(payload, values=payload.values[:1]),
    "a coordinate more": lambda payload: replace(payload, values=np.concatenate([payload.values] * 2, axis=2)),
    "transposed": lambda payload: replace(payload, values=np.swapaxes(payload.values, 0, 1).copy()),
    "another kind": lambda payload: Payload(Kind.RESIDUES, np.zeros((2, 2), dtype=np.uint64), bits=8),
    "symbols": lambda payload: Payload(Kind.SYMBOLS, np.zeros((2, 4), dtype=np.uint8), None, 2),
    "sums or rows": lambda payload: (
        Payload(Kind.ROWS, np.array(payload.values))
        if payload.kind is Kind.EXACT_SUMS
        else Payload(Kind.EXACT_SUMS, payload.values[:, :1].copy(), counts=np.array([4], dtype=np.uint64))
    ),
}


SUMS, OF_ROWS = ("sums", "sums in length"), ("a row less", "transposed")  # a sum has no rows


@pytest.mark.parametrize(
    ("name", "shape"),
    [(name, shape) for name in ARMS for shape in SHAPES if not (name in SUMS and shape in OF_ROWS)],
)
def test_another_shape_or_kind_reaches_no_aggregate(name: str, shape: str) -> None:
    assert (report_of(asked(name)[1][1]).payload.kind is Kind.EXACT_SUMS) == (name in SUMS)
    found, _ = heard(name, lied(name, SHAPES[shape]))
    others_only(name, found)


@pytest.mark.parametrize("name", ARMS)
def test_another_type_of_number_reaches_no_aggregate(name: str) -> None:
    message = wire.Reply.FromString(asked(name)[1][1])
    (item,) = message.reports
    inner = wire.Report.FromString(item.report)
    for dtype in (wire.DTYPE_I32, wire.DTYPE_U8, wire.DTYPE_BIT, wire.DTYPE_U64):
        inner.payload.values.dtype = dtype
        item.report = inner.SerializeToString(deterministic=True)
        others_only(name, heard(name, message.SerializeToString(deterministic=True))[0])


@pytest.mark.parametrize("name", SUMS)
def test_a_sum_of_more_rows_than_a_node_has_reaches_no_aggregate(name: str) -> None:
    for count in (0, 3, 5, 1 << 40):
        counts = np.array([count], dtype=np.uint64)
        others_only(name, heard(name, lied(name, lambda payload, own=counts: replace(payload, counts=own)))[0])  # type: ignore[misc]


@pytest.mark.parametrize("name", ARMS)
@given(data=st.data())
def test_no_change_of_bytes_stops_the_others_or_brings_in_what_is_no_number(name: str, data: st.DataObject) -> None:
    """A few bytes of a real reply replaced, or its end cut: rejected whole, or a report that the mechanism can make."""
    raw = bytearray(asked(name)[1][1])
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    raw = raw[: data.draw(st.sampled_from([len(raw), len(raw), len(raw) // 2, 1]))]
    try:
        found, _ = heard(name, bytes(raw))
    except WireError:
        pytest.fail("a reply that does not read stopped the others")
    if len(found.accepted) < 2:  # it claims rows of others: only a register could say whose they are
        assert sum("rows that another report answers for as well" in reason for reason in found.rejected) >= 2
        return
    said = found.sums if found.sums is not None else found.values
    assert said is not None and np.isfinite(said).all() and np.abs(said).max() <= 2.0**480
    if len(found.accepted) == 2:
        others_only(name, found)
    else:
        assert found.rows.tolist() == list(range(N))
