"""What real records pay: a run once for all its rounds, a local report each time, and nothing for what is refused."""

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import client.labeler as labeler
from client.labeler import Node, answer
from client.ledger import DiskLedger
from client.ledger_view import read_entries, read_labelers
from client.policy import Policy
from client.rows import answerable
from client.sources.record_columns import RecordColumns
from client.sources.record_table import RecordTable, read_record_table
from protocol.codec import decode_reply, encode_task
from protocol.messages import Code, Coins, Mechanism, Report, Runs, Task
from protocol.numeric import NUMERIC, numeric_channel
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.record_terms import Bounded, sum_exponent
from protocol.store import FeatureStore
from protocol.trust import Trust

Ask, Refuse = Callable[..., Report], Callable[..., Code]
ALL = Policy(trusts=frozenset({Trust.CLEAR, Trust.LOCAL, Trust.CENTRAL}), units=frozenset({Unit.RECORD, Unit.HOLDER}))
RECORDS = RecordColumns(("x", "z"), "mean", id="id", holder="who")
HOLDERS = RecordColumns(("x", "z"), "mean", unit=Unit.HOLDER, holder="who")
LINES = "id,who,x,z\n1,ann,0.5,3\n2,ann,-9,0\n3,bob,1,1\n4,ann,2,0.25\n"
ROUNDS = 3


class Books:
    """A file of four records of two people, and a ledger."""

    def __init__(self, folder: Path) -> None:
        self.path, self.ledger = folder / "records.csv", folder / "ledger.sqlite"

    def table(self, columns: RecordColumns = RECORDS, lines: str = LINES) -> RecordTable:
        self.path.write_text(lines, encoding="utf-8")
        return read_record_table(self.path, False, columns)

    def node(self, policy: Policy = ALL, columns: RecordColumns = RECORDS, lines: str = LINES) -> Node:
        return Node(self.table(columns, lines), policy, DiskLedger(self.ledger), "os", FeatureStore(None))

    def spent(self) -> dict[str, tuple[Decimal, Decimal]]:
        """(epsilon, delta) of each person."""
        return {one.labeler: (one.epsilon, one.delta) for one in read_labelers(self.ledger)}

    def paid(self) -> list[int]:
        """How many rows each entry of the ledger charged."""
        return [entry.labels for entry in read_entries(self.ledger)]


@pytest.fixture
def books(tmp_path: Path) -> Books:
    return Books(tmp_path)


def central(
    t: int = 0, theta: Any = (0.0, 0.0), rounds: int = ROUNDS, study: int = 0, unit: Unit = Unit.RECORD, n: int = 4
) -> Task:
    """Round t of a run of noisy sums at (1, 1e-5)."""
    problem = Problem(2, "records", False, None, kind="records", model="mean")
    more = {"rounds": Decimal(rounds)} if rounds > 1 else {}
    mechanism = Mechanism.of("gaussian", epsilon=Decimal(1), delta=Decimal("1e-5"), threshold=Decimal(2), **more)
    point = None if theta is None else np.array([theta], dtype=np.float64)
    name = study.to_bytes(32, "big")
    task = Task(
        name, Trust.CENTRAL, unit, problem, (mechanism,), n, Decimal(1), Decimal("1e-5"), 0, 1, round=t, theta=point
    )
    return replace(task, exponent=sum_exponent(task, Bounded.of(mechanism)))


def local(name: str = "piecewise", theta: Any = None, epsilon: str = "1", unit: Unit = Unit.RECORD, n: int = 4) -> Task:
    """Randomised rows of both coordinates."""
    failing = {"delta": Decimal("1e-5")} if name == "gaussian" else {}
    level, two = Decimal(epsilon), Decimal(2)
    mechanism = Mechanism.of(name, epsilon=level, threshold=two, dimension=two, **failing)
    point = None if theta is None else np.array([theta], dtype=np.float64)
    problem = Problem(2, "records", False, None, kind="records", model="mean")
    failure = failing.get("delta")
    return Task(bytes(32), Trust.LOCAL, unit, problem, (mechanism,), n, level, failure, 0, 1, theta=point)


