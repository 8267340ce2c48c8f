"""The register of nodes, and what a reply has to be for it: strict, and every error names its place."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from protocol.codec import encode_refusal, encode_reply, encode_report, encode_task, identity
from protocol.mechanisms import channel
from protocol.messages import Code, Coins, Kind, Mechanism, Payload, Refusal, Report, Runs, Task
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.signature import report_words, tasks_words
from protocol.trust import Trust
from server.register import Known, Register, RegisterError, read_register
from server.sent import MANY, Sent, fault_of
from server.signatures import KeyUnusable, tasks_signer

CURVE, ECDSA = ec.SECP384R1(), ec.ECDSA(hashes.SHA384())
ANN, BOB = ec.generate_private_key(CURVE), ec.generate_private_key(CURVE)
RR = Mechanism.of("randomized-response", epsilon=Decimal(1))
TASK = Task(bytes(32), Trust.LOCAL, Unit.LABEL, Problem(3, "sphere", True, None), (RR,), 20, Decimal(1), None, 0, 1)
RAW = encode_task(TASK)
TASKS = {identity(RAW): TASK}
REGISTER = Register(
    (
        Known("ann", ANN.public_key(), 7, ((0, 4), (8, 10))),
        Known("bob", BOB.public_key(), 8),
        Known("cem", ec.generate_private_key(CURVE).public_key(), 9, revoked=True),
    )
)


def line(key: PublicKeyTypes) -> str:
    return key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode("ascii")  # type: ignore[call-arg,union-attr]


def table(name: str = "ann", key: str | None = None, number: str = "7", more: str = "") -> str:
    key = line(ec.generate_private_key(CURVE).public_key()) if key is None else key
    return f'[[node]]\nname = "{name}"\nkey = "{key}"\nid = "{number}"\n{more}\n'


def report(rows: Sequence[int] | None, task: bytes = RAW) -> bytes:
    count = 20 if rows is None else len(rows)
    values = Payload(Kind.SYMBOLS, np.zeros((1, count), np.uint8), None, 2)
    runs = None if rows is None else Runs.of(rows)
    made = channel("randomized-response", {"epsilon": Decimal(1)})
    return encode_report(Report(identity(task), runs, values, RR, made.digest, Coins.OS, bytes(8)))


def signed(raw: bytes, key: ec.EllipticCurvePrivateKey) -> tuple[bytes, bytes]:
    return raw, key.sign(report_words(raw), ECDSA)


# The file


def test_a_register_says_who_is_who(tmp_path: Path) -> None:
    text = table("ann", line(ANN.public_key()), "7", 'rows = "0:4, 8:10"')
    text += table("node-1.b_2", number=str((1 << 64) - 1), more="revoked = true")
    (tmp_path / "nodes.toml").write_text(text)
    register = read_register(tmp_path / "nodes.toml")
    ann, other = register.nodes
    assert (ann.name, ann.id, ann.rows, ann.revoked, ann.count) == ("ann", 7, ((0, 4), (8, 10)), False, 6)
    assert ann.key.public_numbers() == ANN.public_key().public_numbers()
    assert other.revoked and other.rows is None
    assert register.of(7) == ann and register.of(8) is None
    assert [register.welcome(node) for node in (7, (1 << 64) - 1, 8)] == [True, False, False]


def test_revoked_keys_stay_beside_the_one_that_took_their_name(tmp_path: Path) -> None:
    text = table(more='rows = "0:4"\nrevoked = true') + table(number="8", more="revoked = true")
    (tmp_path / "nodes.toml").write_text(text + table(number="9", more='rows = "0:4"'))
    register = read_register(tmp_path / "nodes.toml")
    assert [(node.name, register.welcome(node.id)) for node in register.nodes] == [
        ("ann", False),
        ("ann", False),
        ("ann", True),
    ]


def test_nobody_is_known_by_an_empty_register(tmp_path: Path) -> None:
    (tmp_path / "nodes.toml").write_text("")
    assert read_register(tmp_path / "nodes.toml").nodes == ()


EDWARDS = line(ed25519.Ed25519PrivateKey.generate().public_key())
SHORT = line(ec.generate_private_key(ec.SECP256R1()).public_key())
TWICE = line(BOB.public_key())
WRONG = {
    "name of nobody": (table(name=""), r"\[node 1\] name: expected a non-empty string"),
    "name with a space": (table(name="a b"), r"name: expected 1 to 64 letters"),
    "name with a line": (table(name="a\\nb"), "name: expected"),
    "id as a number": (table().replace('"7"', "7"), r"\[node 'ann'\] id: expected a non-empty string"),
    "id that is none": (table(number="0x7"), r"\[node 'ann'\] id: expected Flower's node id"),
    "id too large": (table(number=str(1 << 64)), "id: expected"),
    "another kind of key": (table(key=EDWARDS), r"\[node 'ann'\] key: expected a key of kind ecdsa-sha2-nistp384"),
    "another curve": (table(key=SHORT), "key: expected a key of kind ecdsa-sha2-nistp384"),
    "a key with a comment": (table(key=TWICE + " bob@host"), "key: expected 'ecdsa-sha2-nistp384 AAAA...'"),
    "no key": (table(key="ecdsa-sha2-nistp384 AAAA"), "key: expected 'ecdsa-sha2-nistp384 AAAA...'"),
    "no id": ('[[node]]\nname = "ann"\nkey = "x"\n', r"\[node 1\] expected the key 'id'"),
    "an unknown field": (table(more='row = "0:1"'), r"\[node 1\] unknown key 'row'; did you mean 'rows'"),
    "an unknown table": ("[nodes]\n", "unknown key 'nodes'; did you mean 'node'"),
    "one table": (table().replace("[[node]]", "[node]"), r"expected tables \[\[node\]\]"),
    "rows that fall": (table(more='rows = "4:6, 0:2"'), r"\[node 'ann'\] rows: expected increasing runs"),
    "rows that are none": (table(more='rows = "4:4"'), "rows: expected increasing runs"),
    "rows in words": (table(more='rows = "all"'), "rows: expected increasing runs"),
    "revoked in words": (table(more='revoked = "yes"'), "revoked: expected true or false"),
    "a name twice": (table() + table(number="8"), r"\[node 'ann'\] name: expected one of its own, got that of 'ann'"),
    "a revoked key under another name": (
        table(key=TWICE, more="revoked = true") + table("bob", TWICE, "8"),
        r"\[node 'bob'\] key: expected one of its own, got that of 'ann'",
    ),
    "a key twice": (table(key=TWICE) + table("bob", TWICE, "8"), r"\[node 'bob'\] key: .* got that of 'ann'"),
    "an id twice": (table() + table("bob"), r"\[node 'bob'\] id: expected one of its own, got that of 'ann'"),
    "rows twice": (
        table(more='rows = "0:4, 8:10"') + table("bob", number="8", more='rows = "4:9"'),
        r"\[node 'ann'\] rows: expected rows of its own, got row 8, which 'bob' has",
    ),
    "no TOML": ("[[node", "expected TOML"),
}


@pytest.mark.parametrize("what", sorted(WRONG))
def test_a_register_that_does_not_say_it_is_refused_by_file_and_field(tmp_path: Path, what: str) -> None:
    text, said = WRONG[what]
    (tmp_path / "nodes.toml").write_text(text)
    with pytest.raises(RegisterError, match=said) as caught:
        read_register(tmp_path / "nodes.toml")
    assert str(caught.value).startswith(str(tmp_path / "nodes.toml"))


def test_a_register_that_is_not_there_is_no_empty_one(tmp_path: Path) -> None:
    with pytest.raises(RegisterError, match="found none"):
        read_register(tmp_path / "nodes.toml")


def test_a_key_takes_over_the_rows_of_one_that_is_revoked(tmp_path: Path) -> None:
    old = table("ann", number="7", more='rows = "0:4"\nrevoked = true')
    (tmp_path / "nodes.toml").write_text(old + table("ann-2", number="8", more='rows = "0:4"'))
    assert [node.revoked for node in read_register(tmp_path / "nodes.toml").nodes] == [True, False]


@pytest.mark.parametrize(
    ("rows", "held"),
    [([0], True), ([0, 3, 8, 9], True), ([4], False), ([7], False), ([10], False), ([3, 4], False), ([1 << 40], False)],
)
def test_rows_of_a_node(rows: list[int], held: bool) -> None:
    assert REGISTER.nodes[0].holds(np.array(rows)) is held
    assert REGISTER.nodes[1].holds(np.array(rows))


# What a reply has to be

GOOD = report([0, 1, 9])


@pytest.mark.parametrize(
    ("node", "reply", "fault"),
    [
        (7, encode_reply([signed(GOOD, ANN)]), ""),
        (7, encode_reply([signed(GOOD, ANN), signed(report([2]), ANN)]), MANY),  # one mechanism was offered
        (8, encode_reply([signed(report(None), BOB)]), ""),
        (7, encode_refusal(Refusal(identity(RAW), Code.BUDGET_EXHAUSTED)), ""),
        (7, b"garbage", ""),
        (7, encode_reply([(GOOD, b"")]), "a report without a signature"),
        (7, encode_reply([signed(GOOD, BOB)]), "a report that is not under the node's key"),
        (8, encode_reply([signed(GOOD, ANN)]), "a report that is not under the node's key"),
        (7, encode_reply([(GOOD, signed(report([0]), ANN)[1])]), "a report that is not under the node's key"),
        (7, encode_reply([(GOOD, ANN.sign(GOOD, ECDSA))]), "a report that is not under the node's key"),
        (7, encode_reply([(GOOD, b"s" * 64)]), "a report that is not under the node's key"),
        (7, encode_reply([signed(report([4]), ANN)]), "a report about rows that are not the node's"),
        (7, encode_reply([signed(report(None), ANN)]), "a report about rows that are not the node's"),
        (
            7,
            encode_reply([signed(report([0], encode_task(replace(TASK, n=21))), ANN)]),
            "a report about another task",
        ),
        (9, encode_reply([signed(GOOD, ANN)]), "a node whose key is revoked"),
        (1, encode_reply([signed(GOOD, ANN)]), "a node that is not in the register"),
        (1, encode_refusal(Refusal(identity(RAW), Code.INTERNAL)), "a node that is not in the register"),
        (1, b"garbage", "a node that is not in the register"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_speaks_against_a_reply(node: int, reply: bytes, fault: str) -> None:
    assert fault_of(REGISTER.of(node), reply, TASKS) == fault


def test_a_few_bytes_about_billions_of_rows_cost_nothing() -> None:
    payload = Payload(Kind.SYMBOLS, np.zeros((1, 1), np.uint8), None, 2)
    many = Report(identity(RAW), Runs(((0, 1, 1 << 50),)), payload, RR, bytes(32), Coins.OS, bytes(8))
    reply = encode_reply([signed(encode_report(many), ANN)])
    assert fault_of(REGISTER.of(7), reply, TASKS) == "a report about rows that are not the node's"


def test_what_may_not_count_leaves_nothing_to_read() -> None:
    assert Sent(b"reply", "ann", b"task") == b"reply"
    bad = Sent(b"reply", "ann", b"task", "a fault")
    assert (bad, bad.sender, bad.task, bad.fault) == (b"", "ann", b"task", "a fault")


# The server's own key


def test_the_server_signs_tasks(tmp_path: Path) -> None:
    path = tmp_path / "server.key"
    path.write_bytes(ANN.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    path.chmod(0o600)
    ANN.public_key().verify(tasks_signer(path)([RAW, b""]), tasks_words([RAW, b""]), ECDSA)
    for mode, said in ((0o644, "only its owner can read"), (0o600, "private key of kind")):
        path.chmod(mode)
        with pytest.raises(KeyUnusable, match=said):
            tasks_signer(path)
        path.write_text(line(ANN.public_key()))
    with pytest.raises(KeyUnusable, match="No such file"):
        tasks_signer(tmp_path / "nowhere")
