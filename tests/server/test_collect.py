"""What a server accepts: everything that was asked, nothing else, in any order of arrival."""

import itertools
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from protocol import halftruth_pb2 as wire
from protocol.codec import encode_refusal, encode_reply, encode_report, encode_task, identity
from protocol.mechanisms import channel
from protocol.messages import Code, Coins, Kind, Mechanism, Payload, Refusal, Report, Runs, Task
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.trust import Trust
from server.collect import Collected, Mail, collect
from server.evidence import Heard
from server.journal import Journal
from server.resume import Resumed
from server.sent import Sent

ONE = Decimal(1)
PROBLEM = Problem(3, "sphere", True, Decimal(3))
RR = Mechanism.of("randomized-response", epsilon=ONE)
SUM = Mechanism.of("gaussian-statistic", epsilon=ONE, delta=Decimal("1e-5"))
TABLE = channel("randomized-response", {"epsilon": ONE}).digest
LOCAL = Task(bytes(32), Trust.LOCAL, Unit.LABEL, PROBLEM, (RR,), 10, ONE, None, 0, 2)
CENTRAL = Task(bytes(32), Trust.CENTRAL, Unit.LABEL, PROBLEM, (SUM,), 10, ONE, Decimal("1e-5"), 0, 2, exponent=-40)


def bits(rows: range, task: Task = LOCAL) -> Report:
    values = np.array([[row % 2 for row in rows], [1 - row % 2 for row in rows]], dtype=np.uint8)
    payload = Payload(Kind.SYMBOLS, values, None, 2)
    return Report(identity(encode_task(task)), Runs.of(rows), payload, RR, TABLE, Coins.OS, bytes(8))


def sums(rows: range, value: float) -> Report:
    payload = Payload(Kind.EXACT_SUMS, np.full((2, 1, 2), value), np.array([len(rows)], dtype=np.uint64))
    return Report(identity(encode_task(CENTRAL)), Runs.of(rows), payload, SUM, b"", Coins.OS, bytes(8))


def gather(task: Task, *reports: Report) -> Collected:
    task_id = identity(encode_task(task))
    mail = Mail.open([encode_reply([(encode_report(r), b"")]) for r in reports], [task_id])
    return collect(task, task_id, mail)


def test_order_of_arrival_changes_nothing() -> None:
    reports = [bits(range(3)), bits(range(3, 4)), bits(range(4, 10))]
    results = [gather(LOCAL, *order) for order in itertools.permutations(reports)]
    for result in results:
        assert result.rows.tolist() == list(range(10))
        assert result.symbols is not None
        assert result.symbols.tolist() == [[0, 1] * 5, [1, 0] * 5]
        assert result.accepted == results[0].accepted
        assert not result.rejected


def test_a_row_that_two_claim_counts_for_neither_whoever_comes_first() -> None:
    """Were it one of the two, a liar would try reports until it is theirs."""
    claims = [bits(range(5)), bits(range(4, 7)), bits(range(7, 10))]
    results = [gather(LOCAL, *order) for order in itertools.permutations(claims)]
    assert len({(result.accepted, result.rejected) for result in results}) == 1
    assert results[0].rejected == ("rows that another report answers for as well",) * 2
    assert results[0].rows.tolist() == [7, 8, 9]


def test_the_same_report_twice_counts_once() -> None:
    result = gather(LOCAL, bits(range(5)), bits(range(5, 10)), bits(range(5)))
    assert result.rows.tolist() == list(range(10)) and len(result.accepted) == 2
    assert result.rejected == ("a report that is already here",)


def test_a_claim_is_contested_through_others_that_are() -> None:
    claims = [bits(part) for part in (range(2), range(1, 4), range(3, 6), range(5, 7), range(7, 10))]
    for order in itertools.permutations(claims):
        result = gather(LOCAL, *order)
        assert result.rows.tolist() == [7, 8, 9] and len(result.rejected) == 4


def test_what_does_not_count_is_named_by_its_sender() -> None:
    task_id = identity(encode_task(LOCAL))
    raw = [encode_reply([(encode_report(report), b"")]) for report in (bits(range(5)), bits(range(4, 10)))]
    other = encode_reply([(encode_report(replace(GOOD, task=bytes(32))), b"")])
    letters = [
        Sent(raw[0], "ann", task_id),
        Sent(raw[1], "bob", task_id),
        Sent(raw[1], "cem", task_id),
        Sent(b"garbage", "dan", task_id),
        Sent(raw[0], "eve", task_id, "a report without a signature"),
        Sent(other, "fay", task_id),
    ]
    mail = Mail.open(letters, [task_id])
    result = collect(LOCAL, task_id, mail)
    assert not mail.unread and not len(result.rows)
    assert result.blamed == {"ann", "bob", "cem", "dan", "eve", "fay"}
    assert result.rejected == (
        "ann: rows that another report answers for as well (bob)",
        "bob: rows that another report answers for as well (ann)",
        "cem: a report that is already here (bob)",
        "dan: expected the bytes of a reply, got 7 bytes that do not parse",
        "eve: a report without a signature",
        "fay: an answer to another task",
    )


