"""A crowd's replies are, byte for byte, what each of its clients answers by itself."""

from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client import crowd
from client.crowd import Crowd
from client.labeler import Node, answer
from client.ledger import MemoryLedger
from client.policy import Policy
from client.sources.synthetic import Synthetic
from client.sources.table import Table
from protocol.codec import encode_task
from protocol.messages import Mechanism, Runs, Task, Ties
from protocol.population import Population
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.store import FeatureStore
from protocol.trust import Trust

SEED, N = 11, 200
ONE, TWO = (Mechanism.of("randomized-response", epsilon=Decimal(level)) for level in (1, 2))
OTHER = Mechanism.of("k-randomized-response", epsilon=Decimal(1), outcomes=Decimal(2))
PAIRS = Problem(3, "gaussian", sum_zero=False, bound=None)
ITEMS = Problem(3, "items", True, None, np.array([[0, 1], [1, 2], [2, 0]] * 200, dtype=np.int32))
CHOICES = Problem(3, "gaussian", sum_zero=False, bound=None, kind="choice", model="plackett-luce", choices=3)
LOCAL = Task(bytes(32), Trust.LOCAL, Unit.LABEL, PAIRS, (ONE,), N, Decimal(1), None, 0, 1)
CLEAR = replace(LOCAL, trust=Trust.CLEAR, menu=(Mechanism("none"),), epsilon=None)
SUM = Mechanism.of("gaussian-statistic-clipped", epsilon=Decimal(1), delta=Decimal("0.01"), radius=Decimal(2))
CENTRAL = replace(LOCAL, trust=Trust.CENTRAL, menu=(SUM,), delta=Decimal("0.01"), exponent=-40)
LEVELS = Population((Decimal(1), Decimal(2)), (Decimal("0.7"), Decimal("0.3")))

USUAL = {
    "local": LOCAL,
    "local, another name": replace(LOCAL, menu=(OTHER,)),
    "local, many repetitions": replace(LOCAL, first_repetition=7, repetitions=20),
    "local, ties by a coin": replace(LOCAL, ties=Ties.COIN),
    "local, randomised ties": replace(LOCAL, ties=Ties.RANDOMIZED),
    "local, a menu": replace(LOCAL, menu=(TWO, ONE), epsilon=Decimal(2), repetitions=2),
    "clear": CLEAR,
    "clear, many repetitions": replace(CLEAR, repetitions=3),
    "clear, ties by a coin": replace(CLEAR, ties=Ties.COIN),
    "clear, without ties": replace(CLEAR, ties=Ties.DROP),
    "another n": replace(LOCAL, n=2 * N - 1),
    "fewer rows than clients": replace(LOCAL, n=N // 2),
    "some of the rows": replace(LOCAL, rows=Runs(((3, 1, 90), (100, 2, 40)))),
}  # fmt: skip
OTHERS = {
    "clear, ties for a half": replace(CLEAR, ties=Ties.HALF),
    "a sum": CENTRAL,
    "two rows each": replace(LOCAL, n=2 * N),
    "no row": replace(LOCAL, n=N, rows=Runs(((0, 1, 1),))),
    "another problem": replace(LOCAL, problem=ITEMS),
    "another unit": replace(LOCAL, unit=Unit.LABELER, cap=1),
    "ties that would tell": replace(LOCAL, ties=Ties.DROP),
    "a mechanism that nobody knows": replace(LOCAL, menu=(Mechanism.of("magic", epsilon=Decimal(1)),)),
    "an attempt too many": replace(LOCAL, attempt=9),
    "a round of records": replace(LOCAL, round=1),
    "top choices": replace(LOCAL, problem=CHOICES, menu=(Mechanism.of("subset-selection", epsilon=Decimal(1)),)),
}
POLICY = replace(Policy.simulation(), max_attempt=3)


def many(
    clients: int = N, problem: Problem = PAIRS, people: Population | None = None, policy: Policy = POLICY
) -> Crowd:
    features = FeatureStore(SEED)
    source = Synthetic(problem, np.array([1.0, -0.5, -0.5]), SEED, features, population=people)
    return Crowd(Node(source, policy, MemoryLedger(), "addressed", features, SEED), clients)


def alone(group: Crowd, tasks: list[bytes]) -> list[bytes]:
    return [answer(raw, node) for node in group for raw in tasks]


def totals(group: Crowd) -> dict[bytes, Any]:
    ledger = group[0].ledger
    assert isinstance(ledger, MemoryLedger)
    return ledger.totals


class Count:
    """`answer`, counted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = 0
        monkeypatch.setattr(crowd, "answer", self)

    def __call__(self, raw: bytes, node: Node) -> bytes:
        self.calls += 1
        return answer(raw, node)


@pytest.mark.parametrize("what", [*USUAL, *OTHERS])
def test_together_is_each_alone(what: str) -> None:
    task = (USUAL | OTHERS)[what]
    raw, problem = encode_task(task), task.problem if task.problem.kind == "choice" else PAIRS
    group, other = many(problem=problem), many(problem=problem)
    assert list(group.replies([raw])) == alone(other, [raw])
    assert totals(group) == totals(other)


def test_tasks_beside_each_other() -> None:
    """Client by client, task by task, whatever each task is; a menu whose levels are asked for by some."""
    raws = [encode_task(task) for task in [*USUAL.values(), *OTHERS.values()]] + [b"", b"no task"]
    group = many(people=LEVELS)
    assert list(group.replies(raws)) == alone(many(people=LEVELS), raws)
    assert list(group.replies([])) == []


def test_most_are_not_asked_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """One client for each length of row numbers (row 0 has none), and for each level of a menu, answers itself."""
    counted, group = Count(monkeypatch), many()
    list(group.replies([encode_task(LOCAL)]))
    assert counted.calls == 3
    list(group.replies([encode_task(CLEAR)]))
    assert counted.calls == 6
    list(many(people=LEVELS).replies([encode_task(USUAL["local, a menu"])]))
    assert 6 + 4 <= counted.calls <= 6 + 6


def test_sums_are_asked_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Count(monkeypatch)
    list(many().replies([encode_task(CENTRAL)]))
    assert counted.calls == N


def test_who_refuses_says_so_themselves() -> None:
    """A level that some labelers do not allow: they refuse, and the others answer as ever."""
    raw = encode_task(
        replace(LOCAL, menu=(TWO, Mechanism.of("randomized-response", epsilon=Decimal("1.5"))), epsilon=Decimal(2))
    )
    replies = list(many(people=LEVELS).replies([raw]))
    assert replies == alone(many(people=LEVELS), [raw])
    assert N // 8 < len(set(replies)) < N // 2


def test_a_policy_is_asked_as_ever() -> None:
    """What one crowd may answer another refuses: nothing is kept between them."""
    raws = [encode_task(LOCAL), encode_task(CLEAR), encode_task(LOCAL)]
    for policy in (
        POLICY,
        replace(POLICY, trusts=frozenset({Trust.CLEAR})),
        replace(POLICY, max_epsilon=Decimal("0.5")),
        POLICY,
    ):
        assert list(many(policy=policy).replies(raws)) == alone(many(policy=policy), raws)


@pytest.mark.parametrize("digits", [1, 2, 3, 4, 5])
def test_row_numbers_of_every_length(digits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Around the first row of so many digits, out of 2^31."""
    group = many(1 << 31)
    counted, first = Count(monkeypatch), 1 << 7 * (digits - 1)
    clients = range(max(0, first - 20), first + 20)
    raw = encode_task(replace(LOCAL, n=1 << 31, repetitions=2))
    replies = list(group.together(raw, clients))
    assert counted.calls == 2
    assert replies == [answer(raw, group[client]) for client in clients]


@settings(max_examples=25, deadline=None)
@given(
    clients=st.integers(1, 160),
    rows=st.integers(1, 300),
    repetitions=st.integers(1, 9),
    names=st.lists(st.sampled_from([name for name in USUAL if name != "some of the rows"]), min_size=1, max_size=2),
    block=st.integers(0, 7),
)
def test_any_sizes(clients: int, rows: int, repetitions: int, names: list[str], block: int) -> None:
    tasks = [replace(USUAL[name], n=rows, repetitions=repetitions) for name in names]
    raws = [encode_task(task) for task in tasks]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crowd, "BLOCK", 1 << block)
        assert list(many(clients).replies(raws)) == alone(many(clients), raws)


