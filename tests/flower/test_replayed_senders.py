"""Rounds of a journal are held to what is asked now: whose reports count, and how many of them there have to be."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from flwr.app import Array, ArrayRecord, Context, Error, Message, RecordDict

from client.sources.synthetic import write_truth
from protocol import halftruth_pb2 as wire
from protocol.codec import decode_bundle, encode_bundle, sign_reply
from protocol.parcel import parcel_of
from protocol.runconfig import write
from protocol.signature import report_words
from protocol.study import Study, cells
from server.app import RunFailed
from server.app import app as server_app
from server.outcome_record import cell_name
from server.resume import journal_path
from server.signatures import SIGNING
from studies.load import Loaded, build

ROUNDS, NODES, STOP, LIAR = 4, 3, 2, 102  # the first life of a server plays two rounds, the last node may lie


class Federation:
    """Three nodes with keys, a register of them, and servers that start one after the other over one journal."""

    def __init__(self, folder: Path, grid: Any, loaded: Loaded) -> None:
        self.folder, self._grid, self.loaded = folder, grid, loaded
        self.keys = [self.key(node) for node in range(NODES)]
        self.register()

    @property
    def study(self) -> Study:
        """What is asked."""
        return self.loaded.study

    @property
    def journal(self) -> Path:
        """The journal of its one cell."""
        return journal_path(self.folder / "journal", self.study, cells(self.study)[0])

    def key(self, node: int) -> ec.EllipticCurvePrivateKey:
        """A new key of a node."""
        made = ec.generate_private_key(ec.SECP384R1())
        path = self.folder / f"node-{node}"
        path.write_bytes(made.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
        path.chmod(0o600)
        return made

    def register(self, *revoked: int) -> None:
        """Write the register anew."""
        lines = [key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode() for key in self.keys]
        tables = [
            f'[[node]]\nname = "node-{node}"\nkey = "{line}"\nid = "{100 + node}"\n'
            + "revoked = true\n" * (node in revoked)
            for node, line in enumerate(lines)
        ]
        (self.folder / "nodes.toml").write_text("".join(tables))

    def run(self, stop: int = 0, lie: bool = False, nodes: int = NODES, **more: Any) -> tuple[str, int]:
        """Why a server's life ended, empty where it is done, and how many rounds it asked. `stop`: the last of them."""
        config: dict[str, Any] = {**write(self.study), "truth": write_truth(self.loaded.theta), "deadline": 2.0, **more}
        there = self._grid(
            [
                {"partition-id": node, "num-partitions": NODES, "key": str(self.folder / f"node-{node}")}
                for node in range(nodes)
            ],
            config,
        )
        rounds: list[bytes] = []

        def change(asked: Message, reply: Message) -> list[Message]:
            raw = parcel_of(asked.content)
            if raw not in rounds:
                rounds.append(raw)
            if stop and len(rounds) > stop:
                return [Message(Error(1, ""), reply_to=asked)]
            return [self.lied(asked, reply) if lie and asked.metadata.dst_node_id == LIAR else reply]

        there.change = change
        try:
            server_app(there, Context(1, 1, {}, RecordDict(), config))
        except RunFailed as failed:
            return str(failed), len(rounds)
        return "", len(rounds)

    def lied(self, asked: Message, reply: Message) -> Message:
        """A reply of reports under a good signature that name a table nobody offered."""
        raws = []
        for raw in decode_bundle(parcel_of(reply.content)):
            message = wire.Reply.FromString(raw)
            for item in message.reports:
                report = wire.Report.FromString(item.report)
                report.table = bytes(32)
                item.report = report.SerializeToString(deterministic=True)
            key = self.keys[LIAR - 100]
            raw = message.SerializeToString(deterministic=True)
            raws.append(sign_reply(raw, lambda report, key=key: key.sign(report_words(report), SIGNING)))
        array = Array(np.frombuffer(encode_bundle(raws), np.uint8))
        return Message(RecordDict({"halftruth": ArrayRecord({"bundle": array})}), reply_to=asked)

    def lines(self) -> str:
        """What came out."""
        return (self.folder / f"{cell_name(cells(self.study)[0])}.jsonl").read_text("utf-8")