def test_a_flood_of_reports_counts_as_none_and_takes_no_memory() -> None:
    """A sum of a hundred bytes may be about all rows, which take eight bytes each where reports are compared."""
    whole = encode_report(replace(sums(range(10), 1.0), rows=None))
    flood = Sent(encode_reply([(whole, b"")] * 500), "eve", identity(encode_task(CENTRAL)))
    mail = Mail.open([flood], [identity(encode_task(CENTRAL))])
    result = collect(CENTRAL, identity(encode_task(CENTRAL)), mail)
    assert result.rejected == ("eve: more reports than mechanisms that were offered",)
    assert not len(result.rows) and result.blamed == {"eve"}
    one = Sent(encode_reply([(whole, b"")]), "ann", identity(encode_task(CENTRAL)))
    both = collect(CENTRAL, identity(encode_task(CENTRAL)), Mail.open([flood, one], [identity(encode_task(CENTRAL))]))
    assert both.rows.tolist() == list(range(10))  # nor does it contest what others say


def test_sums_add_exactly_in_any_order() -> None:
    parts = [sums(range(3), 2.0**-40 * 3), sums(range(3, 9), -(2.0**-3)), sums(range(9, 10), 1.0)]
    for order in itertools.permutations(parts):
        result = gather(CENTRAL, *order)
        assert result.sums is not None
        assert (result.sums == 2.0**-40 * 3 - 2.0**-3 + 1).all()
        assert not result.rejected


def test_exact_sums_that_do_not_count_are_not_written_to_a_journal_either(tmp_path: Path) -> None:
    """A liar contests somebody's sum, and has another one accepted whose coins protect nobody."""
    task_id = identity(encode_task(CENTRAL))
    true, contests = sums(range(5), 1.0), sums(range(4, 6), 1.0)
    accepted = replace(sums(range(6, 10), 1.0), coins=Coins.ADDRESSED)
    replies = [encode_reply([(encode_report(report), b"")]) for report in (true, contests, accepted)]
    with Journal.open(tmp_path / "journal") as journal:
        own = Resumed(journal, lambda tasks: replies, lambda *checked: None)
        own.ask([encode_task(CENTRAL)])
        result = collect(CENTRAL, task_id, Mail.open(replies, [task_id]))
        assert result.rows.tolist() == [6, 7, 8, 9] and not result.live
        own.check([Heard(CENTRAL, task_id, result)], ())
    assert replies[0] not in (tmp_path / "journal").read_bytes()


def test_a_labeler_on_two_nodes_is_not_heard() -> None:
    """Each node would clip its own part of the labeler's rows to the radius, and the sum move twice as far."""
    task = replace(CENTRAL, unit=Unit.LABELER, cap=4, groups=np.array([0, 0, 0, 1, 1, 0, 2, 2, 2, 2], dtype=np.int32))
    one, other, third = (replace(sums(part, 1.0), task=identity(encode_task(task))) for part in parts_of_labelers())
    for order in itertools.permutations([one, other, third]):
        result = gather(task, *order)
        assert result.rows.tolist() == [6, 7, 8, 9]
        words = "a labeler of whom another report has rows as well: one labeler lives on one node"
        assert result.rejected == (words, words)


def parts_of_labelers() -> list[range]:
    """Rows of three nodes; labeler 0 is on the first and the second."""
    return [range(5), range(5, 6), range(6, 10)]


def swap(report: Report, **payload: object) -> Report:
    return replace(report, payload=replace(report.payload, **payload))


