"""Thresholds for records whose tails nobody knows: chosen by looking, at a part of the claim that is accounted."""

import math
from collections.abc import Callable, Generator
from dataclasses import replace
from decimal import ROUND_FLOOR, Context, Decimal
from itertools import pairwise
from typing import Any

import numpy as np

from protocol.decimals import add, decimal
from protocol.messages import Task
from protocol.record_arms import EXCEEDANCES
from protocol.record_terms import L2, Bounded
from protocol.strict import StudyError
from protocol.threshold_grid import ThresholdGrid
from protocol.trust import Trust
from server.algorithms.bounds import noise_multiplier, rounded
from server.algorithms.local import worst_variance
from server.algorithms.side_by_side import side_by_side
from server.algorithms.steps import Room, Steps
from server.evidence import Heard
from server.mechanisms.exact_choices import HISTOGRAM, THRESHOLD
from server.mechanisms.threshold_choice import DECAY, usual_target
from server.mechanisms.threshold_fits import debiased_fractions, fit_tail, local_choice, local_target
from server.release_record import in_real_units

# A rule for one repetition: asks, pays, and leaves a room with the rest of the claim, and a number as its threshold.
Rule = Callable[[Room], Generator[list[Task], list[Heard], Room]]

GRID = ThresholdGrid(-10, 50)
LOCAL_GRID = ThresholdGrid(-4, 26)
SHARE, FAILURE = Decimal("0.4"), 0.1
RESERVED = Decimal("0.4")  # of holders, who say one bit each
DOUBT = 0.75  # standard deviations of a share that may lie beyond: else noise at large thresholds decides
LEAST_EXCESS = 0.05  # of a tail's index over 1, below which there is no mean
POWER, ONE = -20, 1 << 20  # a row, in units of the grid on which counts are compared and noised
_DOWN = Context(prec=28, rounding=ROUND_FLOOR)


def looking(algorithm: Callable[[Room], Steps]) -> Callable[[Room], Steps]:
    """The algorithm, after a choice of its threshold where the arm asks for one; repetitions choose for themselves.

    Guarantee: the arm's, as the sum of what the choice and the algorithm claim, each in tasks of its own; locally every
    holder answers one of the two.
    """

    def chosen(room: Room) -> Steps:
        rule = RULES[room.arm.trust, room.word("threshold", "")]
        return (yield from algorithm((yield from rule(room))))

    def steps(room: Room) -> Steps:
        looks = (room.arm.trust, room.word("threshold", "")) in RULES
        return (yield from (side_by_side(room, chosen) if looks else algorithm(room)))

    return steps


def parts(claim: Decimal, share: Decimal) -> tuple[Decimal, Decimal]:
    """A claim in two parts that add up to it exactly: `share` of it, rounded down to 28 digits, and the rest.

    >>> parts(Decimal("0.5"), Decimal("0.4"))
    (Decimal('0.20'), Decimal('0.30'))
    """
    first = _DOWN.multiply(claim, share)
    return first, add(claim, -first)


def by_selection(room: Room) -> Generator[list[Task], list[Heard], Room]:
    """The exponential mechanism on 2^(j/2), weights B^-2, for a threshold that a certain number of rows exceed.

    Guarantee: epsilon = choice_share of the arm's, the rest of it, and delta, is left; unit: what a row is; neighbours:
    replace it. Source: McSherry, Talwar 2007; weights and target derived, see docs/HEAVY_TAILS.md.
    """
    part, rest = _parts(room)
    aim = usual_target(_effective(rest), part, room.number("choice_failure", FAILURE))
    target = decimal(rounded(aim), "target")
    weights = {"decay": DECAY} if room.word("choice_weight", "square") == "square" else {}
    heard, counts = yield from _counts(room, part, target=target, **weights)
    scores = [ONE * count - round(ONE * target) for count in counts]
    choice = room.chosen(heard, 0, scores, POWER, ONE, THRESHOLD, **weights)
    return _decided(rest, float(GRID.thresholds[choice.places[0]]))


def by_histogram(room: Room) -> Generator[list[Task], list[Heard], Room]:
    """The threshold that the wanted share of rows exceeds, on the line of the tail that a noisy histogram shows.

    Not that of least error for the tail's u and v: a fitted u explodes as v nears the index. At most twice the least
    threshold that, by the same noisy counts, no more rows exceed than `by_selection` wants; that one without a tail.

    A row that is replaced changes two bins by 1.

    Guarantee: as `by_selection`, by Laplace noise. Source: derived, see docs/HEAVY_TAILS.md.
    """
    part, rest = _parts(room)
    heard, counts = yield from _counts(room, part, bins=Decimal(1))
    level, thresholds = float(part), GRID.thresholds
    bins = [ONE * (above - beyond) for above, beyond in pairwise([*counts, 0])]
    histogram = in_real_units(room.chosen(heard, 0, bins, POWER, ONE, HISTOGRAM))
    tail = fit_tail(histogram, thresholds, room.n, level)
    effective, above = _effective(rest), np.cumsum(histogram[::-1])[::-1]
    few = np.flatnonzero(above <= usual_target(effective, part))
    threshold = float(thresholds[few[0] if len(few) else -1])
    if tail is not None:
        share = min(0.5, 2 * effective / room.n * math.sqrt(max(tail.index - 1, LEAST_EXCESS)))
        threshold = min(tail.threshold(share), 2 * threshold)
    return _decided(rest, threshold)


