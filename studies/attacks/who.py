"""Which rows lie: the same ones whatever is asked; liars of a larger share are those of a smaller one, and others."""

import numpy as np
from numpy.typing import NDArray

from protocol.coins import Address, Stream, words
from server.groups import row_groups
from studies.attacks.study_file import Liars

WHO, NODES, BITS, BANK = range(4)  # rounds of a repetition's sequence in stream MISBEHAVIOUR


def lying_rows(seed: int, liars: Liars, fraction: float, nodes: int, n: int, repetition: int) -> NDArray[np.bool_]:
    """Which of n rows lie, shape (n,).

    Of labelers with several labels, rows are those that count: a share f m / (1 - f + f m) of them at m each.
    """
    lying = np.zeros(n, dtype=np.bool_)
    if liars.by == "nodes":
        for node in _first(seed, n, repetition, NODES, nodes, fraction):
            part = row_groups(n, nodes)[node]
            lying[part.start : part.stop] = True
        return lying
    counted = fraction * liars.counted
    lying[_first(seed, n, repetition, WHO, n, counted / (1.0 - fraction + counted))] = True
    return lying


def _first(seed: int, n: int, repetition: int, round_: int, units: int, share: float) -> NDArray[np.intp]:
    coins = words(Address(seed, Stream.MISBEHAVIOUR, n, repetition, round_), 0, units)
    return np.argsort(coins, kind="stable")[: int(share * units + 0.5)]
