"""Nodes with files, keys and ledgers: real labels, real noise; charged for every session; dead at any moment."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from client.labeler import Node, decided
from client.ledger_view import read_entries, read_labelers
from client.node_file import NodeFileError, build, read_node
from client.question import question_of
from client.replies import reply
from client.secure.member import of_session as charged
from client.signing import KeyUnusable
from protocol.arms import Arm
from protocol.codec import decode_input, decode_reply, encode_task, identity
from protocol.messages import Code, Refusal, Task
from protocol.problem import Problem
from protocol.secure.codec import decode_ask, encode_ask
from protocol.secure.messages import Stage, of_session
from protocol.study import Cell, Grid, Study
from protocol.trust import Trust
from server.secure.session import securely
from server.sent import Sent, for_client
from server.tasks import of_curator, offers

ROOT = Path(__file__).resolve().parents[2]
ITEMS, ROWS, NODES = "wxyz", 24, 4
NODE = """
[node]
ledger = "ledger.sqlite"
key = "key"
[source]
kind = "table"
file = "votes.csv"
row = "row"
items = "items"
labeler = "labeler"
item_a = "item_a"
item_b = "item_b"
winner = "winner"
[policy]
trust = ["distributed"]
label_cap = 5
delta_cap = "unlimited"
max_attempt = 3
members = "../members"
"""


class Holders:
    """Four holders in folders of their own, each with six rows, and all that they pin."""

    def __init__(self, folder: Path) -> None:
        self.folder, pairs = folder, [(a, b) for a in ITEMS for b in ITEMS if a < b] * 4
        self.pairs = np.array([(ITEMS.index(a), ITEMS.index(b)) for a, b in pairs], dtype=np.int32)
        lines = list[bytes]()
        for number in range(NODES):
            own = folder / f"node-{number}"
            own.mkdir()
            key = ec.generate_private_key(ec.SECP384R1())
            (own / "key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
            (own / "key").chmod(0o600)
            lines.append(key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH))
            rows = [
                f"{row},r{row},{a},{b},{'item_a' if row % 3 else 'item_b'}"
                for row, (a, b) in enumerate(pairs)
                if row % NODES == number
            ]
            (own / "votes.csv").write_text("\n".join(["row,labeler,item_a,item_b,winner", *rows]) + "\n")
            (own / "items").write_text("\n".join(["item", *ITEMS]) + "\n")
            (own / "node.toml").write_text(NODE)
        (folder / "members").write_bytes(b"\n".join(lines) + b"\n")
        for number in range(NODES):
            self.node(number)  # starts, and makes its ledger
        self.tampers: Callable[[str, bytes], bytes | None] = lambda name, raw: raw
        self.answers: list[tuple[int, bytes, bytes]] = []

    def node(self, number: int, start: bool = True) -> Node:
        """A holder's node, its ledger opened anew as after a restart."""
        return build(read_node(self.folder / f"node-{number}" / "node.toml"), {}, start)

    def task(self, attempt: int = 0, honest: str = "0.625", survivors: str = "0.75") -> Task:
        """What a study asks about all rows."""
        problem = Problem(len(ITEMS), "items", True, None, self.pairs)
        counted = (("honest", Decimal(honest)), ("survivors", Decimal(survivors)))
        arm = Arm(Trust.DISTRIBUTED, "skellam", "mle", counted)
        study = Study("holders", 3, 1, problem, Grid((ROWS,), (Decimal(1),), (Decimal("0.00001"),)), (arm,))
        (offer,) = offers(study, Cell(ROWS, 0, 1))
        assert offer.task is not None
        return of_curator(offer.task, b"no curator", attempt)

    def ask(self, asked: list[bytes]) -> list[bytes]:
        """Carry questions; each node is built anew for each of them."""
        replies = list[bytes]()
        for number in range(NODES):
            for raw in for_client(asked, f"node {number}"):
                there = self.tampers(f"node {number}", raw)
                if there is not None:
                    answer = reply(there, self.node(number))
                    self.answers.append((number, there, answer))
                    replies.append(Sent(answer, f"node {number}", identity(raw)))
        return replies

    def ledger(self, number: int) -> Path:
        """A holder's ledger."""
        return self.folder / f"node-{number}" / "ledger.sqlite"


