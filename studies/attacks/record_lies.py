"""Lying holders of records: valid messages, in which some rows say what suits them instead of what they have."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from client.draws import AddressedDraws
from client.gradients import gradients
from client.records import Records
from client.sources.synthetic_records import SyntheticRecords
from client.statistics import contributions
from client.vector_randomizer import randomize_vectors
from protocol.codec import Signed, decode_reply, decode_task, encode_reply, encode_report, identity
from protocol.coins import Address, Floats, Stream, uniform, words
from protocol.grid import truncate
from protocol.messages import Kind, Refusal, Report, Runs, Task
from protocol.numeric.channel import NumericChannel
from protocol.record_terms import Bounded, channel_of
from protocol.study import Study
from protocol.threshold_grid import ThresholdGrid
from protocol.trust import Trust
from server.listening import Ask
from studies.attacks.study_file import Liars
from studies.attacks.vectors import OUTLIER, VECTOR_ATTACKS, Aim, flipped_labels, inside
from studies.attacks.who import BANK, lying_rows

TRIES = 1 << 12  # coins that a liar throws to find the legal report that suits it best
_ROWS_AT_ONCE = 1 << 8


@dataclass(frozen=True, eq=False)
class RecordAttack:
    """A fraction of the holders, or of the nodes, of a synthetic study about records that lie.

    Liars know everything: the truth, and what honest ones report. What they say is the vector of
    `studies.attacks.vectors` for their kind, moved to the nearest report that the server accepts: within the bound
    where a curator adds up, an output of the mechanism where holders randomise (the nearest of 4096 that honest coins
    lead to). "flipped-labels": they follow the protocol, with -y for y, or 1 - y. What says how large a row is, for a
    choice of a threshold, stays honest.
    """

    study: Study
    theta: Floats = field(repr=False)
    liars: Liars
    fraction: float
    nodes: int
    _banks: dict[bytes, Floats] = field(default_factory=dict, init=False, repr=False)

    def on(self, ask: Ask) -> Ask:
        """`ask`, with liars among those who answer."""

        def attacked(tasks: list[bytes]) -> list[bytes]:
            raws = ask(tasks)
            replies = [decode_reply(raw) for raw in raws]
            said: dict[bytes, _Said] = {}
            for raw in tasks:
                reports = list(_reports(replies, identity(raw)))
                if reports:
                    said[identity(raw)] = self._said(decode_task(raw), reports)
            return [
                raw
                if isinstance(reply, Refusal)
                else encode_reply([(said[one.report.task].changed(one.report), one.signature) for one in reply])
                for raw, reply in zip(raws, replies, strict=True)
            ]

        return attacked

    def rows(self, n: int, repetition: int) -> NDArray[np.bool_]:
        """Which of n rows lie, shape (n,)."""
        return lying_rows(self.study.seed, self.liars, self.fraction, self.nodes, n, repetition)

    def _said(self, task: Task, reports: Sequence[Report]) -> "_Said":
        """What the rows of a task say, honestly and not."""
        rows = np.sort(np.concatenate([_rows_of(task, report) for report in reports]))
        each = range(task.first_repetition, task.first_repetition + task.repetitions)
        summed = reports[0].payload.kind is Kind.EXACT_SUMS
        if summed:
            honest = [self._contributions(task, repetition, rows, self._source(False)) for repetition in each]
        else:
            values = np.concatenate([report.payload.values for report in reports], axis=1)
            order = np.argsort(np.concatenate([_rows_of(task, report) for report in reports]), kind="stable")
            honest = list(values[:, order].astype(np.float64))
        lies = [self._lies(task, repetition, rows, own) for repetition, own in zip(each, honest, strict=True)]
        if summed:
            assert task.exponent is not None
            honest, lies = ([truncate(one, task.exponent) for one in both] for both in (honest, lies))
        return _Said(task, rows, np.stack(honest), np.stack(lies))

    def _lies(self, task: Task, repetition: int, rows: NDArray[np.int64], honest: Floats) -> Floats:
        """What rows say, liars among them, given what all of them would say honestly."""
        lying = self.rows(task.n, repetition)[rows]
        said = honest.copy()
        if not lying.any() or ThresholdGrid.of(task.menu[0]) is not None:
            return said
        if self.liars.how == "flipped-labels":
            said[lying] = self._with_flipped_labels(task, repetition, rows)[lying]
            return said
        how = None if task.trust is Trust.CLEAR else Bounded.of(task.menu[0])
        width = honest.shape[1] - (how is not None and how.counted > 0)
        channel = channel_of(task.menu[0]) if task.trust is Trust.LOCAL else None
        bank = None if channel is None else self._bank(task, channel)
        aim = self._aim(task, repetition, how, bank)
        attack = VECTOR_ATTACKS[self.liars.how]
        others = honest if lying.all() else honest[~lying]  # of a task about liars alone
        wanted = attack(others[:, :width], honest[lying, :width], aim)
        if channel is None or bank is None:
            said[lying, :width] = inside(wanted, aim) if how is not None else wanted
        else:
            said[lying] = np.where(channel.legal(wanted)[:, None], wanted, _nearest(wanted, bank))
        return said

    def _aim(self, task: Task, repetition: int, how: Bounded | None, bank: Floats | None) -> Aim:
        """Away from the truth: against the expected gradient, which is at - theta* up to a positive matrix."""
        at = 0.0 if task.theta is None else task.theta[repetition - task.first_repetition]
        away = at - self.theta
        away = away if away.any() else np.ones_like(self.theta)
        away = away if task.coordinates is None else away[task.coordinates.numbers()]
        if bank is not None:
            return Aim(away, float(np.abs(bank).max()))
        return Aim(away, OUTLIER) if how is None else Aim(away, how.threshold, how.norm)

    def _bank(self, task: Task, channel: NumericChannel) -> Floats:
        """Legal reports of rows at corners of the bound, shape (TRIES, d): the same for all repetitions' liars."""
        if channel.digest not in self._banks:
            address = Address(self.study.seed, Stream.MISBEHAVIOUR, task.n, 0, BANK)
            coins = words(address, 0, TRIES * (channel.words + channel.dimension)).reshape(TRIES, -1)
            corners = np.where(uniform(coins[:, channel.words :]) < 0.5, -channel.bound, channel.bound)
            if channel.norm == "l2":
                corners = corners * ((1 - 2.0**-40) / np.sqrt(channel.dimension))
            self._banks[channel.digest] = channel.report(corners, np.ascontiguousarray(coins[:, : channel.words]))
        return self._banks[channel.digest]

    def _with_flipped_labels(self, task: Task, repetition: int, rows: NDArray[np.int64]) -> Floats:
        values = self._contributions(task, repetition, rows, self._source(True))
        if task.trust is not Trust.LOCAL:
            return values
        draws = AddressedDraws(self.study.seed, task.n, repetition, task.round)
        return randomize_vectors(values, channel_of(task.menu[0]), draws, rows)

    def _contributions(self, task: Task, repetition: int, rows: NDArray[np.int64], source: SyntheticRecords) -> Floats:
        place, mechanism = repetition - task.first_repetition, task.menu[0]
        at = np.zeros(task.problem.dimension) if task.theta is None else task.theta[place]
        found = gradients(task.problem.model, source.records(task, repetition, rows), at)
        found = found if task.centre is None else found - task.centre[place]
        found = found if task.coordinates is None else found[:, task.coordinates.numbers()]
        if task.trust is Trust.CLEAR:
            return found
        norm = channel_of(mechanism).norm if task.trust is Trust.LOCAL else None
        return contributions(task, Bounded.of(mechanism, norm), found, rows)

    def _source(self, flipped: bool) -> SyntheticRecords:
        assert self.study.records is not None
        kind = _Flipped if flipped else SyntheticRecords
        return kind(self.study.problem, self.study.records, self.theta, self.study.seed)


