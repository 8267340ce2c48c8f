"""Which items are compared with which, and whether a maximum likelihood estimate exists."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from protocol.terms import TIE
from server.estimators.newton import EstimationError
from studies.terminal import printable

Pairs = NDArray[np.int32]
Names = tuple[str, ...]
MOST_NAMED = 5


def groups(names: Names, pairs: Pairs) -> list[list[str]]:
    """Groups of items without a comparison between them, largest first; one group where all hang together.

    `pairs` (n, K) are the items of each row, -1 where it has fewer than K.
    """
    row, place = np.nonzero(pairs[:, 1:] >= 0)
    return components(names, np.stack([pairs[row, 0], pairs[row, place + 1]], axis=1), "weak")


def wins(pairs: Pairs, labels: NDArray[np.uint8]) -> Pairs:
    """Who beat whom, (m, 2), by clear labels: 1, the second of a pair won; 2, a tie, half a win each."""
    won = np.where(labels[:, None] == 1, pairs[:, ::-1], pairs)
    return np.concatenate([won, won[labels == TIE][:, ::-1]])


def top_wins(sets: Pairs, labels: NDArray[np.uint8]) -> Pairs:
    """Who beat whom, (m, 2), by clear top choices: the label-th item of a row all others of it."""
    top = sets[np.arange(len(sets)), labels]
    row, place = np.nonzero((sets >= 0) & (sets != top[:, None]))
    return np.stack([top[row], sets[row, place]], axis=1)


def require_minimiser(names: Names, won: Pairs) -> None:
    """Raise EstimationError unless every item beats every other, directly or through others; `won` (m, 2) says who did.

    Exactly then the likelihood of clear labels has a maximum without a ball.
    Source: Ford 1957, Solution of a ranking problem from binary comparisons; for top choices Hunter 2004, MM algorithms
    for generalized Bradley-Terry models.
    """
    strong = components(names, won, "strong")
    if len(strong) > 1:
        raise EstimationError(
            f"expected wins in both directions between all items, got {len(strong)} groups between which they go one "
            f"way or not at all: {describe(strong)}. There is no finite estimate: give a ball, such as --bound 5"
        )


def describe(found: list[list[str]]) -> str:
    """Groups in words, long ones cut."""
    shown = []
    for group in found[:MOST_NAMED]:
        more = f" and {len(group) - MOST_NAMED} more" if len(group) > MOST_NAMED else ""
        shown.append("{" + ", ".join(printable(name) for name in group[:MOST_NAMED]) + more + "}")
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    return ", ".join(shown) + more


def components(names: Names, edges: Pairs, connection: Literal["weak", "strong"]) -> list[list[str]]:
    """Groups of items that hang together by edges, (m, 2), in one direction or in both; largest first."""
    size = len(names)
    graph = coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(size, size)).tocsr()
    count, member = connected_components(graph, directed=True, connection=connection)
    found = [[names[item] for item in np.flatnonzero(member == group)] for group in range(count)]
    return sorted(found, key=lambda group: (-len(group), group))