@pytest.fixture
def holders(tmp_path: Path) -> Holders:
    return Holders(tmp_path)


def test_real_labels_are_summed_under_masks_and_charged_for_each_session(holders: Holders) -> None:
    """The same labels in another session cost as much again, with noise of their own; the same session nothing more."""
    sums = []
    for attempt in range(2):
        task = holders.task(attempt)
        collected = securely([task], holders.ask)[task].collected
        assert collected.rejected == () and collected.rows.tolist() == list(range(ROWS)) and collected.live
        assert collected.sums is not None
        sums.append(collected.sums)
        for number in range(NODES):
            entries = read_entries(holders.ledger(number))
            assert [(entry.epsilon, entry.labels) for entry in entries] == [(Decimal(1), 6)] * (attempt + 1)
            assert all(spent.epsilon == attempt + 1 for spent in read_labelers(holders.ledger(number)))
    assert (sums[0] != sums[1]).any()
    again = securely([task], holders.ask)[task].collected
    np.testing.assert_array_equal(again.sums, sums[1])
    assert len(read_entries(holders.ledger(0))) == 2


def test_a_session_that_nobody_opened_stays_spent(holders: Holders) -> None:
    task = holders.task()
    holders.tampers = lambda name, raw: None if decode_ask(raw).stage is Stage.CONSENT else raw
    assert securely([task], holders.ask)[task].collected.sums is None
    assert all(read_labelers(holders.ledger(number))[0].epsilon == 1 for number in range(NODES))


def test_a_round_of_a_run_in_another_session_is_paid_for_and_answered_anew(holders: Holders) -> None:
    """An answer that was kept has the masks and the noise of its own session: it is for that one only."""
    node, question, told = holders.node(0), question_of(encode_task(holders.task())), list[bytes]()
    found = decided(question, node)
    rounds = [replace(charge, run=bytes(32), round=3) for charge in found.charges]
    for session in (b"1" * 32, b"2" * 32, b"1" * 32):
        charges = [charged(charge, session, question.id) for charge in rounds]
        draws = found.possible, node.policy, found.facts, found.draw
        told.append(node.ledger.settle(charges, *draws, lambda parts, session=session: session))  # type: ignore[misc]
    assert told == [b"1" * 32, b"2" * 32, b"1" * 32]
    assert read_labelers(holders.ledger(0))[0].epsilon == 2


def test_a_policy_decides_before_a_session_begins(holders: Holders) -> None:
    """Another trust model, an attempt beyond the policy's, other members than least: refused at the first stage."""
    path = holders.folder / "node-1" / "node.toml"
    for change, code in (
        ('trust = ["distributed"]|trust = ["local"]', Code.TRUST_NOT_ALLOWED),
        ("max_attempt = 3|max_epsilon = 0.5", Code.EPSILON_ABOVE_CAP),
    ):
        before, after = change.split("|")
        path.write_text(NODE.replace(before, after))
        task = holders.task()
        collected = securely([task], holders.ask)[task].collected
        assert collected.refusing[code] == {"node 1"}
        assert not read_entries(holders.ledger(1))
    path.write_text(NODE + "colluding = 0.2\n")
    crowded = holders.task(2)  # 15 of 18 rows are to be honest: with a fifth of cheats it would be 14
    collected = securely([crowded], holders.ask)[crowded].collected
    assert collected.refusing[Code.TOO_FEW_MEMBERS] == {"node 1"} and len(collected.rows) == ROWS - 6
    assert not read_entries(holders.ledger(1))
    path.write_text(NODE + "least_members = 5\n")
    other = holders.task(1)
    collected = securely([other], holders.ask)[other].collected
    assert collected.refusing[Code.TOO_FEW_MEMBERS] == {"node 1"} and len(collected.rows) == ROWS - 6


