"""The exact law of whole messages: all classes of coins, with their integer weights, through `answer`.

A class is an interval of 63-bit coins between two thresholds of the table; `tests/client/test_randomizer.py` shows that
the symbol is constant on it. What is compared is the bytes of the reply, all of them.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from client.labeler import Node, answer
from client.labels import Labels
from client.ledger import DiskLedger, MemoryLedger
from client.policy import Policy
from client.sources import Facts
from client.sources.table import Table
from protocol.channel import TOTAL, DiscreteChannel
from protocol.codec import decode_reply, encode_task
from protocol.mechanisms.randomized_response import k_randomized_response, randomized_response
from protocol.messages import Coins, Mechanism, Refusal, Runs, Task, Ties
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.store import FeatureStore
from protocol.terms import with_coin
from protocol.trust import Trust

Vector = tuple[int, ...]
Law = Counter[bytes]


class Listed:
    """Coins of rows, given one by one."""

    coins = Coins.OS

    def __init__(self, coins: dict[int, int]) -> None:
        self._coins = coins

    def lanes(self, rows: NDArray[np.int64]) -> NDArray[np.uint16]:
        return np.array([self._coins[row] >> 47 for row in rows], dtype=np.uint16)

    def escalations(self, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
        return np.array([self._coins[row] & (1 << 47) - 1 for row in rows.tolist()], dtype=np.uint64)

    def fair(self, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        raise AssertionError("expected a local answer to take one draw")


class Given:
    """A source whose labels are the given ones, without a ledger's memory."""

    synthetic, public = True, False

    def __init__(self, values: Vector) -> None:
        self._values = np.array(values, dtype=np.uint8)

    def check(self, task: Task) -> None:
        pass

    def rows(self, task: Task) -> Runs:
        return Runs.of(range(task.n))

    def facts(self, rows: NDArray[np.int64]) -> Facts | None:
        return None

    def labels(self, task: Task, repetition: int, rows: NDArray[np.int64]) -> Labels:
        return Labels(self._values[rows])


def classes(channel: DiscreteChannel, fine: bool) -> list[tuple[int, int]]:
    """(a coin, how many coins behave like it); `fine` also cuts at the borders of the lanes of the thresholds."""
    cuts = {0, TOTAL}
    for threshold in channel.thresholds.ravel().tolist():
        lane = threshold >> 47 << 47
        cuts |= {threshold} | ({lane, lane + (1 << 47)} if fine else set())
    ordered = sorted(cuts)
    return [(start, stop - start) for start, stop in pairwise(ordered)]


def given_task(n: int, epsilon: str) -> Task:
    menu = Mechanism.of("randomized-response", epsilon=Decimal(epsilon))
    problem = Problem(3, "gaussian", True, Decimal(3))
    return Task(b"s" * 32, Trust.LOCAL, Unit.LABEL, problem, (menu,), n, Decimal(epsilon), None, 0, 1)


def law_of(raw: bytes, node: Node, rows: int, coins: list[tuple[int, int]], patch: Any) -> Law:
    """The law of a node's reply: how many ways of all rows' coins lead to each."""
    law: Law = Counter()
    for chosen in product(coins, repeat=rows):
        draws = Listed({row: coin for row, (coin, _) in enumerate(chosen)})
        patch.setattr("client.labeler.SecretDraws", lambda draws=draws: draws)
        weight = 1
        for _, size in chosen:
            weight *= size
        law[answer(raw, node)] += weight
    assert sum(law.values()) == TOTAL**rows
    return law


def laws(raw: bytes, vectors: list[Vector], coins: list[tuple[int, int]], patch: Any) -> Iterator[Law]:
    """The law of the reply for each vector of labels."""
    for vector in vectors:
        node = Node(Given(vector), Policy.simulation(), MemoryLedger(), "os", FeatureStore(None))
        yield law_of(raw, node, len(vector), coins, patch)


def check_pair(one: Law, other: Law, distance: int, channel: DiscreteChannel, epsilon: str) -> None:
    """Every message: P(message | one) <= e^(distance epsilon) P(message | other); the bound of the table is reached."""
    (keep, flip), _ = channel.table
    assert channel.level <= Decimal(epsilon)
    assert set(one) == set(other)
    ratios = [Fraction(weight, other[message]) for message, weight in one.items()]
    assert max(ratios) == Fraction(keep, flip) ** distance