def test_blocks_are_bounded_whatever_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many symbols are drawn at once as a bound says, over repetitions and tasks: memory does not grow with them."""
    sizes, drawn = [], Crowd._answered
    monkeypatch.setattr(crowd, "VALUES", 1 << 8)
    monkeypatch.setattr(Crowd, "_answered", lambda self, raw, one: sizes.append(len(one)) or drawn(self, raw, one))
    list(many().replies([encode_task(USUAL["clear, many repetitions"])] * 2))
    assert set(sizes) == {32} and len(sizes) == 2 * (N // 32)
    list(many().replies([encode_task(replace(LOCAL, repetitions=17))]))
    assert len(sizes) == 2 * (N // 32), "few at once are asked themselves"


def test_a_joint_part_is_its_parts() -> None:
    source = many()[0].source
    assert isinstance(source, Synthetic)
    for n in (5, 199, 200, 201, 700):
        task = replace(LOCAL, n=n)
        edges = [0, 1, 17, 199, 200]
        parts = [source.part(start, N, stop - start).rows(task).numbers() for start, stop in pairwise(edges)]
        each = [source.part(client, N).rows(task).numbers() for client in range(N)]
        assert np.concatenate(parts).tolist() == np.concatenate(each).tolist() == list(range(n))
        assert parts[1].tolist() == np.concatenate(each[1:17]).tolist()
    with pytest.raises(ValueError, match="expected 0 <= client < clients, got 200 of 200"):
        source.part(190, N, 11)


def test_nobody_answers_for_those_who_have_something_to_protect(desk: Any, votes: Table) -> None:
    """Labels of a file, the system's coins, a ledger on disk: none of them goes this way."""
    with pytest.raises(ValueError, match="expected synthetic labels, a ledger in memory and addressed coins"):
        Crowd(desk.node(votes), 3)
    node = many()[0]
    with pytest.raises(ValueError, match="addressed coins"):
        Crowd(Node(node.source, POLICY, MemoryLedger(), "os", node.features), 3)
