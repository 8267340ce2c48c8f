"""What a shuffler takes and passes on: from nodes that it knows, once each; to one server, in an order of its own.

It sees who answers, when, and which question, all of which is public or the network's anyway; no answer: these are
sealed to the server. The server sees answers, and of nobody. Only both together know more.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

from client.draws import permutation
from client.secure.membership import fingerprint_of
from client.signing import CHECKING
from deploy.shuffler_store import Store
from protocol.errors import WireError
from protocol.sealed import (
    Pile,
    Submission,
    decode_fetch,
    decode_signed,
    decode_submission,
    encode_batch,
    fetch_words,
    submission_words,
)
from server.register import Register

INVALID, UNKNOWN, NOT_NOW = "INVALID_ARGUMENT", "UNAUTHENTICATED", "FAILED_PRECONDITION"
Message = TypeVar("Message")


class Refused(Exception):
    """What a shuffler does not do: `code` is gRPC's name for the reason."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code = code


@dataclass(frozen=True)
class Desk:
    """The rules. `nodes`: how many rows a node has, by the fingerprint of its key, None where that is not said.

    `least`: reports that a pile needs whatever its senders want; `server` may fetch.

    Guarantee: what `fetch` returns is a function of the reports of each pile as a set, and of the system's coins: every
    order of a pile is as likely as any other. A task is passed on once, so no two batches of it differ in a report.
    """

    store: Store
    nodes: Mapping[bytes, int | None]
    server: EllipticCurvePublicKey = field(repr=False)
    keys: Mapping[bytes, EllipticCurvePublicKey] = field(repr=False)
    least: int = 2

    def submit(self, raw: bytes) -> bytes:
        """Keep what a node hands over. Raises Refused; then nothing is kept."""
        signed = _read(decode_signed, raw)
        key = self.keys.get(signed.key)
        if key is None or not _good(key, submission_words(signed.raw), signed.signature):
            raise Refused(UNKNOWN, "expected a submission under the key of a node of this shuffler's register")
        submission = _read(decode_submission, signed.raw)  # piles are work: strangers get none of it
        _check_size(submission, self.nodes[signed.key])
        if not self.store.take(submission.task, signed.key, submission.least, submission.piles):
            raise Refused(NOT_NOW, "this task's reports have been passed on: who comes later would stand alone")
        return b""

    def fetch(self, raw: bytes) -> bytes:
        """All piles of a task, each shuffled anew. Raises Refused where one is too small; then more may still come."""
        task, signature = _read(decode_fetch, raw)
        if not _good(self.server, fetch_words(task), signature):
            raise Refused(UNKNOWN, "expected a fetch under the key of this shuffler's server")
        small, piles = self.store.close(task, self.least)
        if small:
            raise Refused(NOT_NOW, f"{small} questions have fewer reports than their senders want to be among")
        return encode_batch(shuffled(pile) for pile in piles)


def shuffled(pile: Pile) -> Pile:
    """The same reports in an order that the system's coins choose, each order as likely as any other."""
    order = permutation(len(pile.sealed)).tolist()
    return Pile(pile.repetition, pile.question, tuple(pile.sealed[place] for place in order))


def desk_of(store: Store, register: Register, server: EllipticCurvePublicKey, least: int) -> Desk:
    """The rules for the nodes of a register whose keys are not revoked."""
    heard = {fingerprint_of(node.key): node for node in register.nodes if not node.revoked}
    return Desk(
        store,
        {name: node.count for name, node in heard.items()},
        server,
        {name: node.key for name, node in heard.items()},
        least,
    )


def _read(decode: Callable[[bytes], Message], raw: bytes) -> Message:
    try:
        return decode(raw)
    except WireError as error:
        raise Refused(INVALID, str(error)) from None


def _check_size(submission: Submission, rows: int | None) -> None:
    """Raise Refused for more reports of a repetition than the node has rows: it could fill a pile by itself."""
    counts: dict[int, int] = {}
    for pile in submission.piles:
        counts[pile.repetition] = counts.get(pile.repetition, 0) + len(pile.sealed)
    if rows is not None and max(counts.values(), default=0) > rows:
        raise Refused(INVALID, f"expected at most {rows} reports of a repetition, as many as the node has rows")


def _good(key: EllipticCurvePublicKey, words: bytes, signature: bytes) -> bool:
    try:
        key.verify(signature, words, CHECKING)
    except InvalidSignature:
        return False
    return True
