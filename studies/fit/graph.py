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
    """Groups of items without a comparison between them, largest first; one group where all hang together."""
    return _components(names, pairs, "weak")


def require_minimiser(names: Names, pairs: Pairs, labels: NDArray[np.uint8]) -> None:
    """Raise EstimationError unless every item beats every other, directly or through others.

    Exactly then the likelihood of clear labels (1: the second of a pair won, 2: a tie) has a maximum without a ball.
    Source: Ford 1957, Solution of a ranking problem from binary comparisons.
    """
    won = np.where(labels[:, None] == 1, pairs[:, ::-1], pairs)
    won = np.concatenate([won, won[labels == TIE][:, ::-1]])  # half a win each
    strong = _components(names, won, "strong")
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


def _components(names: Names, edges: Pairs, connection: Literal["weak", "strong"]) -> list[list[str]]:
    size = len(names)
    graph = coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(size, size)).tocsr()
    count, member = connected_components(graph, directed=True, connection=connection)
    found = [[names[item] for item in np.flatnonzero(member == group)] for group in range(count)]
    return sorted(found, key=lambda group: (-len(group), group))
