"""A member's keys of one session, all from one secret; the primitives are those of `cryptography`."""

from functools import cached_property

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from client.draws import nonce
from protocol.secure.masks import INFO_CHANNEL, INFO_MASK, INFO_ROOT, INFO_SELF, INFO_STREAM, INFO_TICKET, WIDTH
from protocol.secure.messages import NONCE, SHARE

KEY = 32


class Unsealed(Exception):
    """Bytes that do not open: made under another key, for somebody else, or changed on their way."""


def derived(secret: bytes, info: bytes, length: int = KEY) -> bytes:
    """HKDF-SHA256 of a secret, of `length` bytes."""
    return HKDF(hashes.SHA256(), length, salt=None, info=info).derive(secret)


def sealed(key: bytes, content: bytes, about: bytes) -> bytes:
    """A fresh nonce, and AES-256-GCM of the content, which opens together with `about` only."""
    fresh = nonce()
    return fresh + AESGCM(key).encrypt(fresh, content, about)


def opened(key: bytes, raw: bytes, about: bytes) -> bytes:
    """What `sealed` was given. Raises Unsealed."""
    try:
        return AESGCM(key).decrypt(raw[:NONCE], raw[NONCE:], about)
    except (InvalidTag, ValueError):
        raise Unsealed("expected bytes that were sealed for this, got others") from None


def keystream(key: bytes, task: int, count: int) -> bytes:
    """AES-256 in counter mode: the bytes of `count` residues of a task, by its place in the agenda."""
    cipher = Cipher(algorithms.AES(key), modes.CTR(task.to_bytes(8, "big") + bytes(8)))
    return cipher.encryptor().update(bytes(WIDTH * count))


class SessionKeys:
    """The secrets of a member in one session, and what it makes of others' public keys.

    `seed` of its own mask and `mask_seed` of its mask key are what its neighbours get shares of; all comes from `root`.
    """

    def __init__(self, root: bytes, session: bytes) -> None:
        self._root, self._session = derived(root, INFO_ROOT + session), session

    @cached_property
    def seed(self) -> bytes:
        """Of the mask that is the member's own."""
        return derived(self._root, INFO_SELF, SHARE)

    @cached_property
    def mask_seed(self) -> bytes:
        """Of the key that pairs of masks are made from."""
        return derived(self._root, INFO_MASK, SHARE)

    @cached_property
    def _channel(self) -> X25519PrivateKey:
        return X25519PrivateKey.from_private_bytes(derived(self._root, INFO_CHANNEL))

    @cached_property
    def _mask(self) -> X25519PrivateKey:
        return X25519PrivateKey.from_private_bytes(derived(self.mask_seed, INFO_MASK + self._session))

    @property
    def channel_public(self) -> bytes:
        """The public key that shares are encrypted under."""
        return self._channel.public_key().public_bytes_raw()

    @property
    def mask_public(self) -> bytes:
        """The public key that pairs of masks are made from."""
        return self._mask.public_key().public_bytes_raw()

    def parcel_key(self, other: bytes, giver: int, taker: int) -> bytes:
        """What shares from `giver` to `taker` are sealed under; `other` is the other one's channel key.

        Raises ValueError for what is no public key.
        """
        shared = self._channel.exchange(X25519PublicKey.from_public_bytes(other))
        return derived(shared, INFO_CHANNEL + self._session + giver.to_bytes(4, "big") + taker.to_bytes(4, "big"))

    def pair_key(self, other: bytes, member: int, neighbour: int) -> bytes:
        """What the mask of two neighbours is a keystream of; `other` is the neighbour's mask key. Raises ValueError."""
        shared = self._mask.exchange(X25519PublicKey.from_public_bytes(other))
        first, last = sorted((member, neighbour))
        return derived(shared, INFO_STREAM + self._session + first.to_bytes(4, "big") + last.to_bytes(4, "big"))

    @property
    def self_key(self) -> bytes:
        """What the member's own mask is a keystream of."""
        return derived(self.seed, INFO_SELF + self._session)

    @property
    def ticket_key(self) -> bytes:
        """What the member seals for itself."""
        return derived(self._root, INFO_TICKET)
