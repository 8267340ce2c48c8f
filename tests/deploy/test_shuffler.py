"""A shuffler: whom it takes reports of, when it passes them on, in which order; and what a server makes of them."""

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from client.draws import permutation
from client.labeler import Node, answer
from client.secure.membership import fingerprint_of
from client.shuffled import SUITE, ShufflerUnavailable, ToShuffler, least_pile
from client.signing import SIGNING
from deploy.shuffler_desk import Desk, Refused, shuffled
from deploy.shuffler_store import Store, StoreUnusable
from protocol.arms import Arm
from protocol.codec import decode_reply, encode_task, identity
from protocol.errors import WireError
from protocol.messages import Code, Refusal, Task
from protocol.problem import Problem
from protocol.sealed import (
    SEALED,
    Pile,
    SignedSubmission,
    Submission,
    decode_batch,
    decode_signed,
    decode_submission,
    encode_fetch,
    encode_signed,
    encode_submission,
    fetch_words,
    plain_report,
    read_plain,
    sealed_words,
    submission_words,
)
from protocol.study import Cell, Grid, Study
from protocol.trust import Trust
from server.batches import NoBatch, Shuffling, opened_batch
from server.listening import RoundFailed, complete, listen
from server.rounds import play
from server.sent import Sent
from server.tasks import offers
from studies.in_process import in_process

N, ASKED, NODES, REPETITIONS = 24, 3, 4, 2
X = np.random.Generator(np.random.Philox(5)).normal(size=(ASKED, 2))
PAIRS = Problem(2, "values", False, Decimal(3), design=X[np.arange(N) % ASKED])
THETA = np.array([1.0, -0.5])
STUDY = Study(
    "panel",
    11,
    REPETITIONS,
    PAIRS,
    Grid((N,), (Decimal(2),), (Decimal("1e-2"),)),
    (Arm(Trust.SHUFFLED, "randomized-response", "rr-mle"),),
)


def key_of(number: int) -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(number + 12345, ec.SECP384R1())


SERVER, OPENS = key_of(1000), X25519PrivateKey.from_private_bytes(bytes(range(32)))


@dataclass
class AtDesk:
    """A link without a network: the same bytes to the same rules."""

    desk: Desk

    def submit(self, raw: bytes) -> None:
        try:
            self.desk.submit(raw)
        except Refused as error:
            raise ShufflerUnavailable(str(error)) from None

    def fetch(self, task: bytes) -> tuple[Pile, ...]:
        try:
            return decode_batch(self.desk.fetch(encode_fetch(task, SERVER.sign(fetch_words(task), SIGNING))))
        except Refused as error:
            raise NoBatch(str(error)) from None


