"""The server's cryptography of a session: secrets from their shares, and the masks that these are the keys of.

The primitives are those of `cryptography`.
"""

from collections.abc import Callable, Sequence
from itertools import islice

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from protocol.secure.masks import INFO_MASK, INFO_SELF, INFO_STREAM, WIDTH
from server.secure.interpolation import at_zero

KEY = 32
MOST_TRIES = 64
_PROBE = X25519PrivateKey.from_private_bytes(bytes([1] * KEY))  # no secret: it finds keys that agree on nothing

Place = tuple[int, bytes]  # where a polynomial was taken, and a share of 16 bytes


class NotOpened(Exception):
    """Shares that give no secret, or another than was announced."""


def secret_of(shares: Sequence[Place], threshold: int, right: Callable[[bytes], bool]) -> bytes:
    """The secret that any `threshold` of these are shares of; some may be wrong, and are left out where it shows.

    Raises NotOpened for too few, and where no choice of them out of `MOST_TRIES` gives the `right` one.
    """
    known = dict(shares)
    places = sorted(known)
    for start in islice(range(len(places)), MOST_TRIES if len(places) > threshold else 1):
        chosen = [places[(start + step) % len(places)] for step in range(min(threshold, len(places)))]
        if len(chosen) < threshold:
            break
        secret = at_zero([(place, known[place]) for place in chosen])
        if right(secret):
            return secret
    raise NotOpened(f"expected {threshold} shares of one secret, got {len(places)}")


def derived(secret: bytes, info: bytes) -> bytes:
    """HKDF-SHA256 of a secret, 32 bytes."""
    return HKDF(hashes.SHA256(), KEY, salt=None, info=info).derive(secret)


def usable(public: bytes) -> bool:
    """Whether bytes are a public key that a secret can be agreed on with: not one of few small orders."""
    try:
        _PROBE.exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:
        return False
    return True


def mask_key(seed: bytes, session: bytes) -> X25519PrivateKey:
    """The mask key of a member that dropped out."""
    return X25519PrivateKey.from_private_bytes(derived(seed, INFO_MASK + session))


def self_key(seed: bytes, session: bytes) -> bytes:
    """What a survivor's own mask is a keystream of."""
    return derived(seed, INFO_SELF + session)


def pair_key(own: X25519PrivateKey, other: bytes, session: bytes, member: int, neighbour: int) -> bytes:
    """What the mask of a member that dropped out and of its neighbour is a keystream of."""
    first, last = sorted((member, neighbour))
    shared = own.exchange(X25519PublicKey.from_public_bytes(other))
    return derived(shared, INFO_STREAM + session + first.to_bytes(4, "big") + last.to_bytes(4, "big"))


def keystream(key: bytes, task: int, count: int) -> bytes:
    """AES-256 in counter mode: the bytes of `count` residues of a task, by its place in the agenda."""
    cipher = Cipher(algorithms.AES(key), modes.CTR(task.to_bytes(8, "big") + bytes(8)))
    return cipher.encryptor().update(bytes(WIDTH * count))
