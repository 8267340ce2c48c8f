"""What `halftruth bench` measures: a figure, the sides that run in turn, and what was asked of it.

A topic's file has one function a figure, `prepare(small)`, which makes the data and gives the sides; a line in
studies/bench/figures.py names it. Sides are warmed, then run in turn, and every ratio is one of the same minute.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec

MILLIONS = "M "


@dataclass(frozen=True)
class Side:
    """One way to do the work: `run()` does all of it once, on data that is there already.

    Compiled kernels are warmed by the harness, which runs each side once before it measures. A slow peer may do a
    `share` of the work: what it costs is taken for 1 / share as much.
    """

    name: str
    run: Callable[[], object]
    share: float = 1.0


@dataclass(frozen=True)
class Prepared:
    """The sides of a figure, on data of one size.

    `work` is how much one run does, in labels, updates, clients, ...; with the unit "M labels/s" or "clients/s" the
    figure is work / seconds, in millions where the unit starts with "M ". With any other unit ("s") it is what a run
    costs, and work has no part in it. `limit` does as much work as no implementation on this machine could do faster
    (memory bandwidth, a generator's words): share = its seconds / ours. `agree` runs the sides (or smaller forms of
    them) and raises AssertionError where they do not compute the same. `cost` reads the cost off what a run returned,
    where it is not the run's seconds: a child's peak memory, with the unit "MB".
    """

    ours: Side
    peers: tuple[Side, ...]
    work: float
    unit: str
    agree: Callable[[], None]
    limit: Side | None = None
    cost: Callable[[object], float] | None = None

    def figure(self, cost: float) -> float:
        """What the table shows for a run that cost so much: a rate, or the cost itself."""
        if not self.unit.endswith("/s"):
            return cost
        return self.work / cost / (1e6 if self.unit.startswith(MILLIONS) else 1.0)


@dataclass(frozen=True)
class Asked:
    """What a figure should reach: a value in its unit, or so many times the best peer (or one that is named).

    Where a `share` of the limit is given, that is enough too.
    """

    least: float | None = None
    most: float | None = None
    times: float | None = None
    peer: str = ""
    share: float | None = None


def at_least(value: float) -> Asked:
    """A figure of at least `value`, in its unit."""
    return Asked(least=value)


def at_most(value: float) -> Asked:
    """A figure of at most `value`, in its unit."""
    return Asked(most=value)


def times(value: float, peer: str = "", share: float | None = None) -> Asked:
    """At least `value` times as fast as the peer of that name, or as the best of all; or a share of the limit."""
    return Asked(times=value, peer=peer, share=share)


NOTHING = Asked()


@dataclass(frozen=True)
class Figure:
    """One line of the table.

    `prepare(small)` makes the data and the sides, small for tests. `needs` are modules of peers that may not be
    installed: `prepare` leaves such a peer out (`installed`), and the table says so. `cores`: how many the process
    of the figure may use; 0: all.
    """

    name: str
    what: str
    asked: Asked
    prepare: Callable[[bool], Prepared] = field(repr=False)
    needs: tuple[str, ...] = ()
    cores: int = 0


def installed(module: str) -> bool:
    """Whether a peer's module can be imported."""
    return find_spec(module) is not None
