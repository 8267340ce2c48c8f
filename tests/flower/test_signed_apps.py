"""Both Flower apps with keys: what is signed counts, what is not is named, and an estimate is as without it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from flwr.app import Array, ArrayRecord, Context, Message, RecordDict

from client.app import app as client_app
from client.node_file import build, read_node
from client.sources.synthetic import write_truth
from protocol import halftruth_pb2 as wire
from protocol.codec import (
    Signed,
    decode_bundle,
    decode_reply,
    decode_tasks,
    encode_bundle,
    encode_refusal,
    encode_reply,
    identity,
)
from protocol.messages import Code, Refusal
from protocol.parcel import parcel_of
from protocol.runconfig import read, write
from protocol.signature import report_words
from protocol.study import Study, cells
from protocol.trust import Trust
from server.app import RunFailed
from server.app import app as server_app
from server.outcome import Outcome
from server.outcome_record import cell_name, decode, encode
from studies.in_process import run_cell

THETA = np.array([1.0, 0.5, 0.0, -0.5, -1.0])
N, NODES, LIAR = 60, 3, 101
CURVE, ECDSA = ec.SECP384R1(), ec.ECDSA(hashes.SHA384())
Change = Callable[[Message, Message], list[Message]]


class Federation:
    """Three nodes with keys, a register of them, and a server with a key of its own."""

    def __init__(self, folder: Path, grid: Any) -> None:
        self.folder, self._grid = folder, grid
        self.keys = [self.key(f"node-{node}") for node in range(NODES)]
        self.key("server")
        self.study = replace(
            read({}).study, repetitions=2, grid=replace(read({}).study.grid, n=(N,)), arms=self._arms(read({}).study)
        )
        self.nodes: list[dict[str, Any]] = [
            {"partition-id": node, "num-partitions": NODES, "key": str(folder / f"node-{node}")}
            for node in range(NODES)
        ]

    @staticmethod
    def _arms(study: Study) -> Any:
        return tuple(arm for arm in study.arms if arm.trust is not Trust.CENTRAL)  # whose sums have to be whole

    def key(self, name: str) -> ec.EllipticCurvePrivateKey:
        """A key of its own, in a file."""
        made, path = ec.generate_private_key(CURVE), self.folder / name
        path.write_bytes(made.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
        path.chmod(0o600)
        line = made.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
        (self.folder / f"{name}.pub").write_bytes(line)
        return made

    def register(self, rows: bool = True, more: str = "", nodes: int = NODES) -> Path:
        """Write the register."""
        part = N // NODES
        tables = [
            f'[[node]]\nname = "node-{node}"\nkey = "{(self.folder / f"node-{node}.pub").read_text()}"\n'
            f'id = "{100 + node}"\n' + (f'rows = "{node * part}:{(node + 1) * part}"\n' if rows else "")
            for node in range(nodes)
        ]
        path = self.folder / "nodes.toml"
        path.write_text("".join(tables) + more)
        return path

    def play(self, change: Change | None = None, mode: str = "live", **more: Any) -> list[Outcome]:
        """Outcomes of the study, with what `change` makes of the liar's replies."""
        for old in self.folder.glob("cell-*"):
            old.unlink()
        config = {**write(self.study), "truth": write_truth(THETA), "deadline": 0.5, "mode": mode, **more}
        room = self._grid(self.nodes, config)
        if change is not None:
            chosen = change
            room.change = lambda asked, reply: chosen(asked, reply) if asked.metadata.dst_node_id == LIAR else [reply]
        server_app(room, Context(1, 1, {}, RecordDict(), config))
        (cell,) = cells(self.study)
        lines = (self.folder / f"{cell_name(cell)}.jsonl").read_text("utf-8").splitlines()
        return [decode(line, self.study) for line in lines]


