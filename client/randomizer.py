"""THE BORDER: raw values in, randomised symbols out. Nothing else under a local claim leaves a client.

A coin u of 63 bits is a lane (16 bits) and an escalation (47 bits): u = lane * 2^47 + escalation, uniform. A value's
symbol is the number of cumulative thresholds t of its row of the table with t <= u, so
P(symbol = s | value = v) = #{u: t_{s-1} <= u < t_s} / 2^63 = table[v][s] / 2^63: exactly the integer table.

Comparing top bits decides t <= u unless lane = t >> 47; only there the escalation is read. It is read where the lane
meets a threshold of *any* value, so which coins are read, and how many, does not depend on the values.
"""

import numpy as np
from numpy.typing import NDArray

from client.draws import ESCALATION_BITS, Draws
from protocol.channel import DiscreteChannel

MOST_OUTCOMES = 256
_LANES = 1 << 16


def randomize(
    values: NDArray[np.uint8], channel: DiscreteChannel, draws: Draws, rows: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """One symbol for each value: P(symbol | value) = channel.table[value][symbol] / 2^63, independent over rows.

    Guarantee: channel.level-local differential privacy of each value, given secret coins; neighbours: replace the
    value. Shapes: values and rows (rows,), rows in increasing order; result uint8 (rows,).
    Raises ValueError for values that are not uint8 below the table's height, and for more than 256 outcomes.
    Source: derived, see docs/PRIVACY.md.
    """
    _check(values, channel, rows)
    thresholds = channel.thresholds
    tops = (thresholds >> np.uint64(ESCALATION_BITS)).astype(np.uint16)
    lanes = draws.lanes(rows)
    symbols = _count(tops, values, lanes, strict=True)
    undecided = np.zeros(_LANES, dtype=bool)
    undecided[tops] = True
    open_rows = np.flatnonzero(undecided.take(lanes))
    if len(open_rows):
        coins = lanes[open_rows].astype(np.uint64) << np.uint64(ESCALATION_BITS) | draws.escalations(rows[open_rows])
        symbols[open_rows] = _count(thresholds, values[open_rows], coins, strict=False)
    return symbols


def _count(
    thresholds: NDArray[np.uint16] | NDArray[np.uint64],
    values: NDArray[np.uint8],
    coins: NDArray[np.uint16] | NDArray[np.uint64],
    strict: bool,
) -> NDArray[np.uint8]:
    """How many thresholds of each value are below its coin (`strict`), or at most its coin."""
    symbols = np.zeros(len(values), dtype=np.uint8)
    for column in thresholds.T:
        own = column.take(values)
        symbols += (own < coins) if strict else (own <= coins)
    return symbols


def _check(values: NDArray[np.uint8], channel: DiscreteChannel, rows: NDArray[np.int64]) -> None:
    """Messages name bounds, never a value."""
    if values.dtype != np.uint8 or values.shape != rows.shape or values.ndim != 1:
        raise ValueError(f"expected one uint8 value a row, got {values.dtype} {values.shape} for {rows.shape}")
    if channel.outcomes > MOST_OUTCOMES:
        raise ValueError(f"expected at most {MOST_OUTCOMES} outcomes, got {channel.outcomes}")
    if len(values) and int(values.max()) >= len(channel.table):
        raise ValueError(f"expected values below {len(channel.table)}, got a larger one")
    if len(rows) > 1 and not (rows[1:] > rows[:-1]).all():
        raise ValueError("expected rows in increasing order, each once")
