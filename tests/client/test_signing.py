"""Keys of a node and of the server that it knows: one kind, whole, kept to their owner; and what a signature covers."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from client.node import keys_of
from client.node_file import NodeFileError, read_node
from client.signing import Keys, KeyUnusable, signer, vouching
from protocol.signature import DOMAIN_REPORT, report_words, tasks_words
from protocol.strict import StudyError

CURVE = ec.SECP384R1()
CHECKING = ec.ECDSA(hashes.SHA384())
TASKS = [b"one task", b"another"]
NODE = """
[node]
entropy = "addressed"
seed = 7
{node}
[source]
kind = "synthetic"
client = 0
clients = 1
[policy]
label_cap = "unlimited"
{policy}
"""


def written(path: Path, key: PrivateKeyTypes, mode: int = 0o600) -> Path:
    """A key's two files, as ssh-keygen writes them."""
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    path.chmod(mode)
    line = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    path.with_name(f"{path.name}.pub").write_bytes(line + b" somebody@somewhere\n")
    return path


def test_a_signature_is_of_the_domain_and_all_bytes_of_the_report(tmp_path: Path) -> None:
    key = ec.generate_private_key(CURVE)
    sign = signer(written(tmp_path / "node", key))
    signature = sign(b"report")
    key.public_key().verify(signature, DOMAIN_REPORT + b"report", CHECKING)
    for other in (b"report", report_words(b"Report"), report_words(b"report "), tasks_words([b"report"])):
        with pytest.raises(InvalidSignature):
            key.public_key().verify(signature, other, CHECKING)


def test_the_same_report_has_the_same_signature(tmp_path: Path) -> None:
    sign = signer(written(tmp_path / "node", ec.generate_private_key(CURVE)))
    assert sign(b"report") == sign(b"report") != sign(b"another")


@pytest.mark.parametrize("count", range(4))
def test_tasks_count_under_the_server_s_key_only(tmp_path: Path, count: int) -> None:
    server, other = ec.generate_private_key(CURVE), ec.generate_private_key(CURVE)
    written(tmp_path / "server", server)
    vouched = vouching(tmp_path / "server.pub")
    tasks = [*TASKS, b"a third"][:count]
    good = server.sign(tasks_words(tasks), CHECKING)
    assert vouched(tasks, good)
    assert not vouched([*tasks, b""], good) and not vouched(tasks, good[:-1]) and not vouched(tasks, b"")
    assert not vouched(tasks, other.sign(tasks_words(tasks), CHECKING))
    assert not vouched(tasks, server.sign(b"".join(tasks), CHECKING)), "a domain is missing"
    assert count < 2 or not vouched(tasks[::-1], good)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("absent", "No such file"),
        ("garbage", "does not read as one without a passphrase"),
        ("public.pub", "does not read as one"),
        ("short", "expected an ECDSA key on P-384"),
        ("edwards", "expected an ECDSA key on P-384"),
        ("open", "only its owner can read"),
    ],
)
def test_other_files_are_no_key_of_a_node(tmp_path: Path, name: str, said: str) -> None:
    if name == "open" and os.name != "posix":
        pytest.skip("modes of files are of POSIX systems")
    (tmp_path / "garbage").write_bytes(b"-----BEGIN OPENSSH PRIVATE KEY-----\nsecret\n")
    written(tmp_path / "public", ec.generate_private_key(CURVE))
    written(tmp_path / "short", ec.generate_private_key(ec.SECP256R1()))
    written(tmp_path / "edwards", ed25519.Ed25519PrivateKey.generate())
    written(tmp_path / "open", ec.generate_private_key(CURVE), mode=0o640)
    with pytest.raises(KeyUnusable, match=said) as caught:
        signer(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value) and "secret" not in str(caught.value)


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="no ssh-keygen here")
def test_keys_of_ssh_keygen_are_keys_unless_a_passphrase_locks_them(tmp_path: Path) -> None:
    for name, passphrase in (("free", ""), ("locked", "secret words")):
        words = ["-q", "-t", "ecdsa", "-b", "384", "-N", passphrase, "-f", str(tmp_path / name)]
        subprocess.run(["ssh-keygen", *words], check=True)
    assert signer(tmp_path / "free")(b"report") and vouching(tmp_path / "free.pub")
    with pytest.raises(KeyUnusable, match="without a passphrase") as caught:
        signer(tmp_path / "locked")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("name", ["absent", "private", "short.pub", "edwards.pub"])
