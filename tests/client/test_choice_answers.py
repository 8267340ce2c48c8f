"""Answers about top choices: the exact law of whole messages, memory and charges, and tasks that are refused."""

import math
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from client.labeler import Node, answer
from client.labels import Labels
from client.ledger import DiskLedger, MemoryLedger
from client.ledger_store import create
from client.policy import Policy
from client.sources import Facts
from protocol.channel import TOTAL
from protocol.choice_features import rounded_blocks
from protocol.choice_law import CHOICE_LOCAL, ONE, PAIR, SUBSET, choice_law
from protocol.choice_pairs import BITS, public_pairs
from protocol.codec import decode_reply, encode_task
from protocol.features import row_bound
from protocol.grid import exponent
from protocol.messages import Code, Coins, Mechanism, Refusal, Report, Runs, Task, Ties
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.store import FeatureStore
from protocol.trust import Trust

ITEMS = np.array([[0, 1, -1, -1], [1, 3, 2, -1], [3, 0, 1, 2], [2, 1, -1, -1]], dtype=np.int32)
SIZES = np.array([2, 3, 4, 2], dtype=np.int32)
ALL = Policy(trusts=frozenset({Trust.CLEAR, Trust.LOCAL, Trust.CENTRAL}), max_epsilon=None)


class Given:
    """Rows with the given labels; of a file where it knows whose they are."""

    public = False

    def __init__(self, labels: tuple[int, ...], problem: Problem, owners: tuple[str, ...] | None = None) -> None:
        self._labels, self._problem, self._owners = np.array(labels, dtype=np.uint8), problem, owners
        self.synthetic = owners is None

    def check(self, task: Task) -> None:
        assert task.problem.digest == self._problem.digest

    def rows(self, task: Task) -> Runs:
        return Runs.of(range(min(task.n, len(self._labels))))

    def facts(self, rows: NDArray[np.int64]) -> Facts | None:
        if self._owners is None:
            return None
        return Facts([bytes([row]) * 32 for row in rows], np.arange(len(rows)), [self._owners[row] for row in rows])

    def labels(self, task: Task, repetition: int, rows: NDArray[np.int64]) -> Labels:
        return Labels(self._labels[rows])