class _Flipped(SyntheticRecords):
    """Records whose holders lie about their labels."""

    def records(self, task: Task, repetition: int, rows: NDArray[np.int64]) -> Records:
        features, labels, counts = super().records(task, repetition, rows).reveal()
        if labels is None:
            return Records(features, labels, counts)
        return Records(features, 1 - labels if task.problem.model == "logistic" else flipped_labels(labels), counts)


@dataclass(frozen=True, eq=False)
class _Said:
    """What rows of a task say honestly, and what is said instead: (repetitions, rows, width) each."""

    task: Task
    rows: NDArray[np.int64]
    honest: Floats
    lies: Floats

    def changed(self, report: Report) -> bytes:
        """A report with the lies of its rows in it; sums stay exact, on the task's grid."""
        own = np.searchsorted(self.rows, _rows_of(self.task, report))
        if report.payload.kind is Kind.EXACT_SUMS:
            moved = (self.lies[:, own] - self.honest[:, own]).sum(axis=1)
            values = report.payload.values + moved[:, None] + 0.0  # no negative zero
        else:
            values = np.ascontiguousarray(self.lies[:, own])
        return encode_report(replace(report, payload=replace(report.payload, values=values)))


def _reports(replies: Sequence[list[Signed] | Refusal], task: bytes) -> Iterator[Report]:
    for reply in replies:
        for signed in () if isinstance(reply, Refusal) else reply:
            if signed.report.task == task:
                yield signed.report


def _rows_of(task: Task, report: Report) -> NDArray[np.int64]:
    return (report.rows or task.rows or Runs.of(range(task.n))).numbers()


def _nearest(wanted: Floats, bank: Floats) -> Floats:
    """The nearest report of the bank to each that is wanted."""
    found = np.empty_like(wanted)
    known, places = np.unique(wanted, axis=0, return_inverse=True)
    for start in range(0, len(known), _ROWS_AT_ONCE):
        part = known[start : start + _ROWS_AT_ONCE]
        far = np.zeros((len(part), len(bank)))
        for column, values in zip(part.T, bank.T, strict=True):
            far += (column[:, None] - values[None, :]) ** 2
        known[start : start + _ROWS_AT_ONCE] = bank[far.argmin(axis=1)]
    found[:] = known[places.reshape(-1)]
    return found