def by_bits(room: Room) -> Generator[list[Task], list[Heard], Room]:
    """Locally: a reserved share of holders say by randomised response whether they are within one threshold of a grid.

    A row's number says which, so that says nothing of it. The others report at the threshold that comes out.

    Guarantee: the arm's epsilon for each holder, who answers once; unit: what a row is; neighbours: replace it.
    Source: Warner 1965; derived, see docs/HEAVY_TAILS.md.
    """
    assert room.epsilon is not None
    share = room.arm.get("choice_share")
    reserved = int(room.n * (share if isinstance(share, Decimal) else RESERVED))
    if not LOCAL_GRID.width <= reserved < room.n:
        raise StudyError(f"{room.arm.name}: expected {LOCAL_GRID.width} rows or more for bits, got {reserved}")
    bits = replace(room, arm=replace(room.arm, mechanism="duchi"), delta=None, rows=range(reserved))
    ends = Decimal(LOCAL_GRID.lowest), Decimal(LOCAL_GRID.highest)
    (heard,) = yield [bits.task(Bounded(1.0), dimension=Decimal(1), lowest=ends[0], highest=ends[1])]
    values = heard.collected.values
    assert values is not None
    points = heard.collected.rows % LOCAL_GRID.width
    reports = np.bincount(points, minlength=LOCAL_GRID.width)
    if not reports.all():
        said = f"{LOCAL_GRID.width} thresholds, got none about {int((reports == 0).sum())}"
        raise StudyError(f"{room.arm.name}: expected an answer about each of {said}: ask more holders")
    within = np.bincount(points[values[0, :, 0] > 0], minlength=LOCAL_GRID.width)
    kept = 1 / (1 + math.exp(-float(room.epsilon)))
    fractions = debiased_fractions(within, reports, kept)
    doubt = DOUBT / (2 * (2 * kept - 1) * math.sqrt(reports.min()))
    exceeding = min(0.9, local_target(worst_variance(room), room.n - reserved) + doubt)
    threshold = local_choice(fractions, reports, LOCAL_GRID.thresholds, exceeding)
    return replace(_decided(room, threshold), rows=range(reserved, room.n))


def _parts(room: Room) -> tuple[Decimal, Room]:
    """The level of the choice, and the room that is left. Raises StudyError where no choice can be made."""
    assert room.epsilon is not None
    share = room.arm.get("choice_share")
    part, rest = parts(room.epsilon, share if isinstance(share, Decimal) else SHARE)
    return part, replace(room, epsilon=rest)


def _counts(room: Room, part: Decimal, **more: Any) -> Generator[list[Task], list[Heard], tuple[Heard, list[int]]]:
    """How many rows exceed each threshold: exact, for a curator; `more` says what is chosen by it.

    So two ways to choose are two tasks, which rows pay for one by one.
    """
    curator = replace(room, arm=replace(room.arm, mechanism=EXCEEDANCES), delta=None)
    ends = Decimal(GRID.lowest), Decimal(GRID.highest)
    (heard,) = yield [curator.task(Bounded(1.0), epsilon=part, lowest=ends[0], highest=ends[1], **more)]
    assert heard.collected.sums is not None
    return heard, [int(count) for count in heard.collected.sums[0]]


def _effective(room: Room) -> float:
    """The noise multiplier of a sum of all rows that would do to each coordinate what the arm's noise does.

    sqrt(d) of it is the noise of d coordinates; another sqrt(d) is between rows whose coordinates exceed together (1)
    and one by one (d). In T disjoint batches it is T times that of one.
    """
    rounds = room.whole("rounds", 20) if room.arm.estimator == "descent" else 1
    everyone = room.word("batches", "all") == "all"
    multiplier = noise_multiplier(room, rounds if everyone else 1)
    return multiplier * room.dimension * (1 if everyone else rounds)


def _decided(room: Room, threshold: float) -> Room:
    """The room with a number as its arm's threshold: of each coordinate, or sqrt(d) times it of the length."""
    factor = math.sqrt(room.dimension) if room.word("norm", "linf") == L2 else 1.0
    options = dict(room.arm.options) | {"threshold": decimal(rounded(threshold * factor), "threshold")}
    return replace(room, arm=replace(room.arm, options=tuple(sorted(options.items()))))


RULES: dict[tuple[Trust | None, str], Rule] = {
    (Trust.CENTRAL, "private"): by_selection,
    (Trust.CENTRAL, "histogram"): by_histogram,
    (Trust.LOCAL, "private"): by_bits,
}
