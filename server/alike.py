"""Replies of many clients about one row each, gathered by the form that they have in common, and read all at once.

What is read so is what reading one by one would give, byte for byte; a reply that fits no other is left to that.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby, islice
from typing import overload

import numpy as np
from numpy.typing import NDArray

from protocol.alike import Form, Letters
from protocol.codec import Signed, decode_reply, identity
from protocol.messages import Kind, Payload, Refusal, Report

PART = 1 << 13  # replies that are held at once
LEAST = 64  # replies of one length that are worth looking for a form
MOST_FORMS = 64  # of one length: beyond, somebody makes them up


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
        self._rows, self._bits = [rows], [bits]  # parts of a million rows are not held twice
        if (rows[1:] >= rows[:-1]).all():
            return rows, bits
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
        unknown = [raw for raw in replies if type(raw) is bytes]
        others = [raw for raw in replies if type(raw) is not bytes] if len(unknown) < len(replies) else []
        for length, group in groupby(sorted(unknown, key=len), key=len):
            others += self._gathered(length, list(group))
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
