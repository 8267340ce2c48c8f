"""Who a member is: the key that it signs with, whose keys it believes, and what it remembers of sessions."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Protocol

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_public_key

from client.secure.keys import derived
from client.signing import CHECKING, SIGNING, UNUSABLE, KeyUnusable, own_key
from protocol.secure.masks import INFO_NODE
from protocol.secure.messages import Stage
from protocol.strict import reason

MOST_REMEMBERED = 1 << 17  # signatures that a process has found good
ORDER = int("ffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973", 16)
Sign = Callable[[bytes], bytes]


class SessionRefused(Exception):
    """A session that asks otherwise than it did, or whose members, list or shares are not what they should be."""


class TooFewMembers(Exception):
    """Fewer members, or rows of theirs, than a sum may be opened of."""


def fingerprint_of(key: ec.EllipticCurvePublicKey) -> bytes:
    """SHA-256 of a public key as SubjectPublicKeyInfo in DER."""
    return hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).digest()


def name_of(key: ec.EllipticCurvePublicKey) -> bytes:
    """A public key as rosters name it: its compressed point."""
    return key.public_bytes(Encoding.X962, PublicFormat.CompressedPoint)


class Pins:
    """The node keys that a member believes to be others', by their names: from its own file, never from the server."""

    def __init__(self, keys: Iterable[ec.EllipticCurvePublicKey]) -> None:
        self._keys: Mapping[bytes, ec.EllipticCurvePublicKey] = {name_of(key): key for key in keys}
        self._good: set[bytes] = set()

    @cached_property
    def names(self) -> list[bytes]:
        """All of them, in order."""
        return sorted(self._keys)

    @cached_property
    def places(self) -> dict[bytes, int]:
        """Where in `names` each is."""
        return {name: place for place, name in enumerate(self.names)}

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of all of them, in order."""
        return hashlib.sha256(b"".join(self.names)).digest()

    def good(self, name: bytes, words: bytes, signature: bytes) -> bool:
        """Whether a signature of these words is of the key with this name, which is among the pinned ones.

        One that was good once is not checked again: it is the same question.
        """
        key = self._keys.get(name)
        if key is None:
            return False
        known = hashlib.sha256(name + hashlib.sha256(words).digest() + signature).digest()
        if known in self._good:
            return True
        try:
            key.verify(signature, words, CHECKING)
        except InvalidSignature:
            return False
        if len(self._good) >= MOST_REMEMBERED:
            self._good.clear()
        self._good.add(known)
        return True


class Memory(Protocol):
    """What a member remembers of its sessions."""

    def begin(self, session: bytes) -> bytes:
        """The secret of a session, made where it is new. Raises SessionRefused for one that is closed."""

    def root(self, session: bytes) -> bytes:
        """The secret of a session that was begun. Raises SessionRefused."""

    def kept(self, session: bytes, stage: Stage, question: bytes) -> bytes | None:
        """The answer that this question got before; None where it is new."""

    def once(self, session: bytes, stage: Stage, question: bytes, subject: bytes, make: Callable[[], bytes]) -> bytes:
        """The answer to a stage, made once and kept before it leaves; `subject` is what it was about.

        Raises SessionRefused where the stage was asked another question.
        """

    def same(self, session: bytes, stage: Stage, subject: bytes) -> bool:
        """Whether a stage was asked, and about this."""

    def close(self, session: bytes) -> None:
        """Forget the secret of a session."""


@dataclass(frozen=True)
class Derived:
    """The memory of a simulated member, who answers each message in whatever process: it has none.

    The secret is made from the simulation's seed and the member's number. It protects nobody.
    """

    seed: int = field(repr=False)
    client: int

    def begin(self, session: bytes) -> bytes:
        """The secret."""
        return self.root(session)

    def root(self, session: bytes) -> bytes:
        """The secret, the same in every process."""
        return derived(f"{self.seed} {self.client}".encode(), INFO_NODE + b" session" + session)

    def kept(self, session: bytes, stage: Stage, question: bytes) -> bytes | None:
        """Nothing is."""
        return None

    def once(self, session: bytes, stage: Stage, question: bytes, subject: bytes, make: Callable[[], bytes]) -> bytes:
        """Made anew each time."""
        return make()

    def same(self, session: bytes, stage: Stage, subject: bytes) -> bool:
        """Nothing else is known."""
        return True

    def close(self, session: bytes) -> None:
        """There is nothing to forget."""


@dataclass(frozen=True)
class Membership:
    """How a node takes part in sessions: `key` is the name of what `sign` signs words with.

    `least`: members, and survivors, below which it takes no part. `colluding`: the share of these, and of their rows,
    that may be in league with whoever asks.
    """

    sign: Sign = field(repr=False)
    key: bytes
    pins: Pins = field(repr=False)
    memory: Memory = field(repr=False)
    least: int = 1
    colluding: Decimal = Decimal(0)


@lru_cache(maxsize=4)
def _simulated(seed: int, clients: int) -> tuple[tuple[ec.EllipticCurvePrivateKey, ...], Pins]:
    scalars = [derived(f"{seed} {client}".encode(), INFO_NODE, 64) for client in range(clients)]
    keys = tuple(ec.derive_private_key(1 + int.from_bytes(raw, "big") % (ORDER - 1), ec.SECP384R1()) for raw in scalars)
    return keys, Pins(key.public_key() for key in keys)


def simulated(seed: int, client: int, clients: int) -> Membership:
    """Client number `client` of a simulation, where everybody's key is known from the seed: it protects nobody."""
    keys, pins = _simulated(seed, clients)
    key = keys[client]
    return Membership(lambda words: key.sign(words, SIGNING), name_of(key.public_key()), pins, Derived(seed, client))


def member_of(key: Path, members: Path, memory: Memory, least: int, colluding: Decimal) -> Membership:
    """The member that has the private key in a file, among those whose public keys are in another one.

    Raises KeyUnusable, also where its own key is not among these.
    """
    pins, own = read_pins(members), own_key(key)
    name = name_of(own.public_key())
    if name not in pins.places:
        raise KeyUnusable(f"{members}: expected the public half of {key} among the members, found none")
    return Membership(lambda words: own.sign(words, SIGNING), name, pins, memory, least, colluding)


def read_pins(path: Path) -> Pins:
    """The members in a file: a public key a line in OpenSSH's format, ECDSA on P-384, a comment behind it if one likes.

    Raises KeyUnusable naming file and line.
    """
    try:
        lines = path.read_text("ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise KeyUnusable(f"{path}: expected a list of public keys, but: {reason(error)}") from None
    keys = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            key = load_ssh_public_key(line.encode())
        except UNUSABLE:
            key = None
        if not (isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP384R1)):
            raise KeyUnusable(f"{path}: line {number}: expected 'ecdsa-sha2-nistp384 AAAA...', got another line")
        keys.append(key)
    return Pins(keys)
