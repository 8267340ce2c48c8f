"""Means of heavy-tailed records: truncated or clipped, by groups, as printed and better."""

from collections.abc import Generator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np

from protocol.messages import Task
from protocol.record_terms import CLIP, TRUNCATE, Bounded, bounded
from protocol.strict import StudyError
from protocol.trust import Trust
from server.aggregators.arithmetic import median_rows
from server.aggregators.median_of_means import runs
from server.algorithms.aggregates import USUAL_STEPS, clips_around, combined, curator_bound, curator_task
from server.algorithms.bounds import FAILURE, assumed, central_bound, rounded
from server.algorithms.local import local_task
from server.algorithms.steps import SUMMED, Floats, Found, Room, Steps, mean_of_rows
from server.evidence import Heard
from server.mechanisms.composition import split
from server.thresholds import group_threshold, groups_count


def mean(room: Room) -> Steps:
    """The mean of bounded records: theta = -(mean of bounded gradients at 0), with noise once, or in every report.

    Where the arm names an `aggregate`, that takes the place of the mean: see `server.algorithms.aggregates`.

    Guarantee: central and distributed (epsilon, delta), local epsilon or (epsilon, delta); unit: what a row is, a
    record or a holder; neighbours: replace it.
    Source: Tao, Wu, Cheng, Wang 2022, Algorithm 1; with clipping, the analytic Gaussian mechanism and a threshold that
    minimises the error: derived, see docs/HEAVY_TAILS.md.
    """
    if room.arm.trust is Trust.CLEAR:
        heard = yield from clear_values(room)
        return found(-combined(room, heard))
    if clips_around(room):
        return (yield from clipped_mean(room))
    summed = room.arm.trust in SUMMED
    (heard,) = yield [curator_task(room, room.n) if summed else local_task(room, room.n)]
    return found(-combined(room, heard))


def clipped_mean(room: Room) -> Steps:
    """theta <- theta + mean of x - theta, clipped to the threshold in length, from 0: each step is one exact sum.

    `steps` (3) releases share the claim, and the centre of each is what the last one released.

    Guarantee: (epsilon, delta) over all steps; unit: what a row is; neighbours: replace it.
    Source: Karimireddy, He, Jaggi 2021; noise: derived, see docs/HEAVY_TAILS.md.
    """
    steps, theta = room.whole("steps", USUAL_STEPS), room.start
    how = curator_bound(room, room.n, steps)
    for t in range(steps):
        (heard,) = yield [room.task(how, theta=theta, round=t)]
        theta = theta - combined(room, heard)
    return found(theta)


def algorithm_1(room: Room) -> Steps:
    """Algorithm 1 as printed: truncate to zero at the printed level, classical Gaussian noise.

    Guarantee: (epsilon, delta) where the classical mechanism holds; unit and neighbours as `mean`.
    Source: Tao, Wu, Cheng, Wang 2022, Algorithm 1.
    """
    how = central_bound(room, room.n, rule="paper")
    (heard,) = yield [room.task(replace(how, shape=TRUNCATE))]
    return found(-room.means(heard))


def algorithm_3(room: Room) -> Steps:
    """Algorithm 3 as printed: the median, by coordinate, of the means of m groups, and noise on it.

    m = ceil(4 log(2d / xi)) groups; Gaussian noise of sensitivity 2 tau sqrt(d) / g, g the size of the smallest group.
    `groups`, `shape` and `threshold` can be said otherwise.

    Guarantee: (epsilon, delta); unit and neighbours as `mean`.
    Source: Tao, Wu, Cheng, Wang 2022, Algorithm 3; groups of unequal size: derived, see docs/HEAVY_TAILS.md.
    """
    return (yield from groups_then_noise(room))


def groups_then_noise(room: Room) -> Steps:
    """What `algorithm_3` does, with the noise of the arm's mechanism."""
    cut = runs(room.n, min(room.n, room.whole("groups", groups_count(room.dimension, FAILURE, room.n))))
    how = printed_bound(room, room.n, len(cut))
    return found(-noisy_median(room, (yield from group_sums(room, cut, how, None, 0))))