OTHER = Mechanism.of("randomized-response", epsilon=Decimal("0.5"))
GOOD = bits(range(10))
WRONG: dict[str, tuple[Task, Report]] = {
    "other parameters": (LOCAL, replace(GOOD, mechanism=OTHER)),
    "not offered": (LOCAL, replace(GOOD, table=bytes(32))),
    "hash differs": (LOCAL, replace(GOOD, table=b"")),
    "not asked": (LOCAL, replace(GOOD, rows=Runs.of(range(1, 11)))),
    "rows where 10 were asked": (LOCAL, replace(GOOD, rows=Runs(((0, 1, 1 << 50),)))),
    "groups": (LOCAL, replace(GOOD, groups=Runs.of([1]))),
    "shape": (LOCAL, swap(GOOD, values=np.zeros((1, 10), np.uint8))),
    "kind": (LOCAL, replace(sums(range(10), 0.0), task=GOOD.task, mechanism=RR, table=TABLE)),
    "symbols of shape": (LOCAL, swap(GOOD, outcomes=256)),
    "one sum": (CENTRAL, swap(sums(range(10), 1.0), counts=np.array([9], np.uint64))),
    "off the grid": (CENTRAL, sums(range(10), 2.0**-41)),
    "larger": (CENTRAL, sums(range(10), 21.0)),
    "EXACT_SUMS": (
        CENTRAL,
        swap(sums(range(10), 0.0), kind=Kind.ROWS, values=np.zeros((2, 10, 2)), counts=None),
    ),
}


@pytest.mark.parametrize("reason", sorted(WRONG))
def test_what_does_not_fit_is_rejected_and_stops_nobody(reason: str) -> None:
    task, wrong = WRONG[reason]
    good = bits(range(10)) if task is LOCAL else sums(range(10), 1.0)
    alone = gather(task, wrong)
    assert len(alone.rows) == 0
    assert reason in alone.rejected[0]
    both = gather(task, wrong, good)
    assert len(both.rows) == 10
    assert len(both.rejected) == 1


@pytest.mark.parametrize("runs", [((0, 1, 6), (5, 1, 4)), ((0, 1, 5), (0, 1, 5)), ((3, 0, 10),)])
def test_a_row_twice_in_one_report_is_no_report(runs: tuple[tuple[int, int, int], ...]) -> None:
    """Nor does its node's silence hide it: it is named, and others are heard."""
    message = wire.Report.FromString(encode_report(GOOD))
    del message.rows[:]
    message.rows.extend([wire.Run(start=start, step=step, count=count) for start, step, count in runs])
    task_id = identity(encode_task(LOCAL))
    raws = message.SerializeToString(deterministic=True), encode_report(GOOD)
    twice, good = (encode_reply([(raw, b"")]) for raw in raws)
    mail = Mail.open([Sent(twice, "eve", task_id), Sent(good, "ann", task_id)], [task_id])
    result = collect(LOCAL, task_id, mail)
    assert result.rows.tolist() == list(range(10)) and result.senders == {"ann"} and result.blamed == {"eve"}
    assert "increasing runs" in result.rejected[0]


def test_garbage_and_refusals_are_counted() -> None:
    task_id = identity(encode_task(LOCAL))
    replies = [
        b"garbage",
        encode_refusal(Refusal(task_id, Code.BUDGET_EXHAUSTED)),
        encode_refusal(Refusal(task_id, Code.BUDGET_EXHAUSTED)),
        encode_refusal(Refusal(bytes(32), Code.INTERNAL)),
        encode_reply([(encode_report(bits(range(10))), b"")]),
    ]
    mail = Mail.open([*replies, encode_reply([(encode_report(replace(GOOD, task=bytes(32))), b"")])], [task_id])
    result = collect(LOCAL, task_id, mail)
    assert result.refusals == {Code.BUDGET_EXHAUSTED: 2}
    assert len(mail.unread) == 3
    assert len(result.rows) == 10


def test_one_addressed_report_marks_all_as_addressed() -> None:
    mixed = gather(LOCAL, bits(range(5)), replace(bits(range(5, 10)), coins=Coins.ADDRESSED))
    assert mixed.coins is Coins.ADDRESSED


def test_what_names_a_report_in_a_ledger_tells_nothing_of_its_sum() -> None:
    """A hash of the whole report would tell the exact sum, and so a label, to whoever hashes the candidates."""
    one, other = gather(CENTRAL, sums(range(10), 1.0)), gather(CENTRAL, sums(range(10), 0.5))
    assert one.accepted == other.accepted
    assert one.accepted != gather(CENTRAL, sums(range(9), 1.0)).accepted
    split = gather(CENTRAL, sums(range(5), 1.0), sums(range(5, 10), 1.0))
    assert len(set(split.accepted)) == 2


def test_only_rows_that_were_asked_for() -> None:
    task = replace(LOCAL, rows=Runs.of([1, 3, 5]))
    result = gather(task, bits(range(1, 6, 2), task))
    assert result.rows.tolist() == [1, 3, 5]
    assert gather(task, bits(range(6), task)).rejected
