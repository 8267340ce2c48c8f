"""Batches of a shuffler: fetched after everybody was asked, opened with the server's key, and turned into one reply.

What is missing, damaged or there twice is told: nodes say in receipts how many reports they handed over.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from protocol.choice_law import choice_law
from protocol.codec import decode_reply, decode_task, encode_reply, encode_report, identity
from protocol.errors import WireError
from protocol.messages import Kind, Payload, Refusal, Report, Runs, Task
from protocol.questions import asked_questions
from protocol.sealed import Pile, read_plain, sealed_words
from protocol.terms import law
from protocol.trust import Trust
from server.listening import RoundFailed
from server.receipts import SHUFFLER, is_receipt
from server.sent import Sent
from server.shuffled import Rows, fitting_rows

SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)
Place = tuple[int, int]  # repetition, question


class NoBatch(RoundFailed):
    """A shuffler has no batch for a task, or gives none."""


class Batches(Protocol):
    """Where batches come from."""

    def fetch(self, task: bytes) -> tuple[Pile, ...]:
        """All piles of a task (its id), each in an order that says nothing. Raises NoBatch."""


@dataclass(frozen=True)
class Opened:
    """Symbols by repetition and question; how many reports did not open, were no report, or came twice."""

    symbols: Mapping[Place, Sequence[int]] = field(repr=False)
    damaged: int
    twice: int

    @property
    def faults(self) -> list[str]:
        """What is wrong with a batch, in words."""
        told = ((self.damaged, "that are not sealed for this task and question"), (self.twice, "that came before"))
        return [f"{count} sealed reports {words}" for count, words in told if count]


@dataclass(frozen=True)
class Shuffling:
    """A shuffler, and the private key that opens what went through it."""

    batches: Batches
    key: X25519PrivateKey = field(repr=False)

    def asking(self, ask: Callable[[list[bytes]], Iterable[bytes]]) -> Callable[[list[bytes]], list[bytes]]:
        """Ask as before, then fetch what nodes have receipts for: it comes as a reply of its own to each such task.

        Raises NoBatch where the shuffler passes nothing on.
        """

        def asked(tasks: list[bytes]) -> list[bytes]:
            replies = list(ask(tasks))
            for raw in tasks:
                task, name = _shuffled(raw), identity(raw)
                if task is not None and (told := _receipts(replies, name)):
                    replies += self._replies(task, name, told)
            return replies

        return asked

    def _replies(self, task: Task, name: bytes, receipts: Sequence[Report]) -> list[bytes]:
        opened, small = without_small(task, opened_batch(task, name, self.batches.fetch(name), self.key))
        made: list[bytes] = []
        faults = opened.faults + ([f"{small} questions with fewer reports than the claim needs"] if small else [])
        try:
            report = joint_report(task, name, opened, receipts)
            made = [Sent(encode_reply([(encode_report(report), b"")]), SHUFFLER, name)]
        except ValueError as error:
            faults.append(str(error))
        return made + [Sent(b"", SHUFFLER, name, fault) for fault in faults]


def opened_batch(task: Task, name: bytes, piles: Iterable[Pile], key: X25519PrivateKey) -> Opened:
    """What a batch says. A report counts once, in the task and at the question that it was sealed for."""
    symbols: dict[Place, list[int]] = {}
    marks, damaged, twice = set[bytes](), 0, 0
    outcomes = _law(task).outcomes
    for pile in piles:
        words = sealed_words(name, pile.repetition, pile.question)
        for sealed in pile.sealed:
            try:
                mark, symbol = read_plain(SUITE.decrypt(sealed, key, words))
            except (InvalidTag, WireError, ValueError):
                damaged += 1
                continue
            if mark in marks:
                twice += 1
            elif symbol >= outcomes:
                damaged += 1
            else:
                symbols.setdefault((pile.repetition, pile.question), []).append(symbol)
            marks.add(mark)
    return Opened(symbols, damaged, twice)


def without_small(task: Task, opened: Opened) -> tuple[Opened, int]:
    """What a batch says about questions with as many reports as the task's group, and how many others it has.

    A shuffler that waits brings none of these; one that drops reports must not make a claim say more than it keeps.
    """
    group = max(int(mechanism.get("group") or 1) for mechanism in task.menu)
    small = {question for (_, question), own in opened.symbols.items() if len(own) < group}
    kept = {place: own for place, own in opened.symbols.items() if place[1] not in small}
    return replace(opened, symbols=kept), len(small)


def joint_report(task: Task, name: bytes, opened: Opened, receipts: Sequence[Report]) -> Report:
    """One report of all reports of a batch, about rows that stand for those of whoever answered.

    Raises ValueError where repetitions have different counts, or questions more reports than labelers.
    """
    block = range(task.first_repetition, task.first_repetition + task.repetitions)
    counts = [Counter({q: len(own) for (r, q), own in opened.symbols.items() if r == at}) for at in block]
    if not counts[0] or any(count != counts[0] for count in counts) or {r for r, _ in opened.symbols} - set(block):
        raise ValueError("expected as many reports about a question in every repetition of the task")
    every, numbers = asked_questions(task)
    rows = fitting_rows(task, every, counts[0])
    asked = numbers[np.searchsorted(every, rows)]
    order = np.argsort(asked, kind="stable")
    symbols = np.zeros((task.repetitions, len(rows)), dtype=np.uint8)
    for index, at in enumerate(block):
        symbols[index, order] = [symbol for q in sorted(counts[0]) for symbol in sorted(opened.symbols[at, q])]
    channel = _law(task)
    return Report(
        task=name,
        rows=None if len(rows) == task.n else _runs(rows),
        payload=Payload(Kind.SYMBOLS, symbols, outcomes=2 if channel.outcomes == 2 else 256),
        mechanism=task.menu[0],
        table=channel.digest,
        coins=max(receipt.coins for receipt in receipts),
        numerics=receipts[0].numerics,
    )


def _shuffled(raw: bytes) -> Task | None:
    """A shuffled task of what is asked; None for anything else."""
    try:
        task = decode_task(raw)
    except WireError:
        return None
    return task if task.trust is Trust.SHUFFLED else None


class _Law(NamedTuple):
    outcomes: int
    digest: bytes


def _law(task: Task) -> _Law:
    asked = law(task, task.menu[0]) if task.problem.kind == "pairwise" else choice_law(task, task.menu[0])
    return _Law(asked.outcomes, asked.digest)


def _receipts(replies: Iterable[bytes], name: bytes) -> list[Report]:
    """The receipts for a task among replies, of which any may be anything."""
    found = []
    for raw in replies:
        try:
            reply = [] if isinstance(raw, Sent) and raw.task != name else decode_reply(raw)
        except WireError:
            continue
        if not isinstance(reply, Refusal):
            found += [one.report for one in reply if one.report.task == name and is_receipt(one.report)]
    return found


def _runs(rows: Rows) -> Runs:
    return Runs.of(rows.tolist())
