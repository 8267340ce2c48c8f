"""A node's key, which signs reports so that whoever carries them can neither change nor replay them; the server's key.

The key is the one that Flower's SuperNode shows to the SuperLink, whose signature covers a time only.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key

from client.private_files import open_to_others
from protocol.signature import report_words, tasks_words
from protocol.strict import reason

# Without coins: the same report has the same signature, so a task that was answered before gets the same bytes again.
SIGNING = ec.ECDSA(hashes.SHA384(), deterministic_signing=True)
CHECKING = ec.ECDSA(hashes.SHA384())
UNUSABLE = (OSError, ValueError, TypeError, UnsupportedAlgorithm)

Sign = Callable[[bytes], bytes]  # a report's bytes -> signature
Vouched = Callable[[Sequence[bytes], bytes], bool]  # tasks and the signature that came with them -> whether it is good


class KeyUnusable(ValueError):
    """A file that is not the key that is needed, or is not kept to its owner: names the file."""


@dataclass(frozen=True)
class Keys:
    """What a node signs its reports with, None for unsigned ones; and whose tasks it answers, None for anybody's."""

    sign: Sign | None = None
    vouched: Vouched | None = None

    @classmethod
    def load(cls, own: Path | None, server: Path | None) -> "Keys":
        """The keys in these files. Raises KeyUnusable."""
        return cls(None if own is None else signer(own), None if server is None else vouching(server))


def signer(path: Path) -> Sign:
    """Signs reports with the private key in a file, which only its owner can read.

    Guarantee: none of its own; the signature is made from the report and the key alone, hence post-processing.
    Raises KeyUnusable.
    """
    key = own_key(path)
    return lambda raw: key.sign(report_words(raw), SIGNING)


def own_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """The private key in a file, which only its owner can read. Raises KeyUnusable."""
    key = _loaded(path, "private", lambda raw: load_ssh_private_key(raw, password=None))
    if not (isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, ec.SECP384R1)):
        raise KeyUnusable(
            f"{path}: expected an ECDSA key on P-384 (ecdsa-sha2-nistp384), got a private key of another kind"
        )
    if open_to_others(path):
        raise KeyUnusable(f"{path}: expected a key that only its owner can read, got one open to others: chmod 600")
    return key


def vouching(path: Path) -> Vouched:
    """Whether tasks are under the server's key, given the public one in a file. Raises KeyUnusable."""
    key = _loaded(path, "public", load_ssh_public_key)
    if not (isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP384R1)):
        raise KeyUnusable(
            f"{path}: expected an ECDSA key on P-384 (ecdsa-sha2-nistp384), got a public key of another kind"
        )

    def vouched(tasks: Sequence[bytes], signature: bytes) -> bool:
        try:
            key.verify(signature, tasks_words(tasks), CHECKING)
        except InvalidSignature:
            return False
        return True

    return vouched


def _loaded(path: Path, kind: str, load: Callable[[bytes], object]) -> object:
    """What a file holds; errors never quote it."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise KeyUnusable(f"{path}: expected a {kind} key, but the system says: {reason(error)}") from None
    try:
        return load(raw)
    except UNUSABLE:
        what = "a file that does not read as one" + (" without a passphrase" if kind == "private" else "")
        raise KeyUnusable(f"{path}: expected a {kind} key in OpenSSH's format, got {what}") from None
