"""Signatures on the server's side: whether a report is under its node's key, and the server's own under its tasks."""

import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key

from protocol.signature import report_words, tasks_words
from protocol.strict import reason

KIND = "ecdsa-sha2-nistp384"
SIGNING = ec.ECDSA(hashes.SHA384(), deterministic_signing=True)
CHECKING = ec.ECDSA(hashes.SHA384())
UNUSABLE = (ValueError, TypeError, UnsupportedAlgorithm)

SignTasks = Callable[[Sequence[bytes]], bytes]


class KeyUnusable(ValueError):
    """Words or a file that are not the key that is needed: names the place."""


def public_key(text: str, place: str) -> ec.EllipticCurvePublicKey:
    """The key in a line `ecdsa-sha2-nistp384 AAAA...` without a comment. Raises KeyUnusable naming `place`."""
    try:
        if len(text.split(" ")) != 2:
            raise ValueError
        key = load_ssh_public_key(text.encode("ascii"))
    except UNUSABLE:
        raise KeyUnusable(f"{place}: expected '{KIND} AAAA...', got {text[:40]!r}") from None
    if not (isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP384R1)):
        raise KeyUnusable(f"{place}: expected a key of kind {KIND}, got {text.split()[0][:40]!r}")
    return key


def signed_by(key: ec.EllipticCurvePublicKey, report: bytes, signature: bytes) -> bool:
    """Whether the signature of a report's bytes was made with the private half of a key."""
    try:
        key.verify(signature, report_words(report), CHECKING)
    except InvalidSignature:
        return False
    return True


def tasks_signer(path: Path) -> SignTasks:
    """Signs the tasks of one message with the server's private key. Raises KeyUnusable."""
    key = server_key(path)
    return lambda tasks: key.sign(tasks_words(tasks), SIGNING)


def server_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """The server's private key, in a file that only its owner can read. Raises KeyUnusable."""
    try:
        raw, mode = path.read_bytes(), stat.S_IMODE(path.stat().st_mode)
    except OSError as error:
        raise KeyUnusable(f"{path}: expected the server's private key, but the system says: {reason(error)}") from None
    try:
        key = load_ssh_private_key(raw, password=None)
    except UNUSABLE:
        key = None
    if not (isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, ec.SECP384R1)):
        raise KeyUnusable(f"{path}: expected a private key of kind {KIND} in OpenSSH's format without a passphrase")
    if os.name == "posix" and mode & 0o077:
        raise KeyUnusable(f"{path}: expected a key that only its owner can read, got one open to others: chmod 600")
    return key
