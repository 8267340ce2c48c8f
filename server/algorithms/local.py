"""Tasks whose reports are randomised by their holders."""

from decimal import Decimal

from protocol.messages import Runs, Task
from protocol.numeric import numeric_channel
from protocol.record_terms import L2, Bounded
from server.algorithms.bounds import local_bound
from server.algorithms.steps import Floats, Room


def local_parameters(room: Room, dimension: int) -> dict[str, Decimal]:
    """What a local mechanism needs beside its level and threshold; without `coordinates` it sends its usual number."""
    chosen = room.arm.get("coordinates")
    more = {"coordinates": chosen} if isinstance(chosen, Decimal) else {}
    return {"dimension": Decimal(dimension), **more}


def worst_variance(room: Room, dimension: int | None = None) -> float:
    """The worst variance of a coordinate of a report, at a threshold of 1 for each: sqrt(d) in length.

    `dimension`: of a report about fewer coordinates than the problem has.
    """
    assert room.epsilon is not None
    d = room.dimension if dimension is None else dimension
    level = {"epsilon": room.epsilon, "threshold": Decimal(1), **local_parameters(room, d)}
    channel = numeric_channel(room.arm.mechanism, level | ({} if room.delta is None else {"delta": room.delta}))
    return channel.worst_mse / (1 if channel.norm == L2 else d)


def local_task(
    room: Room,
    n: int,
    *,
    theta: Floats | None = None,
    round: int = 0,
    rows: range | None = None,
    only: Runs | None = None,
    epsilon: Decimal | None = None,
    how: Bounded | None = None,
    rounds: int = 1,
) -> Task:
    """A task for n holders, each of whom bounds its contribution and randomises it at `epsilon` (None: the arm's).

    `rounds` reports of a holder share that level, where the mechanism composes exactly.
    """
    level = room.epsilon if epsilon is None else epsilon
    assert level is not None
    more = local_parameters(room, room.dimension if only is None else only.count)
    more |= {"rounds": Decimal(rounds)} if rounds > 1 else {}
    how = how or local_bound(room, n, level, **more)
    return room.task(how, theta=theta, round=round, rows=rows, only=only, epsilon=level, **more)
