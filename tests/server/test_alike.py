"""Replies read all at once are what they are one by one, whatever is among them and in whatever order."""

from dataclasses import fields, replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from protocol.alike import Form
from protocol.codec import encode_refusal, encode_reply, encode_report, encode_task, identity
from protocol.mechanisms.randomized_response import randomized_response
from protocol.messages import Code, Coins, Kind, Mechanism, Payload, Refusal, Report, Runs, Task
from protocol.numerics import fingerprint
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.trust import Trust
from server import alike, collect

N, MANY = 20_000, 300
ONE, TWO = (Mechanism.of("randomized-response", epsilon=Decimal(level)) for level in (1, 2))
PROBLEM = Problem(2, "gaussian", sum_zero=False, bound=None)
TASK = Task(bytes(32), Trust.LOCAL, Unit.LABEL, PROBLEM, (TWO, ONE), N, Decimal(2), None, 0, 2)
NAME = identity(encode_task(TASK))
Bits = NDArray[np.uint8]


def reply(row: int, answer: tuple[int, int] = (0, 1), mechanism: Mechanism = ONE, **changes: object) -> bytes:
    values = np.array(answer, dtype=np.uint8)[:, None]
    table = randomized_response(mechanism.get("epsilon") or Decimal(1)).digest
    report = Report(
        task=NAME,
        rows=Runs(((row, 1, 1),)),
        payload=Payload(Kind.SYMBOLS, values, outcomes=2),
        mechanism=mechanism,
        table=table,
        coins=Coins.ADDRESSED,
        numerics=fingerprint(),
    )
    return encode_reply([(encode_report(replace(report, **changes)), b"")])  # type: ignore[arg-type]


def gathered(replies: list[bytes]) -> tuple[collect.Mail, collect.Collected]:
    mail = collect.Mail.open(replies, [NAME])
    return mail, collect.collect(TASK, NAME, mail)


def one_by_one(replies: list[bytes], monkeypatch: pytest.MonkeyPatch) -> collect.Collected:
    with monkeypatch.context() as patch:
        patch.setattr(alike, "LEAST", len(replies) + 1)
        mail, found = gathered(replies)
    assert not mail.sheaves[NAME]
    return found


def same(one: collect.Collected, other: collect.Collected) -> None:
    for field in fields(collect.Collected):
        left, right = getattr(one, field.name), getattr(other, field.name)
        if isinstance(left, np.ndarray):
            assert left.dtype == right.dtype and (left == right).all()
        elif field.name == "accepted":
            assert tuple(left) == tuple(right) and len(left) == len(right)
        else:
            assert left == right, field.name


def crowd(rows: range = range(MANY)) -> list[bytes]:
    coins = np.random.default_rng(3).integers(0, 2, (len(rows), 3))
    return [reply(row, (a, b), TWO if c else ONE) for row, (a, b, c) in zip(rows, coins.tolist(), strict=True)]


@pytest.mark.parametrize("rows", [range(MANY), range(100, 140), range(16_200, 16_500), range(19_700, 20_000)])
def test_all_at_once_is_one_by_one(rows: range, monkeypatch: pytest.MonkeyPatch) -> None:
    replies = crowd(rows)
    mail, found = gathered(replies)
    assert bool(mail.sheaves[NAME]) == (len(rows) >= 2 * alike.LEAST)
    same(found, one_by_one(replies, monkeypatch))
    same(gathered(replies[::-1])[1], found)
    assert found.rows.tolist() == list(rows) and not found.rejected and found.ways is not None


STRANGE = {
    "a refusal": encode_refusal(Refusal(NAME, Code.INTERNAL)),
    "another task": reply(400, task=bytes(32)),
    "the same bytes again": crowd()[200],
    "another answer about a row": reply(200, (1, 1)) if crowd()[200] != reply(200, (1, 1)) else reply(200, (0, 0)),
    "two rows": reply(
        0, rows=Runs(((290, 1, 20),)), payload=Payload(Kind.SYMBOLS, np.zeros((2, 20), np.uint8), None, 2)
    ),
    "a row beyond": reply(N),
    "a row that needs more digits": reply(1 << 31),
    "another table": reply(401, table=bytes(32)),
    "no reply": b"\x01" * len(reply(400)),
    "nothing": b"",
}


@pytest.mark.parametrize("what", STRANGE)
@pytest.mark.parametrize("first", [False, True])
def test_what_is_strange_counts_for_what_it_is(what: str, first: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    replies = [STRANGE[what], *crowd()] if first else [*crowd(), STRANGE[what]]
    same(gathered(replies)[1], one_by_one(replies, monkeypatch))


def test_many_that_are_wrong_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = [reply(row, table=bytes(32)) for row in range(500, 600)]
    found = gathered([*crowd(), *wrong])[1]
    assert len(found.rejected) == 100 and len(found.rows) == MANY
    same(found, one_by_one([*crowd(), *wrong], monkeypatch))


@settings(max_examples=200)
@given(place=st.integers(0, 10_000), value=st.integers(0, 255), row=st.integers(1, N - 1))
def test_a_changed_byte_is_never_read_as_something_else(place: int, value: int, row: int) -> None:
    """What a form takes is what writing the report anew gives; all else it leaves to the strict reader."""
    form = Form.of(reply(row))
    assert form is not None
    raw = bytearray(reply(row, (1, 0)))
    raw[place % len(raw)] = value
    sheaf = alike.Sheaf(form)
    left = sheaf.take([bytes(raw)])
    if left:
        return
    (taken,) = sheaf.opened()
    assert encode_reply([(taken.raw, b"")]) == bytes(raw)


def test_many_that_answer_no_repetition(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = Payload(Kind.SYMBOLS, np.zeros((0, 1), np.uint8), None, 2)
    replies = [*crowd(), *(reply(row, payload=nothing) for row in range(500, 600))]
    found = gathered(replies)[1]
    assert len(found.rejected) == 100 and len(found.rows) == MANY
    same(found, one_by_one(replies, monkeypatch))


def test_forms_that_somebody_makes_up_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replies of one length that all differ elsewhere are read one by one: looking for forms is not paid for each."""
    made_up = [reply(row, numerics=row.to_bytes(8, "big")) for row in range(1000, 1200)]
    mail, found = gathered(made_up)
    assert len(mail.sheaves[NAME]) == alike.MOST_FORMS
    same(found, one_by_one(made_up, monkeypatch))
