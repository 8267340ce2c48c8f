"""Malformed traffic: changed bytes of real and golden messages, against the codec and both apps. None stops anything.

What is changed: bits, bytes and stretches of a message, its numbers at their ends, and pieces of other messages.
"""

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from flwr.app import Array, ArrayRecord, Context, Message, RecordDict
from hypothesis import given, settings
from hypothesis import strategies as st

from client.app import app as client_app
from client.node_file import build, read_node
from client.sources.synthetic import write_truth
from protocol import halftruth_pb2 as wire
from protocol.codec import (
    decode_bundle,
    decode_reply,
    decode_report,
    decode_task,
    decode_tasks,
    encode_bundle,
    encode_task,
    identity,
    sign_reply,
)
from protocol.errors import WireError
from protocol.features import row_bound
from protocol.grid import exponent
from protocol.messages import Code, Mechanism, Refusal, Task
from protocol.parcel import parcel_of
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.runconfig import read, write
from protocol.signature import report_words
from protocol.study import Study, cells
from protocol.trust import Trust
from server.app import app as server_app
from server.collect import Collected, Mail, collect
from server.outcome_record import cell_name, decode
from server.sent import Sent

GOLDEN = Path(__file__).parents[1] / "golden"
DECODE = (decode_task, decode_report, decode_reply, decode_bundle, decode_tasks)
THETA = np.array([1.0, 0.5, 0.0, -0.5, -1.0])
CURVE, ECDSA = ec.SECP384R1(), ec.ECDSA(hashes.SHA384())
QUICK, ALL = 5_000, 100_000
HONEST, ROWS = 3, 30
ONE, DELTA = Decimal(1), Decimal("1e-6")
NUMBERS = (b"\x00", b"\x7f", b"\xff\xff\x7f", b"\xff" * 4 + b"\x0f", b"\xff" * 9 + b"\x01", b"\x80" * 11)


def golden() -> list[bytes]:
    """Bytes of all golden files, good and bad."""
    return [bytes.fromhex(json.loads(path.read_text("utf-8"))["bytes"]) for path in sorted(GOLDEN.glob("*.json"))]


