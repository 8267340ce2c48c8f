"""Coins of a simulation for many clients of one process, which read neighbouring rows one after the other."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from client.draws import AddressedDraws, Places

WINDOW = 4096  # rows whose lanes are read at once
FEW = 256  # rows up to which a call is served from a window


class SharedDraws(AddressedDraws):
    """The same coins as `AddressedDraws`: lanes of a few rows are cut out of a window that their neighbours share."""

    def __init__(self, seed: int, n: int, repetition: int, round: int = 0) -> None:
        super().__init__(seed, n, repetition, round)
        self._held: tuple[int, NDArray[np.uint16]] = (-1, np.empty(0, dtype=np.uint16))

    def lanes(self, rows: Places) -> NDArray[np.uint16]:
        """The row's lane; rows in increasing order."""
        if not 0 < len(rows) <= FEW:
            return super().lanes(rows)
        first, last = int(rows[0]), int(rows[-1])
        start = first - first % WINDOW
        if last >= start + WINDOW:
            return super().lanes(rows)
        held, window = self._held
        if held != start:
            window = super().lanes(range(start, start + WINDOW))
            window.flags.writeable = False
            self._held = start, window
        dense = last - first + 1 == len(rows)
        return window[first - start : last - start + 1] if dense else window[np.asarray(rows) - start]


@lru_cache(maxsize=64)
def shared_draws(seed: int, n: int, repetition: int, round: int) -> SharedDraws:
    """The coins of an address, one object for all who ask: it holds a window of what everybody can compute."""
    return SharedDraws(seed, n, repetition, round)