@pytest.fixture
def federation(tmp_path: Path, grid: Any, monkeypatch: pytest.MonkeyPatch) -> Federation:
    loaded = build(
        {
            "study": {"name": "replayed", "seed": 3, "repetitions": 1},
            "problem": {"kind": "records", "model": "linear", "dimension": 2, "theta": [0.5, -0.5], "bound": 2},
            "records": {"features": "uniform(0, 1)", "noise": "centred pareto(1.6)", "tail": 0.5, "moment": 16},
            "grid": {"n": [30], "epsilon": [Decimal(1)], "delta": [Decimal("1e-5")]},
            "arm": [{"trust": "central", "estimator": "descent", "rounds": ROUNDS, "step": Decimal("0.25")}],
        },
        Path(),
    )
    for name, value in (("OUTCOMES", tmp_path), ("NODES", tmp_path / "nodes.toml"), ("JOURNAL", tmp_path / "journal")):
        monkeypatch.setenv(f"HALFTRUTH_{name}", str(value))
    return Federation(tmp_path, grid, loaded)


@pytest.mark.parametrize("mode", ["strict", "live"])
def test_a_node_that_was_revoked_since_does_not_count_in_what_is_replayed(federation: Federation, mode: str) -> None:
    """The rounds after it were made of what it said: the run says so, and with the journal deleted asks the others."""
    why, asked = federation.run(STOP, mode=mode)
    assert why and asked == STOP + 1
    federation.register(1)
    for _ in range(2):
        why, asked = federation.run(mode=mode)
        assert "expected reports that still count, got one of node node-1: a node whose key is revoked" in why
        assert f"delete {federation.journal} to ask again" in why and not asked
    federation.journal.unlink()
    why, asked = federation.run(mode=mode)
    assert (why == "", asked) == ((True, ROUNDS) if mode == "live" else (False, 1))
    assert mode == "strict" or '"rows-missing: 40 answers missing over all rounds"' in federation.lines()


@pytest.mark.parametrize(("more", "said"), [("", "not under the node's key"), ("left out", "not in the register")])
def test_nor_does_an_old_key_of_a_node_s_or_a_node_that_is_not_there_any_more(
    federation: Federation, more: str, said: str
) -> None:
    federation.run(STOP)
    if more:
        federation.keys = federation.keys[:-1]
    else:
        federation.keys[2] = federation.key(2)
    federation.register()
    assert f"got one of node node-2: a {'node' if more else 'report'} that is {said}" in federation.run()[0]


def test_a_liar_who_is_revoked_leaves_what_others_said(federation: Federation) -> None:
    """What never counted is no reason to ask anybody again."""
    assert federation.run(mode="live", lie=True) == ("", ROUNDS)
    whole = federation.lines()
    (federation.folder / f"{cell_name(cells(federation.study)[0])}.jsonl").unlink()
    assert federation.run(STOP, mode="live", lie=True)[1] == STOP + 1
    federation.register(LIAR - 100)
    assert federation.run(mode="live") == ("", ROUNDS - STOP)
    replayed = federation.lines()
    assert [line.partition('"warnings"')[0] for line in replayed.splitlines()] == [
        line.partition('"warnings"')[0] for line in whole.splitlines()
    ]


def test_a_replayed_round_is_held_to_the_quorum_of_now(federation: Federation) -> None:
    assert federation.run(STOP, nodes=2, mode="live", quorum="2")[1] == STOP + 1
    why, asked = federation.run(mode="live", quorum="3")
    assert "at least 3 nodes (quorum), got those of 2" in why and f"delete {federation.journal}" in why and not asked
    assert federation.run(nodes=2, mode="live", quorum="2") == ("", ROUNDS - STOP)
