"""Clients of one process with a synthetic label each: asked the same, they are answered for a block at a time.

Between them only row, label and coin differ. What is decided before a label is read is decided once, by the code that
decides it for each; labels and symbols of a block are drawn at once, from the same places of the same sequences; and
one client of each kind answers by itself: the others' replies are its bytes, but for a row's number and bits.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import overload

import numpy as np
from numpy.typing import NDArray

from client.labeler import Node, answer, decided
from client.ledger import MemoryLedger, Part
from client.question import question_of
from client.secure.membership import simulated
from client.sources.synthetic import Synthetic
from protocol.alike import Form, digits_of
from protocol.errors import WireError
from protocol.messages import Task
from protocol.trust import RANDOMIZED, Trust

BLOCK = 1 << 12  # clients that are answered for at once,
VALUES = 1 << 21  # and bits of theirs, over all repetitions and tasks
LEAST = 16  # clients that are worth it
Rows = NDArray[np.int64]
Symbols = NDArray[np.uint8]


class Crowd(Sequence[Node]):
    """Clients 0, ..., `clients` - 1 with parts of one synthetic source, which share all else; each is made when asked.

    Raises ValueError for a node with other labels, another ledger or other coins: nobody may ever answer for those who
    have labels to protect, and with coins that nobody can repeat an answer is not the same a second time.
    """

    def __init__(self, one: Node, clients: int) -> None:
        source, ledger = one.source, one.ledger
        if not (isinstance(source, Synthetic) and isinstance(ledger, MemoryLedger) and one.seed is not None):
            raise ValueError("expected synthetic labels, a ledger in memory and addressed coins")
        self._one, self._source, self._ledger, self._clients = one, source, ledger, range(clients)

    def __len__(self) -> int:
        return len(self._clients)

    @overload
    def __getitem__(self, index: int) -> Node: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Node]: ...
    def __getitem__(self, index: int | slice) -> Node | Sequence[Node]:
        if isinstance(index, slice):
            return [self._node(client) for client in self._clients[index]]
        return self._node(self._clients[index])

    def replies(self, tasks: Sequence[bytes]) -> Iterator[bytes]:
        """Replies of all clients to all tasks, one client after the other: the bytes of `client.labeler.answer`.

        Guarantee: that of `answer` for each label. A reply is a function of the task and of its own row's label and
        coin: a block is drawn by `client.randomizer.randomize`, which gives each row the symbol that it has alone.
        Whatever is not as usual (a refusal, a sum, several rows of a client) is answered by `answer` itself.
        """
        answered = (chain.from_iterable(self._blocks(raw, len(tasks))) for raw in tasks)
        return chain.from_iterable(zip(*answered, strict=True))

    def together(self, raw: bytes, clients: range) -> Iterable[bytes]:
        """Replies of neighbours with one row each; who is not answered for answers."""
        replies = dict[int, bytes]()
        with suppress(Exception):  # where one of them refuses or fails: each says so itself
            replies = self._answered(raw, clients)
        return [replies.get(client) or answer(raw, self._node(client)) for client in clients]

    def _blocks(self, raw: bytes, tasks: int) -> Iterator[Iterable[bytes]]:
        """Replies of all clients to one of so many tasks."""
        with_one, block = self._terms(raw, tasks)
        yield self._each(raw, range(with_one.start))
        for first in range(with_one.start, with_one.stop, block):
            clients = range(first, min(first + block, with_one.stop))
            yield self.together(raw, clients) if len(clients) >= LEAST else self._each(raw, clients)
        yield self._each(raw, range(with_one.stop, len(self)))

    def _terms(self, raw: bytes, tasks: int) -> tuple[range, int]:
        """The clients with one row each that a task asks for a bit, and how many of them to answer for at once."""
        with suppress(WireError):
            task = question_of(raw).task
            plain = self._one.shuffler is None or task.trust is not Trust.SHUFFLED
            if plain and task.problem.kind == "pairwise" and task.trust in (*RANDOMIZED, Trust.CLEAR):
                block = min(BLOCK, VALUES // (tasks * task.repetitions))
                return self._with_one(task), max(1, 1 << block.bit_length() >> 1)
        return range(0), 1

    def _with_one(self, task: Task) -> range:
        """Those with exactly one row; parts are those of `numpy.array_split`."""
        size, longer = divmod(task.n, len(self))
        return {0: range(longer), 1: range(longer, len(self))}.get(size, range(0))

    def _each(self, raw: bytes, clients: range) -> Iterator[bytes]:
        return (answer(raw, self._node(client)) for client in clients)

    def _answered(self, raw: bytes, clients: range) -> dict[int, bytes]:
        """Replies by client, of those that have the form of a client's own."""
        question, node = question_of(raw), self._node(clients.start, len(clients))
        found = decided(question, node)
        parts = self._ledger.settle(found.charges, found.possible, node.policy, found.facts, found.draw, list[Part])
        ahead = node.source.rows(question.task).runs[0][0] - clients.start  # of a client's number its row's is
        replies: dict[int, bytes] = {}
        for part in parts:
            asked = found.at(part)
            bits, digits = asked.payload(part.symbols).values.T, digits_of(asked.rows)
            for count in np.unique(digits):
                own = digits == count
                replies |= self._alike(raw, asked.rows[own] - ahead, asked.rows[own], bits[own])
        return replies

    def _alike(self, raw: bytes, clients: Rows, rows: Rows, bits: Symbols) -> dict[int, bytes]:
        """Replies through one channel about rows whose numbers are equally long, written as the first one's own is."""
        first = int(clients[0])
        own = answer(raw, self._node(first))
        form = Form.of(own)
        if form is None:
            return {first: own}
        written = dict(zip(clients.tolist(), form.write(rows, bits), strict=True))
        return written if written[first] == own else {}

    def _node(self, client: int, many: int = 1) -> Node:
        member = partial(simulated, self._one.seed or 0, client, len(self))
        return replace(self._one, source=self._source.part(client, len(self), many), member=member)
