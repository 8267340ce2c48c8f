"""Compiled coins and choices of the randomiser: the same bits as numpy's, for many rows at a time.

`client.compiled` says when they are used, and imports them only then.
"""

from collections.abc import Sequence
from typing import TypeVar

import numba
import numpy as np
from numpy.typing import NDArray

from protocol.coins import Words
from protocol.compiling import compiler, widening

Lanes = NDArray[np.uint16]
Symbols = NDArray[np.uint8]
Flags = NDArray[np.bool_]
Integers = NDArray[np.int64]
Noted = tuple[int, Integers, Lanes]
Key = tuple[int, int]
Plain = TypeVar("Plain", Symbols, Lanes)

compiled, wide = compiler(numba.njit), widening(numba.extending.intrinsic, numba.types.void)

PLANE = 64  # blocks side by side: all loops over them take several at once, and their planes fit in 2 kB
TILE = 2048  # rows whose lanes, values, symbols and flags stay in a first-level cache
ROWS = 16  # whose lanes are in a block
ROUNDS = 10
_HALF, _LOW = np.uint64(32), np.uint64((1 << 32) - 1)
_FIRST, _SECOND = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)  # factors of Philox4x64
_STEP_0, _STEP_1 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)  # what a round adds to a key


@compiled
def product(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """High and low word of a * b, from products of halves: a loop of these takes several at once."""
    a_low, a_high, b_low, b_high = a & _LOW, a >> _HALF, b & _LOW, b >> _HALF
    lowest = a_low * b_low
    middle = a_high * b_low + (lowest >> _HALF)
    other = a_low * b_high + (middle & _LOW)
    return a_high * b_high + (middle >> _HALF) + (other >> _HALF), (other << _HALF) | (lowest & _LOW)


@compiled
def philox(counters: Words, key_0: np.uint64, key_1: np.uint64, count: int, rounds: int = ROUNDS) -> None:
    """Rounds of Philox4x64 on counters[:, :count], which hold a counter's words in a column, in place.

    Source: Salmon, Moraes, Dror, Shaw 2011, section 4.2.
    """
    wide()
    c0, c1, c2, c3 = counters[0], counters[1], counters[2], counters[3]
    for _ in range(rounds):
        for j in range(count):
            high_0, low_0 = product(c0[j], _FIRST)
            high_1, low_1 = product(c2[j], _SECOND)
            c0[j] = high_1 ^ c1[j] ^ key_0
            c2[j] = high_0 ^ c3[j] ^ key_1
            c1[j], c3[j] = low_1, low_0
        key_0 += _STEP_0
        key_1 += _STEP_1


@compiled
def _begin(first: int, key_0: np.uint64, key_1: np.uint64, counters: Words, count: int) -> None:
    """Set counters[:, :count] to what two rounds make of first, first + 1, ...: words of a block in a column.

    Of such a counter only the lowest word is not 0, so half of these rounds' products are known.
    """
    wide()
    c0, c1, c2, c3 = counters[0], counters[1], counters[2], counters[3]
    high, low = product(key_0, _FIRST)  # after one round, c0 is the key
    for j in range(count):
        high_0, low_0 = product(np.uint64(first + j), _FIRST)
        high_1, low_1 = product(high_0 ^ key_1, _SECOND)
        c0[j] = high_1 ^ (key_0 + _STEP_0)
        c2[j] = high ^ low_0 ^ (key_1 + _STEP_1)
        c1[j], c3[j] = low_1, low


@compiled
def fill(key_0: np.uint64, key_1: np.uint64, first: int, blocks: Words, counters: Words) -> None:
    """Blocks first, first + 1, ... of a sequence, (how many, 4) words: numpy's block k has the counter k + 1.

    counters (4, PLANE) are overwritten.
    """
    wide()
    c0, c1, c2, c3 = counters[0], counters[1], counters[2], counters[3]
    for start in range(0, len(blocks), PLANE):
        part = blocks[start : start + PLANE]
        count, flat = len(part), part.reshape(part.size)
        _begin(first + start + 1, key_0, key_1, counters, count)
        philox(counters, key_0 + _STEP_0 + _STEP_0, key_1 + _STEP_1 + _STEP_1, count, ROUNDS - 2)
        for j in range(count):
            flat[4 * j], flat[4 * j + 1], flat[4 * j + 2], flat[4 * j + 3] = c0[j], c1[j], c2[j], c3[j]


@compiled
def _read(key_0: np.uint64, key_1: np.uint64, starts: Integers, counts: Integers, found: Words) -> None:
    """Words start, ..., start + count - 1 of a sequence for each run, one run after the other."""
    wide()
    one, counters = np.empty((1, 4), np.uint64), np.empty((4, PLANE), np.uint64)
    place = 0
    for run in range(len(starts)):
        start, left = starts[run], counts[run]
        while left > 0:
            skip = start % 4
            if skip == 0 and left >= 4:
                count = left // 4 * 4
                fill(key_0, key_1, start // 4, found[place : place + count].reshape(count // 4, 4), counters)
            else:
                count = min(left, 4 - skip)
                fill(key_0, key_1, start // 4, one, counters)
                found[place : place + count] = one[0, skip : skip + count]
            place, start, left = place + count, start + count, left - count


@compiled
def _compare(columns: Lanes, values: Symbols, lanes: Lanes, symbols: Symbols, flags: Symbols) -> None:
    """Add to symbols how many of a value's tops are below its lane, and flag lanes that are any value's top."""
    wide()
    for column in range(len(columns)):
        for value in range(columns.shape[1]):
            own, top = np.uint8(value), columns[column, value]
            for i in range(len(values)):
                symbols[i] += np.uint8(np.uint8(values[i] == own) & np.uint8(lanes[i] > top))
                flags[i] |= np.uint8(lanes[i] == top)


@compiled
def _look_up(columns: Lanes, is_top: Symbols, values: Symbols, lanes: Lanes, symbols: Symbols, flags: Symbols) -> None:
    """`_compare` for many tops: each value's own is looked up in a column, and `is_top` tells of every lane."""
    wide()
    for column in range(len(columns)):
        tops = columns[column]
        for i in range(len(values)):
            symbols[i] += np.uint8(lanes[i] > tops[values[i]])
    for i in range(len(values)):
        flags[i] = is_top[lanes[i]]


@compiled
def _decide(columns: Lanes, is_top: Symbols, values: Symbols, lanes: Lanes, symbols: Symbols, flags: Symbols) -> bool:
    """Set a tile's symbols and flags; returns whether there is a flag."""
    wide()
    symbols[:] = 0
    flags[:] = 0
    if len(is_top) == 0:
        _compare(columns, values, lanes, symbols, flags)
    else:
        _look_up(columns, is_top, values, lanes, symbols, flags)
    some = np.uint8(0)
    for i in range(len(flags)):
        some |= flags[i]
    return bool(some)


@compiled
def _note(flags: Symbols, lanes: Lanes, start: int, found: int, places: Integers, tied: Lanes) -> Noted:
    """Note where flags are, and lanes there, after `found` others; the arrays grow where a tile may not fit."""
    wide()
    if found + TILE > len(places):
        places = np.concatenate((places, np.empty(len(places), np.int64)))
        tied = np.concatenate((tied, np.empty(len(tied), np.uint16)))
    for i in range(len(flags)):
        if flags[i]:
            places[found], tied[found] = start + i, lanes[i]
            found += 1
    return found, places, tied


@compiled
def _select(columns: Lanes, is_top: Symbols, values: Symbols, lanes: Lanes, symbols: Symbols) -> Noted:
    """`select`; returns how many places there are, and arrays that begin with them."""
    wide()
    found, places, tied = 0, np.empty(TILE, np.int64), np.empty(TILE, np.uint16)
    flags = np.empty(TILE, np.uint8)
    for start in range(0, len(values), TILE):
        end = min(start + TILE, len(values))
        mine, own = flags[: end - start], lanes[start:end]
        if _decide(columns, is_top, values[start:end], own, symbols[start:end], mine):
            found, places, tied = _note(mine, own, start, found, places, tied)
    return found, places, tied


@compiled
def _select_addressed(
    key_0: np.uint64,
    key_1: np.uint64,
    row: int,
    columns: Lanes,
    is_top: Symbols,
    values: Symbols,
    symbols: Symbols,
) -> Noted:
    """`_select` by the lanes of rows row, row + 1, ..., which are made a tile at a time."""
    wide()
    found, places, tied = 0, np.empty(TILE, np.int64), np.empty(TILE, np.uint16)
    flags = np.empty(TILE, np.uint8)
    blocks, counters = np.empty((TILE // ROWS + 1, 4), np.uint64), np.empty((4, PLANE), np.uint64)
    lanes = blocks.reshape(blocks.size).view(np.uint16)
    for start in range(0, len(values), TILE):
        end = min(start + TILE, len(values))
        skip = (row + start) % ROWS
        fill(key_0, key_1, (row + start) // ROWS, blocks[: (skip + end - start + ROWS - 1) // ROWS], counters)
        mine, own = flags[: end - start], lanes[skip : skip + end - start]
        if _decide(columns, is_top, values[start:end], own, symbols[start:end], mine):
            found, places, tied = _note(mine, own, start, found, places, tied)
    return found, places, tied


def select(tops: Lanes, is_top: Flags, values: Symbols, lanes: Lanes, symbols: Symbols) -> tuple[Integers, Lanes]:
    """Set symbols to how many of a value's tops are below its lane; returns where a lane is any value's top, and these.

    tops (values, thresholds of each); `is_top`, a flag for each of the 65,536 lanes, is for tables of many tops, and
    empty otherwise. Values are below len(tops): the caller checks that. Raises ValueError for other shapes.
    """
    if not values.shape == lanes.shape == symbols.shape:
        raise ValueError(f"expected a lane and a symbol a value, got {lanes.shape}, {symbols.shape}, {values.shape}")
    table = np.ascontiguousarray(tops.T), is_top.view(np.uint8)
    found, places, tied = _select(*table, _plain(values), _plain(lanes), symbols)
    return places[:found], tied[:found]


def select_addressed(
    tops: Lanes, is_top: Flags, values: Symbols, key: Key, row: int, symbols: Symbols
) -> tuple[Integers, Lanes]:
    """`select` by the lanes of rows row, row + 1, ... of the sequence that has this key."""
    if values.shape != symbols.shape or row < 0:
        raise ValueError(f"expected a symbol a value and row >= 0, got {symbols.shape}, {values.shape} and {row}")
    table = np.ascontiguousarray(tops.T), is_top.view(np.uint8)
    found, places, tied = _select_addressed(*_words(key), row, *table, _plain(values), symbols)
    return places[:found], tied[:found]


def words(key: Key, runs: Sequence[tuple[int, int]]) -> Words:
    """`protocol.coins.spans` of the sequence that has this key, joined."""
    starts, counts = np.array(runs, dtype=np.int64).reshape(-1, 2).T.copy()
    if (starts < 0).any() or (counts < 0).any():
        raise ValueError("expected start >= 0 and count >= 0, got less")
    found = np.empty(counts.sum(), dtype=np.uint64)
    _read(*_words(key), starts, counts, found)
    return found


def _words(key: Key) -> tuple[np.uint64, np.uint64]:
    return np.uint64(key[0]), np.uint64(key[1])


def _plain(array: Plain) -> Plain:
    """Of one kind of memory: every other kind would be compiled anew."""
    return array if array.flags.c_contiguous and array.flags.writeable else array.copy()
