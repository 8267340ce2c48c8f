"""Shuffled answers: each report is sealed to the server alone, and goes to a shuffler; the server gets a receipt.

The ledger keeps both before either leaves: asked again, a node hands over the same bytes, for nothing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from client.draws import marks
from client.signing import Sign
from protocol.codec import decode_bundle, encode_bundle
from protocol.messages import Payload, Report, Task
from protocol.questions import questions, smallest_group
from protocol.sealed import (
    MARK,
    Pile,
    SignedSubmission,
    Submission,
    encode_signed,
    encode_submission,
    plain_report,
    sealed_words,
    submission_words,
)

SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)


class ShufflerUnavailable(Exception):
    """No shuffler takes the answer: none is known, it is not there, or it refuses."""


class Link(Protocol):
    """A way to a shuffler."""

    def submit(self, raw: bytes) -> None:
        """Hand over a signed submission; one of the same node about the same task changes nothing.

        Raises ShufflerUnavailable.
        """


@dataclass(frozen=True)
class ToShuffler:
    """Where a node's shuffled answers go, and who can open them: both from its own file, never from a task.

    `server` is the key that reports are sealed to; `sign` signs submissions with the key whose fingerprint is `key`.
    """

    server: X25519PublicKey = field(repr=False)
    sign: Sign = field(repr=False)
    key: bytes
    link: Link = field(repr=False)

    def written(self, reply: bytes, task: Task, task_id: bytes, reports: Sequence[Report], colluding: Decimal) -> bytes:
        """What the ledger keeps: the reply of receipts, and the signed submission of what `reports` say.

        `colluding` is the share of reports that are passed on which may be no cover: see `least_pile`.
        """
        piles = self._piles(task, task_id, reports)
        submission = encode_submission(Submission(task_id, least_pile(task, colluding), piles))
        signed = SignedSubmission(submission, self.key, self.sign(submission_words(submission)))
        return encode_bundle([reply, encode_signed(signed)])

    def handed_over(self, kept: bytes) -> bytes:
        """Hand the submission to the shuffler, and return the reply for the server. Raises ShufflerUnavailable."""
        reply, signed = decode_bundle(kept)
        self.link.submit(signed)
        return reply

    def _piles(self, task: Task, task_id: bytes, reports: Sequence[Report]) -> tuple[Pile, ...]:
        piles: dict[tuple[int, int], list[bytes]] = {}
        numbers = questions(task.problem, task.n)
        for report in reports:
            rows = np.arange(task.n) if report.rows is None else report.rows.numbers()
            asked = numbers[rows].tolist()
            for index, symbols in enumerate(report.payload.values.tolist()):
                place, drawn = task.first_repetition + index, marks(len(asked))
                for at, (question, symbol) in enumerate(zip(asked, symbols, strict=True)):
                    plain = plain_report(drawn[at * MARK : (at + 1) * MARK], symbol)
                    piles.setdefault((place, question), []).append(
                        SUITE.encrypt(plain, self.server, sealed_words(task_id, place, question))
                    )
        return tuple(Pile(*place, tuple(piles[place])) for place in sorted(piles))


def receipt(report: Report) -> Report:
    """The same report without what it says: that these rows answered, by way of a shuffler.

    Guarantee: nothing of a label: rows, mechanism and coins follow from task, policy and ledger.
    """
    values = np.zeros((len(report.payload.values), 0), dtype=np.uint8)
    return replace(report, payload=Payload(report.payload.kind, values, outcomes=report.payload.outcomes))


def least_pile(task: Task, colluding: Decimal) -> int:
    """How many reports a question needs before those of this node are passed on.

    group / (1 - colluding), rounded up, since dropouts and cheats are others: of so few, `group` are still honest.
    Never more than the rarest question has: who claims that all of its labelers are honest has no cheats to count.
    """
    group = max(int(mechanism.get("group") or 1) for mechanism in task.menu)
    return min(math.ceil(group / (1 - Fraction(colluding))), smallest_group(task))
