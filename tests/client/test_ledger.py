"""Budgets hold exactly, answers are remembered, and what cannot be recorded is not answered."""

import os
import resource
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client.labeler import answer
from client.ledger import DiskLedger
from client.ledger_store import LedgerUnavailable
from client.ledger_view import is_label_ledger, read_entries, read_labelers
from client.policy import Policy
from client.sources.table import Table
from protocol.codec import decode_reply, encode_task
from protocol.group_privacy import group_delta
from protocol.mechanisms.randomized_response import randomized_response
from protocol.messages import Code, Coins, Mechanism, Refusal, Report, Runs
from protocol.trust import Trust

TRUSTS = frozenset({Trust.CLEAR, Trust.LOCAL, Trust.CENTRAL})
Ask, Refuse = Callable[..., Report], Callable[..., Code]


def policy(**caps: str) -> Policy:
    return Policy(trusts=TRUSTS, **{name: Decimal(value) for name, value in caps.items()})  # type: ignore[arg-type]


def spent(desk: Any) -> dict[str, str]:
    return {labeler.labeler: str(labeler.epsilon) for labeler in read_labelers(desk.ledger_path)}


def failed(desk: Any) -> dict[str, Decimal]:
    return {labeler.labeler: labeler.delta for labeler in read_labelers(desk.ledger_path)}


def test_ten_spends_of_a_tenth_pass_under_one_and_the_eleventh_is_refused(
    desk: Any, votes: Table, ask: Ask, refusal: Refuse
) -> None:
    node = desk.node(votes, policy(label_cap="1.0"))
    for study in range(10):
        ask(node, desk.task(votes, Trust.CENTRAL, "0.1", study=study))
    before = read_entries(desk.ledger_path)
    assert refusal(node, desk.task(votes, Trust.CENTRAL, "0.1", study=10)) is Code.BUDGET_EXHAUSTED
    assert refusal(node, desk.task(votes, Trust.CENTRAL, "0.000000001", study=10)) is Code.BUDGET_EXHAUSTED
    assert read_entries(desk.ledger_path) == before
    assert spent(desk) == {"ann": "2", "bob": "2", "cem": "1"}


def test_local_answers_are_remembered_and_cost_once(desk: Any, votes: Table, ask: Ask, bits: Any) -> None:
    node = desk.node(votes, policy(label_cap="1"))
    first = bits(ask(node, desk.task(votes, epsilon="0.7")))
    for study in range(1, 30):
        assert (bits(ask(node, desk.task(votes, epsilon="0.7", study=study))) == first).all()
    assert [entry.labels for entry in read_entries(desk.ledger_path)] == [5] + [0] * 29
    again = desk.node(votes, policy(label_cap="1"))
    assert (bits(ask(again, desk.task(votes, epsilon="0.7", study=99))) == first).all()


def test_only_new_labels_pay(desk: Any, votes: Table, ask: Ask, bits: Any) -> None:
    node = desk.node(votes)
    some = bits(ask(node, desk.task(votes), rows=Runs.of([1, 4])))
    rest = bits(ask(node, desk.task(votes), rows=Runs.of([0, 1, 2])))
    whole = bits(ask(node, desk.task(votes)))
    assert whole[[1, 3]].tolist() == some.tolist()
    assert whole[:3].tolist() == rest.tolist()
    assert [(entry.labels, entry.labelers) for entry in read_entries(desk.ledger_path)] == [(2, 2), (2, 2), (1, 1)]
    assert spent(desk) == {"ann": "2", "bob": "2", "cem": "1"}


def test_another_epsilon_is_another_answer_and_another_charge(
    desk: Any, votes: Table, ask: Ask, refusal: Refuse
) -> None:
    node = desk.node(votes, policy(label_cap="1.5"))
    ask(node, desk.task(votes, epsilon="1"))
    assert refusal(node, desk.task(votes, epsilon="1.000000001")) is Code.BUDGET_EXHAUSTED
    ask(node, desk.task(votes, epsilon="0.5"))
    assert refusal(node, desk.task(votes, epsilon="0.000000001")) is Code.BUDGET_EXHAUSTED
    ask(node, desk.task(votes, epsilon="1", study=5))
    assert spent(desk) == {"ann": "3", "bob": "3", "cem": "1.5"}