@pytest.fixture
def federation(tmp_path: Path, grid: Any, monkeypatch: pytest.MonkeyPatch) -> Federation:
    made = Federation(tmp_path, grid)
    monkeypatch.setenv("HALFTRUTH_OUTCOMES", str(tmp_path))
    monkeypatch.setenv("HALFTRUTH_NODES", str(made.register()))
    monkeypatch.setenv("HALFTRUTH_KEY", str(tmp_path / "server"))
    return made


def raw_of(message: Message) -> bytes:
    return parcel_of(message.content)


def bundle(raw: bytes, asked: Message) -> Message:
    array = Array(np.frombuffer(raw, dtype=np.uint8))
    return Message(RecordDict({"halftruth": ArrayRecord({"bundle": array})}), reply_to=asked)


def each(change: Callable[[Signed], tuple[bytes, bytes]]) -> Change:
    """Change every report of a node's replies."""

    def changed(asked: Message, reply: Message) -> list[Message]:
        answers = [decode_reply(raw) for raw in decode_bundle(raw_of(reply))]
        replies = [encode_reply([change(signed) for signed in answer]) for answer in answers]  # type: ignore[union-attr]
        return [bundle(encode_bundle(replies), asked)]

    return changed


def flipped(raw: bytes) -> bytes:
    return raw[:-1] + bytes([raw[-1] ^ 1])


def gist(outcomes: list[Outcome]) -> list[tuple[str, bytes]]:
    return [(outcome.arm.name, outcome.theta.tobytes()) for outcome in outcomes]


def test_signed_reports_have_the_bits_of_the_in_process_runtime(federation: Federation) -> None:
    (cell,) = cells(federation.study)
    expected = [encode(outcome, federation.study) for outcome in run_cell(federation.study, THETA, cell)]
    for register in (federation.register(), federation.register(rows=False)):
        assert register.exists()
        assert [encode(outcome, federation.study) for outcome in federation.play(mode="strict")] == expected


def test_all_that_leaves_with_a_key_is_signed_with_it_and_asked_under_the_server_s(federation: Federation) -> None:
    seen: list[tuple[bytes, bytes]] = []

    def look(asked: Message, reply: Message) -> list[Message]:
        tasks, signature = decode_tasks(raw_of(asked))
        assert tasks and signature
        seen.extend((s.raw, s.signature) for raw in decode_bundle(raw_of(reply)) for s in decode_reply(raw))  # type: ignore[union-attr]
        return [reply]

    federation.play(look)
    assert len(seen) >= 2
    for raw, signature in seen:
        federation.keys[1].public_key().verify(signature, report_words(raw), ECDSA)


LIES: dict[str, tuple[Callable[[Federation], Change], str]] = {
    "unsigned": (lambda f: each(lambda s: (s.raw, b"")), "a report without a signature"),
    "signed by another key": (
        lambda f: each(lambda s: (s.raw, f.keys[0].sign(report_words(s.raw), ECDSA))),
        "a report that is not under the node's key",
    ),
    "changed on the way": (
        lambda f: each(lambda s: (flipped(s.raw), s.signature)),
        "a report that is not under the node's key",
    ),
    "bytes that are no reply": (
        lambda f: lambda asked, reply: [bundle(encode_bundle([b"?" for _ in decode_bundle(raw_of(reply))]), asked)],
        "expected the bytes of a reply",
    ),
}


@pytest.mark.parametrize("lie", sorted(LIES))
def test_a_lie_counts_for_nothing_and_its_node_is_named(
    federation: Federation, caplog: pytest.LogCaptureFixture, lie: str
) -> None:
    without = gist(federation.play(lambda asked, reply: []))
    change, words = LIES[lie]
    with caplog.at_level("INFO", logger="flwr"):
        found = federation.play(change(federation))
    assert gist(found) == without
    assert {outcome.warnings[-2:] for outcome in found if outcome.arm.trust} == {
        ("reports-rejected: 1 report rejected (node node-1)", f"rows-missing: {N * 2 // 3} of {N} rows answered")
    }
    summary = [record.getMessage() for record in caplog.records if "messages so far" in record.getMessage()]
    assert f"node node-1: {words}" in summary[-1]
    with pytest.raises(RunFailed, match="node node-1: "):
        federation.play(change(federation), mode="strict")