class Listed:
    """Coins of rows, one by one: (63-bit coin, words that shuffle)."""

    coins = Coins.OS

    def __init__(self, chosen: tuple[tuple[int, tuple[int, ...]], ...]) -> None:
        self._chosen = chosen

    def lanes(self, rows: NDArray[np.int64]) -> NDArray[np.uint16]:
        return np.array([self._chosen[row][0] >> 47 for row in rows.tolist()], dtype=np.uint16)

    def escalations(self, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
        return np.array([self._chosen[row][0] & (1 << 47) - 1 for row in rows.tolist()], dtype=np.uint64)

    def fair(self, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        raise AssertionError("no tie here")

    def steps(self, rows: NDArray[np.int64], count: int) -> NDArray[np.uint64]:
        return np.array([self._chosen[row][1] for row in rows.tolist()], dtype=np.uint64).reshape(len(rows), count).T


def problem(n: int = 4) -> Problem:
    """The first rows of a design of 2, 3, 4 and 2 items."""
    design = ITEMS[:n, : SIZES[:n].max()]
    sizes = None if (SIZES[:n] == SIZES[:n].max()).all() else SIZES[:n]
    return Problem(4, "items", True, None, design, "choice", "plackett-luce", design.shape[1], sizes)


def local(name: str, epsilon: str, n: int = 4, study: bytes = b"s" * 32) -> Task:
    menu = Mechanism.of(name, epsilon=Decimal(epsilon))
    return Task(study, Trust.LOCAL, Unit.LABEL, problem(n), (menu,), n, Decimal(epsilon), None, 0, 1)


def coin_classes(task: Task, row: int) -> list[tuple[tuple[int, tuple[int, ...]], int]]:
    """(coins that stand for a class, how many there are) of one row; a shuffle has 2^56 coins a step."""
    law, size = choice_law(task, task.menu[0]), int(SIZES[row])
    if law.name != SUBSET:
        cuts = sorted({0, TOTAL} | set(law.table(size).thresholds.ravel().tolist()))
        return [((start, ()), stop - start) for start, stop in pairwise(cuts)]
    channel = law.subsets(size)
    steps = []
    for step in range(channel.subset):
        left = size - 1 - step
        edges = [-(-(value << BITS) // left) for value in range(left + 1)]
        steps.append([(start << 64 - BITS, stop - start) for start, stop in pairwise(edges)])
    sides = ((0, channel.hit), (channel.hit, TOTAL - channel.hit))
    return [
        ((coin, tuple(word for word, _ in chosen)), many * math.prod(count for _, count in chosen))
        for coin, many in sides
        for chosen in product(*steps)
    ]


@pytest.mark.parametrize("name", CHOICE_LOCAL)
@pytest.mark.parametrize(("n", "epsilon"), [(2, "0.4"), (2, "1.5"), (3, "0.9")])
def test_every_message_of_neighbours(name: str, n: int, epsilon: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """P(message | labels) <= e^epsilon P(message | neighbours), over all coins, labels of one row replaced."""
    task = local(name, epsilon, n)
    raw, asked = encode_task(task), Fraction(Decimal(epsilon).exp() * (1 + Decimal("1e-25")))
    every = [coin_classes(task, row) for row in range(n)]
    laws: dict[tuple[int, ...], Counter[bytes]] = {}
    vectors = list(product(*(range(size) for size in SIZES[:n])))[:: 1 if n == 2 else 4]
    for labels in vectors:
        node = Node(Given(labels, task.problem), Policy.simulation(), MemoryLedger(), "os", FeatureStore(None))
        law: Counter[bytes] = Counter()
        for chosen in product(*every):
            draws = Listed(tuple(coins for coins, _ in chosen))
            monkeypatch.setattr("client.labeler.SecretDraws", lambda draws=draws: draws)
            law[answer(raw, node)] += math.prod(many for _, many in chosen)
        laws[labels] = law
    neighbours = 0
    for one, other in product(vectors, repeat=2):
        if sum(a != b for a, b in zip(one, other, strict=True)) != 1:
            continue
        neighbours += 1
        assert set(laws[one]) == set(laws[other])
        assert max(Fraction(many, laws[other][message]) for message, many in laws[one].items()) <= asked
    assert neighbours


def node(labels: tuple[int, ...], folder: Path, policy: Policy = ALL) -> Node:
    create(folder / "ledger.sqlite", 5.0)
    source = Given(labels, problem(len(labels)), ("ann", "bob", "ann", "cem")[: len(labels)])
    return Node(source, policy, DiskLedger(folder / "ledger.sqlite"), "os", FeatureStore(None))


def report(task: Task, asked: Node) -> Report:
    reply = decode_reply(answer(encode_task(task), asked))
    assert not isinstance(reply, Refusal), reply
    return reply[0].report


@pytest.mark.parametrize("name", CHOICE_LOCAL)
def test_an_answer_is_remembered_whatever_else_is_asked(name: str, tmp_path: Path) -> None:
    """Other rows of other sizes in the task, another round, another study (but for pairs, which that names anew)."""
    held = node((1, 2, 3, 0), tmp_path)
    first = report(local(name, "0.3"), held)
    again = report(replace(local(name, "0.3"), attempt=0, rows=Runs.of([1, 3])), held)
    assert (again.payload.values[0] == first.payload.values[0][[1, 3]]).all()
    assert again.table == first.table
    other = report(local(name, "0.3", study=b"t" * 32), held)
    if name == PAIR:
        assert other.table != first.table
    else:
        assert other.table == first.table and (other.payload.values == first.payload.values).all()
    changed = Node(Given((0, 0, 0, 1), problem(), ("ann", "bob", "ann", "cem")), ALL, held.ledger, "os", held.features)
    late = report(replace(local(name, "0.3"), rows=Runs.of([0, 1, 2])), changed)
    assert (late.payload.values[0] == first.payload.values[0][:3]).all()


@pytest.mark.parametrize("name", CHOICE_LOCAL)
def test_a_label_pays_once_and_within_its_cap(name: str, tmp_path: Path) -> None:
    held = node((1, 2, 3, 0), tmp_path, replace(ALL, label_cap=Decimal("0.5")))
    for _ in range(2):
        report(replace(local(name, "0.3"), rows=None), held)
    reply = decode_reply(answer(encode_task(local(name, "0.4")), held))
    assert isinstance(reply, Refusal) and reply.code is Code.BUDGET_EXHAUSTED


def test_a_set_survives_the_ledger(tmp_path: Path) -> None:
    """63 choices: the highest bit of a kept set is the 63rd."""
    n, most = 40, 63
    wide = Problem(70, "values", False, None, np.ones((n, most, 70)), "choice", "plackett-luce", most)
    create(tmp_path / "ledger.sqlite", 5.0)
    source = Given((62,) * n, wide, tuple(f"labeler {row}" for row in range(n)))
    held = Node(source, ALL, DiskLedger(tmp_path / "ledger.sqlite"), "os", FeatureStore(None))
    task = replace(local(SUBSET, "0.2"), problem=wide, n=n)
    first = report(task, held).payload.values
    again = report(replace(task, study=b"t" * 32), held).payload.values
    assert (first == again).all() and first[0, :, 62].any()
    assert (first.sum(axis=2) == choice_law(task, task.menu[0]).subsets(most).subset).all()


def test_pairs_are_public_and_of_the_row() -> None:
    task = local(PAIR, "1")
    rows, sizes = np.arange(4), SIZES
    pairs = public_pairs(task, 0, rows, sizes)
    assert (pairs[:, 0] < pairs[:, 1]).all() and (pairs[:, 1] < sizes).all()
    assert (public_pairs(replace(task, n=9, attempt=3), 0, rows[1:3], sizes[1:3]) == pairs[1:3]).all()
    many, five = np.arange(4000), np.full(4000, 5, dtype=np.int32)
    found = Counter(map(tuple, public_pairs(task, 0, many, five).tolist()))
    # 10 pairs, 400 each: a count is beyond 6 standard deviations (19 each) with probability 2e-9.
    assert len(found) == 10 and all(abs(count - 400) < 114 for count in found.values())
    assert (public_pairs(task, 1, many, five) != public_pairs(task, 0, many, five)).any()


def test_clear_labels_and_exact_sums(tmp_path: Path) -> None:
    labels = (1, 2, 3, 0)
    held = node(labels, tmp_path)
    clear = Task(b"s" * 32, Trust.CLEAR, Unit.LABEL, problem(), (Mechanism("none"),), 4, None, None, 0, 1)
    assert report(clear, held).payload.values.tolist() == [[1, 2, 3, 0]]
    menu = Mechanism.of("gaussian-statistic-clipped", epsilon=Decimal(1), delta=Decimal("1e-6"), radius=Decimal(1))
    power = exponent(4, row_bound(problem(), 1.0))
    central = replace(clear, trust=Trust.CENTRAL, menu=(menu,), epsilon=Decimal(1), delta=Decimal("1e-6"))
    found = report(replace(central, exponent=power), held).payload
    reduced = held.features.reduced(problem(), 4, 0, 0, 4)
    blocks = rounded_blocks(reduced, SIZES, power, 1.0).rows
    expected = blocks[np.arange(4), list(labels)].sum(axis=0)
    assert (found.values[0, 0] == expected).all() and found.counts is not None and found.counts.tolist() == [4]
    reply = decode_reply(answer(encode_task(replace(central, exponent=power - 1)), held))
    assert isinstance(reply, Refusal) and reply.code is Code.TASK_INVALID


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"ties": Ties.COIN}, Code.TASK_INVALID),
        ({"menu": (Mechanism.of("randomized-response", epsilon=Decimal(1)),)}, Code.MECHANISM_NOT_ALLOWED),
        ({"menu": (Mechanism.of(ONE, epsilon=Decimal(1), subset=Decimal(1)),)}, Code.TASK_INVALID),
        ({"menu": (Mechanism.of(ONE, epsilon=Decimal(2)),)}, Code.TASK_INVALID),
        ({"menu": (Mechanism.of(ONE, epsilon=Decimal(1), outcomes=Decimal(3)),)}, Code.MECHANISM_NOT_ALLOWED),
    ],
)
def test_what_a_client_does_not_understand_it_refuses(change: dict[str, object], code: Code, tmp_path: Path) -> None:
    reply = decode_reply(answer(encode_task(replace(local(ONE, "1"), **change)), node((1, 2, 3, 0), tmp_path)))  # type: ignore[arg-type]
    assert isinstance(reply, Refusal) and reply.code is code


def test_a_missing_choice_is_the_first_under_a_claim(tmp_path: Path) -> None:
    """No code and no length tells that it is missing; a clear task says that it cannot be asked."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    missing, first = node((1, 255, 3, 0), tmp_path / "one"), node((1, 0, 3, 0), tmp_path / "two")
    task = local(ONE, "40")  # a label is changed but once in 10^17
    assert (report(task, missing).payload.values == report(task, first).payload.values).all()
    clear = replace(task, trust=Trust.CLEAR, menu=(Mechanism("none"),), epsilon=None)
    reply = decode_reply(answer(encode_task(clear), missing))
    assert isinstance(reply, Refusal) and reply.code is Code.TASK_INVALID


def test_pairs_do_not_go_through_what_is_for_choices(tmp_path: Path) -> None:
    pairs = Problem(4, "items", True, None, ITEMS[:1, :2])
    task = replace(local(SUBSET, "1"), problem=pairs, n=1)
    create(tmp_path / "ledger.sqlite", 5.0)
    held = Node(Given((1,), pairs, ("ann",)), ALL, DiskLedger(tmp_path / "ledger.sqlite"), "os", FeatureStore(None))
    reply = decode_reply(answer(encode_task(task), held))
    assert isinstance(reply, Refusal) and reply.code is Code.MECHANISM_NOT_ALLOWED
