"""Keys of nodes: OpenSSH's form on P-384, made once, read strictly."""

import stat
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from deploy.node_keys import KIND, ensure_key, public_half, read_public
from protocol.strict import StudyError
from studies.cli import main

OPENSSH = (serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption())


def test_a_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "node.key"
    public, made = ensure_key(path)
    assert made
    assert public.line.startswith(f"{KIND} AAAA")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    before = path.read_bytes()
    assert ensure_key(path) == (public, False)
    assert path.read_bytes() == before
    (tmp_path / "keys" / "node.key.pub").unlink()
    assert ensure_key(path) == (public, False)
    assert public_half(path) == read_public(tmp_path / "keys" / "node.key.pub") == public


def test_openssh_and_flower_read_it(tmp_path: Path) -> None:
    public, _ = ensure_key(tmp_path / "key")
    said = subprocess.run(["ssh-keygen", "-l", "-f", str(tmp_path / "key.pub")], capture_output=True, check=False)
    if said.returncode == 0:
        assert public.fingerprint in said.stdout.decode()
    loaded = serialization.load_ssh_private_key((tmp_path / "key").read_bytes(), None)  # as flower-supernode does
    assert isinstance(loaded, ec.EllipticCurvePrivateKey)


def test_other_keys_are_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "other"
    for other in (ed25519.Ed25519PrivateKey.generate(), ec.generate_private_key(ec.SECP256R1())):
        path.write_bytes(other.private_bytes(*OPENSSH))
        with pytest.raises(StudyError, match=r"expected a key on the curve P-384.*halftruth keys new"):
            ensure_key(path)
        line = other.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
        path.write_bytes(line)
        with pytest.raises(StudyError, match="expected a key on the curve P-384"):
            read_public(path)
    path.write_text("nonsense")
    with pytest.raises(StudyError, match="expected a private key of OpenSSH"):
        ensure_key(path)
    with pytest.raises(StudyError, match="expected a line ecdsa"):
        read_public(path)
    with pytest.raises(StudyError, match=r"expected a public key, found none"):
        read_public(tmp_path / "nowhere")
    ensure_key(tmp_path / "key")
    with pytest.raises(StudyError, match=r"got a private one, which stays with its node: .*key\.pub"):
        read_public(tmp_path / "key")
    ensure_key(tmp_path / "second")
    (tmp_path / "key.pub").write_bytes((tmp_path / "second.pub").read_bytes())
    with pytest.raises(StudyError, match="expected the public half of"):
        ensure_key(tmp_path / "key")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("keys", "new", str(tmp_path / "node.key"))
    assert main(words) == 0
    first = capsys.readouterr().out
    assert main(words) == 0
    assert capsys.readouterr().out == first.replace("Made", "Kept")
