"""What a session's server asks and its members answer, as bytes: strict, like every message of the wire."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from protocol import halftruth_pb2 as wire

DIGEST, PUBLIC, NONCE, SHARE = 32, 32, 12, 16
NODE_KEY = 49  # a compressed point of P-384
PARCEL = NONCE + 2 * SHARE + 4 + 16  # a nonce, two shares, where they were taken, a tag
MOST_MEMBERS = 1 << 16
MOST_TASKS = 1 << 12
MOST_SIGNATURE = 104  # ECDSA on P-384 in DER
MARK = b"\xf2\x01\x20"  # field 30, 32 bytes: no task and no reply begins so
DOMAIN_SESSION = b"halftruth session v1\n"
DOMAIN_MEMBER = b"halftruth member v1\n"
DOMAIN_JOINED = b"halftruth joined v1\n"
DOMAIN_SURVIVORS = b"halftruth survivors v1\n"
DOMAIN_SELF = b"halftruth self mask v1\n"


class Stage(IntEnum):
    """The stages of a session, in order. The numbers are those of the wire schema."""

    KEYS = 1
    SHARES = 2
    INPUT = 3
    CONSENT = 4
    OPENING = 5


@dataclass(frozen=True)
class Agenda:
    """What a session opens: a sum for each task (by id), of at least so many rows of survivors."""

    tasks: tuple[bytes, ...]
    least: tuple[int, ...]

    @property
    def session(self) -> bytes:
        """The session's id: SHA-256 of a domain and the agenda's bytes."""
        return hashlib.sha256(DOMAIN_SESSION + agenda_message(self).SerializeToString(deterministic=True)).digest()


@dataclass(frozen=True)
class Entry:
    """A member in the roster: its node key, two public keys of the session, rows for each task, a signature."""

    key: bytes
    channel: bytes
    mask: bytes
    rows: tuple[int, ...]
    signature: bytes = b""

    def words(self, session: bytes) -> bytes:
        """What the member's node key signs."""
        return (
            DOMAIN_MEMBER + session + entry_message(replace(self, signature=b"")).SerializeToString(deterministic=True)
        )


@dataclass(frozen=True)
class Parcel:
    """Shares on their way: the member that they are for, or from, and their ciphertext."""

    other: int
    content: bytes


@dataclass(frozen=True)
class Consent:
    """A member's signature of a list."""

    member: int
    signature: bytes


@dataclass(frozen=True)
class Reveal:
    """A share of a member's secret: of its mask key where it dropped out, else of its own mask."""

    member: int
    mask: bool
    place: int
    share: bytes


@dataclass(frozen=True)
class SessionAsk:
    """A question to members; which fields are there depends on its stage."""

    session: bytes
    stage: Stage
    agenda: Agenda
    tasks: tuple[bytes, ...] = ()
    roster: tuple[Entry, ...] = ()
    ticket: bytes = b""
    parcels: tuple[Parcel, ...] = ()
    joined: tuple[int, ...] = ()
    survivors: tuple[int, ...] = ()
    statements: tuple[Consent, ...] = ()
    consents: tuple[Consent, ...] = ()


@dataclass(frozen=True)
class SessionReply:
    """A member's answer to every stage but the input, which is a reply with a report for each task."""

    session: bytes
    stage: Stage
    entry: Entry | None = None
    ticket: bytes = b""
    commitment: bytes = b""
    parcels: tuple[Parcel, ...] = ()
    signature: bytes = b""
    reveals: tuple[Reveal, ...] = ()


def of_session(raw: bytes) -> bool:
    """Whether bytes are a question or an answer of a session, by how they begin.

    >>> of_session(b""), of_session(MARK + bytes(32))
    (False, True)
    """
    return raw.startswith(MARK)


def roster_digest(roster: Sequence[Entry]) -> bytes:
    """SHA-256 of a roster: what everybody's list has to be the same as."""
    message = wire.SessionAsk(roster=[entry_message(entry) for entry in roster])
    return hashlib.sha256(message.SerializeToString(deterministic=True)).digest()


def joined_words(session: bytes, roster: bytes, joined: Sequence[int]) -> bytes:
    """What a member signs of those who gave shares: its masks are with these. `roster` is the roster's digest."""
    return DOMAIN_JOINED + session + roster + _listed(joined)


def survivors_words(session: bytes, roster: bytes, joined: Sequence[int], survivors: Sequence[int]) -> bytes:
    """What a member signs of those whose input came, out of those who gave shares."""
    return DOMAIN_SURVIVORS + session + roster + hashlib.sha256(_listed(joined)).digest() + _listed(survivors)


def _listed(members: Sequence[int]) -> bytes:
    return wire.Members(members=members).SerializeToString(deterministic=True)


def commitment(session: bytes, seed: bytes) -> bytes:
    """What a member says of the seed of its own mask before anybody has a share of it."""
    return hashlib.sha256(DOMAIN_SELF + session + seed).digest()


def agenda_message(agenda: Agenda) -> wire.Agenda:
    """An agenda as the wire has it."""
    return wire.Agenda(tasks=agenda.tasks, least=agenda.least)


def entry_message(entry: Entry) -> wire.Entry:
    """An entry as the wire has it."""
    return wire.Entry(key=entry.key, channel=entry.channel, mask=entry.mask, rows=entry.rows, signature=entry.signature)
