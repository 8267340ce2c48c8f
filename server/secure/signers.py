"""Signatures of members, under the keys that their entries name: whether those keys are theirs, members know."""

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from server.signatures import CHECKING


def name_of(key: ec.EllipticCurvePublicKey) -> bytes:
    """A node's public key as rosters name it: its compressed point."""
    return key.public_bytes(Encoding.X962, PublicFormat.CompressedPoint)


def signed(key: bytes, words: bytes, signature: bytes) -> bool:
    """Whether a signature of these words is of the key that is named so; what is no key signs nothing."""
    try:
        ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP384R1(), key).verify(signature, words, CHECKING)
    except (InvalidSignature, ValueError):
        return False
    return True