def test_other_files_are_no_key_of_a_server(tmp_path: Path, name: str) -> None:
    written(tmp_path / "private", ec.generate_private_key(CURVE))
    written(tmp_path / "short", ec.generate_private_key(ec.SECP256R1()))
    written(tmp_path / "edwards", ed25519.Ed25519PrivateKey.generate())
    with pytest.raises(KeyUnusable, match=name):
        vouching(tmp_path / name)


# Where a node's keys are named


def test_keys_of_a_node_file(tmp_path: Path) -> None:
    written(tmp_path / "own", ec.generate_private_key(CURVE))
    written(tmp_path / "server", ec.generate_private_key(CURVE))
    text = NODE.format(node='key = "own"', policy='server_key = "server.pub"')
    (tmp_path / "node.toml").write_text(text)
    node = read_node(tmp_path / "node.toml")
    assert (node.key, node.server_key) == (tmp_path / "own", tmp_path / "server.pub")
    keys = keys_of({"config": str(tmp_path / "node.toml")})
    assert keys.sign is not None and keys.sign(b"report")
    assert keys.vouched is not None and not keys.vouched(TASKS, b"")


def test_the_key_of_the_connection_is_the_node_s_unless_it_names_another(tmp_path: Path) -> None:
    link = '[superlink]\naddress = "here:1"\nroot_certificates = "ca.crt"\nkey = "flower"\n'
    for own, expected in (("", "flower"), ('key = "own"', "own")):
        (tmp_path / "node.toml").write_text(NODE.format(node=own, policy="") + link)
        assert read_node(tmp_path / "node.toml").key == tmp_path / expected


def test_without_a_file_a_node_s_configuration_may_name_its_key(tmp_path: Path) -> None:
    place = {"partition-id": 0, "num-partitions": 1}
    assert keys_of(place) == Keys()
    written(tmp_path / "node", ec.generate_private_key(CURVE))
    assert keys_of({**place, "key": str(tmp_path / "node")}).sign is not None
    with pytest.raises(StudyError, match="absolute"):
        keys_of({**place, "key": "node"})


def test_code_is_pinned_by_its_hash(tmp_path: Path) -> None:
    path, pin = tmp_path / "node.toml", "Ab" * 32
    path.write_text(NODE.format(node="", policy=f'bundles = ["{pin}"]'))
    assert read_node(path).bundles == (pin.lower(),)
    assert read_node(path).executor == "warm"
    path.write_text(NODE.format(node='executor = "stock"', policy=""))
    assert (read_node(path).executor, read_node(path).bundles) == ("stock", ())


@pytest.mark.parametrize(
    ("node", "policy", "said"),
    [
        ('executor = "cold"', "", r"executor: expected one of \['stock', 'warm'\]"),
        ('executor = "stock"', f'bundles = ["{"ab" * 32}"]', r"expected \"warm\" with \[policy\] bundles"),
        ('executor = "stock"', 'server_key = "server.pub"', r"expected \"warm\" with \[policy\] server_key"),
        ("", 'bundles = ["abc"]', "expected 64 hexadecimal digits"),
        ("", "bundles = []", "non-empty list"),
        ("", "server_key = 3", r"\[policy\] server_key: expected a non-empty string"),
        ("", 'sever_key = "server.pub"', "did you mean 'server_key'"),
    ],
)
def test_what_a_node_file_cannot_say_of_keys_and_code(tmp_path: Path, node: str, policy: str, said: str) -> None:
    (tmp_path / "node.toml").write_text(NODE.format(node=node, policy=policy))
    with pytest.raises(NodeFileError, match=said):
        read_node(tmp_path / "node.toml")
