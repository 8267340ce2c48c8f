"""Malicious clients: valid messages, but what liars say never went through a randomiser.

An attack wraps `ask`, the one seam between algorithms and runtimes: bytes of tasks in, bytes of replies out.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from client.sources.synthetic import Synthetic
from protocol.codec import Signed, decode_reply, decode_task, encode_reply, encode_report, identity
from protocol.coins import Address, Floats, Stream, words
from protocol.features import coordinates, row_bound
from protocol.grid import truncate
from protocol.messages import Kind, Refusal, Report, Runs, Task
from protocol.store import FeatureStore
from protocol.study import Study
from protocol.terms import row_exponent
from server.listening import Ask
from studies.attacks.study_file import Liars
from studies.attacks.who import BITS, lying_rows
from studies.moments import dot

_HONEST = 255  # a row that says what it would have said
_SAYS_NOTHING = 1e-9  # rows that are this short along a direction


@dataclass(frozen=True, eq=False)
class Attack:
    """A fraction of the labelers or nodes of a synthetic study that lie; the same ones whatever is asked.

    "random": a fair coin for the label. "flipped": the label that is not true. "push": the pushed item wins, or larger
    values of a coordinate; rows that do not have it stay honest. "collude": whichever label lowers theta* . sum most,
    sign(-theta* . x). "extreme": as "collude", but in the central model a lying node makes its sum as large as a
    server accepts, row by row. Liars of a larger fraction are those of a smaller one, and others.
    Raises ValueError where theta does not fit the problem.
    """

    study: Study
    theta: Floats = field(repr=False)
    liars: Liars
    fraction: float
    nodes: int
    features: FeatureStore = field(repr=False)
    _known: dict[tuple[int, int], NDArray[np.uint8]] = field(default_factory=dict, init=False, repr=False)

    def on(self, ask: Ask) -> Ask:
        """`ask`, with liars among those who answer."""

        def attacked(tasks: list[bytes]) -> list[bytes]:
            known = {identity(raw): decode_task(raw) for raw in tasks}
            return [self._reply(known, raw) for raw in ask(tasks)]

        return attacked

    def rows(self, n: int, repetition: int) -> NDArray[np.bool_]:
        """Which of n rows lie, shape (n,)."""
        return lying_rows(self.study.seed, self.liars, self.fraction, self.nodes, n, repetition)

    def says(self, task: Task, repetition: int) -> NDArray[np.uint8]:
        """What every row says: a label, or 255 where it says what it would have said, shape (n,)."""
        if (task.n, repetition) not in self._known:
            self._known[task.n, repetition] = self._invented(task, repetition)
        return self._known[task.n, repetition]

    def _invented(self, task: Task, repetition: int) -> NDArray[np.uint8]:
        said = np.full(task.n, _HONEST, dtype=np.uint8)
        lying = np.flatnonzero(self.rows(task.n, repetition))
        if self.liars.how == "random":
            coins = words(Address(self.study.seed, Stream.MISBEHAVIOUR, task.n, repetition, BITS), 0, task.n)
            said[lying] = (coins[lying] >> np.uint64(63)).astype(np.uint8)
        elif self.liars.how == "flipped":
            said[lying] = 1 - self._labels(task, repetition)[lying]
        else:
            whole = self.features.reduced(task.problem, task.n, repetition, 0, task.n)
            z = dot(whole[lying], self._direction)
            said[lying] = np.where(np.abs(z) > _SAYS_NOTHING, z > 0, _HONEST).astype(np.uint8)
        return said

    @cached_property
    def _direction(self) -> Floats:
        """Where liars push, in reduced coordinates."""
        if self.liars.target is None:
            return -coordinates(self.study.problem, self.theta)
        aim = np.zeros(self.study.problem.dimension)
        aim[self.liars.target] = 1.0
        return coordinates(self.study.problem, aim)

    @cached_property
    def _source(self) -> Synthetic:
        return Synthetic(self.study.problem, self.theta, self.study.seed, self.features)

    def _labels(self, task: Task, repetition: int) -> NDArray[np.uint8]:
        return self._source.labels(task, repetition, np.arange(task.n)).reveal()

    def _reply(self, known: dict[bytes, Task], raw: bytes) -> bytes:
        reply = decode_reply(raw)
        if isinstance(reply, Refusal):
            return raw
        return encode_reply([self._lied(known[item.report.task], item) for item in reply])

    def _lied(self, task: Task, signed: Signed) -> tuple[bytes, bytes]:
        report, change = signed.report, {Kind.SYMBOLS: self._symbols, Kind.EXACT_SUMS: self._sums}
        rows = (report.rows or task.rows or Runs.of(range(task.n))).numbers()
        values = report.payload.values.copy()
        for index in range(task.repetitions):
            change[report.payload.kind](task, report, rows, task.first_repetition + index, values[index])
        payload = replace(report.payload, values=values)
        return encode_report(replace(report, payload=payload)), signed.signature

    def _symbols(self, task: Task, _: Report, rows: NDArray[np.int64], repetition: int, values: Floats) -> None:
        said = self.says(task, repetition)[rows]
        values[said != _HONEST] = said[said != _HONEST]

    def _sums(self, task: Task, report: Report, rows: NDArray[np.int64], repetition: int, values: Floats) -> None:
        """Exact: what liars would have added goes out, and what they say comes in, all on the task's grid."""
        given = report.mechanism.get("radius")
        radius, power = None if given is None else float(given), row_exponent(task)
        said = self.says(task, repetition)[rows]
        lying = said != _HONEST
        v = self.features.rounded(task.problem, task.n, repetition, 0, task.n, power, radius, task.map).rows[rows][
            lying
        ]
        values[0] -= self._labels(task, repetition)[rows][lying].astype(np.float64) @ v
        if self.liars.how == "extreme":
            push = self._direction if task.map is None else np.linalg.solve(task.map.T, self._direction)
            most = row_bound(task.problem, radius, task.map is not None)
            values[0] += len(v) * truncate(most * np.sign(push)[None, :], power)[0]
        else:
            values[0] += said[lying].astype(np.float64) @ v
        values += 0.0  # no negative zero
