"""Keys of nodes and of a server: ECDSA on P-384, in OpenSSH's form, as Flower and our signatures take them."""

import base64
import hashlib
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from deploy.secret_files import OWN_FOLDER, PUBLIC, write_new
from protocol.strict import StudyError, unopened

KIND = "ecdsa-sha2-nistp384"
HINT = "make one with halftruth keys new PATH"


@dataclass(frozen=True)
class PublicKey:
    """A public key as one line of OpenSSH without its comment."""

    line: str

    @classmethod
    def of(cls, key: ec.EllipticCurvePublicKey) -> "PublicKey":
        """That of a key that was read."""
        form = serialization.PublicFormat.OpenSSH
        return cls(key.public_bytes(serialization.Encoding.OpenSSH, form).decode("ascii"))

    @property
    def fingerprint(self) -> str:
        """What ssh-keygen -l shows."""
        blob = base64.b64decode(self.line.split()[1])
        return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode("ascii").rstrip("=")


def ensure_key(path: Path) -> tuple[PublicKey, bool]:
    """Make a private key, readable by its owner only, with its public half in PATH.pub; whether it was made.

    A key that is there is kept. Raises StudyError where the file holds something else.
    """
    path.parent.mkdir(mode=OWN_FOLDER, parents=True, exist_ok=True)
    made = not path.exists()
    if made:
        key = ec.generate_private_key(ec.SECP384R1())
        plain = serialization.NoEncryption()
        form = serialization.PrivateFormat.OpenSSH
        write_new(path, key.private_bytes(serialization.Encoding.PEM, form, plain))
    public = public_half(path)
    beside = public_path(path)
    if not beside.exists():
        write_new(beside, f"{public.line} {path.name}\n".encode(), PUBLIC)
    elif read_public(beside) != public:
        raise StudyError(f"{beside}: expected the public half of {path}, got another key: remove it and run again")
    return public, made


def public_path(path: Path) -> Path:
    """Where the public half of a private key is."""
    return path.with_name(f"{path.name}.pub")


def public_half(path: Path) -> PublicKey:
    """The public half of a private key's file. Raises StudyError."""
    try:
        key = serialization.load_ssh_private_key(path.read_bytes(), password=None)
    except OSError as error:
        raise StudyError(f"{path}: expected a private key, {unopened(error)}: {HINT}") from None
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise StudyError(
            f"{path}: expected a private key of OpenSSH without a passphrase, {error}: move it away, and {HINT}"
        ) from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP384R1):
        raise StudyError(f"{path}: expected a key on the curve P-384, got another kind: {HINT}")
    return PublicKey.of(key.public_key())


def read_public(path: Path) -> PublicKey:
    """A public key's file, such as node.key.pub. Raises StudyError, also for a private key."""
    try:
        text = path.read_text("ascii")
    except OSError as error:
        raise StudyError(f"{path}: expected a public key, {unopened(error)}: {HINT}") from None
    except UnicodeDecodeError:
        raise StudyError(f"{path}: expected a public key of OpenSSH, got bytes that are no text") from None
    if "PRIVATE KEY" in text:
        raise StudyError(f"{path}: expected a public key, got a private one, which stays with its node: {path}.pub")
    try:
        key = serialization.load_ssh_public_key(text.strip().encode("ascii"))
    except (ValueError, UnsupportedAlgorithm) as error:
        raise StudyError(f"{path}: expected a line {KIND} AAAA..., {error}: {HINT}") from None
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP384R1):
        raise StudyError(f"{path}: expected a key on the curve P-384 ({KIND}), got another kind: {HINT}")
    return PublicKey.of(key)
