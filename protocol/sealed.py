"""What clients hand to a shuffler and a server takes from it, as bytes; the cryptography is each side's own."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field

from google.protobuf.message import Message

from protocol import shuffler_pb2 as wire
from protocol.codec_parts import parse
from protocol.errors import WireError

MARK, PLAIN, SEALED = 16, 32, 80  # bytes of a mark, of what is sealed, and of what that makes
DIGEST = 32
MOST_SYMBOLS = 1 << 12
MOST_QUESTIONS = 1 << 32  # as labelers: more than any task has rows
SERVICE, SUBMIT, FETCH = "halftruth.v1.Shuffler", "Submit", "FetchBatch"
MOST_BYTES = 1 << 28  # of one message
DOMAIN_SEALED = b"halftruth sealed report v1\n"
DOMAIN_SUBMISSION = b"halftruth submission v1\n"
DOMAIN_FETCH = b"halftruth fetch v1\n"
_PLACE, _SYMBOL = struct.Struct("<IQ"), struct.Struct("<H")


@dataclass(frozen=True)
class Pile:
    """Sealed reports about one question of one repetition."""

    repetition: int
    question: int
    sealed: tuple[bytes, ...] = field(repr=False)


@dataclass(frozen=True)
class Submission:
    """What one node says of a task: its piles, and how many reports each of them has to have before it is passed on."""

    task: bytes
    least: int
    piles: tuple[Pile, ...]


@dataclass(frozen=True)
class SignedSubmission:
    """A submission's bytes as they were signed, under the fingerprint of a node's key."""

    raw: bytes
    key: bytes
    signature: bytes


def sealed_words(task: bytes, repetition: int, question: int) -> bytes:
    """What a sealed report is bound to: nothing else opens it."""
    return DOMAIN_SEALED + task + _PLACE.pack(repetition, question)


def submission_words(raw: bytes) -> bytes:
    """What a node signs of a submission."""
    return DOMAIN_SUBMISSION + raw


def fetch_words(task: bytes) -> bytes:
    """What a server signs to get a task's batch."""
    return DOMAIN_FETCH + task


def plain_report(mark: bytes, symbol: int) -> bytes:
    """What is sealed: always 32 bytes. Raises ValueError for another mark, or a symbol out of 0..4095.

    >>> len(plain_report(bytes(16), 1))
    32
    """
    if len(mark) != MARK or not 0 <= symbol < MOST_SYMBOLS:
        raise ValueError(f"expected a mark of {MARK} bytes and a symbol below {MOST_SYMBOLS}")
    return (mark + _SYMBOL.pack(symbol)).ljust(PLAIN, b"\0")


def read_plain(raw: bytes) -> tuple[bytes, int]:
    """The mark and the symbol of what was sealed. Raises WireError."""
    mark, symbol = raw[:MARK], _SYMBOL.unpack_from(raw, MARK)[0] if len(raw) == PLAIN else MOST_SYMBOLS
    if symbol >= MOST_SYMBOLS or plain_report(mark, symbol) != raw:
        raise WireError("expected a mark, a symbol and zeros, got other bytes")
    return mark, symbol


def encode_submission(submission: Submission) -> bytes:
    """A submission's canonical bytes, which its node signs."""
    message = wire.Submission(task=submission.task, least=submission.least, piles=_encode_piles(submission.piles))
    return message.SerializeToString(deterministic=True)


def decode_submission(raw: bytes) -> Submission:
    """Read a submission. Raises WireError for anything but whole sealed reports in increasing piles."""
    message = parse(wire.Submission(), raw, "submission")
    if len(message.task) != DIGEST or not 1 <= message.least <= MOST_QUESTIONS:
        raise WireError(f"expected a task's id of 32 bytes, and 1..{MOST_QUESTIONS} reports at least")
    return Submission(message.task, message.least, _decode_piles(message.piles))


def encode_signed(submission: SignedSubmission) -> bytes:
    """A signed submission as one message."""
    return _written(
        wire.SignedSubmission(submission=submission.raw, key=submission.key, signature=submission.signature)
    )


def decode_signed(raw: bytes) -> SignedSubmission:
    """Read a signed submission; the signature is not checked. Raises WireError."""
    message = parse(wire.SignedSubmission(), raw, "signed submission")
    if len(message.key) != DIGEST:
        raise WireError("expected the fingerprint of a key, 32 bytes")
    return SignedSubmission(message.submission, message.key, message.signature)


def encode_fetch(task: bytes, signature: bytes) -> bytes:
    """A server's wish for a task's batch."""
    return _written(wire.Fetch(task=task, signature=signature))


def decode_fetch(raw: bytes) -> tuple[bytes, bytes]:
    """The task and the signature of a wish; it is not checked. Raises WireError."""
    message = parse(wire.Fetch(), raw, "fetch")
    if len(message.task) != DIGEST:
        raise WireError("expected a task's id of 32 bytes")
    return message.task, message.signature


def encode_batch(piles: Iterable[Pile]) -> bytes:
    """All piles of a task as one message."""
    return _written(wire.Batch(piles=_encode_piles(piles)))


def decode_batch(raw: bytes) -> tuple[Pile, ...]:
    """Read a batch. Raises WireError as `decode_submission`."""
    return _decode_piles(parse(wire.Batch(), raw, "batch").piles)


def _written(message: Message) -> bytes:
    return message.SerializeToString(deterministic=True)


def _encode_piles(piles: Iterable[Pile]) -> list[wire.Pile]:
    return [
        wire.Pile(repetition=pile.repetition, question=pile.question, sealed=b"".join(pile.sealed)) for pile in piles
    ]


def _decode_piles(messages: Iterable[wire.Pile]) -> tuple[Pile, ...]:
    piles, last = [], (-1, -1)
    for message in messages:
        place = (message.repetition, message.question)
        wrong = place <= last or message.question >= MOST_QUESTIONS
        if wrong or not message.sealed or len(message.sealed) % SEALED:
            raise WireError(
                f"expected increasing piles of reports of {SEALED} bytes each, of {MOST_QUESTIONS} questions"
            )
        ends = range(0, len(message.sealed), SEALED)
        piles.append(Pile(*place, tuple(message.sealed[start : start + SEALED] for start in ends)))
        last = place
    return tuple(piles)
