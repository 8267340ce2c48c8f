"""What a reader is told about the answers an estimate came from."""

from dataclasses import replace
from decimal import Decimal

import numpy as np

from protocol.channel import DiscreteChannel
from protocol.codec import encode_reply, encode_report, encode_task, identity
from protocol.mechanisms import channel
from protocol.messages import Coins, Kind, Mechanism, Payload, Report, Runs, Task
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.trust import Trust
from protocol.warned import code_of
from server.evidence import Heard
from server.listening import listen, quorum
from server.outcome import warnings

LEVEL = Decimal(1)
RR = Mechanism.of("randomized-response", epsilon=LEVEL)
LAW: DiscreteChannel = channel(RR.name, dict(RR.parameters))
TASK = Task(bytes(32), Trust.LOCAL, Unit.LABEL, Problem(3, "sphere", True, None), (RR,), 10, LEVEL, None, 0, 1)


def reply(rows: range, symbol: int) -> bytes:
    payload = Payload(Kind.SYMBOLS, np.full((1, len(rows)), symbol, dtype=np.uint8), None, 2)
    report = Report(identity(encode_task(TASK)), Runs.of(rows), payload, RR, LAW.digest, Coins.OS, bytes(8))
    return encode_reply([(encode_report(report), b"")])


def heard(*replies: bytes) -> Heard:
    return listen([TASK], lambda tasks: list(replies), quorum)[TASK]


def test_missing_rows_are_said() -> None:
    assert "rows-missing: 4 of 10 rows answered" in warnings(heard(reply(range(4), 0)))


def test_an_answer_that_does_not_count_is_said_even_if_no_row_is_missing() -> None:
    """A quorum must not hide that two answered for one row, or that one reply came twice."""
    both = heard(reply(range(6), 0), reply(range(5, 9), 1), reply(range(9, 10), 0))
    assert warnings(both)[:2] == ["reports-rejected: 2 reports rejected", "rows-missing: 1 of 10 rows answered"]
    assert "reports-rejected: 1 report rejected" in warnings(heard(reply(range(10), 0), reply(range(10), 0)))
    alone = heard(reply(range(5), 0), reply(range(5, 10), 1))
    assert not [text for text in warnings(alone) if "reject" in text]


def test_a_level_that_protects_nobody_is_said() -> None:
    whole = heard(reply(range(10), 0))
    loud = Heard(replace(TASK, epsilon=Decimal(41)), whole.task_id, whole.collected)
    (said,) = (text for text in warnings(loud) if code_of(text) == "protects-nobody")
    assert said.startswith("protects-nobody: epsilon above 40 protects nobody")