def test_a_quorum_is_of_nodes_whose_reports_count(federation: Federation) -> None:
    """Neither a signature nor a reply makes one: what is in it may not count, and a refusal says nothing."""

    def other_table(signed: Signed) -> tuple[bytes, bytes]:
        report = wire.Report.FromString(signed.raw)
        report.table = bytes(32)
        raw = report.SerializeToString(deterministic=True)
        return raw, federation.keys[1].sign(report_words(raw), ECDSA)

    def refusing(asked: Message, reply: Message) -> list[Message]:
        codes = [Refusal(identity(task), Code.BUDGET_EXHAUSTED) for task in decode_tasks(raw_of(asked))[0]]
        return [bundle(encode_bundle([encode_refusal(code) for code in codes]), asked)]

    without = gist(federation.play(lambda asked, reply: []))
    for change in (each(other_table), refusing):
        assert gist(federation.play(change, quorum="2")) == without
        with pytest.raises(RunFailed, match=r"of at least 3 nodes \(quorum\), got those of 2; .* answered: 3"):
            federation.play(change, quorum="1.0", clients=NODES)


def test_a_reply_of_another_node_and_one_to_another_task_are_replays(
    federation: Federation, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever carries messages kept them: signatures are good, and still they don't count."""
    kept: dict[str, bytes] = {}
    without = gist(federation.play(lambda asked, reply: []))
    real = federation.nodes[0]

    def answered_by(node: dict[str, Any], asked: Message) -> bytes:
        config = {**write(federation.study), "truth": write_truth(THETA), "deadline": 0.5, "mode": "live"}
        return raw_of(client_app(asked, Context(1, 100, dict(node), RecordDict(), config)))

    def of_another_node(asked: Message, reply: Message) -> list[Message]:
        return [bundle(answered_by(real, asked), asked)]

    def to_another_task(asked: Message, reply: Message) -> list[Message]:
        return [bundle(kept["old"], asked)]

    def keep(asked: Message, reply: Message) -> list[Message]:
        kept["old"] = raw_of(reply)
        return [reply]

    assert gist(federation.play(of_another_node)) == without
    assert "node node-1: a report that is not under the node's key" in caplog.text
    now, federation.study = federation.study, replace(federation.study, seed=federation.study.seed + 1)
    federation.play(keep)
    federation.study = now
    assert gist(federation.play(to_another_task)) == without
    assert "node node-1: a report about another task" in caplog.text


def test_a_reply_that_comes_twice_counts_once(federation: Federation, caplog: pytest.LogCaptureFixture) -> None:
    plain = gist(federation.play())
    with caplog.at_level("INFO", logger="flwr"):
        assert gist(federation.play(lambda asked, reply: [reply, reply])) == plain
    assert "duplicate: 1" in caplog.text


def test_a_node_that_is_not_registered_is_neither_waited_for_nor_asked(
    federation: Federation, caplog: pytest.LogCaptureFixture
) -> None:
    """A stranger and a revoked key: named, and the others are as many as were wanted."""
    plain = gist(federation.play(mode="strict", clients=NODES))
    revoked = federation.key("old")
    assert revoked
    line = (federation.folder / "old.pub").read_text()
    federation.register(more=f'[[node]]\nname = "old"\nkey = "{line}"\nid = "104"\nrevoked = true\n')
    federation.nodes += [dict(federation.nodes[0]), dict(federation.nodes[0], key=str(federation.folder / "old"))]
    assert gist(federation.play(mode="strict", clients=NODES)) == plain
    assert "node 103 is not in the register: not asked" in caplog.text
    assert "node 104 has a revoked key (old): not asked" in caplog.text


def test_rows_that_two_nodes_claim_count_for_neither_where_nobody_says_whose_they_are(
    federation: Federation, caplog: pytest.LogCaptureFixture
) -> None:
    """And for their node where the register says so."""
    own = gist(federation.play(lambda asked, reply: []))
    federation.nodes[1] = {**federation.nodes[0], "key": str(federation.folder / "node-1")}

    def lies(signed: Signed) -> tuple[bytes, bytes]:
        raw = flipped(signed.raw)  # the last byte is of the fingerprint: another report about the same rows
        return raw, federation.keys[1].sign(report_words(raw), ECDSA)

    assert gist(federation.play(each(lies))) == own
    assert "node node-1: a report about rows that are not the node's" in caplog.text
    federation.register(rows=False)
    found = federation.play(each(lies))
    assert gist(found) != own
    assert {outcome.warnings[-1] for outcome in found if outcome.arm.trust} == {
        f"rows-missing: {N // 3} of {N} rows answered"
    }
    for one, other in (("node-0", "node-1"), ("node-1", "node-0")):
        assert f"node {one}: rows that another report answers for as well (node {other})" in caplog.text


@pytest.mark.parametrize(
    ("variable", "said"), [("HALFTRUTH_NODES", "expected a register of nodes"), ("HALFTRUTH_KEY", "private key")]
)
def test_a_server_without_what_it_names_says_so(
    federation: Federation, monkeypatch: pytest.MonkeyPatch, variable: str, said: str
) -> None:
    monkeypatch.setenv(variable, str(federation.folder / "nowhere"))
    with pytest.raises(RunFailed, match=said):
        federation.play()


# A node that answers one server only

VOTES = "labeler,item_a,item_b,winner\nann,x,y,x\nbob,y,z,y\ncem,x,z,x\n"
PINNED = """
[node]
ledger = "ledger.sqlite"
key = "node-0"
[source]
kind = "table"
file = "votes.csv"
[policy]
label_cap = 1
server_key = "server.pub"
"""


def test_tasks_that_are_not_under_the_pinned_key_are_refused_before_anything_is_looked_at(
    federation: Federation, caplog: pytest.LogCaptureFixture
) -> None:
    folder = federation.folder
    (folder / "votes.csv").write_text(VOTES)
    (folder / "node.toml").write_text(PINNED)
    build(read_node(folder / "node.toml"), {})
    seen: list[bytes] = []
    federation.play(lambda asked, reply: [seen.append(raw_of(asked)), reply][1:])  # type: ignore[func-returns-value, list-item]
    tasks, signature = decode_tasks(seen[0])
    context = Context(1, 7, {"config": str(folder / "node.toml")}, RecordDict(), {})

    def answers(raw: bytes) -> list[bytes]:
        array = Array(np.frombuffer(raw, dtype=np.uint8))
        message = Message(RecordDict({"halftruth": ArrayRecord({"bundle": array})}), 7, "query")
        return decode_bundle(raw_of(client_app(message, context)))

    for changed, under in ((tasks, b""), (tasks, signature[:-1]), (tasks[::-1], signature), (tasks[:1], signature)):
        expected = [encode_refusal(Refusal(identity(task), Code.NOT_SIGNED)) for task in changed]
        assert answers(encode_bundle(changed, under)) == expected
    codes = {decode_reply(raw).code for raw in answers(encode_bundle(tasks, signature))}  # type: ignore[union-attr]
    assert codes and Code.NOT_SIGNED not in codes, "a good signature lets tasks through to the policy"
    assert "x" not in caplog.text.split() and "ann" not in caplog.text
    (folder / "server.pub").unlink()
    context.node_config["config"] = str(folder / "other.toml")
    (folder / "other.toml").write_text(PINNED)
    assert {decode_reply(raw).code for raw in answers(encode_bundle(tasks, signature))} == {Code.INTERNAL}  # type: ignore[union-attr]
