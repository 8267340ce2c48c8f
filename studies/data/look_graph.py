"""Which items are compared with which: groups between which nothing, or only one side, is said."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from studies.data.findings import MOST_SHOWN, Finding
from studies.fit.graph import components, describe

Pairs = NDArray[np.int32]


def look_at_graph(names: Sequence[str], pairs: Pairs, won: Pairs) -> Iterator[Finding]:
    """Findings about comparisons of items, int32 (rows, 2), and about who beat whom, (wins, 2)."""
    items = tuple(names)
    weak = components(items, pairs, "weak")
    if len(weak) > 1:
        yield Finding("unconnected", len(weak), (), (describe(weak),))
    strong = components(items, won, "strong")
    if len(strong) > len(weak):
        yield Finding("one-way", len(strong), (), (describe(strong),))
    for code, side in (("never-wins", 0), ("never-loses", 1)):
        missing = np.setdiff1d(np.unique(pairs), np.unique(won[:, side]))
        if len(missing):
            yield Finding(code, len(missing), (), tuple(items[item] for item in missing[:MOST_SHOWN].tolist()))
    if len(pairs) < len(items):
        yield Finding("few-comparisons", len(pairs))
