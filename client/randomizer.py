"""THE BORDER: raw values in, randomised symbols out. Nothing else under a local claim leaves a client.

A coin u of 63 bits is a lane (16 bits) and an escalation (47 bits): u = lane * 2^47 + escalation, uniform. A value's
symbol is the number of cumulative thresholds t of its row of the table with t <= u, so
P(symbol = s | value = v) = #{u: t_{s-1} <= u < t_s} / 2^63 = table[v][s] / 2^63: exactly the integer table.

Comparing top bits decides t <= u unless lane = t >> 47; only there the escalation is read. It is read where the lane
meets a threshold of *any* value, so which coins are read, and how many, does not depend on the values. Nor do the
operations: nothing branches on a value, and its thresholds are selected by bits or looked up in a column. Many rows
are compared by compiled loops, by the same rules and to the same bits.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from client.compiled import kernels
from client.draws import ESCALATION_BITS, AddressedDraws, Draws, Places
from client.few import FEW_ROWS, randomize_few
from protocol.channel import DiscreteChannel

MOST_OUTCOMES = 256
BLOCK = 1 << 17  # rows whose values, lanes and flags stay in a second-level cache of 1 MB
FEW = 16  # thresholds of a table up to which comparing with all of them is cheaper than looking a value's own up
_LANES = 1 << 16

Values = NDArray[np.uint8]
Lanes = NDArray[np.uint16]
Coins = Lanes | NDArray[np.uint64]  # lanes, or all bits
Flags = NDArray[np.bool_]
Open = tuple[NDArray[np.int64], Lanes]  # where a lane leaves the symbol open, and these lanes


def randomize(values: Values, channel: DiscreteChannel, draws: Draws, rows: Places) -> Values:
    """One symbol for each value: P(symbol | value) = channel.table[value][symbol] / 2^63, independent over rows.

    Guarantee: channel.level-local differential privacy of each value, given secret coins; neighbours: replace the
    value. Shapes: values and rows (rows,), rows in increasing order; result uint8 (rows,).
    Raises ValueError for values that are not uint8 below the table's height, for rows in another order, and for less
    than 2 or more than 256 outcomes.
    Source: derived, see docs/PRIVACY.md.
    """
    _check(values, channel, rows)
    thresholds = channel.thresholds
    if len(values) <= FEW_ROWS and thresholds.size <= FEW:
        return randomize_few(values, channel, draws, rows)
    symbols = np.empty(len(values), dtype=np.uint8)
    places, tied = _decide((thresholds >> np.uint64(ESCALATION_BITS)).astype(np.uint16), values, draws, rows, symbols)
    if len(places):
        coins = tied.astype(np.uint64) << np.uint64(ESCALATION_BITS) | draws.escalations(_at(rows, places))
        settled = np.empty((3, len(places)), dtype=np.uint8)
        _count(thresholds, values[places], coins, np.less_equal, settled[0], settled[1:])
        symbols[places] = settled[0]
    return symbols


def _decide(tops: Lanes, values: Values, draws: Draws, rows: Places, symbols: Values) -> Open:
    """Set symbols by lanes: compiled where that pays, else by numpy, to the same bits."""
    is_top = _is_top(tops) if tops.size > FEW else np.zeros(0, dtype=np.bool_)
    fast = kernels(len(values))
    if fast is not None and isinstance(draws, AddressedDraws) and isinstance(rows, range) and rows.step == 1:
        whole: Open = fast.select_addressed(tops, is_top, values, draws.key, rows.start, symbols)
        return whole
    scratch = np.empty((2, min(len(values), BLOCK)), dtype=np.uint8)
    select = partial(_by_numpy, scratch) if fast is None else fast.select
    found_at: list[NDArray[np.int64]] = []
    found_lanes: list[Lanes] = []
    for start in range(0, max(len(values), 1), BLOCK):
        part = slice(start, start + BLOCK)
        places, tied = select(tops, is_top, values[part], draws.lanes(rows[part]), symbols[part])
        found_at.append(places + start)
        found_lanes.append(tied)
    return np.concatenate(found_at), np.concatenate(found_lanes)


def _by_numpy(scratch: Values, tops: Lanes, is_top: Flags, values: Values, lanes: Lanes, symbols: Values) -> Open:
    """`client.kernels.select`, whose oracle it is."""
    _count(tops, values, lanes, np.less, symbols, scratch)
    places = (is_top.take(lanes) if len(is_top) else _among(lanes, tops)).nonzero()[0]
    return places, lanes[places]


def _count(
    thresholds: Coins, values: Values, coins: Coins, compare: Callable[..., Flags], symbols: Values, scratch: Values
) -> None:
    """Set symbols to how many thresholds t of each value have compare(t, coin); scratch is (2, rows) or longer."""
    few = thresholds.size <= FEW
    masks = _masks(values, len(thresholds)) if few else []
    first, other = scratch[:, : len(values)]
    for column, own in enumerate(thresholds.T):
        found = first if column else symbols
        compare(own[0] if few else own.take(values), coins, out=found.view(np.bool_))
        for mask, threshold in zip(masks, own[1:], strict=False):  # found = (found & ~mask) | (other & mask)
            compare(threshold, coins, out=other.view(np.bool_))
            other ^= found
            other &= mask
            found ^= other
        if column:
            symbols += found


def _masks(values: Values, count: int) -> list[Values]:
    """Which rows have the value 1, 2, ..., count - 1, as 0 and 1."""
    return [values] if count == 2 else [(values == value).view(np.uint8) for value in range(1, count)]


def _is_top(tops: Lanes) -> Flags:
    """Of each lane there is, whether it is the top of a threshold of any value."""
    table = np.zeros(_LANES, dtype=np.bool_)
    table[tops] = True
    return table


def _among(lanes: Lanes, tops: Lanes) -> Flags:
    """Which lanes are the top of a threshold of any value."""
    first, *others = set(tops.ravel().tolist())
    flags: Flags = lanes == first
    for top in others:
        flags |= lanes == top
    return flags


def _at(rows: Places, places: NDArray[np.intp]) -> NDArray[np.int64]:
    return rows.start + rows.step * places if isinstance(rows, range) else rows[places]


def _check(values: Values, channel: DiscreteChannel, rows: Places) -> None:
    """Messages name bounds, never a value."""
    shape = (len(rows),) if isinstance(rows, range) else rows.shape
    if values.dtype != np.uint8 or values.ndim != 1 or values.shape != shape:
        raise ValueError(f"expected one uint8 value a row, got {values.dtype} {values.shape} for {shape}")
    if not 2 <= channel.outcomes <= MOST_OUTCOMES:
        raise ValueError(f"expected at least 2 and at most {MOST_OUTCOMES} outcomes, got {channel.outcomes}")
    largest = max(values.tolist(), default=0) if len(values) <= FEW_ROWS else int(values.max())
    if largest >= len(channel.table):
        raise ValueError(f"expected values below {len(channel.table)}, got a larger one")
    if not _increasing(rows):
        raise ValueError("expected rows in increasing order, each once")


def _increasing(rows: Places) -> bool:
    """Whether each row is larger than the one before: seen at once of a range, by reading all of an array."""
    if isinstance(rows, range):
        return rows.step > 0 or len(rows) < 2
    for start in range(0, len(rows) - 1, BLOCK):
        part = rows[start : start + BLOCK + 1]
        if not (part[1:] > part[:-1]).all():
            return False
    return True


def as_range(rows: NDArray[np.int64]) -> Places:
    """The same rows, as a range where they are one: whoever randomises them often then has them read once.

    Raises ValueError where they are not in increasing order.
    """
    if not _increasing(rows):
        raise ValueError("expected rows in increasing order, each once")
    first, last = (int(rows[0]), int(rows[-1])) if len(rows) else (0, 0)
    return range(first, last + 1) if last - first + 1 == len(rows) else rows