def median_of_means(room: Room) -> Steps:
    """The median, by coordinate, of noisy means of groups: each group's sum is released by itself.

    A row is in one group, so all releases together cost what one does, and the median is free. The noise of the result
    is 1.25 sqrt(m) / m of what Algorithm 3 adds. `groups` is 2f + 2 where f holders lie, an even number. In clear there
    is no noise. Groups of which nobody answered are left out, but where that is what a claim hides: 0 and noise then.
    Without a curator each group's sum is opened in a session of its own, with noise in shares for its rows.

    Guarantee: (epsilon, delta) by parallel composition; unit and neighbours as `mean`. Without a curator each group has
    its own honest rows.
    Source: derived, see docs/HEAVY_TAILS.md.
    """
    count = room.whole("groups", groups_count(room.dimension, FAILURE, room.n))
    cut = runs(room.n, min(count, room.n))
    if room.arm.trust is Trust.CLEAR:
        values = (yield from clear_values(room)).collected.values
        assert values is not None
        cut = runs(len(values[0]), min(count, len(values[0])))
        means = np.stack([[mean_of_rows(each[part.start : part.stop]) for each in values] for part in cut])
        return found(-medians(means))
    how = central_bound(room, min(map(len, cut)))
    heard = yield [room.task(how, rows=part) for part in cut]
    means = np.stack([room.means(each) for each in heard if room.counts(each)])
    return found(-medians(means))


def clear_values(room: Room) -> Generator[list[Task], list[Heard], Heard]:
    """Contributions as they are; bounded where the arm says a threshold, a number."""
    given, shape = number_only(room), room.word("shape", CLIP)
    (heard,) = yield [room.task()]
    values = heard.collected.values
    assert values is not None
    if given is None:
        return heard
    within = np.stack([bounded(each, Bounded(given, shape=shape)) for each in values])
    return replace(heard, collected=replace(heard.collected, values=within))


def number_only(room: Room) -> float | None:
    """The threshold that the arm says, where there is no rule for one. Raises StudyError for a rule."""
    value = room.arm.get("threshold")
    if isinstance(value, Decimal):
        return float(value)
    if value is not None:
        raise StudyError(f"{room.arm.name}: expected a number as threshold, got {value!r}: there are no rules here")
    return None


def medians(means: Floats) -> Floats:
    """Medians by coordinate of group means (groups, repetitions, d)."""
    return np.stack([median_rows(means[:, index]) for index in range(means.shape[1])])


def printed_bound(room: Room, n: int, groups: int, rounds: int = 1) -> Bounded:
    """tau of Algorithm 3, by default truncated to zero, in each of `rounds` releases that share the claim."""
    assert room.epsilon is not None and room.delta is not None
    threshold = number_only(room)
    if threshold is None:
        moment, tail = assumed(room)
        level, failing = float(room.epsilon), float(room.delta)
        if rounds > 1:
            level, failing = split(room.epsilon, room.delta, rounds)
        threshold = group_threshold(moment, tail, n, level, failing, room.dimension, groups)
    return Bounded(rounded(threshold), shape=room.word("shape", TRUNCATE), rounds=rounds)


def group_sums(
    room: Room, cut: list[range], how: Bounded, theta: Floats | None, round: int
) -> Generator[list[Task], list[Heard], list[Heard]]:
    """Exact sums of groups, which only a curator sees; tasks say of how many groups the median will be.

    Where these are a batch of the rows, also of how many rows: two batches can begin with the same group, and a row of
    it is in two medians, for which it has to pay one by one.
    """
    rows = cut[-1].stop - cut[0].start
    more: dict[str, Any] = {"groups": Decimal(len(cut))}
    more |= {} if rows == room.n else {"batch": Decimal(rows)}
    return (yield [room.task(how, theta=theta, round=round, rows=part, **more) for part in cut])


def noisy_median(room: Room, heard: list[Heard]) -> Floats:
    """The median of the means of those of each group who answered, with the noise that Algorithm 3 adds to it.

    Noise is for the smallest group, as it answered: each sum is brought to its size, c S_g / c_g rounded down, so that
    a row moves it by no more than S_g. The two middle values are added, on half of the grid, where they are integers.

    Guarantee: (epsilon, delta) over the rounds of the claim; unit: what a row is; neighbours: replace it.
    Source: Tao, Wu, Cheng, Wang 2022, Algorithm 3; in integers: derived, see docs/PRIVACY.md.
    """
    power, counts = heard[0].task.exponent, [len(each.collected.rows) for each in heard]
    assert power is not None
    least, noisy = min(count for count in counts if count), []
    for index in range(room.cell.repetitions):
        even = []
        for each, count in zip(heard, counts, strict=True):
            if each.collected.sums is not None and count:
                sums = np.ldexp(each.collected.sums[index], -power)
                even.append([least * int(value) // count for value in sums])
        middle = [sorted(column) for column in zip(*even, strict=True)]
        exact = [column[(len(column) - 1) // 2] + column[len(column) // 2] for column in middle]
        total, divisor = room.released(heard, index, exact, power - 1, least)
        noisy.append(total / divisor)
    return np.stack(noisy)


def found(theta: Floats) -> Found:
    """What an algorithm found that projects on nothing."""
    return Found(theta, np.zeros(len(theta), dtype=np.bool_))