def test_a_node_without_members_takes_no_part(holders: Holders) -> None:
    (holders.folder / "node-2" / "node.toml").write_text(NODE.replace('members = "../members"\n', ""))
    task = holders.task()
    collected = securely([task], holders.ask)[task].collected
    assert collected.refusing[Code.SESSION_REFUSED] == {"node 2"} and len(collected.rows) == ROWS - 6


def test_what_is_no_list_of_members_is_named(holders: Holders) -> None:
    members, node = holders.folder / "members", holders.node(0)
    assert node.member is not None
    for content, words in (
        (b"ssh-ed25519 AAAA\n", "line 1: expected 'ecdsa-sha2-nistp384 AAAA...'"),
        (members.read_bytes().split(b"\n")[1] + b"\n", "expected the public half of .*key among the members"),
        (b"\xff", "expected a list of public keys"),
    ):
        members.write_bytes(content)
        with pytest.raises(KeyUnusable, match=words):
            holders.node(0).member()  # type: ignore[misc]
    path = holders.folder / "node-0" / "node.toml"
    path.write_text(NODE + "least_members = 1\n")
    with pytest.raises(NodeFileError, match=r"\[policy\] least_members: expected an integer in 2"):
        read_node(path)


def killed(holders: Holders, raw: bytes, point: str) -> None:
    """Let node 1 answer in a process of its own, which dies at a point."""
    question = holders.folder / "question"
    question.write_text(raw.hex())
    arguments = (str(holders.folder / "node-1" / "node.toml"), str(question), point)
    done = subprocess.run(
        [sys.executable, "-W", "error", str(Path(__file__).with_name("member_worker.py")), *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -9, done.stderr


POINTS = {
    Stage.KEYS: "client.secure.memory:DiskMemory.begin",
    Stage.SHARES: "client.secure.stages:parcels_for",  # the question is on disk, and no answer
    Stage.INPUT: "client.ledger:DiskLedger.settle",  # charged, with the masked vector, and nothing of the stage
    Stage.CONSENT: "client.secure.memory:DiskMemory.once",  # the answer is on disk, and never left
    Stage.OPENING: "client.secure.memory:DiskMemory.close",
}


@pytest.mark.parametrize(
    "stage", [pytest.param(one, marks=() if one is Stage.INPUT else pytest.mark.slow) for one in Stage]
)
def test_a_member_that_is_killed_says_the_same_afterwards_or_nothing(holders: Holders, stage: Stage) -> None:
    """The question that killed it is answered by the next node, once and charged once; any other one is refused."""
    task, kept = holders.task(), dict[str, bytes]()

    def tamper(name: str, raw: bytes) -> bytes | None:
        if name == "node 1" and decode_ask(raw).stage is stage and not kept:
            kept["raw"] = raw
            killed(holders, raw, POINTS[stage])
            if stage in (Stage.INPUT, Stage.CONSENT, Stage.OPENING):
                other = replace(decode_ask(raw), joined=(0, 1, 2))
                found = decode_reply(reply(encode_ask(other), holders.node(1, start=False)))
                assert isinstance(found, Refusal) and found.code is Code.SESSION_REFUSED
            kept["answer"] = reply(raw, holders.node(1, start=False))  # all that is left is on disk
        return raw

    holders.tampers = tamper
    collected = securely([task], holders.ask)[task].collected
    assert collected.sums is not None and len(collected.rows) == ROWS
    (given,) = {answer for number, raw, answer in holders.answers if number == 1 and raw == kept["raw"]}
    assert given == kept["answer"]
    assert of_session(given) or not isinstance(decode_input(given)[0], Refusal)
    assert [entry.labels for entry in read_entries(holders.ledger(1))] == [6]
    bare = decode_reply(reply(encode_task(task), holders.node(1)))
    assert isinstance(bare, Refusal) and bare.code is Code.TASK_INVALID