def desk_at(path: Path, least: int = 2, rows: int | None = N // NODES) -> Desk:
    keys = [key_of(number).public_key() for number in range(NODES)]
    names = [fingerprint_of(key) for key in keys]
    return Desk(
        Store(path), dict.fromkeys(names, rows), SERVER.public_key(), dict(zip(names, keys, strict=True)), least
    )


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return desk_at(tmp_path / "shuffler.sqlite")


def nodes_of(desk: Desk, study: Study = STUDY, problem: Any = None) -> list[Node]:
    room, made = in_process(study, THETA, NODES), []
    for number, node in enumerate(room.nodes):
        key = key_of(number)
        sign = lambda words, key=key: key.sign(words, SIGNING)  # noqa: E731
        to = ToShuffler(OPENS.public_key(), sign, fingerprint_of(key.public_key()), AtDesk(desk))
        made.append(replace(node, shuffler=to))
    return made


def asking(nodes: list[Node]) -> Callable[[list[bytes]], list[bytes]]:
    def ask(tasks: list[bytes]) -> list[bytes]:
        return [
            Sent(answer(raw, node), f"node {number}", identity(raw))
            for number, node in enumerate(nodes)
            for raw in tasks
        ]

    return ask


@pytest.fixture
def task() -> Task:
    (offer,) = offers(STUDY, Cell(N, 0, REPETITIONS))
    assert offer.task is not None
    return offer.task


def raw_submission(task: bytes, node: int, piles: tuple[Pile, ...], least: int = 2) -> bytes:
    raw = encode_submission(Submission(task, least, piles))
    key = key_of(node)
    signature = key.sign(submission_words(raw), SIGNING)
    return encode_signed(SignedSubmission(raw, fingerprint_of(key.public_key()), signature))


def pile_of(count: int, question: int = 0, start: int = 0, repetition: int = 0) -> Pile:
    return Pile(repetition, question, tuple(bytes([start + place]) * SEALED for place in range(count)))


def test_a_study_through_a_shuffler_is_the_simulated_one(desk: Desk) -> None:
    """Sealed, handed over, shuffled, opened: the same counts, so the same bits."""
    room = in_process(STUDY, THETA, NODES)
    cell = Cell(N, 0, REPETITIONS)
    plain = list(play(STUDY, cell, room.replies, room.server))
    ask = Shuffling(AtDesk(desk), OPENS).asking(asking(nodes_of(desk)))
    real = list(play(STUDY, cell, ask, room.server))
    assert [one.theta.tolist() for one in plain] == [one.theta.tolist() for one in real]
    assert [one.claim for one in plain] == [one.claim for one in real]
    assert [one.warnings for one in plain] == [one.warnings for one in real]


def test_a_receipt_and_a_submission_say_no_answer(desk: Desk, task: Task) -> None:
    """Both are as long, whatever the labels are, and a submission opens under the server's key alone."""
    handed: list[bytes] = []

    class Kept:
        def submit(self, raw: bytes) -> None:
            handed.append(raw)

    raw, node = encode_task(task), nodes_of(desk)[0]
    assert node.shuffler is not None
    (receipt,) = decode_reply(answer(raw, replace(node, shuffler=replace(node.shuffler, link=Kept()))))  # type: ignore[misc]
    assert receipt.report.payload.values.shape == (REPETITIONS, 0)
    piles = decode_submission(decode_signed(handed[0]).raw).piles
    assert {(pile.repetition, pile.question, len(pile.sealed)) for pile in piles} == {
        (at, question, 2) for at in range(REPETITIONS) for question in range(ASKED)
    }
    other = X25519PrivateKey.generate()
    assert opened_batch(task, identity(raw), piles, OPENS).damaged == 0
    assert opened_batch(task, identity(raw), piles, other).damaged == REPETITIONS * N // NODES


def test_the_shuffler_waits_for_as_many_as_nodes_want(tmp_path: Path, task: Task) -> None:
    desk, raw = desk_at(tmp_path / "own.sqlite"), encode_task(task)
    nodes, name = nodes_of(desk), identity(raw)
    assert task.menu[0].get("group") == 8
    for node in nodes[:-1]:
        assert not isinstance(decode_reply(answer(raw, node)), Refusal)
        with pytest.raises(NoBatch, match="fewer reports than their senders want"):
            AtDesk(desk).fetch(name)
    answer(raw, nodes[-1])
    assert {len(pile.sealed) for pile in AtDesk(desk).fetch(name)} == {8}


def test_the_shuffler_has_a_bound_of_its_own(tmp_path: Path, task: Task) -> None:
    desk, raw = desk_at(tmp_path / "own.sqlite", least=9), encode_task(task)
    for node in nodes_of(desk):
        answer(raw, node)
    with pytest.raises(NoBatch, match="6 questions"):
        AtDesk(desk).fetch(identity(raw))


def test_nobody_comes_after_a_batch_was_passed_on(desk: Desk) -> None:
    """Else the difference of two batches would be one node's reports."""
    name = bytes(32)
    for node in (0, 1):
        desk.submit(raw_submission(name, node, (pile_of(2, start=10 * node),)))
    first = AtDesk(desk).fetch(name)
    with pytest.raises(Refused, match="passed on"):
        desk.submit(raw_submission(name, 2, (pile_of(2, start=20),)))
    desk.submit(raw_submission(name, 1, (pile_of(2, start=10),)))  # who was there may repeat itself
    again = AtDesk(desk).fetch(name)
    assert [sorted(pile.sealed) for pile in first] == [sorted(pile.sealed) for pile in again]


def test_a_node_counts_once(desk: Desk) -> None:
    name = bytes(32)
    desk.submit(raw_submission(name, 0, (pile_of(2),)))
    desk.submit(raw_submission(name, 0, (pile_of(2, start=100),)))
    desk.submit(raw_submission(name, 1, (Pile(0, 0, (pile_of(1).sealed[0], bytes([50]) * SEALED)),)))  # one is a copy
    (pile,) = AtDesk(desk).fetch(name)
    assert sorted(one[0] for one in pile.sealed) == [0, 1, 50]


def test_one_node_cannot_fill_a_pile(desk: Desk) -> None:
    with pytest.raises(Refused, match="at most 6 reports"):
        desk.submit(raw_submission(bytes(32), 0, (pile_of(4), pile_of(3, 1))))
    desk.submit(raw_submission(bytes(32), 0, (pile_of(4), pile_of(2, 1), pile_of(6, 0, repetition=1))))


def test_strangers_and_forgers_are_refused(desk: Desk) -> None:
    good = raw_submission(bytes(32), 0, (pile_of(2),))
    signed = decode_signed(good)
    stranger = raw_submission(bytes(32), NODES, (pile_of(2),))
    forged = [
        stranger,
        encode_signed(replace(signed, key=fingerprint_of(key_of(1).public_key()))),
        encode_signed(replace(signed, raw=encode_submission(replace(decode_submission(signed.raw), least=3)))),
        encode_signed(replace(signed, signature=b"")),
    ]
    for raw in forged:
        with pytest.raises(Refused, match="under the key of a node") as refusal:
            desk.submit(raw)
        assert refusal.value.code == "UNAUTHENTICATED"
    with pytest.raises(Refused, match="under the key of this shuffler's server"):
        desk.fetch(encode_fetch(bytes(32), key_of(0).sign(fetch_words(bytes(32)), SIGNING)))
    assert AtDesk(desk).fetch(bytes(32)) == ()


@given(st.binary(max_size=300))
@settings(deadline=None)
def test_garbage_is_refused(raw: bytes) -> None:
    for read in (decode_signed, decode_submission, decode_batch, read_plain):
        try:
            read(raw)
        except WireError:
            continue


@pytest.mark.parametrize(
    "piles",
    [
        (Pile(0, 0, (b"x" * 79,)),),
        (Pile(0, 0, (b"x" * 81,)),),
        (Pile(0, 0, ()),),
        (pile_of(1, 1), pile_of(1, 0)),
        (pile_of(1), pile_of(1)),
        (pile_of(1, question=1 << 32),),
        (pile_of(1, question=(1 << 64) - 1),),
    ],
)
def test_piles_of_another_shape_are_refused(desk: Desk, piles: tuple[Pile, ...]) -> None:
    with pytest.raises(Refused, match=r"whole|increasing piles"):
        desk.submit(raw_submission(bytes(32), 0, piles))


def test_a_least_number_beyond_any_task_is_refused(desk: Desk) -> None:
    with pytest.raises(Refused, match="reports at least") as refusal:
        desk.submit(raw_submission(bytes(32), 0, (pile_of(1),), least=1 << 63))
    assert refusal.value.code == "INVALID_ARGUMENT"


def test_piles_of_strangers_are_not_read(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message of 26 MB of them took 2.6 seconds, of anybody's."""
    read: list[bytes] = []
    monkeypatch.setattr(
        "deploy.shuffler_desk.decode_submission", lambda raw: read.append(raw) or decode_submission(raw)
    )
    with pytest.raises(Refused, match="under the key of a node"):
        desk.submit(raw_submission(bytes(32), NODES, (pile_of(2),)))
    assert not read
    desk.submit(raw_submission(bytes(32), 0, (pile_of(2),)))
    assert len(read) == 1


def test_dropouts_and_cheats_are_others(tmp_path: Path) -> None:
    """Of 8 who are asked, 6 count as honest: where one in four may cheat, 6 reports would hide among 4 or 5 others."""
    study = replace(STUDY, repetitions=1, arms=(replace(STUDY.arms[0], options=(("honest", Decimal("0.75")),)),))
    (offer,) = offers(study, Cell(N, 0, 1))
    assert offer.task is not None
    assert offer.task.menu[0].get("group") == 6
    for share, wanted in (("0", 6), ("0.1", 7), ("0.25", 8), ("0.5", 8)):
        assert least_pile(offer.task, Decimal(share)) == wanted
    raw, desk = encode_task(offer.task), desk_at(tmp_path / "own.sqlite")
    nodes = [replace(node, policy=replace(node.policy, colluding=Decimal("0.1"))) for node in nodes_of(desk, study)]
    for node in nodes[:-1]:
        assert not isinstance(decode_reply(answer(raw, node)), Refusal)
    with pytest.raises(NoBatch, match="3 questions"):  # 6 reports each
        AtDesk(desk).fetch(identity(raw))


def test_every_order_is_as_likely_as_any_other() -> None:
    """24 orders of four reports, 24,000 draws of the system: a chi-square test that fails by chance once in 10^9."""
    orders = Counter(tuple(permutation(4).tolist()) for _ in range(24_000))
    assert set(orders) == set(permutations(range(4)))
    statistic = sum((count - 1000) ** 2 / 1000 for count in orders.values())
    assert statistic < chi2.isf(1e-9, 23)


def test_a_place_says_nothing_of_the_place_before() -> None:
    """200 reports: where each comes out, by quarters of where it went in; false alarms once in 10^9."""
    table = np.zeros((4, 4))
    pile = Pile(0, 0, tuple(place.to_bytes(2, "big") * (SEALED // 2) for place in range(200)))
    for _ in range(400):
        places = [int.from_bytes(one[:2], "big") for one in shuffled(pile).sealed]
        assert sorted(places) == list(range(200))
        np.add.at(table, (np.array(places) // 50, np.arange(200) // 50), 1)
    assert ((table - 5000) ** 2 / 5000).sum() < chi2.isf(1e-9, 9)


def test_nothing_on_disk_says_who_sent_what(tmp_path: Path) -> None:
    """The same reports from other nodes in another order leave the same reports, in the same order."""
    import sqlite3

    def left(name: str, order: list[tuple[int, int]]) -> list[Any]:
        desk = desk_at(tmp_path / name)
        for node, start in order:
            desk.submit(raw_submission(bytes(32), node, (pile_of(2, start=start),)))
        with sqlite3.connect(tmp_path / name) as connection:
            return connection.execute("SELECT * FROM reports").fetchall()

    assert left("one", [(0, 10), (1, 20), (2, 30)]) == left("other", [(2, 10), (0, 30), (1, 20)])


def test_a_shuffler_goes_on_where_it_was(tmp_path: Path) -> None:
    """What it said it has is there, also for another process; what was passed on stays closed."""
    path, name = tmp_path / "shuffler.sqlite", bytes(32)
    desk_at(path).submit(raw_submission(name, 0, (pile_of(2),), least=4))
    with pytest.raises(NoBatch, match="1 questions"):
        AtDesk(desk_at(path)).fetch(name)
    desk_at(path).submit(raw_submission(name, 1, (pile_of(2, start=9),)))
    assert len(AtDesk(desk_at(path)).fetch(name)[0].sealed) == 4
    with pytest.raises(Refused, match="passed on"):
        desk_at(path).submit(raw_submission(name, 2, (pile_of(1),)))


def test_a_file_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"no database, but long enough to be one" * 40)
    with pytest.raises(StoreUnusable, match="other"):
        Store(tmp_path / "other")


Change = Callable[[tuple[Pile, ...]], tuple[Pile, ...]]


def dropping(piles: tuple[Pile, ...]) -> tuple[Pile, ...]:
    return (replace(piles[0], sealed=piles[0].sealed[1:]), *piles[1:])


def doubling(piles: tuple[Pile, ...]) -> tuple[Pile, ...]:
    return (replace(piles[0], sealed=(*piles[0].sealed[1:], piles[0].sealed[1])), *piles[1:])


def moving(piles: tuple[Pile, ...]) -> tuple[Pile, ...]:
    first, second = piles[:2]
    one, other = first.sealed[0], second.sealed[0]
    return (
        replace(first, sealed=(other, *first.sealed[1:])),
        replace(second, sealed=(one, *second.sealed[1:])),
        *piles[2:],
    )


def damaging(piles: tuple[Pile, ...]) -> tuple[Pile, ...]:
    return (replace(piles[0], sealed=(bytes(SEALED), *piles[0].sealed[1:])), *piles[1:])


@dataclass
class Dishonest(AtDesk):
    change: Change = dropping

    def fetch(self, task: bytes) -> tuple[Pile, ...]:
        return self.change(super().fetch(task))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dropping, "8 reports fewer, about 1 question"),
        (dropping, "1 questions with fewer reports than the claim needs"),
        (doubling, "that came before"),
        (moving, "not sealed for this task and question"),
        (damaging, "not sealed for this task and question"),
    ],
)
def test_a_dishonest_shuffler_is_noticed(desk: Desk, change: Change, words: str) -> None:
    study = replace(STUDY, repetitions=1)
    (offer,) = offers(study, Cell(N, 0, 1))
    assert offer.task is not None
    ask = Shuffling(Dishonest(desk, change), OPENS).asking(asking(nodes_of(desk, study)))
    with pytest.raises(RoundFailed, match=words):
        listen([offer.task], ask, complete)
    heard = listen([offer.task], ask, lambda heard, unread: None)[offer.task].collected
    asked = len(heard.rows) // (N // ASKED)
    assert len(heard.rows) == asked * (N // ASKED) < N, "a question counts with its whole group, or not at all"
    assert heard.blamed == {"the shuffler"}
    assert heard.senders == {f"node {number}" for number in range(NODES)}


def test_a_replayed_report_of_another_task_does_not_open(desk: Desk, task: Task) -> None:
    raw, other = encode_task(task), encode_task(replace(task, attempt=1))
    for node in nodes_of(desk):
        answer(raw, node)
    piles = AtDesk(desk).fetch(identity(raw))
    assert opened_batch(task, identity(raw), piles, OPENS).damaged == 0
    opened = opened_batch(replace(task, attempt=1), identity(other), piles, OPENS)
    assert (opened.damaged, opened.symbols) == (REPETITIONS * N, {})


def test_a_symbol_that_is_none_does_not_count(task: Task) -> None:
    name = identity(encode_task(task))
    sealed = SUITE.encrypt(plain_report(bytes(16), 2), OPENS.public_key(), sealed_words(name, 0, 0))
    opened = opened_batch(task, name, [Pile(0, 0, (sealed,))], OPENS)
    assert (opened.damaged, opened.faults) == (1, ["1 sealed reports that are not sealed for this task and question"])


def test_a_node_without_its_shuffler_refuses_and_repeats_itself(tmp_path: Path, task: Task) -> None:
    desk = desk_at(tmp_path / "shuffler.sqlite")
    raw, node = encode_task(task), nodes_of(desk)[0]

    class Gone:
        def submit(self, raw: bytes) -> None:
            raise ShufflerUnavailable("nobody there")

    assert node.shuffler is not None
    reply = decode_reply(answer(raw, replace(node, shuffler=replace(node.shuffler, link=Gone()))))
    assert isinstance(reply, Refusal)
    assert reply.code is Code.SHUFFLER_UNAVAILABLE
    assert not isinstance(decode_reply(answer(raw, node)), Refusal)


def test_an_answer_past_the_shuffler_does_not_count(desk: Desk) -> None:
    """Once reports come through a shuffler, one that says whose it is is left out."""
    study = replace(STUDY, repetitions=1)
    (offer,) = offers(study, Cell(N, 0, 1))
    assert offer.task is not None
    nodes = nodes_of(desk, study)
    nodes[0] = replace(nodes[0], shuffler=None)
    ask = Shuffling(AtDesk(replace(desk)), OPENS).asking(asking(nodes))
    with pytest.raises(NoBatch, match="fewer reports"):
        listen([offer.task], ask, complete)


def test_many_nodes_at_once(tmp_path: Path) -> None:
    desk, name = desk_at(tmp_path / "shuffler.sqlite"), bytes(32)
    raws = [raw_submission(name, node, (pile_of(3, start=10 * node),)) for node in range(NODES)]
    threads = [threading.Thread(target=desk.submit, args=(raw,)) for raw in raws * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(AtDesk(desk).fetch(name)[0].sealed) == 3 * NODES
