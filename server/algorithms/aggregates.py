"""What is made of a round's answers where some of them may be lies: the arm's aggregator in the place of a mean."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from protocol.aggregates import CLIPPING, TRIMMED
from protocol.arms import Arm
from protocol.messages import Task
from protocol.numeric.coordinates import Coordinates
from protocol.record_terms import L2, ROWS, SUMS, Bounded, channel_of, sum_exponent
from protocol.trust import Trust
from server.aggregators import AGGREGATORS
from server.aggregators.base import Options
from server.algorithms.bounds import central_bound
from server.algorithms.steps import Floats, Room
from server.evidence import Heard

BY_COORDINATE = frozenset({"coordinate-median", "median-of-means", "trimmed-mean"})
USUAL_STEPS = 3  # of centred clipping


def aggregate_of(room: Room) -> str:
    """The name of the arm's aggregator: the mean, if it says none."""
    return room.word("aggregate", "mean")


def clips_around(room: Room) -> bool:
    """Whether holders clip what is left of their contributions beside a centre that is released already."""
    return room.arm.trust is Trust.CENTRAL and aggregate_of(room) == CLIPPING


def curator_bound(room: Room, n: int, rounds: int = 1) -> Bounded:
    """`central_bound` for the arm's aggregator: rows for a trimmed mean, lengths for centred clipping, else sums."""
    if aggregate_of(room) == TRIMMED:
        kept = n - 2 * options_of(room.arm, n).trim
        return central_bound(room, kept, rounds, kind=ROWS)
    return central_bound(room, n, rounds, kind=SUMS, norm=L2 if clips_around(room) else None)


def curator_task(room: Room, n: int, rounds: int = 1, **where: Any) -> Task:
    """What n rows are asked for a curator's aggregate, `where` as `Room.task` takes it; a trimmed one says how much.

    So two shares of rows that are left out are two tasks, which rows pay for one by one.
    """
    share = room.arm.get("trim")
    more: dict[str, Any] = {"trim": share} if aggregate_of(room) == TRIMMED and isinstance(share, Decimal) else {}
    return room.task(curator_bound(room, n, rounds), **where, **more)


def combined(room: Room, heard: Heard, start: Floats | None = None) -> Floats:
    """One vector a repetition out of the contributions of those who answered, shape (repetitions, d).

    Medians and trimmed means of reports that have some coordinates each are of those that have a coordinate.
    `start` (repetitions, d): where centred clipping starts, a last round's output; None: the coordinate median.

    Guarantee: of clear and randomised reports this is post-processing. A curator's trimmed mean has Gaussian noise:
    (epsilon, delta) over the task's rounds; unit: what a row is; neighbours: replace it. So have means and centred
    clipping, which are noisy sums.
    """
    name = aggregate_of(room)
    if name == "mean" or clips_around(room):
        return room.means(heard)
    if room.arm.trust is Trust.CENTRAL:
        return np.stack([_trimmed(room, heard, index) for index in range(room.cell.repetitions)])
    values, sent = heard.collected.values, _sent(heard.task)
    assert values is not None
    if sent < 1.0 and name in BY_COORDINATE:
        return np.stack([_of_senders(room, each, sent) for each in values])
    starts = [None] * len(values) if start is None or name != CLIPPING else [tuple(each) for each in start.tolist()]
    return np.stack([_vector(room, each, at) for each, at in zip(values, starts, strict=True)])


def options_of(arm: Arm, count: int, start: tuple[float, ...] | None = None) -> Options:
    """The options of an arm's aggregator for `count` reports: shares of them become numbers, rounded down."""

    def number(option: str, usual: int) -> Decimal:
        value = arm.get(option)
        return value if isinstance(value, Decimal) else Decimal(usual)

    return Options(
        groups=min(count, int(number("groups", 1))),
        trim=int(number("trim", 0) * count),
        faulty=int(number("faulty", 0) * count),
        radius=float(number("radius", 0)) or None,
        steps=int(number("steps", USUAL_STEPS)),
        start=start,
    )


def _vector(room: Room, reports: Floats, start: tuple[float, ...] | None = None) -> Floats:
    return AGGREGATORS[aggregate_of(room)].function(reports, options_of(room.arm, len(reports), start))


def _sent(task: Task) -> float:
    """The share of its coordinates that a local report has."""
    channel = channel_of(task.menu[0]) if task.trust is Trust.LOCAL else None
    return channel.terms.coordinates / channel.dimension if isinstance(channel, Coordinates) else 1.0


def _of_senders(room: Room, reports: Floats, sent: float) -> Floats:
    """Coordinate by coordinate over the reports that have it, whose others are 0 and say nothing; shape (d,).

    What a report has was scaled for those that do not have it: that is taken back.
    """
    found = np.zeros(reports.shape[1])
    for j, column in enumerate(reports.T):
        own = column[column != 0.0]
        if len(own):
            found[j] = _vector(room, own[:, None] * sent)[0]
    return found


def _trimmed(room: Room, heard: Heard, index: int) -> Floats:
    """The sum of what is kept of each coordinate, in integers on a grid, with noise, over how many are kept.

    A row that rises by h in a coordinate lets no value of the sorted list fall, and all of them rise by h together: so
    what is kept of them rises by h at most, and the sum moves no further than a sum of all rows would.
    """
    task, values = heard.task, heard.collected.values
    assert values is not None
    how = Bounded.of(task.menu[0])
    power = sum_exponent(task, how)
    most = math.floor(Fraction(how.threshold) / Fraction(2) ** power)
    whole = np.clip(np.trunc(np.ldexp(values[index], -power)), -most, most).astype(np.int64)
    count = len(whole)
    trim = options_of(room.arm, count).trim
    exact = np.sort(whole, axis=0)[trim : count - trim].sum(axis=0)
    total, divisor = room.released([heard], index, exact.tolist(), power, count - 2 * trim)
    return total / divisor
