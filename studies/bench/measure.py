"""Running a figure: sides agree, are warmed, and then run in turn, so that a busy minute hits all of them."""

import gc
import time
from collections.abc import Callable, Sequence
from statistics import median

from studies.bench.figure import Figure, Prepared, Side
from studies.bench.row import LIMIT, OURS, PEER, Row

Roles = Sequence[tuple[str, Side]]
PAUSE = 0.1  # seconds: threads of linear algebra wait for more work that long, on cores that the next side wants


def measure(figure: Figure, runs: int, small: bool) -> list[Row]:
    """Rows of a figure: ours, its peers, its limit. Raises AssertionError where sides do not compute the same."""
    prepared = figure.prepare(small)
    prepared.agree()
    roles = [(OURS, prepared.ours), *((PEER, peer) for peer in prepared.peers)]
    if prepared.limit is not None:
        roles.append((LIMIT, prepared.limit))
    for _, side in roles:
        side.run()
    gc.freeze()  # what is there already is not looked through before every run
    costs = [[_cost(prepared, side) for _, side in roles] for _ in range(runs)]
    gc.unfreeze()
    return rows(figure.name, prepared, roles, costs, small)


def rows(name: str, prepared: Prepared, roles: Roles, costs: Sequence[Sequence[float]], small: bool) -> list[Row]:
    """What costs[round][side] say, side 0 being ours."""
    found = []
    for place, (role, side) in enumerate(roles):
        spent = [turn[place] for turn in costs]
        values = [prepared.figure(cost) for cost in spent]
        ratio = median(turn[place] / turn[0] for turn in costs)
        found.append(
            Row(
                figure=name,
                side=side.name,
                role=role,
                unit=prepared.unit,
                value=prepared.figure(median(spent)),
                least=min(values),
                most=max(values),
                ratio=ratio,
                runs=len(costs),
                small=small,
            )
        )
    return found


def _cost(prepared: Prepared, side: Side) -> float:
    gc.collect()
    time.sleep(PAUSE)
    begun = time.perf_counter()
    made = side.run()
    seconds = time.perf_counter() - begun
    return (seconds if prepared.cost is None else prepared.cost(made)) / side.share


def timed(work: Callable[[], object], clock: Callable[[], float]) -> float:
    """Seconds of a clock that the work takes."""
    begun = clock()
    work()
    return clock() - begun
