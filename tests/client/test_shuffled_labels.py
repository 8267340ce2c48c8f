"""Shuffled labels of a file: charged in every task, drawn anew, kept until handed over, bounded by a policy."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from client.labeler import Node, answer
from client.ledger_view import read_entries, read_labelers
from client.policy import Policy
from client.secure.membership import fingerprint_of
from client.shuffled import ShufflerUnavailable, ToShuffler
from client.signing import SIGNING
from client.sources.table import Table
from protocol.codec import decode_reply, encode_task, identity
from protocol.messages import Code, Refusal, Task
from protocol.privacy import Unit
from protocol.sealed import decode_signed, decode_submission
from protocol.shuffled_terms import shuffled_mechanism
from protocol.strict import StudyError
from protocol.trust import Trust
from server.batches import opened_batch

OPENS, KEY = X25519PrivateKey.from_private_bytes(bytes(range(32))), ec.derive_private_key(7, ec.SECP384R1())
EPSILON, DELTA = Decimal(1), Decimal("0.01")
TRUSTS = frozenset({Trust.SHUFFLED})
Refuse = Callable[..., Code]


class Link:
    """Keeps what it is given; fails first where it is told to."""

    def __init__(self, failures: int = 0) -> None:
        self.handed: list[bytes] = []
        self.failures = failures

    def submit(self, raw: bytes) -> None:
        if self.failures:
            self.failures -= 1
            raise ShufflerUnavailable("down")
        self.handed.append(raw)


@pytest.fixture
def panel(desk: Any) -> Table:
    """Twenty people, one question, half of them for each item."""
    table: Table = desk.table([(f"p{who:02}", "x", "y", "item_a" if who % 2 else "item_b") for who in range(20)])
    return table


def task_of(desk: Any, table: Table, epsilon: Decimal = EPSILON, attempt: int = 0) -> Task:
    plain: Task = replace(desk.task(table, study=3), trust=Trust.SHUFFLED, epsilon=epsilon, delta=DELTA)
    return replace(plain, menu=(shuffled_mechanism(plain, "randomized-response"),), attempt=attempt)


def node_of(desk: Any, table: Table, link: Link, **policy: Any) -> Node:
    to = ToShuffler(OPENS.public_key(), lambda words: KEY.sign(words, SIGNING), fingerprint_of(KEY.public_key()), link)
    rules = Policy(**{"trusts": TRUSTS, "max_attempt": 5, **policy})
    return replace(desk.node(table, rules), shuffler=to)


def symbols(raw: bytes, task: Task) -> list[int]:
    piles = decode_submission(decode_signed(raw).raw).piles
    return list(opened_batch(task, identity(encode_task(task)), piles, OPENS).symbols[0, 0])


def test_the_same_task_has_the_same_bytes_and_costs_once(desk: Any, panel: Table) -> None:
    link, task = Link(), task_of(desk, panel)
    node = node_of(desk, panel, link)
    first, again = answer(encode_task(task), node), answer(encode_task(task), node)
    assert first == again
    assert len(set(link.handed)) == 1
    (entry,) = read_entries(desk.ledger_path)
    assert (entry.trust, entry.unit, entry.labels) == (Trust.SHUFFLED, Unit.LABEL, 20)
    assert (entry.epsilon, entry.delta) == (EPSILON, DELTA)
    local = task.menu[0].get("local")
    assert local is not None
    assert f"local={local}" in entry.mechanism
    assert EPSILON < Decimal(str(entry.level)) <= local
    assert all(total.epsilon == EPSILON and total.delta == DELTA for total in read_labelers(desk.ledger_path))


def test_another_task_is_charged_and_drawn_anew(desk: Any, panel: Table) -> None:
    """A remembered answer in two groups would be in the difference of both. By chance all are alike once in 10^9."""
    link = Link()
    node = node_of(desk, panel, link)
    tasks = [task_of(desk, panel, attempt=attempt) for attempt in range(6)]
    for task in tasks:
        assert not isinstance(decode_reply(answer(encode_task(task), node)), Refusal)
    drawn = [symbols(raw, task) for raw, task in zip(link.handed, tasks, strict=True)]
    assert len(set(map(tuple, drawn))) > 1
    assert all(total.epsilon == 6 * EPSILON for total in read_labelers(desk.ledger_path))


def test_an_answer_that_was_not_handed_over_is_kept_for_the_next_time(desk: Any, panel: Table) -> None:
    link, task = Link(failures=1), task_of(desk, panel)
    node = node_of(desk, panel, link)
    refused = decode_reply(answer(encode_task(task), node))
    assert isinstance(refused, Refusal)
    assert refused.code is Code.SHUFFLER_UNAVAILABLE
    charged = read_labelers(desk.ledger_path)
    assert not isinstance(decode_reply(answer(encode_task(task), node)), Refusal)
    assert len(link.handed) == 1
    assert read_labelers(desk.ledger_path) == charged


def test_a_label_and_a_report_say_the_same_about_the_right_question(desk: Any, panel: Table) -> None:
    """At a level that never flips, what comes out is what is in the file."""
    link, task = Link(), task_of(desk, panel, epsilon=Decimal(100))
    node = node_of(desk, panel, link, max_epsilon=None, max_local=None)
    assert not isinstance(decode_reply(answer(encode_task(task), node)), Refusal)
    assert sorted(symbols(link.handed[0], task)) == [0] * 10 + [1] * 10


@pytest.mark.parametrize(
    ("policy", "code"),
    [
        ({"trusts": frozenset({Trust.LOCAL})}, Code.TRUST_NOT_ALLOWED),
        ({"max_local": Decimal("1.01")}, Code.EPSILON_ABOVE_CAP),
        ({"max_epsilon": Decimal("0.9")}, Code.EPSILON_ABOVE_CAP),
        ({"least_group": 21}, Code.GROUP_TOO_SMALL),
        ({"label_cap": Decimal("0.9")}, Code.BUDGET_EXHAUSTED),
        ({"delta_cap": Decimal("0.009")}, Code.BUDGET_EXHAUSTED),
        ({"mechanisms": frozenset({"gaussian-statistic"})}, Code.MECHANISM_NOT_ALLOWED),
    ],
)
def test_a_policy_bounds_what_is_shuffled(
    desk: Any, panel: Table, refusal: Refuse, policy: dict[str, Any], code: Code
) -> None:
    link = Link()
    assert refusal(node_of(desk, panel, link, **policy), task_of(desk, panel)) is code
    assert not link.handed


def test_a_node_without_a_shuffler_charges_nothing(desk: Any, panel: Table, refusal: Refuse) -> None:
    node = desk.node(panel, Policy(trusts=TRUSTS))
    assert refusal(node, task_of(desk, panel)) is Code.SHUFFLER_UNAVAILABLE
    assert not read_labelers(desk.ledger_path)


def test_a_policy_in_a_file(tmp_path: Path) -> None:
    parsed = Policy.parse({"trust": ["shuffled"], "label_cap": 2, "max_local": 6, "least_group": 50})
    assert (parsed.trusts, parsed.max_local, parsed.least_group) == (TRUSTS, Decimal(6), 50)
    assert Policy.parse({"label_cap": 1}).max_local == 10
    assert Policy.parse({"label_cap": 1, "max_local": "unlimited"}).max_local is None
    with pytest.raises(StudyError, match="max_local"):
        Policy.parse({"label_cap": 1, "max_local": 0})
