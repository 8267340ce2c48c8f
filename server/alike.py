"""Replies of many clients about one row each, which differ only in that row and in its answer: read all at once.

A reply is canonical: two such replies are the same bytes but for the digits of the row's number and for one bit a
repetition. So whoever has read one of them strictly knows where these are in all others. What is read so is what
reading one by one would give, byte for byte; a reply that fits no other is left to that.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import overload

import numpy as np
from numpy.typing import NDArray

from protocol.codec import Signed, decode_reply, encode_reply, encode_report, identity
from protocol.errors import WireError
from protocol.messages import Kind, Payload, Refusal, Report, Runs

PART = 1 << 13  # replies that are held at once
LEAST = 64  # replies of one length that are worth looking for a form
MOST_FORMS = 64  # of one length: beyond, somebody makes them up
DIGITS = 5  # of a row's number, 7 bits each: rows are below 2^32
Letters = NDArray[np.uint8]


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
        digits = -(-runs[0][0].bit_length() // 7)
        first, last = 1 << 7 * (digits - 1), (1 << 7 * digits) - 1  # of that many digits: all of these differ
        text, other = _written(report, first, 0), _written(report, last, 1)
        return cls(report, text, text != other)

    def read(self, letters: Letters) -> tuple[NDArray[np.bool_], NDArray[np.int64], Letters]:
        """Of replies (k, length): which have this form, and of those that do the row (k,) and the answer (k, R)."""
        own, repetitions = letters[:, self.own], len(self.report.payload.values)
        digits, bits = own[:, :-repetitions], own[:, -repetitions:]
        goes_on = np.arange(digits.shape[1]) < digits.shape[1] - 1
        fits = (letters[:, ~self.own] == self.text[~self.own]).all(axis=1)
        fits &= (digits >> 7 == goes_on).all(axis=1) & (digits[:, -1] > 0) & (bits <= 1).all(axis=1)
        rows = np.zeros(len(letters), dtype=np.int64)
        for place, digit in enumerate(digits.T):
            rows |= (digit & np.uint8(0x7F)).astype(np.int64) << 7 * place
        return fits, rows[fits], bits[fits]

    def write(self, rows: NDArray[np.int64], bits: Letters) -> Iterator[bytes]:
        """The inverse of `read`."""
        text, count = self.text.copy(), int(self.own.sum()) - bits.shape[1]
        for row, answer in zip(rows.tolist(), bits, strict=True):
            digits = [row >> 7 * place & 0x7F | (0x80 if place < count - 1 else 0) for place in range(count)]
            text[self.own] = [*digits, *answer]
            yield text.tobytes()


def _written(report: Report, row: int, bit: int) -> Letters:
    values = np.full(report.payload.values.shape, bit, dtype=np.uint8)
    changed = replace(report, rows=Runs(((row, 1, 1),)), payload=Payload(Kind.SYMBOLS, values, outcomes=2))
    return np.frombuffer(encode_reply([(encode_report(changed), b"")]), dtype=np.uint8)


class Sheaf:
    """Replies of one form, by what they say: a row (k,) and its answer (k, R) each."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self._rows: list[NDArray[np.int64]] = []
        self._bits: list[Letters] = []

    def take(self, replies: list[bytes]) -> list[bytes]:
        """Add those of replies of one length that have the form; returns the others."""
        letters = np.frombuffer(b"".join(replies), dtype=np.uint8).reshape(len(replies), -1)
        fits, rows, bits = self.form.read(letters)
        self._rows.append(rows)
        self._bits.append(bits)
        return [] if fits.all() else [replies[place] for place in np.flatnonzero(~fits)]

    @property
    def task(self) -> bytes:
        """The task that they answer."""
        return self.form.report.task

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """Rows in increasing order, each as often as somebody answered for it."""
        return self._all[0]

    @cached_property
    def report(self) -> Report:
        """One report that says what all of them say together, about `rows`; it names none."""
        payload = Payload(Kind.SYMBOLS, np.ascontiguousarray(self._all[1].T), outcomes=2)
        return replace(self.form.report, rows=None, payload=payload)

    def opened(self) -> Iterator[Signed]:
        """The reports, one by one."""
        for raw in self.form.write(*self._all):
            reply = decode_reply(raw)
            assert not isinstance(reply, Refusal)
            yield from reply

    @cached_property
    def _all(self) -> tuple[NDArray[np.int64], Letters]:
        rows, bits = np.concatenate(self._rows), np.concatenate(self._bits)
        order = np.argsort(rows, kind="stable")
        return rows[order], bits[order]


class Sheaves:
    """Replies to some tasks, gathered by their form."""

    def __init__(self, tasks: Iterable[bytes]) -> None:
        self._tasks = set(tasks)
        self._by_length: dict[int, list[Sheaf]] = {}

    def others(self, replies: Iterable[bytes]) -> Iterator[bytes]:
        """Gather what can be, a part at a time; the others come out, and all whose sender is known."""
        left = iter(replies)
        while part := list(islice(left, PART)):
            yield from self._take(part)

    def of(self, task: bytes) -> list[Sheaf]:
        """Those of a task."""
        return [sheaf for sheaves in self._by_length.values() for sheaf in sheaves if sheaf.task == task]

    def _take(self, replies: Sequence[bytes]) -> list[bytes]:
        others, groups = [], dict[int, list[bytes]]()
        for raw in replies:
            if type(raw) is bytes:
                groups.setdefault(len(raw), []).append(raw)
            else:
                others.append(raw)
        for length, group in groups.items():
            others += self._gathered(length, group)
        return others

    def _gathered(self, length: int, left: list[bytes]) -> list[bytes]:
        sheaves = self._by_length.setdefault(length, [])
        for sheaf in sheaves:
            left = sheaf.take(left) if left else left
        while len(left) >= LEAST and len(sheaves) < MOST_FORMS:
            form = Form.of(left[0])
            if form is None or form.report.task not in self._tasks:
                break
            sheaves.append(Sheaf(form))
            left = sheaves[-1].take(left)
        return left


class Names(Sequence[bytes]):
    """Public ids of reports in the order of their ids, worked out when somebody looks: few do, and they are many."""

    def __init__(self, reports: Sequence[Signed], sheaves: Sequence[Sheaf]) -> None:
        self._reports, self._sheaves = reports, sheaves

    def __len__(self) -> int:
        return len(self._reports) + sum(len(sheaf.rows) for sheaf in self._sheaves)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[bytes, ...]: ...
    def __getitem__(self, index: int | slice) -> bytes | tuple[bytes, ...]:
        return self._names[index]

    @cached_property
    def _names(self) -> tuple[bytes, ...]:
        every = [*self._reports, *(signed for sheaf in self._sheaves for signed in sheaf.opened())]
        return tuple(signed.public_id for signed in sorted(every, key=lambda signed: identity(signed.raw)))