def mutated(raw: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    """A message with one to four changes, never the same bytes."""
    changed = bytearray(raw)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at, length = rng.randrange(len(changed) + 1), rng.choice((1, 1, 2, 8, 64))
        match rng.randrange(8):
            case 0 | 1 if at < len(changed):
                changed[at] ^= 1 << rng.randrange(8)
            case 2 if at < len(changed):
                changed[at] = rng.randrange(256)
            case 3:
                del changed[at : at + length]
            case 4:
                changed[at:at] = changed[at : at + length]
            case 5:
                changed[at : at + 1] = rng.choice(NUMBERS)
            case 6:
                piece = rng.choice(others)
                start = rng.randrange(len(piece) + 1)
                changed[at : at + length] = piece[start : start + length]
            case _:
                del changed[rng.randrange(len(changed) + 1) :]
    return bytes(changed) if changed != raw else raw + b"\x00"


def deeply(raw: bytes, rng: random.Random, change: Callable[[bytes], bytes]) -> bytes:
    """A reply whose report alone is changed, so that the change gets to where reports are checked; or anything."""
    message = wire.Reply.FromString(raw)
    for item in message.reports:
        item.report = change(item.report)
    return message.SerializeToString(deterministic=True) if message.reports and rng.random() < 0.7 else change(raw)


# The codec


def read_with_every_reader(raws: Iterable[bytes]) -> Counter[str]:
    """How many (message, reader) were taken and refused; anything but a WireError fails."""
    seen: Counter[str] = Counter()
    for raw in raws:
        for reader in DECODE:
            try:
                reader(raw)
            except WireError as error:
                seen["refused" if len(str(error)) < 400 else "fills a log"] += 1
            else:
                seen["taken"] += 1
    return seen


def changed_golden(count: int, seed: int) -> Iterator[bytes]:
    rng, bases = random.Random(seed), golden()
    return (mutated(rng.choice(bases), bases, rng) for _ in range(count))


def test_the_codec_refuses_or_reads() -> None:
    seen = read_with_every_reader(changed_golden(QUICK, 1))
    assert seen.total() == len(DECODE) * QUICK and seen["refused"] > 0.8 * seen.total() and not seen["fills a log"]


@pytest.mark.slow
def test_the_codec_refuses_or_reads_a_hundred_thousand() -> None:
    assert read_with_every_reader(changed_golden(ALL, 2)).total() == len(DECODE) * ALL


@settings(max_examples=300)
@given(st.data())
def test_the_codec_refuses_or_reads_whatever_a_search_finds(data: st.DataObject) -> None:
    raw = bytearray(data.draw(st.sampled_from(golden())))
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(raw)))
        raw[at : at + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
    read_with_every_reader([bytes(raw)])


# Messages as Flower carries them


def carried(raw: bytes, **to: Any) -> Message:
    array = Array(np.frombuffer(raw, dtype=np.uint8))
    content = RecordDict({"halftruth": ArrayRecord({"bundle": array})})
    return Message(content, **to) if to else Message(content, 7, "query")


def raw_of(message: Message) -> bytes:
    return parcel_of(message.content)


def study(rows: int) -> Study:
    """Every arm of the built-in study: clear, local and central."""
    found = read({}).study
    return replace(found, repetitions=1, grid=replace(found.grid, n=(rows,)))


def config_of(planned: Study) -> dict[str, Any]:
    return {**write(planned), "truth": write_truth(THETA), "deadline": 60.0, "mode": "live"}


# The client's app

VOTES = "labeler,item_a,item_b,winner\n" + "".join(
    f"p{i},{'xyz'[i % 3]},{'yzx'[i % 3]},{'xyz'[i % 3]}\n" for i in range(9)
)
NODE = """
[node]
ledger = "ledger.sqlite"
[source]
kind = "table"
file = "votes.csv"
[policy]
trust = ["local", "central"]
label_cap = 3
"""


@dataclass
class Asked:
    """A virtual node and one with a file, and real tasks for them."""

    virtual: dict[str, Any]
    file: dict[str, Any]
    tasks: list[bytes]
    seen: Counter[str] = field(default_factory=Counter)

    def ask(self, node: dict[str, Any], raw: bytes) -> list[bytes]:
        """What the app answers to a message, each reply read, each reply to its task."""
        reply = client_app(carried(raw), Context(1, 7, dict(node), RecordDict(), config_of(study(ROWS))))
        replies = decode_bundle(raw_of(reply))
        try:
            tasks, _ = decode_tasks(raw)
        except WireError:
            assert replies == []
            self.seen["no bundle"] += 1
            return []
        assert len(replies) == len(tasks)
        for task, answer in zip(tasks, map(decode_reply, replies), strict=True):
            if isinstance(answer, Refusal):
                assert answer.task == identity(task)
                self.seen[answer.code.name] += 1
            else:
                assert {signed.report.task for signed in answer} == {identity(task)}
                self.seen["answered"] += 1
        return replies

    def fuzz(self, count: int, seed: int) -> None:
        """Changed bundles, and bundles of changed tasks."""
        rng, others = random.Random(seed), golden()
        for place in range(count):
            chosen = rng.choices(self.tasks, k=rng.choice((1, 1, 2)))
            if rng.random() < 0.7:
                raw = encode_bundle([mutated(task, others, rng) for task in chosen])
            else:
                raw = mutated(encode_bundle(chosen), others, rng)
            self.ask(self.file if place % 5 == 0 else self.virtual, raw)


def about_votes() -> list[bytes]:
    """Tasks that the node with a file answers."""
    pairs = np.array([[0, 1], [1, 2], [0, 2]] * 3, dtype=np.int32)  # each in the order of its items' names
    problem = Problem(3, "items", True, None, pairs)
    local = Mechanism.of("randomized-response", epsilon=ONE)
    central = Mechanism.of("gaussian-statistic", epsilon=ONE, delta=DELTA)
    grid = exponent(9, row_bound(problem, None))
    return [
        encode_task(Task(bytes(32), Trust.LOCAL, Unit.LABEL, problem, (local,), 9, ONE, None, 0, 1)),
        encode_task(
            Task(bytes(32), Trust.CENTRAL, Unit.LABEL, problem, (central,), 9, ONE, DELTA, 0, 1, exponent=grid)
        ),
    ]


@pytest.fixture
def tasks(grid: Any, virtual: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What the server asks about the study."""
    monkeypatch.setenv("HALFTRUTH_OUTCOMES", str(tmp_path))
    seen: list[bytes] = []
    config = config_of(study(ROWS))
    room = grid(virtual(1), config)
    room.change = lambda message, reply: [seen.append(raw_of(message)), reply][1:]
    server_app(room, Context(1, 1, {}, RecordDict(), config))
    (tmp_path / f"{cell_name(cells(study(ROWS))[0])}.jsonl").unlink()
    return decode_tasks(seen[0])[0]


@pytest.fixture
def asked(virtual: Any, tasks: list[bytes], tmp_path: Path) -> Asked:
    (tmp_path / "votes.csv").write_text(VOTES)
    (tmp_path / "node.toml").write_text(NODE)
    build(read_node(tmp_path / "node.toml"), {})
    return Asked(virtual(HONEST)[0], {"config": str(tmp_path / "node.toml")}, [*tasks, *about_votes(), *golden()])


@pytest.mark.parametrize("count", [QUICK // 5, pytest.param(40_000, marks=pytest.mark.slow)])
def test_the_client_s_app_answers_or_refuses_each_task(asked: Asked, count: int) -> None:
    """And what a node with a ledger answered before, it answers after."""
    honest = encode_bundle(about_votes())
    before = asked.ask(asked.file, honest)
    assert {type(decode_reply(raw)) for raw in before} == {list}
    asked.fuzz(count, 3)
    assert asked.ask(asked.file, honest) == before
    assert asked.seen["TASK_INVALID"] > count / 5 and asked.seen["no bundle"] > count / 50
    assert asked.seen["INTERNAL"] == 0


# The server's app


@dataclass
class Crowd:
    """Letters of liars, of every kind, one reply in each a changed one."""

    tasks: list[bytes]
    real: list[list[bytes]]
    keys: list[ec.EllipticCurvePrivateKey]
    rng: random.Random
    others: list[bytes] = field(default_factory=golden)

    def letter(self) -> bytes:
        """A bundle with as many replies as there are tasks, or a changed one."""
        replies = [b""] * len(self.tasks)
        place = self.rng.randrange(len(replies))
        replies[place] = self.reply(self.rng.choice(self.real)[place])
        raw = encode_bundle(replies)
        return raw if self.rng.random() < 0.8 else self.change(raw)

    def reply(self, raw: bytes) -> bytes:
        """A real reply, changed before or after it was signed, if it was."""
        key = self.rng.choice(self.keys)
        how = self.rng.random()
        if how < 0.1:
            return deeply(sign_reply(raw, lambda report: key.sign(report_words(report), ECDSA)), self.rng, self.change)
        changed = deeply(raw, self.rng, self.change)
        if how > 0.9 and _has_reports(changed):
            changed = sign_reply(changed, lambda report: key.sign(report_words(report), ECDSA))
        return changed

    def change(self, raw: bytes) -> bytes:
        """Other bytes."""
        return mutated(raw, self.others, self.rng)


def _has_reports(raw: bytes) -> bool:
    try:
        return not isinstance(decode_reply(raw), Refusal)
    except WireError:
        return False


def registered(path: Path, names: dict[int, str], keys: Sequence[ec.EllipticCurvePrivateKey]) -> None:
    """A register of nodes by Flower's number; a name that is rows gives its node those."""
    tables = []
    for (node, rows), key in zip(names.items(), keys, strict=True):
        line = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode("ascii")
        tables.append(f'[[node]]\nname = "n{node}"\nid = "{node}"\nkey = "{line}"\nrows = "{rows}"\n')
    path.write_text("".join(tables))


@pytest.mark.parametrize(("runs", "liars"), [(5, 200), pytest.param(40, 500, marks=pytest.mark.slow)])
def test_no_letter_changes_an_estimate_or_goes_uncounted(
    grid: Any,
    virtual: Any,
    tasks: list[bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    runs: int,
    liars: int,
) -> None:
    """Over the whole server: three honest nodes, hundreds of liars whose keys are registered as well, live rounds."""
    planned, rng = study(ROWS), random.Random(4)
    config = config_of(planned)
    keys = [ec.generate_private_key(CURVE) for _ in range(HONEST + liars)]
    nodes = [{**node, "key": str(tmp_path / f"key-{place}")} for place, node in enumerate(virtual(HONEST))]
    for key, node in zip(keys, nodes, strict=False):
        Path(node["key"]).write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
        Path(node["key"]).chmod(0o600)
    part = ROWS // HONEST
    names = {100 + node: f"{node * part}:{(node + 1) * part}" for node in range(HONEST)}
    names |= {200 + liar: f"{ROWS + liar}:{ROWS + liar + 1}" for liar in range(liars)}
    registered(tmp_path / "nodes.toml", names, keys)
    monkeypatch.setenv("HALFTRUTH_NODES", str(tmp_path / "nodes.toml"))
    real = [decode_bundle(answered(node, tasks, planned)) for node in nodes]
    crowd = Crowd(tasks, real, keys[HONEST : HONEST + 5], rng)

    def play(there: int) -> list[bytes]:
        room = grid(nodes, config)
        honest = room._answer
        room.contexts |= {200 + liar: room.contexts[100] for liar in range(there)}
        room._answer = lambda message: (
            honest(message) if message.metadata.dst_node_id < 200 else carried(crowd.letter(), reply_to=message)
        )
        server_app(room, Context(1, 1, {}, RecordDict(), config))
        (file,) = tmp_path.glob("cell-*.jsonl")
        lines = file.read_text("utf-8").splitlines()
        file.unlink()
        return [decode(line, planned).theta.tobytes() for line in lines]

    expected = play(0)
    for _ in range(runs):
        caplog.clear()
        with caplog.at_level("INFO", logger="flwr"):
            assert play(liars) == expected
        (summary,) = [text for record in caplog.records if "messages so far" in (text := record.getMessage())]
        counts = {name: int(count) for name, count in re.findall(r"(\w+): (\d+)[,\s]", summary.partition("(")[0] + " ")}
        assert counts["answered"] + counts["unreadable"] == HONEST + liars
        refused = sum(int(n) for n in re.findall(r"refused: \w+ x (\d+)", caplog.text)) // 2  # logged twice
        assert counts["rejected"] + refused == (counts["answered"] - HONEST) * len(tasks)


def answered(node: dict[str, Any], tasks: Sequence[bytes], planned: Study) -> bytes:
    """What a node says."""
    context = Context(1, 7, dict(node), RecordDict(), config_of(planned))
    return raw_of(client_app(carried(encode_bundle(list(tasks))), context))


@pytest.mark.parametrize("rounds", [2, pytest.param(100, marks=pytest.mark.slow)])
def test_without_a_register_a_changed_report_counts_for_its_own_rows_at_most(
    grid: Any, virtual: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rounds: int
) -> None:
    """What the checks of a report let through is one that its sender might have sent, about nobody else's rows."""
    monkeypatch.setenv("HALFTRUTH_OUTCOMES", str(tmp_path))
    parts, rng, others = 103, random.Random(5), golden()
    planned = study(4 * parts)
    seen: list[bytes] = []
    room = grid(virtual(parts), config_of(planned))
    room.change = lambda asked, reply: [seen.append(raw_of(reply)), reply][1:]
    kept: list[bytes] = []
    room.push = room.push_messages
    room.push_messages = lambda messages: room.push([kept.append(raw_of(m)) or m for m in messages])  # type: ignore[func-returns-value]
    server_app(room, Context(1, 1, {}, RecordDict(), config_of(planned)))
    tasks, replies = decode_tasks(kept[0])[0], [decode_bundle(raw) for raw in seen]
    ids = [identity(task) for task in tasks]
    plain = Mail.open([reply for part in replies for reply in part], ids)
    whole = [collect(decode_task(task), name, plain) for task, name in zip(tasks, ids, strict=True)]
    for _ in range(rounds):
        changed = [
            [deeply(raw, rng, lambda raw: mutated(raw, others, rng)) for raw in part] for part in replies[HONEST:]
        ]
        sent = [
            Sent(raw, f"n{place}", name)
            for place, part in enumerate([*replies[:HONEST], *changed])
            for raw, name in zip(part, ids, strict=True)
        ]
        mail = Mail.open(sent, ids)
        assert not mail.unread
        for task, name, expected in zip(tasks, ids, whole, strict=True):
            check_honest(collect(decode_task(task), name, mail), expected)


def check_honest(found: Collected, expected: Collected) -> None:
    """What the honest said is there, bit for bit, unless somebody else claims to have said it."""
    own = np.arange(4 * HONEST)
    for place in range(HONEST):
        rows = own[4 * place : 4 * place + 4]
        if f"n{place}" in found.blamed:
            assert not np.isin(rows, found.rows).any()
            continue
        assert np.isin(rows, found.rows).all()
        if found.symbols is not None and expected.symbols is not None:
            at = np.searchsorted(found.rows, rows)
            assert (found.symbols[:, at] == expected.symbols[:, rows]).all()
    assert found.sums is None or np.isfinite(found.sums).all()


@pytest.mark.parametrize("change", [{"n": (1 << 32) - 1}, {"repetitions": 1 << 20}, {"first_repetition": 1}])
def test_a_client_that_draws_its_labels_draws_no_more_than_the_study_has(asked: Asked, change: dict[str, int]) -> None:
    for raw in asked.tasks[:2]:
        (reply,) = asked.ask(asked.virtual, encode_bundle([encode_task(replace(decode_task(raw), **change))]))
        assert decode_reply(reply) == Refusal(
            identity(encode_task(replace(decode_task(raw), **change))), Code.PROBLEM_UNKNOWN
        )
