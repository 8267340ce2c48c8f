"""The border for a few values: the same law by whole numbers, where arrays would cost more than all else."""

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

from client.draws import ESCALATION_BITS, Draws, Places
from protocol.channel import DiscreteChannel

FEW_ROWS = 8


def randomize_few(values: NDArray[np.uint8], channel: DiscreteChannel, draws: Draws, rows: Places) -> NDArray[np.uint8]:
    """What `client.randomizer.randomize` does, coin by coin, for values that it has checked.

    A coin is counted off among the thresholds of all values, and its value only picks one of the counts: so no
    operation depends on it. Which escalations are read does not, either.
    Guarantee: that of `client.randomizer.randomize`; unit: one value; neighbours: replace the value.
    Source: derived, see docs/PRIVACY.md.
    """
    lanes, cuts = draws.lanes(rows).tolist(), channel.cuts
    coins = [lane << ESCALATION_BITS for lane in lanes]
    tops = [cut >> ESCALATION_BITS for own in cuts for cut in own]
    met = [place for place, lane in enumerate(lanes) if lane in tops]
    if met:
        low = draws.escalations(np.array([rows[place] for place in met], dtype=np.int64))
        for place, bits in zip(met, low.tolist(), strict=True):
            coins[place] |= bits
    counts = [[bisect_right(own, coin) for own in cuts] for coin in coins]
    return np.frombuffer(
        bytes([found[value] for found, value in zip(counts, values.tolist(), strict=True)]), dtype=np.uint8
    )
