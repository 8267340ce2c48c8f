"""Replies about one row each, which differ only in that row and in its answer: read and written many at once.

A reply is canonical: two such replies are the same bytes but for the digits of the row's number and for one bit a
repetition. So whoever has read one of them strictly knows where these are in all others.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from protocol.codec import decode_reply, encode_reply, encode_report
from protocol.errors import WireError
from protocol.messages import Kind, Payload, Refusal, Report, Runs

DIGITS = 5  # of a row's number, 7 bits each: rows are below 2^32
PART = 1 << 13  # replies that are written at once
GOES_ON = 0x80  # on a digit that is not the last
Letters = NDArray[np.uint8]
Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Form:
    """What replies have in common: a report about one row with bits, unsigned; and where each says its own.

    `text` (length,) are the bytes of one of them; `own` (length,) says which bytes others have otherwise: first the
    digits of the row's number, then a byte a repetition.
    """

    report: Report
    text: Letters = field(repr=False)
    own: NDArray[np.bool_] = field(repr=False)

    @classmethod
    def of(cls, raw: bytes) -> "Form | None":
        """The form of a reply; None where it has none."""
        try:
            reply = decode_reply(raw)
        except WireError:
            return None
        if isinstance(reply, Refusal) or len(reply) != 1 or reply[0].signature:
            return None
        report = reply[0].report
        values, runs = report.payload.values, report.rows.runs if report.rows else ()
        single = len(runs) == 1 and runs[0][1:] == (1, 1) and 0 < runs[0][0] < 1 << 7 * DIGITS
        if not single or report.payload.kind is not Kind.SYMBOLS or report.payload.outcomes != 2:
            return None
        if values.ndim != 2 or values.shape[1] != 1 or not len(values) or report.groups is not None:
            return None
        digits = int(digits_of(np.array([runs[0][0]]))[0])
        first, last = 1 << 7 * (digits - 1), (1 << 7 * digits) - 1  # of that many digits: all of these differ
        text, other = _written(report, first, 0), _written(report, last, 1)
        return cls(report, text, text != other)

    @property
    def digits(self) -> int:
        """How many digits the row's number has."""
        return int(self.own.sum()) - len(self.report.payload.values)

    def read(self, letters: Letters) -> tuple[NDArray[np.bool_], Rows, Letters]:
        """Of replies (k, length): which have this form, and of those that do the row (k,) and the answer (k, R)."""
        own, count = letters[:, self.own], self.digits
        digits, bits = own[:, :count], own[:, count:]
        goes_on = np.arange(count) < count - 1
        fits = (letters[:, ~self.own] == self.text[~self.own]).all(axis=1)
        fits &= (digits >> 7 == goes_on).all(axis=1) & (digits[:, -1] > 0) & (bits <= 1).all(axis=1)
        rows = np.zeros(len(letters), dtype=np.int64)
        for place, digit in enumerate(digits.T):
            rows |= (digit & np.uint8(0x7F)).astype(np.int64) << 7 * place
        return fits, rows[fits], bits[fits]

    def write(self, rows: Rows, bits: Letters) -> Iterator[bytes]:
        """The inverse of `read`: a reply for each row (k,) and its answer (k, R).

        Raises ValueError for a row whose number has more or fewer digits, and for an answer that is not R bits.
        """
        shape = (len(rows), len(self.report.payload.values))
        if bits.shape != shape or bits.dtype != np.uint8 or bits.max(initial=0) > 1:
            raise ValueError(f"expected bits of shape {shape}, got {bits.dtype} {bits.shape}")
        if (digits_of(rows) != self.digits).any():
            raise ValueError(f"expected rows whose numbers have {self.digits} digits")
        parts = (slice(at, at + PART) for at in range(0, len(rows), PART))
        return chain.from_iterable(self._part(rows[part], bits[part]) for part in parts)

    def _part(self, rows: Rows, bits: Letters) -> list[bytes]:
        letters, size, places = np.tile(self.text, (len(rows), 1)), len(self.text), np.flatnonzero(self.own)
        for place, column in enumerate(places[: self.digits]):
            letters[:, column] = rows >> 7 * place & 0x7F | GOES_ON
        letters[:, places[self.digits - 1]] &= ~np.uint8(GOES_ON)
        letters[:, places[self.digits :]] = bits
        raw = letters.tobytes()
        return [raw[at : at + size] for at in range(0, len(raw), size)]


def digits_of(rows: Rows) -> NDArray[np.int64]:
    """How many digits a row's number has on the wire; 0 has none, since nothing is written for it."""
    found: NDArray[np.int64] = np.searchsorted(1 << 7 * np.arange(DIGITS + 1), rows, side="right")
    return found


def _written(report: Report, row: int, bit: int) -> Letters:
    values = np.full(report.payload.values.shape, bit, dtype=np.uint8)
    changed = replace(report, rows=Runs(((row, 1, 1),)), payload=Payload(Kind.SYMBOLS, values, outcomes=2))
    return np.frombuffer(encode_reply([(encode_report(changed), b"")]), dtype=np.uint8)
