"""What is made of a round's answers where some of them may be lies: the arm's aggregator in the place of a mean."""

import numpy as np

from protocol.aggregates import CLIPPING, TRIMMED
from protocol.coins import normal
from protocol.record_terms import L2, ROWS, SUMS, Bounded
from protocol.trust import Trust
from server.aggregators import AGGREGATORS
from server.aggregators.base import Options
from server.algorithms.bounds import central_bound, noise_multiplier
from server.algorithms.steps import Floats, Room
from server.evidence import Heard

USUAL_STEPS = 3  # of centred clipping


def aggregate_of(room: Room) -> str:
    """The name of the arm's aggregator: the mean, if it says none."""
    return room.word("aggregate", "mean")


def clips_around(room: Room) -> bool:
    """Whether holders clip what is left of their contributions beside a centre that is released already."""
    return room.arm.trust is Trust.CENTRAL and aggregate_of(room) == CLIPPING


def curator_bound(room: Room, n: int, rounds: int = 1) -> Bounded:
    """`central_bound` for the arm's aggregator: rows for a trimmed mean, lengths for centred clipping, else sums.

    Raises StudyError where a real curator would have to add noise that is made of numbers, before anybody pays.
    """
    if aggregate_of(room) == TRIMMED:
        room.curator_words(0, 0, 1)
        kept = n - 2 * options_of(room, n).trim
        return central_bound(room, kept, rounds, kind=ROWS)
    return central_bound(room, n, rounds, kind=SUMS, norm=L2 if clips_around(room) else None)


def combined(room: Room, heard: Heard, start: Floats | None = None) -> Floats:
    """One vector a repetition out of the contributions of those who answered, shape (repetitions, d).

    `start` (repetitions, d): where centred clipping starts, a last round's output; None: the coordinate median.

    Guarantee: of clear and randomised reports this is post-processing. A curator's trimmed mean has Gaussian noise for
    its sensitivity 2 threshold sqrt(d) / (n - 2t) in length: (epsilon, delta) over the task's rounds; unit: what a row
    is; neighbours: replace it. In simulation only. Means and centred clipping are noisy sums: see `Room.sums`.
    """
    name = aggregate_of(room)
    if name == "mean" or clips_around(room):
        return room.means(heard)
    values = heard.collected.values
    assert values is not None
    function = AGGREGATORS[name].function
    starts = [None] * len(values) if start is None or name != CLIPPING else [tuple(each) for each in start.tolist()]
    count = len(heard.collected.rows)
    found = np.stack([function(each, options_of(room, count, at)) for each, at in zip(values, starts, strict=True)])
    return found + _noise(room, heard) if room.arm.trust is Trust.CENTRAL else found


def options_of(room: Room, count: int, start: tuple[float, ...] | None = None) -> Options:
    """The options of the arm's aggregator for `count` reports: shares of them become numbers, rounded down."""
    radius = room.number("radius", 0.0)
    return Options(
        groups=min(count, room.whole("groups", 1)),
        trim=_share(room, "trim", count),
        faulty=_share(room, "faulty", count),
        radius=radius or None,
        steps=room.whole("steps", USUAL_STEPS),
        start=start,
    )


def _share(room: Room, option: str, count: int) -> int:
    return int(room.number(option, 0.0) * count + 1e-9)


def _noise(room: Room, heard: Heard) -> Floats:
    how, sensitivity = Bounded.of(heard.task.menu[0]), AGGREGATORS[aggregate_of(room)].sensitivity
    assert sensitivity is not None
    count, dimension = len(heard.collected.rows), room.dimension
    moved = sensitivity(count, dimension, how.threshold, options_of(room, count)).l2
    stddev = noise_multiplier(room, how.rounds) * moved
    each = range(room.cell.repetitions)
    return np.stack([stddev * normal(room.curator_words(index, heard.task.round, dimension)) for index in each])
