"""Descent whose threshold follows a quantile of gradients, told by one coordinate more of every noisy sum."""

import math
from decimal import Decimal

import numpy as np

from protocol.decimals import decimal
from protocol.record_terms import CLIP, L2, LINF, Bounded
from protocol.strict import StudyError
from server.algorithms.bounds import noise_multiplier, rounded
from server.algorithms.descent import Path, descent
from server.algorithms.side_by_side import side_by_side
from server.algorithms.steps import Room, Steps
from server.algorithms.theory import rounds_of
from server.mechanisms.threshold_choice import EXCEEDING
from server.mechanisms.threshold_fits import adaptive_step

WEIGHT = 0.2  # of a row beyond the threshold, relative to how far gradients can move their sum: 4 % of the budget
FIRST, RATE = Decimal(1), Decimal(4)
LEAST, MOST = 2.0**-20, 2.0**40


def adaptive_descent(room: Room) -> Steps:
    """Descent on all rows in every round, B <- B exp(-rate (b - quantile)), b the noisy share of rows within B.

    A sum has d + 1 coordinates: the last adds `WEIGHT` times the sensitivity of the others for a row beyond B, and the
    noise is that of all together. So T rounds share one claim, composed exactly.

    Guarantee: (epsilon, delta) over all rounds; unit: what a row is; neighbours: replace it.
    Source: Andrew, Thakkar, McMahan, Ramaswamy 2021; one sum for both: derived, see docs/HEAVY_TAILS.md.
    """
    if room.word("batches", "all") != "all":
        raise StudyError(f"{room.arm.name}: expected batches = 'all' beside an adaptive threshold")
    return (yield from side_by_side(room, _one))


def any_descent(room: Room) -> Steps:
    """`descent`, or `adaptive_descent` where the arm's threshold is "adaptive"; guarantees are theirs."""
    return (yield from (adaptive_descent if room.word("threshold", "") == "adaptive" else descent)(room))


def usual_quantile(room: Room, rounds: int) -> float:
    """The share of rows that the threshold of a mean with this noise leaves within: 1 - 1.4 m sqrt(d) / n."""
    beyond = 2 * EXCEEDING * noise_multiplier(room, rounds) * math.sqrt(room.dimension) / room.n
    return 1 - min(0.5, beyond)


def _one(room: Room) -> Steps:
    rounds = rounds_of(room)
    path = Path(room, rounds)
    first, rate = room.arm.get("first") or FIRST, room.arm.get("rate") or RATE
    quantile = decimal(rounded(room.number("quantile", usual_quantile(room, rounds))), "quantile")
    assert isinstance(first, Decimal) and isinstance(rate, Decimal)
    threshold = float(first)
    for t in range(rounds):
        how = _bound(room, threshold, rounds)
        counted = decimal(how.counted, "counted")
        ask = room.task(how, theta=path.at, round=t, counted=counted, first=first, rate=rate, quantile=quantile)
        (heard,) = yield [ask]
        means = room.means(heard)
        path.step(means[:, :-1])
        within = 1 - float(means[0, -1]) / how.counted
        threshold = float(np.clip(adaptive_step(threshold, within, float(quantile), float(rate)), LEAST, MOST))
    return path.found(room.word("average", "half"))


def _bound(room: Room, threshold: float, rounds: int) -> Bounded:
    norm = room.word("norm", LINF)
    whole, moved = rounded(threshold), 2 * (1.0 if norm == L2 else math.sqrt(room.dimension))
    return Bounded(
        whole, norm, room.word("shape", CLIP), rounds=rounds, counted=rounded(whole * min(0.5, WEIGHT * moved))
    )
