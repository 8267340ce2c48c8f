"""How much of a contribution an arm lets through: the threshold that its rule gives, from public constants alone."""

import math
from decimal import Decimal

from protocol.decimals import decimal
from protocol.numeric import numeric_channel
from protocol.record_terms import CLIP, L2, LINF, SUMS, Bounded, moves
from protocol.strict import StudyError
from protocol.trust import Trust
from server.algorithms.steps import Room
from server.mechanisms.composition import exact_noise_multiplier
from server.mechanisms.rounds import ROUNDS
from server.task_shares import counted_on
from server.thresholds import bound_threshold, local_threshold, mse_threshold, paper_threshold

FAILURE = 0.05  # xi, the probability with which a bound may fail
DIGITS = 12


def central_bound(
    room: Room, n: int, rounds: int = 1, rule: str = "mse", kind: str = SUMS, norm: str | None = None
) -> Bounded:
    """How contributions of n rows are bounded in each of `rounds` releases that share the claim.

    Where the arm gives no number, `rule` or the one it names gives a threshold a coordinate; in length it is sqrt(d)
    times that. `shape`, `norm` and `rotate` are the arm's; by default values are clipped, each coordinate of its own.
    """
    shape, norm = room.word("shape", CLIP), norm or room.word("norm", LINF)
    factor = math.sqrt(room.dimension) if norm == L2 else 1.0
    per_unit = moves(room.unit) * math.sqrt(room.dimension) * noise_multiplier(room, rounds) / n
    threshold = _given(room)
    if threshold is None:
        moment, tail = assumed(room)
        name = room.word("threshold", rule)
        if name == "paper":
            level, failing = _level(room)
            threshold = paper_threshold(moment, tail, n, level, failing, FAILURE)
        elif name == "bound":
            threshold = bound_threshold(moment, tail, n, per_unit, FAILURE, shape)
        else:
            threshold = mse_threshold(moment, tail, n, per_unit, shape)
        threshold *= factor
    return Bounded(rounded(threshold), norm, shape, kind, rounds, rotate=room.word("rotate", "none") != "none")


def local_bound(room: Room, n: int, epsilon: Decimal, **parameters: Decimal) -> Bounded:
    """How contributions of n holders are bounded before each randomises its own, in `rounds` that share `epsilon`."""
    shape, threshold = room.word("shape", CLIP), _given(room)
    parameters |= {} if room.delta is None else {"delta": room.delta}
    unit = numeric_channel(room.arm.mechanism, {"epsilon": epsilon, "threshold": Decimal(1), **parameters})
    if threshold is None:
        moment, tail = assumed(room)
        worst = unit.worst_mse / (1.0 if unit.norm == L2 else unit.dimension)
        threshold = local_threshold(moment, tail, n, worst, shape)
        threshold *= math.sqrt(unit.dimension) if unit.norm == L2 else 1.0
    return Bounded(rounded(threshold), unit.norm, shape, rounds=int(parameters.get("rounds", 1)))


def noise_multiplier(room: Room, rounds: int) -> float:
    """stddev / sensitivity of each release of the arm's mechanism; of noise in shares if all rows add theirs.

    Raises StudyError.
    """
    assert room.epsilon is not None and room.delta is not None
    try:
        if room.arm.trust is Trust.DISTRIBUTED:
            honest = float(counted_on(room.arm)["honest"])
            return exact_noise_multiplier(room.epsilon, room.delta, rounds) / math.sqrt(honest)
        return ROUNDS[room.arm.mechanism](room.epsilon, room.delta, rounds)
    except (KeyError, ValueError) as error:
        raise StudyError(f"{room.arm.name}: {error}") from None


def assumed(room: Room) -> tuple[float, float]:
    """(u, v) that the study assumes of contributions. Raises StudyError where it says none."""
    law = room.study.records
    if law is None or law.moment is None or law.tail is None:
        raise StudyError(f"{room.arm.name}: expected [records] tail and moment, or a threshold > 0 of the arm")
    return float(law.moment) if room.moment is None else room.moment, float(law.tail)


def rounded(threshold: float) -> float:
    """A threshold as tasks spell it: twelve digits."""
    return float(decimal(f"{threshold:.{DIGITS}g}", "threshold"))


def _given(room: Room) -> float | None:
    value = room.arm.get("threshold")
    return float(value) if isinstance(value, Decimal) else None


def _level(room: Room) -> tuple[float, float]:
    assert room.epsilon is not None and room.delta is not None
    return float(room.epsilon), float(room.delta)