def test_a_run_is_charged_once_at_its_first_round(books: Books, ask: Ask) -> None:
    node = books.node()
    theta = (0.0, 0.0)
    for t in range(ROUNDS):
        report = ask(node, central(t, theta))
        theta = tuple(-report.payload.values[0, 0] / 4)
    # ann has three records of one epsilon each, bob one; delta grows by e for each further record
    assert books.paid() == [4]  # a run is one entry
    assert books.spent()["ann"][0] == 3
    assert books.spent()["bob"] == (1, Decimal("1e-5"))


def test_a_second_theta_for_a_round_is_told_nothing_new(books: Books) -> None:
    node = books.node()
    first = [answer(encode_task(central(t)), node) for t in range(2)]
    before = books.ledger.read_bytes()
    for theta in ((1.0, 0.0), (5.0, -5.0), None):
        assert [answer(encode_task(central(t, theta)), node) for t in range(2)] == first
    assert books.ledger.read_bytes() == before


def test_two_runs_are_charged_twice(books: Books, ask: Ask) -> None:
    node = books.node()
    for study in range(2):
        for t in range(ROUNDS):
            ask(node, central(t, study=study))
    ask(node, central(0, rounds=ROUNDS + 1))
    assert [count for count in books.paid() if count] == [4, 4, 4]
    assert books.spent()["bob"] == (3, Decimal("3e-5"))


def test_a_round_beyond_the_run_is_refused(books: Books, refusal: Refuse) -> None:
    assert refusal(books.node(), central(ROUNDS)) is Code.TASK_INVALID
    assert not books.paid()


def test_a_run_goes_on_in_another_process_without_paying_again(books: Books, ask: Ask) -> None:
    ask(books.node(), central(0))
    report = ask(books.node(), central(1))  # a new node at the same ledger
    assert report.payload.counts is not None
    assert report.payload.counts.tolist() == [4]
    assert sum(books.paid()) == 4


