"""Ties at the labeler: a coin that is thrown once, a half, or left out where that is public."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from client.draws import AddressedDraws, SecretDraws
from client.labels import Labels
from client.ledger_view import read_entries
from client.policy import Policy
from client.sources.table import Table
from client.ties import wins
from protocol.features import reduced_rows, rounded
from protocol.messages import Code, Kind, Report, Runs, Ties
from protocol.terms import law
from protocol.trust import Trust

Ask, Refuse = Callable[..., Report], Callable[..., Code]
TRUSTS = frozenset({Trust.CLEAR, Trust.LOCAL, Trust.CENTRAL})
OPEN = Policy(trusts=TRUSTS, max_epsilon=None, ties_public=True)


@pytest.fixture
def tied(votes: Table) -> Table:
    """Six rows, five labels; labels of rows 1 (y, z), 2 (x, y) and 5 (x, z) are ties."""
    return replace(votes, values=Labels(np.array([0, 2, 2, 0, 1, 2], dtype=np.uint8)))


def test_a_tie_is_half_a_win() -> None:
    assert wins(np.array([0, 1, 2], np.uint8)).tolist() == [0, 1, 0.5]


def test_a_randomised_tie_is_one_answer_for_good(desk: Any, tied: Table, ask: Ask, bits: Any) -> None:
    """At epsilon 40 only ties are random: the labels with a winner come as they are."""
    node, task = desk.node(tied), desk.task(tied, epsilon="40")
    first = bits(ask(node, task, ties=Ties.COIN))
    assert first[[0, 3]].tolist() == [0, 1]
    for study in range(3):
        again = bits(ask(node, desk.task(tied, epsilon="40", study=study), ties=Ties.COIN))
        assert again.tolist() == first.tolist()


def test_ties_of_many_are_fair(desk: Any, ask: Ask, bits: Any) -> None:
    """4,096 coins: beyond 6 standard errors with probability below 2e-9, for each orientation."""
    rows = [(f"r{row}", *("xy" if row % 2 else "yx"), "item_a") for row in range(8192)]
    table = desk.table(rows)
    table = replace(table, values=Labels(np.full(8192, 2, dtype=np.uint8)))
    found = bits(ask(desk.node(table), desk.task(table), ties=Ties.COIN))
    for side in (0, 1):
        assert abs(found[side::2].mean() - 0.5) < 6 * 0.5 / 64


def test_a_local_task_without_ties_gets_a_fixed_winner(desk: Any, tied: Table, ask: Ask, bits: Any) -> None:
    """The first of the pair by name: rows 1, 2 and 5 are ties."""
    assert bits(ask(desk.node(tied), desk.task(tied, epsilon="40"))).tolist() == [0, 0, 0, 1, 0]


@pytest.mark.parametrize("ties", [Ties.NONE, Ties.COIN, Ties.HALF])
def test_an_exact_sum_takes_ties_as_the_task_says(
    desk: Any, tied: Table, ask: Ask, ties: Ties, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SecretDraws, "fair", lambda _, rows: (rows == 2).astype(np.uint8))
    task = desk.task(tied, Trust.CENTRAL)
    least = task.exponent
    report = ask(desk.node(tied), task, ties=ties, exponent=least - (ties is Ties.HALF))
    y = {Ties.NONE: [0, 0, 0, 1, 0], Ties.COIN: [0, 0, 1, 1, 0], Ties.HALF: [0, 0.5, 0.5, 1, 0.5]}[ties]
    v = rounded(reduced_rows(task.problem, 0, 6, 0, 0, 6), least, None).rows[[0, 1, 2, 4, 5]]
    assert report.payload.values[0, 0].tolist() == (np.array(y)[:, None] * v).sum(axis=0).tolist()
    assert report.payload.counts is not None
    assert report.payload.counts.tolist() == [5]


def test_half_wins_need_their_finer_grid(desk: Any, tied: Table, refusal: Refuse) -> None:
    task = desk.task(tied, Trust.CENTRAL)
    for exponent in (task.exponent - 2, 900):
        assert refusal(desk.node(tied), task, ties=Ties.HALF, exponent=exponent) is Code.TASK_INVALID


def test_clear_labels_show_ties_as_coins_halves_or_not_at_all(
    desk: Any, tied: Table, ask: Ask, refusal: Refuse, bits: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SecretDraws, "fair", lambda _, rows: (rows == 2).astype(np.uint8))
    node, task = desk.node(tied), desk.task(tied, Trust.CLEAR)
    assert bits(ask(node, task, ties=Ties.COIN)).tolist() == [0, 0, 1, 0, 1, 0]
    half = ask(node, task, ties=Ties.HALF)
    assert bits(half).tolist() == [0, 2, 2, 0, 1, 2]
    assert (half.payload.kind, half.payload.outcomes) == (Kind.SYMBOLS, 256)
    dropped = ask(node, task, ties=Ties.DROP)
    assert (bits(dropped).tolist(), dropped.rows) == ([0, 0, 1], Runs.of([0, 3, 4]))
    assert refusal(node, task) is Code.TASK_INVALID


@pytest.mark.parametrize("trust", [Trust.LOCAL, Trust.CENTRAL])
def test_ties_are_left_out_only_where_the_node_says_they_are_public(
    desk: Any, tied: Table, ask: Ask, refusal: Refuse, trust: Trust
) -> None:
    task = desk.task(tied, trust)
    secret = replace(OPEN, ties_public=False)
    assert refusal(desk.node(tied, secret), task, ties=Ties.DROP) is Code.TASK_INVALID
    assert ask(desk.node(tied, OPEN), task, ties=Ties.DROP).rows == Runs.of([0, 4])


def test_half_a_win_has_no_channel(desk: Any, tied: Table, refusal: Refuse) -> None:
    assert refusal(desk.node(tied, OPEN), desk.task(tied), ties=Ties.HALF) is Code.TASK_INVALID


@pytest.mark.parametrize("trust", [Trust.CLEAR, Trust.CENTRAL])
def test_randomised_ties_are_local(desk: Any, tied: Table, refusal: Refuse, trust: Trust) -> None:
    assert refusal(desk.node(tied, OPEN), desk.task(tied, trust), ties=Ties.RANDOMIZED) is Code.TASK_INVALID


def test_a_randomised_tie_is_a_third_symbol(desk: Any, tied: Table, ask: Ask, refusal: Refuse, bits: Any) -> None:
    """At epsilon 40 every label comes as it is. Its answer is another one than that of coins, and is paid for."""
    node, task = desk.node(tied, replace(OPEN, label_cap=Decimal(81))), desk.task(tied, epsilon="40")
    report = ask(node, task, ties=Ties.RANDOMIZED)
    assert bits(report).tolist() == [0, 2, 2, 1, 2]
    assert (report.payload.kind, report.payload.outcomes) == (Kind.SYMBOLS, 256)
    assert report.table == law(replace(task, ties=Ties.RANDOMIZED), task.menu[0]).digest
    ask(node, task, ties=Ties.COIN)
    for study in range(1, 4):  # both are known by now, and the cap leaves nothing for a third
        again = ask(node, desk.task(tied, epsilon="40", study=study), ties=Ties.RANDOMIZED)
        assert bits(again).tolist() == bits(report).tolist()
    assert refusal(node, desk.task(tied, epsilon="39"), ties=Ties.RANDOMIZED) is Code.BUDGET_EXHAUSTED
    assert [entry.labels for entry in read_entries(desk.ledger_path)] == [5, 5, 0, 0, 0]


def test_the_length_of_a_message_does_not_tell_ties(desk: Any, votes: Table, tied: Table, ask: Ask) -> None:
    local = [(Trust.LOCAL, ties) for ties in (Ties.COIN, Ties.RANDOMIZED)]
    for trust, ties in (*local, (Trust.CENTRAL, Ties.HALF), (Trust.CENTRAL, Ties.COIN)):
        task = desk.task(votes, trust)
        power = None if task.exponent is None else task.exponent - (ties is Ties.HALF)
        shapes = set()
        for study, table in enumerate((votes, tied)):
            report = ask(desk.node(table), replace(task, study=bytes([study]) * 32), ties=ties, exponent=power)
            shapes.add((report.payload.values.nbytes, report.rows))
        assert len(shapes) == 1


def test_addressed_bits_belong_to_rows() -> None:
    draws = AddressedDraws(7, 100, 0)
    whole = draws.fair(np.arange(100))
    assert draws.fair(np.array([3, 50, 99])).tolist() == whole[[3, 50, 99]].tolist()
    assert 20 < whole.sum() < 80  # beyond 6 standard errors of 5: a fixed seed