def test_a_labeler_with_m_labels_spends_m_epsilon(desk: Any, votes: Table, ask: Ask, refusal: Refuse) -> None:
    node = desk.node(votes, policy(labeler_cap="0.5"))
    assert refusal(node, desk.task(votes, epsilon="0.3")) is Code.BUDGET_EXHAUSTED
    assert read_entries(desk.ledger_path) == []
    ask(node, desk.task(votes, epsilon="0.3"), rows=Runs.of([0, 4, 5]))
    assert refusal(node, desk.task(votes, epsilon="0.3"), rows=Runs.of([1])) is Code.BUDGET_EXHAUSTED
    ask(node, desk.task(votes, epsilon="0.3", study=1), rows=Runs.of([0, 4]))
    ask(node, desk.task(votes, epsilon="0.2"), rows=Runs.of([1]))
    assert spent(desk) == {"ann": "0.5", "bob": "0.3", "cem": "0.3"}


def test_one_short_budget_refuses_the_whole_task_and_charges_nobody(
    desk: Any, votes: Table, ask: Ask, refusal: Refuse
) -> None:
    node = desk.node(votes, policy(label_cap="1"))
    ask(node, desk.task(votes, Trust.CENTRAL, "0.8"), rows=Runs.of([5]))
    before = spent(desk), len(read_entries(desk.ledger_path))
    assert refusal(node, desk.task(votes, epsilon="0.3")) is Code.BUDGET_EXHAUSTED
    assert (spent(desk), len(read_entries(desk.ledger_path))) == before
    ask(node, desk.task(votes, epsilon="0.3"), rows=Runs.of([0, 1, 2, 4]))


def test_failure_probabilities_are_capped_too(desk: Any, votes: Table, ask: Ask, refusal: Refuse) -> None:
    node = desk.node(votes, policy(delta_cap="2e-6"))
    for study in range(2):
        ask(node, desk.task(votes, Trust.CENTRAL, "1", delta="1e-6", study=study))
    assert refusal(node, desk.task(votes, Trust.CENTRAL, "1", delta="1e-30", study=2)) is Code.BUDGET_EXHAUSTED
    ask(node, desk.task(votes, epsilon="1"))
    (ann, _, cem) = read_labelers(desk.ledger_path)
    assert (ann.most, ann.most_delta, ann.labels) == (Decimal(3), Decimal("2e-6"), 2)
    assert cem.epsilon == 3


def test_labels_of_one_labeler_fail_together(desk: Any, votes: Table, ask: Ask, refusal: Refuse) -> None:
    """A sum that protects one label protects two of them at 2 epsilon and (1 + e^epsilon) delta: group privacy."""
    node = desk.node(votes, policy(labeler_delta_cap="8e-6"))
    ask(node, desk.task(votes, Trust.CENTRAL, "1", delta="1e-6"))
    pair = Decimal("0.00000371828182846")
    assert 0 < pair - Decimal("1e-6") * (1 + Decimal(1).exp()) < Decimal("1e-17")
    assert failed(desk) == {"ann": pair, "bob": pair, "cem": Decimal("1e-6")}
    ask(node, desk.task(votes, epsilon="3"))
    assert failed(desk)["ann"] == pair
    ask(node, desk.task(votes, Trust.CENTRAL, "1", delta="1e-6", study=1))
    assert failed(desk) == {"ann": 2 * pair, "bob": 2 * pair, "cem": Decimal("2e-6")}
    assert refusal(node, desk.task(votes, Trust.CENTRAL, "1", delta="1e-6", study=2)) is Code.BUDGET_EXHAUSTED
    ask(node, desk.task(votes, Trust.CENTRAL, "1", delta="6e-6", study=2), rows=Runs.of([5]))
    assert failed(desk) == {"ann": 2 * pair, "bob": 2 * pair, "cem": Decimal("8e-6")}
    assert refusal(node, desk.task(votes, Trust.CENTRAL, "1", delta="1e-30", study=3), rows=Runs.of([5])) is (
        Code.BUDGET_EXHAUSTED
    )


