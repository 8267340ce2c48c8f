"""A task that many clients of a process read is read once, and everybody gets what reading it anew would give."""

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from client import question
from client.choice import TaskInvalid
from client.labeler import Node, answer
from client.ledger import MemoryLedger
from client.policy import Policy
from client.sources.synthetic import WINDOW, Synthetic
from protocol.codec import decode_reply, encode_task, identity
from protocol.errors import WireError
from protocol.messages import Code, Coins, Mechanism, Refusal, Task
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.store import FeatureStore
from protocol.trust import Trust

N, THETA = 2 * WINDOW + 50, np.array([1.0, -0.5])
PROBLEM = Problem(2, "gaussian", sum_zero=False, bound=None)
MENU = tuple(Mechanism.of("randomized-response", epsilon=Decimal(level)) for level in (1, 2))
TASK = Task(bytes(32), Trust.LOCAL, Unit.LABEL, PROBLEM, MENU, N, Decimal(2), None, 0, 2)


def node(policy: Policy | None = None, source: Synthetic | None = None) -> Node:
    store = FeatureStore(7)
    held = source or Synthetic(PROBLEM, THETA, 7, store)
    return Node(held, policy or Policy.simulation(), MemoryLedger(), "addressed", store, seed=7)


def code(reply: bytes) -> Code:
    found = decode_reply(reply)
    assert isinstance(found, Refusal)
    return found.code


def test_the_same_bytes_are_read_once() -> None:
    raw = encode_task(TASK)
    first = question.question_of(raw)
    assert question.question_of(bytes(bytearray(raw))) is first
    assert first.id == identity(raw) and first.task.menu == MENU
    assert question.question_of(encode_task(replace(TASK, attempt=1))) is not first


def test_long_tasks_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = encode_task(TASK)
    monkeypatch.setattr(question, "SHORT", len(raw) - 1)
    assert question.question_of(raw) is not question.question_of(raw)


def test_every_policy_makes_its_own_choice_whoever_asked_before() -> None:
    high, low = Policy.simulation(), replace(Policy.simulation(), pick="lowest")
    known = question.question_of(encode_task(TASK))
    for _ in range(2):
        assert [choice.mechanism for choice in known.choices(high, Coins.OS)] == [MENU[1], MENU[0]]
        assert [choice.mechanism for choice in known.choices(low, Coins.OS)] == [MENU[0], MENU[1]]
    choice = known.choices(high, Coins.OS)[0]
    assert known.charge(choice, Coins.OS) is known.charge(choice, Coins.OS)
    assert known.charge(choice, Coins.ADDRESSED).coins is Coins.ADDRESSED
    assert (known.charge(choice, Coins.OS).epsilon, known.charge(choice, Coins.OS).task) == (Decimal(2), known.id)


def test_a_refusal_of_one_client_is_not_that_of_another() -> None:
    raw, careful = encode_task(replace(TASK, trust=Trust.CLEAR, epsilon=None, menu=(Mechanism("none"),))), Policy()
    assert not isinstance(decode_reply(answer(raw, node())), Refusal)
    assert code(answer(raw, node(careful))) is Code.TRUST_NOT_ALLOWED
    assert not isinstance(decode_reply(answer(raw, node())), Refusal)


def test_what_is_wrong_stays_wrong() -> None:
    raw = encode_task(replace(TASK, cap=3))
    for _ in range(2):
        with pytest.raises(TaskInvalid):
            question.question_of(raw).check()
        with pytest.raises(WireError):
            question.question_of(raw + b"\0")
        assert code(answer(raw, node())) is Code.TASK_INVALID
        assert code(answer(raw + b"\0", node())) is Code.TASK_INVALID


def test_parts_of_all_sizes_have_the_labels_of_the_whole() -> None:
    """Small parts are cut out of windows that others use as well; no row's label depends on it."""
    store = FeatureStore(7)
    whole = Synthetic(PROBLEM, THETA, 7, store)
    expected = whole.labels(TASK, 1, np.arange(N)).reveal()
    for clients in (1, 3, 90, N):
        first = Synthetic(PROBLEM, THETA, 7, FeatureStore(7), 0, clients)
        for client in {0, clients // 3, clients // 2, clients - 1}:
            part = first.part(client, clients)
            rows = part.rows(TASK).numbers()
            assert (part.labels(TASK, 1, rows).reveal() == expected[rows]).all()
    with pytest.raises(ValueError, match="0 <= client < clients"):
        whole.part(3, 3)
