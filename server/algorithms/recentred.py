"""The mean of holders' means, in two stages: from a known centre, holders with many records differ little."""

import math
from dataclasses import replace

from protocol.messages import Task
from protocol.record_terms import L2, Bounded
from protocol.strict import StudyError
from protocol.trust import Trust
from server.algorithms.bounds import assumed, central_bound, local_bound, noise_multiplier
from server.algorithms.local import local_parameters, local_task, worst_variance
from server.algorithms.mean import found, mean
from server.algorithms.steps import Floats, Room, Steps
from server.thresholds import bias_constant

MANY = 10  # records of a holder, from which on two stages are better than one


def recentred_mean(room: Room) -> Steps:
    """Half of the rows for a centre c, the other half for Y - c, whose threshold falls as k^(-v/(1+v)).

    The moment E|Y|^(1+v) of a mean of k records does not fall with k where the mean is not 0, that of Y - c does. One
    stage is better with fewer than 10 records in a row, or where that moment does not fall by far more than half of the
    rows are worth (`pays`); that is what is done then, unless `recentre` is "always".

    Guarantee: the arm's, for a row is in one half; unit: what a row is, a record or a holder; neighbours: replace it.
    Source: derived, see docs/HEAVY_TAILS.md.
    """
    law, half = room.study.records, room.n // 2
    if law is None or not half:
        raise StudyError(f"{room.arm.name}: expected [records], and at least 2 rows for two stages, got {room.n}")
    how = _bound(room, half)
    moment = room.number("recentred_moment", recentred_moment(room, law.per_holder, pilot_error(room, how, half)))
    always = room.word("recentre", "many") == "always"
    if not (always or (law.per_holder >= MANY and pays(room, moment))):
        return (yield from mean(room))
    (heard,) = yield [_task(replace(room, rows=range(half)), how)]
    centre = -room.means(heard)
    rest = replace(room, rows=range(half, room.n), moment=moment)
    (heard,) = yield [_task(rest, _bound(rest, room.n - half), theta=centre, round=1)]
    return found(centre - room.means(heard))


def pays(room: Room, moment: float) -> bool:
    """Whether u falls by 4^v, or 2^v where holders randomise: twice what half of the rows are worth.

    Errors are proportional to (u / n^v)^(1/(1+v)), and to (u / n^(v/2))^(1/(1+v)) there.
    """
    most, tail = assumed(room)
    return moment * (4 if room.arm.trust is Trust.CENTRAL else 2) ** tail <= most


def recentred_moment(room: Room, per_holder: int, error: float) -> float:
    """(((2 - 1/k) u_c k^-v)^(1/(1+v)) + error)^(1+v) bounds E|Y - c|^(1+v) where c is within `error` of the mean.

    u_c = 2^(1-v) u bounds E|x - E x|^(1+v): the centring operator has norm 2 on L1 and 1 on L2.
    Source: von Bahr, Esseen 1965, Theorem 2 (the mean of k); Riesz, Thorin (u_c); derived, see docs/HEAVY_TAILS.md.
    """
    moment, tail = assumed(room)
    of_mean = (2 - 1 / per_holder) * 2 ** (1 - tail) * moment * per_holder**-tail
    return float((of_mean ** (1 / (1 + tail)) + error) ** (1 + tail))


def pilot_error(room: Room, how: Bounded, n: int) -> float:
    """The root of the worst mean squared error of a coordinate of the first stage: bias, spread and noise."""
    moment, tail = assumed(room)
    factor = math.sqrt(room.dimension) if how.norm == L2 else 1.0
    threshold = how.threshold / factor
    bias = bias_constant(how.shape, tail) * moment * threshold**-tail
    if room.arm.trust is Trust.CENTRAL:
        noise = (2 * math.sqrt(room.dimension) * noise_multiplier(room, 1) * threshold / n) ** 2
    else:
        noise = worst_variance(room) * threshold**2 / n
    return math.sqrt(bias**2 + moment * threshold ** (1 - tail) / n + noise)


def _bound(room: Room, n: int) -> Bounded:
    if room.arm.trust is Trust.CENTRAL:
        return central_bound(room, n)
    assert room.epsilon is not None
    return local_bound(room, n, room.epsilon, **local_parameters(room, room.dimension))


def _task(room: Room, how: Bounded, theta: Floats | None = None, round: int = 0) -> Task:
    if room.arm.trust is Trust.CENTRAL:
        return room.task(how, theta=theta, round=round)
    return local_task(room, room.n, theta=theta, round=round, how=how)