def test_many_labels_of_one_labeler_have_no_promise_together(desk: Any, ask: Ask, refusal: Refuse) -> None:
    table = desk.table([("ann", f"x{row}", f"y{row}", "item_a") for row in range(20)])
    assert refusal(desk.node(table, policy(labeler_delta_cap="0.9")), desk.task(table, Trust.CENTRAL, "1")) is (
        Code.BUDGET_EXHAUSTED
    )
    ask(desk.node(table), desk.task(table, Trust.CENTRAL, "1"))
    (ann,) = read_labelers(desk.ledger_path)
    assert (ann.epsilon, ann.delta, ann.most_delta) == (20, 1, Decimal("1e-6"))


@pytest.mark.parametrize("trust", [Trust.CLEAR, Trust.LOCAL, Trust.CENTRAL])
def test_a_task_seen_before_gets_its_first_bytes_again(desk: Any, votes: Table, trust: Trust) -> None:
    raw = encode_task(desk.task(votes, trust, "0.6"))
    node = desk.node(votes, policy(label_cap="1") if trust is not Trust.CLEAR else policy())
    first = answer(raw, node)
    assert not isinstance(decode_reply(first), Refusal)
    corrected = replace(votes, values=type(votes.values)(1 - votes.values.reveal()))
    assert answer(raw, node) == first == answer(raw, desk.node(corrected))
    assert len(read_entries(desk.ledger_path)) == 1


def test_a_corrected_label_returns_the_old_answer(desk: Any, votes: Table, ask: Ask, bits: Any) -> None:
    first = bits(ask(desk.node(votes), desk.task(votes)))
    corrected = replace(votes, values=type(votes.values)(1 - votes.values.reveal()))
    assert (bits(ask(desk.node(corrected), desk.task(votes, study=1))) == first).all()


def test_addressed_and_secret_answers_are_not_mixed(desk: Any, ask: Ask) -> None:
    table = desk.table([("r", "x", "y", "item_a"), ("r", "y", "z", "item_a")], public=True)
    live = desk.node(table)
    addressed = replace(live, entropy="addressed", seed=3)
    reports = [ask(node, desk.task(table, study=study)) for study, node in enumerate([addressed, live, addressed])]
    assert [report.coins for report in reports] == [Coins.ADDRESSED, Coins.OS, Coins.ADDRESSED]
    assert (reports[0].payload.values == reports[2].payload.values).all()
    assert [(entry.labels, entry.coins) for entry in read_entries(desk.ledger_path)] == [
        (2, Coins.ADDRESSED),
        (2, Coins.OS),
        (0, Coins.ADDRESSED),
    ]


def test_entries_show_the_asked_decimal_and_the_level_of_the_table(desk: Any, votes: Table, ask: Ask) -> None:
    node = desk.node(votes)
    ask(node, desk.task(votes, epsilon="0.1"))
    ask(node, desk.task(votes, Trust.CENTRAL, "0.2", delta="1e-7"))
    ask(node, desk.task(votes, Trust.CLEAR))
    local, central, clear = read_entries(desk.ledger_path)
    assert (local.trust, local.mechanism, str(local.epsilon)) == (Trust.LOCAL, "randomized-response epsilon=0.1", "0.1")
    assert local.level == randomized_response(Decimal("0.1")).level
    assert Decimal("0.09999") < local.level <= Decimal("0.1")
    assert (central.epsilon, central.delta, central.level) == (Decimal("0.2"), Decimal("1e-7"), None)
    assert (clear.epsilon, clear.delta, clear.level, clear.labels) == (None, None, None, 0)
    assert (local.labels, local.labelers, local.coins) == (5, 3, Coins.OS)
    assert is_label_ledger(desk.ledger_path)