def test_a_crash_before_the_reply_is_written_charges_nothing(
    books: Books, ask: Ask, refusal: Refuse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> bytes:
        raise MemoryError

    for t in range(2):  # at the round that pays, and at one that does not
        with monkeypatch.context() as patched:
            patched.setattr(labeler, "encode_reply", crash)
            assert refusal(books.node(), central(t)) is Code.INTERNAL
        assert sum(books.paid()) == 4 * t
        ask(books.node(), central(t))
        assert sum(books.paid()) == 4


@pytest.mark.parametrize(
    ("cap", "asked"),
    [
        ({"label_cap": Decimal("1.5")}, central(study=1)),
        ({"delta_cap": Decimal("1.5e-5")}, central(study=1)),
        ({"labeler_cap": Decimal(3)}, central(study=1)),
        ({"label_cap": Decimal("1.5")}, local()),
    ],
)
def test_a_run_that_a_cap_does_not_leave_room_for_is_refused(
    books: Books, ask: Ask, refusal: Refuse, cap: dict[str, Decimal], asked: Task
) -> None:
    node = books.node(replace(ALL, **cap))
    ask(node, central(0))
    spent = books.spent()
    assert refusal(node, asked) is Code.BUDGET_EXHAUSTED
    ask(node, central(1))  # the run that was paid for goes on
    assert (sum(books.paid()), books.spent()) == (4, spent)


def test_a_holder_whose_records_cost_too_much_together_is_refused(books: Books, refusal: Refuse) -> None:
    assert refusal(books.node(replace(ALL, labeler_cap=Decimal("2.5"))), central()) is Code.BUDGET_EXHAUSTED
    assert not books.paid()


def test_a_holder_pays_once_for_all_its_records(books: Books, ask: Ask) -> None:
    node = books.node(replace(ALL, labeler_cap=Decimal(1)), HOLDERS)
    report = ask(node, central(unit=Unit.HOLDER, n=2))
    assert report.payload.values.tolist() == [[[2.0 - 1.0, -13 / 12 - 1.0]]]  # means of ann (beyond -2 none), of bob
    assert books.spent() == {"ann": (1, Decimal("1e-5")), "bob": (1, Decimal("1e-5"))}


@pytest.mark.parametrize("name", NUMERIC)
def test_secret_coins_execute_exact_randomisers_alone(books: Books, ask: Ask, refusal: Refuse, name: str) -> None:
    node, task = books.node(), local(name)
    parameters = dict(task.menu[0].parameters)
    if numeric_channel(name, parameters).live:
        assert ask(node, task).coins is Coins.OS
        assert books.paid() == [4]
    else:
        assert refusal(node, task) is Code.MECHANISM_NOT_ALLOWED
        assert not books.paid()
        assert not books.spent()


def test_every_local_question_is_charged_and_the_same_one_costs_nothing(books: Books) -> None:
    node = books.node()
    replies = [answer(encode_task(local(theta=theta)), node) for theta in (None, (1.0, 0.0))]
    assert books.paid() == [4, 4]
    assert books.spent()["bob"] == (2, 0)
    before = books.ledger.read_bytes()
    assert [answer(encode_task(local(theta=theta)), node) for theta in (None, (1.0, 0.0))] == replies
    assert books.ledger.read_bytes() == before


def test_changed_values_are_not_looked_at_again(books: Books) -> None:
    first = [answer(encode_task(task), books.node()) for task in (local(), central())]
    changed = books.node(lines=LINES.replace("0.5,3", "1.9,-1.9"))
    assert [answer(encode_task(task), changed) for task in (local(), central())] == first


def test_clear_records_and_refused_ones_pay_nothing(books: Books, ask: Ask, refusal: Refuse) -> None:
    clear = replace(local(), trust=Trust.CLEAR, menu=(Mechanism("none"),), epsilon=None)
    assert ask(books.node(), clear).payload.values.shape == (1, 4, 2)
    nameless = books.node(columns=replace(RECORDS, id=None))
    assert refusal(nameless, central()) is Code.PROBLEM_UNKNOWN
    assert refusal(nameless, local()) is Code.PROBLEM_UNKNOWN
    ask(nameless, clear)
    for policy, code in (
        (replace(ALL, trusts=frozenset({Trust.CLEAR})), Code.TRUST_NOT_ALLOWED),
        (replace(ALL, units=frozenset({Unit.HOLDER})), Code.UNIT_NOT_ALLOWED),
        (replace(ALL, mechanisms=frozenset({"duchi"})), Code.MECHANISM_NOT_ALLOWED),
        (replace(ALL, max_epsilon=Decimal("0.5")), Code.EPSILON_ABOVE_CAP),
    ):
        assert {refusal(books.node(policy), task) for task in (local(), central())} == {code}
    assert not books.spent()


@pytest.mark.parametrize(
    "changes",
    [
        {"repetitions": 2},
        {"first_repetition": 1},
        {"epsilon": Decimal(2)},
        {"exponent": -1074},
        {"theta": np.array([[np.nan, 0.0]])},
        {"theta": np.zeros((1, 3))},
        {"menu": (Mechanism.of("gaussian", epsilon=Decimal(1), delta=Decimal("1e-5")),)},
        {"menu": (Mechanism.of("laplace", epsilon=Decimal(1), delta=Decimal("1e-5"), threshold=Decimal(1)),)},
    ],
)
def test_a_task_that_makes_no_sense_has_a_code_that_says_so(
    books: Books, refusal: Refuse, changes: dict[str, Any]
) -> None:
    assert refusal(books.node(), central(), **changes) is Code.TASK_INVALID
    assert not books.paid()


def test_reports_of_two_people_decode(books: Books) -> None:
    (signed,) = decode_reply(answer(encode_task(local()), books.node()))  # type: ignore[misc]
    legal = numeric_channel("piecewise", dict(local().menu[0].parameters)).legal(signed.report.payload.values[0])
    assert legal.all()


@pytest.mark.parametrize(("start", "step", "held"), [(0, 1, 4), (1, 2, 2), (3, 5, 1)])
def test_a_few_bytes_about_billions_of_rows_cost_nothing(books: Books, start: int, step: int, held: int) -> None:
    """Written out they would take 34 GB, at the node, by whoever may ask it."""
    most = (1 << 32) - 1
    rows = Runs(((start, step, (most - 1 - start) // step + 1),))
    task = replace(central(n=most), rows=rows)
    tracemalloc.start()
    try:
        assert len(answerable(task, books.table())) == held
        answer(encode_task(task), books.node())
        assert tracemalloc.get_traced_memory()[1] < 1 << 26
    finally:
        tracemalloc.stop()
