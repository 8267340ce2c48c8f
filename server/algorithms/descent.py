"""Private stochastic convex optimisation: projected gradient descent whose every round is an exchange with holders."""

from dataclasses import replace
from decimal import Decimal

import numpy as np

from protocol.messages import Task
from protocol.strict import StudyError
from protocol.terms import share
from protocol.trust import Trust
from server.aggregators.median_of_means import runs
from server.algorithms.aggregates import clips_around, combined, curator_task
from server.algorithms.bounds import FAILURE
from server.algorithms.local import local_task
from server.algorithms.mean import group_sums, noisy_median, printed_bound
from server.algorithms.projections import PROJECTIONS
from server.algorithms.steps import SUMMED, Floats, Found, Room, Steps
from server.algorithms.theory import bounded_by_theory, rounds_of, step_of
from server.thresholds import groups_count

ON_BOUNDARY = 1 - 1e-9


def descent(room: Room) -> Steps:
    """w_t = Proj(w_{t-1} - eta (mean bounded gradient at w_{t-1} + ridge w_{t-1})) from w_0 = 0, over T rounds.

    `batches` "all" (the default of sums, by a curator or under masks): every row answers in every round, and T releases
    share the claim; "disjoint" (the default of randomised reports): each answers in one. `average`: of all iterates
    ("all"), of the second half ("half") or the last one. Where the arm names an `aggregate`, that takes the place of
    the mean: see `server.algorithms.aggregates`; centred clipping starts each round at the last one's output.

    Guarantee: central or distributed (epsilon, delta) over all rounds, by exact composition or because batches are
    disjoint (a sum under masks has a session of its own in each round); local epsilon, or (epsilon, delta) by exact
    composition, of every holder over all rounds; unit: what a row is; neighbours: replace it.
    Source: Tao, Wu, Cheng, Wang 2022, Algorithm 2; clipping, exact composition and averaging: derived, see
    docs/HEAVY_TAILS.md.
    """
    rounds = rounds_of(room)
    room = bounded_by_theory(room, rounds)
    usual = "disjoint" if room.arm.trust is Trust.LOCAL else "all"
    everyone = room.word("batches", usual) == "all"
    cut = [range(room.n)] * rounds if everyone else _batches(room, rounds)
    path, last = Path(room, rounds), room.start
    for t, rows in enumerate(cut):
        (heard,) = yield [_task(room, path.at, t, rows, rounds if everyone else 1, last)]
        found = combined(room, heard, last if t else None)
        last = last + found if clips_around(room) else found
        path.step(last)
    return path.found(room.word("average", "all"))


def algorithm_2_convex(room: Room) -> Steps:
    """Algorithm 2 for convex losses as printed: all data in every round, advanced composition, the averaged iterate.

    Guarantee: (epsilon, delta) over all rounds; unit: what a row is; neighbours: replace it.
    Source: Tao, Wu, Cheng, Wang 2022, Algorithm 2 and Theorem 5.
    """
    rounds = rounds_of(room)
    return (yield from _printed(room, [range(room.n)] * rounds, rounds, "all"))


def algorithm_2_strong(room: Room) -> Steps:
    """Algorithm 2 for strongly convex losses as printed: disjoint batches, each with the whole claim, the last iterate.

    Guarantee: (epsilon, delta), for a row is in one batch; unit: what a row is; neighbours: replace it.
    Source: Tao, Wu, Cheng, Wang 2022, Algorithm 2 and Theorem 7.
    """
    rounds = rounds_of(room)
    return (yield from _printed(room, _batches(room, rounds), 1, "last"))


def _printed(room: Room, batches: list[range], rounds: int, average: str) -> Steps:
    room = bounded_by_theory(room, len(batches))
    path = Path(room, len(batches))
    for t, batch in enumerate(batches):
        count = groups_count(room.dimension, FAILURE, len(batch))
        cut = [range(batch.start + part.start, batch.start + part.stop) for part in runs(len(batch), count)]
        how = printed_bound(room, len(batch), count, rounds)
        path.step(noisy_median(room, (yield from group_sums(room, cut, how, path.at, t))))
    return path.found(average)


def _task(room: Room, theta: Floats, t: int, rows: range, rounds: int, last: Floats) -> Task:
    if room.arm.trust is Trust.CLEAR:
        return room.task(theta=theta, round=t, rows=rows)
    if room.arm.trust in SUMMED:
        task = curator_task(room, len(rows), rounds, theta=theta, round=t, rows=rows)
        return replace(task, centre=np.ascontiguousarray(last)) if clips_around(room) else task
    assert room.epsilon is not None
    if room.delta is not None:
        return local_task(room, len(rows), theta=theta, round=t, rows=rows, rounds=rounds)
    level: Decimal = share(room.epsilon, rounds)
    return local_task(room, len(rows), theta=theta, round=t, rows=rows, epsilon=level)


def _batches(room: Room, rounds: int) -> list[range]:
    """Disjoint runs of floor(n / T) rows; what is over is not used, as printed."""
    size = room.n // rounds
    if not size:
        raise StudyError(f"{room.arm.name}: expected at least {rounds} rows for {rounds} disjoint batches")
    return [range(t * size, (t + 1) * size) for t in range(rounds)]


class Path:
    """The iterates of a block of repetitions, and their running sums."""

    def __init__(self, room: Room, rounds: int) -> None:
        self._radius = 1.0 if room.study.problem.bound is None else float(room.study.problem.bound)
        usual = "none" if room.study.problem.bound is None else "ball"
        self._project = PROJECTIONS[room.word("project", usual)]
        self._step, self._ridge = step_of(room, rounds), room.number("ridge", 0.0)
        self.at = self._project(room.start, self._radius)
        self._kept: list[Floats] = []

    def step(self, gradient: Floats) -> None:
        """One step against a gradient."""
        self.at = self._project(self.at - self._step * (gradient + self._ridge * self.at), self._radius)
        self._kept.append(self.at)

    def found(self, average: str) -> Found:
        """The iterate, or the average of some."""
        first = {"all": 0, "half": len(self._kept) // 2, "last": len(self._kept) - 1}[average]
        chosen = np.stack(self._kept[first:])
        theta = chosen.sum(axis=0) / len(chosen)
        length = np.sqrt((theta * theta).sum(axis=1))
        return Found(
            theta, length >= self._radius * ON_BOUNDARY if self._project is PROJECTIONS["ball"] else length < 0
        )