@pytest.mark.parametrize(
    ("n", "fine", "epsilon"),
    [
        *((n, True, epsilon) for n in (1, 2) for epsilon in ("0.000000001", "0.1", "1", "20", "60")),
        (3, False, "1"),
        (4, False, "1"),
    ],
)
def test_all_pairs_of_label_vectors(n: int, fine: bool, epsilon: str, monkeypatch: pytest.MonkeyPatch) -> None:
    channel, raw = randomized_response(Decimal(epsilon)), encode_task(given_task(n, epsilon))
    vectors = list(product((0, 1), repeat=n))
    found = dict(zip(vectors, laws(raw, vectors, classes(channel, fine), monkeypatch), strict=True))
    for one, other in product(vectors, repeat=2):
        distance = sum(a != b for a, b in zip(one, other, strict=True))
        check_pair(found[one], found[other], distance, channel, epsilon)


@pytest.mark.parametrize("n", [5, 6])
def test_neighbours_of_longer_vectors(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    channel, raw = randomized_response(Decimal("0.5")), encode_task(given_task(n, "0.5"))
    base = (0, 1, 1, 0, 1, 0)[:n]
    neighbours = [tuple(value ^ (row == flipped) for row, value in enumerate(base)) for flipped in (0, n - 1)]
    first, *others = laws(raw, [base, *neighbours], classes(channel, False), monkeypatch)
    for other in others:
        check_pair(first, other, 1, channel, "0.5")
        check_pair(other, first, 1, channel, "0.5")


def test_the_law_is_the_product_of_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    channel, raw = randomized_response(Decimal("1")), encode_task(given_task(3, "1"))
    vector = (1, 0, 1)
    (law,) = laws(raw, [vector], classes(channel, False), monkeypatch)
    assert len(law) == 8
    for message, weight in law.items():
        reply = decode_reply(message)
        assert not isinstance(reply, Refusal)
        expected = 1
        for value, symbol in zip(vector, reply[0].report.payload.values[0], strict=True):
            expected *= channel.table[value][symbol]
        assert weight == expected


# A file with a duplicate in the other order and a ledger on disk

ROWS = [("ann", "x", "y"), ("ann", "y", "x"), ("bob", "y", "x")]


def file_law(desk: Any, table: Table, patch: pytest.MonkeyPatch, raw: bytes, coins: list[tuple[int, int]]) -> Law:
    law: Law = Counter()
    for (first, one), (second, two) in product(coins, repeat=2):
        patch.setattr("client.labeler.SecretDraws", lambda a=first, b=second: Listed({0: a, 2: b}))
        desk.ledger_path.unlink(missing_ok=True)
        node = Node(table, Policy(), DiskLedger(desk.ledger_path), "os", FeatureStore(None))
        law[answer(raw, node)] += one * two
    assert sum(law.values()) == TOTAL**2
    return law


def test_a_file_with_duplicates_and_orientations(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    channel = randomized_response(Decimal(1))
    coins = classes(channel, False)
    found: dict[Vector, Law] = {}
    table = desk.table([(*row, "item_a") for row in ROWS])
    raw = encode_task(desk.task(table))
    for winners in product((0, 1), repeat=3):
        table = replace(table, values=Labels(np.array(winners, dtype=np.uint8)))
        found[winners] = file_law(desk, table, monkeypatch, raw, coins)
    for one, other in product(found, repeat=2):
        # One identity is one label: row 1 repeats the label of row 0 and never matters.
        distance = sum(one[row] != other[row] for row in (0, 2))
        check_pair(found[one], found[other], distance, channel, "1")
    for winners, law in found.items():
        for message, weight in law.items():
            reply = decode_reply(message)
            assert not isinstance(reply, Refusal)
            report = reply[0].report
            assert report.rows is not None
            assert report.rows.numbers().tolist() == [0, 2]
            symbols = report.payload.values[0].tolist()
            expected = [channel.table[winners[row]][symbol] for row, symbol in zip((0, 2), symbols, strict=True)]
            assert weight == expected[0] * expected[1]


def test_a_message_has_one_length_whatever_the_labels(desk: Any) -> None:
    rows = [(f"r{row}", f"i{row % 7}", f"j{row % 5}") for row in range(50)]
    lengths: dict[Trust, set[int]] = {trust: set() for trust in (Trust.CLEAR, Trust.LOCAL, Trust.CENTRAL)}
    table = desk.table([(*row, "item_a") for row in rows])
    for seed in range(4):
        values = (np.arange(50) * (seed + 3) // (seed + 1) % 2 * (seed > 0)).astype(np.uint8)
        node = desk.node(replace(table, values=Labels(values)))
        for trust, seen in lengths.items():
            reply = answer(encode_task(desk.task(table, trust, study=seed)), node)
            assert not isinstance(decode_reply(reply), Refusal)
            seen.add(len(reply))
    assert {trust: len(seen) for trust, seen in lengths.items()} == dict.fromkeys(lengths, 1)


@pytest.mark.parametrize("epsilon", ["0.000000001", "0.1", "1", "20"])
def test_labels_with_ties(epsilon: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All pairs of vectors over winner, winner and tie: the same bound, and a tie is the mean of the two winners."""
    raw = encode_task(replace(given_task(2, epsilon), ties=Ties.COIN))
    channel = with_coin(randomized_response(Decimal(epsilon)))
    vectors = list(product((0, 1, 2), repeat=2))
    found = dict(zip(vectors, laws(raw, vectors, classes(channel, False), monkeypatch), strict=True))
    (keep, flip), *_ = channel.table
    for one, other in product(vectors, repeat=2):
        distance = sum(a != b for a, b in zip(one, other, strict=True))
        ratios = [Fraction(weight, found[other][message]) for message, weight in found[one].items()]
        assert max(ratios) <= Fraction(keep, flip) ** distance
    for message, weight in found[(2, 1)].items():
        assert 2 * weight == found[(0, 1)][message] + found[(1, 1)][message]


@pytest.mark.parametrize("epsilon", ["0.000000001", "0.1", "1", "20"])
def test_labels_with_randomised_ties(epsilon: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All pairs of vectors over winner, winner and tie: the bound is met exactly, and rows are independent."""
    raw = encode_task(replace(given_task(2, epsilon), ties=Ties.RANDOMIZED))
    channel = k_randomized_response(Decimal(epsilon), 3)
    vectors = list(product((0, 1, 2), repeat=2))
    found = dict(zip(vectors, laws(raw, vectors, classes(channel, False), monkeypatch), strict=True))
    keep, other, _ = channel.table[0]
    for one, another in product(vectors, repeat=2):
        distance = sum(a != b for a, b in zip(one, another, strict=True))
        ratios = [Fraction(weight, found[another][message]) for message, weight in found[one].items()]
        assert max(ratios) == Fraction(keep, other) ** distance
    for vector, law in found.items():
        expected: Counter[tuple[int, ...]] = Counter()
        for message, weight in law.items():
            reply = decode_reply(message)
            assert not isinstance(reply, Refusal)
            expected[tuple(reply[0].report.payload.values[0].tolist())] += weight
        assert expected == {
            symbols: channel.table[vector[0]][symbols[0]] * channel.table[vector[1]][symbols[1]] for symbols in vectors
        }


# Labelers at levels of their own


class Levelled(Given):
    """The same, whose rows ask for the given levels."""

    def __init__(self, values: Vector, levels: tuple[Decimal, ...], which: Vector) -> None:
        super().__init__(values)
        self._levels, self._which = levels, np.array(which, dtype=np.int64)

    def levels(self, task: Task, rows: NDArray[np.int64]) -> tuple[tuple[Decimal, ...], NDArray[np.int64]]:
        return self._levels, self._which[rows]


@pytest.mark.parametrize("which", [(0, 1), (1, 0), (0, 1, 1), (1, 0, 1)])
def test_each_label_is_protected_at_the_level_of_its_labeler(which: Vector, monkeypatch: pytest.MonkeyPatch) -> None:
    """All pairs of label vectors, all coins, whole replies: rows that change cost their own level, and no other."""
    levels = (Decimal("0.5"), Decimal(2))
    channels = [randomized_response(level) for level in levels]
    task = given_task(len(which), "2")
    menu = tuple(Mechanism.of("randomized-response", epsilon=level) for level in reversed(levels))
    raw = encode_task(replace(task, menu=menu))
    coins = classes(DiscreteChannel(channels[0].table + channels[1].table), False)
    found: dict[Vector, Law] = {}
    for vector in product((0, 1), repeat=len(which)):
        node = Node(Levelled(vector, levels, which), Policy.simulation(), MemoryLedger(), "os", FeatureStore(None))
        found[vector] = law_of(raw, node, len(vector), coins, monkeypatch)
    for one, other in product(found, repeat=2):
        bound = Fraction(1)
        for a, b, level in zip(one, other, which, strict=True):
            keep, flip = channels[level].table[0]
            bound *= Fraction(keep, flip) if a != b else 1
        ratios = [Fraction(weight, found[other][message]) for message, weight in found[one].items()]
        assert max(ratios) == bound
    assert [channel.level <= level for channel, level in zip(channels, levels, strict=True)] == [True, True]
