"""Tasks whose reports are randomised by their holders."""

from decimal import Decimal

from protocol.messages import Runs, Task
from protocol.record_terms import Bounded
from server.algorithms.bounds import local_bound
from server.algorithms.steps import Floats, Room


def local_parameters(room: Room, dimension: int) -> dict[str, Decimal]:
    """What a local mechanism needs beside its level and threshold; without `coordinates` it sends its usual number."""
    chosen = room.arm.get("coordinates")
    more = {"coordinates": chosen} if isinstance(chosen, Decimal) else {}
    return {"dimension": Decimal(dimension), **more}


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
) -> Task:
    """A task for n holders, each of whom bounds its contribution and randomises it at `epsilon` (None: the arm's)."""
    level = room.epsilon if epsilon is None else epsilon
    assert level is not None
    more = local_parameters(room, room.dimension if only is None else only.count)
    how = how or local_bound(room, n, level, **more)
    return room.task(how, theta=theta, round=round, rows=rows, only=only, epsilon=level, **more)
