"""The key pair of sealed reports: X25519 in PEM, as HPKE takes it. The public half goes to every node."""

import hashlib
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from deploy.node_keys import public_path
from deploy.secret_files import OWN_FOLDER, PUBLIC, write_new
from protocol.strict import StudyError, unopened

HINT = "make one with halftruth keys sealing PATH"


def ensure_sealing_key(path: Path) -> tuple[str, bool]:
    """Make a private key, readable by its owner only, and its public half in PATH.pub; its fingerprint, whether made.

    A key that is there is kept. Raises StudyError where the file, or PATH.pub, holds something else.
    """
    path.parent.mkdir(mode=OWN_FOLDER, parents=True, exist_ok=True)
    made = not path.exists()
    if made:
        key = X25519PrivateKey.generate()
        form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        write_new(path, key.private_bytes(serialization.Encoding.PEM, form, plain))
    public = _public_half(path)
    beside = public_path(path)
    if not beside.exists():
        write_new(beside, public, PUBLIC)
    elif beside.read_bytes() != public:
        raise StudyError(f"{beside}: expected the public half of {path}, got another key: remove it and run again")
    return hashlib.sha256(public).hexdigest(), made


def _public_half(path: Path) -> bytes:
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except OSError as error:
        raise StudyError(f"{path}: expected a private key, {unopened(error)}: {HINT}") from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise StudyError(
            f"{path}: expected a private key in PEM without a passphrase: move it away, and {HINT}"
        ) from None
    if not isinstance(key, X25519PrivateKey):
        raise StudyError(f"{path}: expected a key on X25519, got another kind: {HINT}")
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, form)
