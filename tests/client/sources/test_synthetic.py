"""Labels from a truth: their law, and that they depend on the row alone."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from client.labeler import Node, answer
from client.ledger import MemoryLedger
from client.policy import Policy
from client.sources import ProblemUnknown
from client.sources.synthetic import Synthetic
from protocol.codec import decode_reply, encode_task
from protocol.coins import Address, Stream, words
from protocol.features import coordinates, row_bound
from protocol.grid import exponent
from protocol.messages import Code, Mechanism, Refusal, Runs, Task
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.store import FeatureStore
from protocol.trust import Trust

THETA = np.array([1.0, 0.5, 0.0, -0.5, -1.0])
GAUSSIAN = Problem(5, "gaussian", True, Decimal(3))
N = 1000


def source(problem: Problem = GAUSSIAN, client: int = 0, clients: int = 1) -> Synthetic:
    return Synthetic(problem, THETA[: problem.dimension], 7, FeatureStore(7), client, clients)


def node(client: int = 0, clients: int = 1, problem: Problem = GAUSSIAN) -> Node:
    store = FeatureStore(7)
    labels = Synthetic(problem, THETA, 7, store, client, clients)
    return Node(labels, Policy.simulation(), MemoryLedger(), "addressed", store, 7)


def task(trust: Trust = Trust.LOCAL, problem: Problem = GAUSSIAN, radius: str | None = None, **changes: Any) -> Task:
    level, failure, grid = Decimal(1), None, None
    menu = Mechanism.of("randomized-response", epsilon=level)
    if trust is Trust.CENTRAL:
        failure = Decimal("1e-5")
        clip = {} if radius is None else {"radius": Decimal(radius)}
        name = "gaussian-statistic" if radius is None else "gaussian-statistic-clipped"
        menu = Mechanism.of(name, epsilon=level, delta=failure, **clip)
        grid = exponent(N, row_bound(problem, None if radius is None else float(radius)))
    if trust is Trust.CLEAR:
        level, menu = None, Mechanism("none")  # type: ignore[assignment]
    full = Task(b"s" * 32, trust, Unit.LABEL, problem, (menu,), N, level, failure, 2, 3, exponent=grid)
    return replace(full, **changes)


def values(room: Node, what: Task) -> np.ndarray:
    reply = decode_reply(answer(encode_task(what), room))
    assert not isinstance(reply, Refusal), reply
    return np.asarray(reply[0].report.payload.values)


def test_a_label_is_the_documented_function_of_its_row() -> None:
    labels = source().labels(task(), 4, np.arange(N)).reveal()
    x = FeatureStore(7).reduced(GAUSSIAN, N, 4, 0, N)
    z = sum(u * x[:, j] for j, u in enumerate(coordinates(GAUSSIAN, THETA)))
    coins = words(Address(7, Stream.LABELS, N, 4), 0, N)
    expected = [int(coin) >> 1 < int(float(p) * 2**63) for coin, p in zip(coins, expit(z), strict=True)]
    assert labels.tolist() == [int(value) for value in expected]


def test_labels_follow_their_probabilities() -> None:
    """Score sum of (y - p) z over 20,000 rows within 6.5 standard deviations: rate 1e-10."""
    n, store = 20_000, FeatureStore(7)
    synthetic = Synthetic(GAUSSIAN, THETA, 7, store)
    x = store.reduced(GAUSSIAN, n, 0, 0, n)
    z = x @ coordinates(GAUSSIAN, THETA)
    y, p = synthetic.labels(replace(task(), n=n), 0, np.arange(n)).reveal(), expit(z)
    for weight in (np.ones(n), z):
        assert abs(((y - p) * weight).sum()) < 6.5 * np.sqrt((p * (1 - p) * weight**2).sum())


@pytest.mark.parametrize("clients", [3, 8, 7, 1000])
def test_parts_are_those_of_array_split(clients: int) -> None:
    parts = [source(client=k, clients=clients).rows(task()).numbers() for k in range(clients)]
    for part, expected in zip(parts, np.array_split(np.arange(N), clients), strict=True):
        assert part.tolist() == expected.tolist()


@pytest.mark.parametrize("clients", [3, 8])
@pytest.mark.parametrize("trust", [Trust.CLEAR, Trust.LOCAL])
def test_symbols_do_not_depend_on_the_number_of_clients(clients: int, trust: Trust) -> None:
    parts = [values(node(k, clients), task(trust)) for k in range(clients)]
    assert (np.concatenate(parts, axis=1) == values(node(), task(trust))).all()


@pytest.mark.parametrize("clients", [3, 8])
@pytest.mark.parametrize("radius", [None, "1.5"])
def test_sums_do_not_depend_on_the_number_of_clients(clients: int, radius: str | None) -> None:
    what = task(Trust.CENTRAL, radius=radius)
    parts = [values(node(k, clients), what) for k in range(clients)]
    assert np.sum(parts[::-1], axis=0).tobytes() == values(node(), what).tobytes()


def test_a_block_of_repetitions_and_some_rows_give_the_same_numbers() -> None:
    whole = values(node(), task())
    for repetition in (2, 3, 4):
        alone = values(node(), task(first_repetition=repetition, repetitions=1))
        assert (alone[0] == whole[repetition - 2]).all()
    rows = Runs.of([3, 5, 7, 500, 999])
    assert (values(node(), task(rows=rows)) == whole[:, rows.numbers()]).all()
    parts = [values(node(k, 3), task(rows=rows)) for k in range(3)]
    assert (np.concatenate(parts, axis=1) == whole[:, rows.numbers()]).all()


def test_a_second_question_gives_the_same_bytes() -> None:
    room = node()
    for trust in (Trust.CLEAR, Trust.LOCAL, Trust.CENTRAL):
        raw = encode_task(task(trust))
        assert answer(raw, room) == answer(raw, room) == answer(raw, node())


@pytest.mark.parametrize("features", ["values", "items"])
def test_given_features_have_synthetic_labels_too(features: str) -> None:
    coins = np.arange(2 * N).reshape(N, 2)
    pairs = np.stack([coins[:, 0] % 5, (coins[:, 0] + 1 + coins[:, 1] % 4) % 5], axis=1).astype(np.int32)
    design = pairs if features == "items" else np.sin(np.arange(5.0 * N)).reshape(N, 5)
    problem = Problem(5, features, True, Decimal(3), design)
    labels = values(node(problem=problem), task(Trust.CLEAR, problem))
    assert labels.shape == (3, N)
    assert 0.2 < labels.mean() < 0.8
    parts = [values(node(k, 3, problem), task(Trust.CENTRAL, problem)) for k in range(3)]
    assert (np.sum(parts, axis=0) == values(node(problem=problem), task(Trust.CENTRAL, problem))).all()
    with pytest.raises(ProblemUnknown):
        Synthetic(problem, THETA, 7, FeatureStore(7)).check(task(problem=problem, n=N + 1))


def test_another_problem_is_refused() -> None:
    reply = decode_reply(answer(encode_task(task(problem=replace(GAUSSIAN, features="sphere"))), node()))
    assert isinstance(reply, Refusal)
    assert reply.code is Code.PROBLEM_UNKNOWN


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Synthetic(GAUSSIAN, np.ones(5), 7, FeatureStore(7)), "sum to 0"),
        (lambda: Synthetic(GAUSSIAN, THETA[:4], 7, FeatureStore(7)), "expected 5 finite coordinates"),
        (lambda: Synthetic(GAUSSIAN, THETA * np.nan, 7, FeatureStore(7)), "finite"),
        (lambda: Synthetic(GAUSSIAN, THETA, 7, FeatureStore(7), 3, 3), "0 <= client < clients"),
    ],
)
def test_a_truth_that_does_not_fit_is_refused(make: Callable[[], Synthetic], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_totals_count_a_channel_once_and_every_sum() -> None:
    room = node()
    ledger = room.ledger
    assert isinstance(ledger, MemoryLedger)
    values(room, task())
    values(room, task(rows=Runs.of(range(5))))
    assert len(ledger.totals) == 1
    values(room, task(Trust.CENTRAL))
    values(room, task(first_repetition=5))
    assert len(ledger.totals) == 3