def test_the_ledger_is_its_owners_alone(desk: Any, votes: Table) -> None:
    desk.node(votes)
    assert desk.ledger_path.stat().st_mode & 0o077 == 0
    assert desk.ledger_path.parent.stat().st_mode & 0o077 == 0


def test_a_callback_that_fails_leaves_nothing(desk: Any, votes: Table, refusal: Refuse, monkeypatch: Any) -> None:
    node = desk.node(votes)
    for name in ("client.payloads.Asked.randomized", "client.labeler.report"):
        with monkeypatch.context() as patch:
            patch.setattr(name, lambda *_: 1 / 0)
            assert refusal(node, desk.task(votes)) is Code.INTERNAL
    assert read_entries(desk.ledger_path) == []
    assert read_labelers(desk.ledger_path) == []


# Files that cannot be trusted


@contextmanager
def no_room() -> Iterator[None]:
    """No file of this process may grow beyond 512 bytes: what a full disk looks like."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (512, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_refuses(desk: Any, votes: Table, ask: Ask, refusal: Refuse) -> None:
    node, task = desk.node(votes), desk.task(votes)
    raw = encode_task(task)
    with no_room():
        reply = answer(raw, node)
    assert decode_reply(reply) == Refusal(decode_reply(reply).task, Code.LEDGER_UNAVAILABLE)  # type: ignore[union-attr]
    assert read_entries(desk.ledger_path) == []
    ask(node, task)


def test_a_locked_ledger_refuses(desk: Any, votes: Table, ask: Ask, refusal: Refuse) -> None:
    node = desk.node(votes, timeout=0.05)
    with closing(sqlite3.connect(desk.ledger_path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert refusal(node, desk.task(votes)) is Code.LEDGER_UNAVAILABLE
    ask(node, desk.task(votes))


def test_a_reader_delays_but_does_not_break_a_charge(desk: Any, votes: Table, ask: Ask, refusal: Refuse) -> None:
    node = desk.node(votes, timeout=0.05)
    with closing(sqlite3.connect(desk.ledger_path, isolation_level=None)) as other:
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM task").fetchone()
        assert refusal(node, desk.task(votes)) is Code.LEDGER_UNAVAILABLE
    assert read_entries(desk.ledger_path) == []
    ask(node, desk.task(votes))


def test_a_ledger_that_vanished_is_not_made_anew(desk: Any, votes: Table, refusal: Refuse) -> None:
    node = desk.node(votes)
    desk.ledger_path.unlink()
    assert refusal(node, desk.task(votes)) is Code.LEDGER_UNAVAILABLE
    assert not desk.ledger_path.exists()


@pytest.mark.parametrize("damage", ["garbage", "truncated", "newer", "foreign"])
def test_a_damaged_newer_or_foreign_file_refuses(
    desk: Any, votes: Table, ask: Ask, refusal: Refuse, damage: str
) -> None:
    node = desk.node(votes)
    ask(node, desk.task(votes))
    spoil(desk.ledger_path, damage)
    assert refusal(node, desk.task(votes, study=1)) is Code.LEDGER_UNAVAILABLE
    for look in (DiskLedger, read_entries, read_labelers):
        with pytest.raises(LedgerUnavailable):
            look(desk.ledger_path)


def age(path: Path, version: int) -> None:
    """Make the ledger one of an older version: 1 knew no claims for labelers, 2 no delta of labelers."""
    with closing(sqlite3.connect(path)) as old:
        old.execute("ALTER TABLE labeler DROP COLUMN delta")
        if version == 1:
            old.execute("ALTER TABLE task DROP COLUMN unit")
        old.execute(f"PRAGMA user_version = {version}")
        old.commit()


@pytest.mark.parametrize("version", [1, 2])
def test_an_older_ledger_goes_on(desk: Any, votes: Table, ask: Ask, bits: Any, version: int) -> None:
    """Answers, tasks and totals stay; who charges brings the file up to date."""
    first = bits(ask(desk.node(votes), desk.task(votes)))
    charged, totals = read_entries(desk.ledger_path), read_labelers(desk.ledger_path)
    age(desk.ledger_path, version)
    with pytest.raises(LedgerUnavailable, match=rf"version 3, got {version}: a fit, or the start of its node"):
        read_entries(desk.ledger_path)
    node = desk.node(votes)
    assert (read_entries(desk.ledger_path), read_labelers(desk.ledger_path)) == (charged, totals)
    assert bits(ask(node, desk.task(votes, study=1))).tolist() == first.tolist()


@pytest.mark.parametrize("version", [1, 2])
def test_an_older_ledger_s_labelers_have_spent_no_less_delta_than_they_did(
    desk: Any, votes: Table, ask: Ask, version: int
) -> None:
    """It did not note who took part in what: whoever spent any delta is taken to have had all those labels in each."""
    node = desk.node(votes)
    ask(node, desk.task(votes, Trust.CENTRAL, "1", "1e-6"))
    ask(node, desk.task(votes, Trust.CENTRAL, "0.5", "1e-7"), rows=Runs.of([0]))
    ask(node, desk.task(votes, epsilon="2"))
    before = read_labelers(desk.ledger_path)
    age(desk.ledger_path, version)
    DiskLedger(desk.ledger_path)
    after = read_labelers(desk.ledger_path)
    assert [replace(spent, delta=Decimal(0)) for spent in after] == [
        replace(spent, delta=Decimal(0)) for spent in before
    ]
    assert all(new.delta >= old.delta > 0 for new, old in zip(after, before, strict=True))
    pair, one = group_delta(Decimal(1), Decimal("1e-6"), 2), Decimal("1e-7")
    assert [spent.delta for spent in after] == [pair + one, pair + one, Decimal("1e-6") + one]
    assert [spent.delta for spent in before] == [pair + one, pair, Decimal("1e-6")]


def spoil(path: Path, damage: str) -> None:
    if damage == "garbage":
        path.write_bytes(np.arange(5000, dtype=np.uint8).tobytes())
    elif damage == "truncated":
        os.truncate(path, path.stat().st_size // 2 // 4096 * 4096 + 100)
        with path.open("r+b") as file:
            file.seek(4096)
            file.write(b"\xff" * 4096)
    else:
        with closing(sqlite3.connect(path)) as other:
            other.execute("PRAGMA user_version = 4" if damage == "newer" else "PRAGMA application_id = 7")
            other.commit()


def test_an_upgrade_that_is_cut_short_changes_nothing(
    desk: Any, votes: Table, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(desk.node(votes), desk.task(votes, Trust.CENTRAL, "1"))
    age(desk.ledger_path, 1)
    before = desk.ledger_path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr("client.ledger_upgrade.group_delta", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            DiskLedger(desk.ledger_path)
    assert desk.ledger_path.read_bytes() == before
    DiskLedger(desk.ledger_path)
    assert [spent.delta for spent in read_labelers(desk.ledger_path)][2] == Decimal("1e-6")


def test_a_place_where_no_ledger_can_be_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("no folder")
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE t (x)")
        connection.commit()
    for path in (tmp_path, file / "ledger.sqlite", file, other):
        with pytest.raises(LedgerUnavailable):
            DiskLedger(path)
    with pytest.raises(LedgerUnavailable):
        read_entries(tmp_path / "missing")
    assert not (tmp_path / "missing").exists()


def test_a_charge_names_its_mechanism_with_all_parameters(desk: Any, votes: Table, ask: Ask) -> None:
    task = desk.task(votes, Trust.CENTRAL, "1", delta="1e-6")
    menu = Mechanism.of("gaussian-statistic-clipped", epsilon=Decimal(1), delta=Decimal("1e-6"), radius=Decimal("0.5"))
    ask(desk.node(votes), task, menu=(menu,))
    (entry,) = read_entries(desk.ledger_path)
    assert entry.mechanism == "gaussian-statistic-clipped delta=0.000001 epsilon=1 radius=0.5"
