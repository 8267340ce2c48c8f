"""The border executes exactly its integer table: every class of coins is counted, with its integer weight."""

from collections import Counter
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from client.draws import AddressedDraws, Draws, SecretDraws
from client.randomizer import randomize
from protocol.channel import TOTAL, DiscreteChannel
from protocol.mechanisms.randomized_response import k_randomized_response, randomized_response
from protocol.messages import Coins

LOW = 1 << 47
LANES = 1 << 16


class Listed:
    """Coins given one by one; remembers for which rows the escalation was read."""

    coins = Coins.OS

    def __init__(self, coins: list[int]) -> None:
        self._coins = np.array(coins, dtype=np.uint64)
        self.read: list[int] = []

    def lanes(self, rows: NDArray[np.int64]) -> NDArray[np.uint16]:
        return (self._coins[rows] >> np.uint64(47)).astype(np.uint16)

    def escalations(self, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
        self.read.extend(rows.tolist())
        return self._coins[rows] & np.uint64(LOW - 1)


def edges(channel: DiscreteChannel) -> list[int]:
    """All thresholds of all values, and the borders of the lanes in which they lie."""
    found = {0, TOTAL}
    for threshold in channel.thresholds.ravel().tolist():
        lane = threshold // LOW
        found |= {threshold, lane * LOW, (lane + 1) * LOW}
    return sorted(found)


def run(channel: DiscreteChannel, value: int, coins: list[int]) -> tuple[NDArray[np.uint8], list[int]]:
    draws = Listed(coins)
    return randomize(np.full(len(coins), value, np.uint8), channel, draws, np.arange(len(coins))), draws.read


def law(channel: DiscreteChannel, value: int) -> list[int]:
    """Weight of each symbol, over all 2^63 coins.

    A symbol is constant between two neighbouring edges: it is a count of comparisons with thresholds, of the coin or
    of its lane, and between edges no comparison changes. Both ends of each interval are run to see it.
    """
    borders = edges(channel)
    first, _ = run(channel, value, borders[:-1])
    last, _ = run(channel, value, [border - 1 for border in borders[1:]])
    assert (first == last).all()
    weights: Counter[int] = Counter()
    for symbol, start, stop in zip(first.tolist(), borders[:-1], borders[1:], strict=True):
        weights[symbol] += stop - start
    return [weights[symbol] for symbol in range(channel.outcomes)]


def table(*rows: list[int]) -> DiscreteChannel:
    return DiscreteChannel(tuple((*row, TOTAL - sum(row)) for row in rows))


CHANNELS = [
    *(randomized_response(Decimal(text)) for text in ("1e-9", "0.1", "1", "4", "20", "40", "100")),
    *(k_randomized_response(Decimal(text), count) for text in ("0.5", "30") for count in (3, 7, 256)),
    table([LOW * 5], [LOW * 5 + 1]),  # a threshold whose 47 low bits are 0, and its neighbour in the same lane
    table([LOW], [1]),
    table([LOW - 1, 1, 1], [LOW, LOW, LOW]),
    table([TOTAL - 1], [1]),  # thresholds in the first and the last lane
]


@pytest.mark.parametrize("channel", CHANNELS)
def test_the_law_is_exactly_the_table(channel: DiscreteChannel) -> None:
    for value in range(min(len(channel.table), 7)):
        assert law(channel, value) == list(channel.table[value])


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_the_law_is_exactly_the_table_for_any_table(data: st.DataObject) -> None:
    near = st.sampled_from([0, 1, LOW - 1, LOW, LOW + 1, 3 * LOW, TOTAL // 2, TOTAL - LOW, TOTAL - 1])
    outcomes = data.draw(st.integers(2, 5))
    rows = []
    for _ in range(data.draw(st.integers(2, 4))):
        cuts = data.draw(
            st.lists(
                st.one_of(near, st.integers(1, TOTAL - 1)), min_size=outcomes - 1, max_size=outcomes - 1, unique=True
            )
        )
        bounds = [0, *sorted(cuts), TOTAL]
        counts = [stop - start for start, stop in pairwise(bounds)]
        if min(counts) < 1:
            return
        rows.append(tuple(counts))
    channel = DiscreteChannel(tuple(rows))
    for value in range(len(rows)):
        assert law(channel, value) == list(channel.table[value])


@pytest.mark.parametrize("channel", CHANNELS[:7])
def test_every_lane_gives_the_symbol_of_its_coins(channel: DiscreteChannel) -> None:
    """All 65,536 lanes, at their first and last coin."""
    for value in (0, 1):
        threshold = int(channel.thresholds[value, 0])
        for offset in (0, LOW - 1):
            coins = [lane * LOW + offset for lane in range(LANES)]
            symbols, _ = run(channel, value, coins)
            assert symbols.tolist() == [int(coin >= threshold) for coin in coins]


@pytest.mark.parametrize("channel", CHANNELS)
def test_which_coins_are_read_does_not_depend_on_the_value(channel: DiscreteChannel) -> None:
    coins = [border for border in edges(channel) if border < TOTAL]
    _, expected = run(channel, 0, coins)
    tops = set((channel.thresholds // np.uint64(LOW)).ravel().tolist())
    assert expected == [index for index, coin in enumerate(coins) if coin // LOW in tops]
    for value in range(1, min(len(channel.table), 5)):
        assert run(channel, value, coins)[1] == expected


@pytest.mark.parametrize("draws", [AddressedDraws(3, 400_000, 0), SecretDraws()])
@pytest.mark.parametrize("text", ["0.5", "2"])
def test_both_kinds_of_coins_follow_the_table(draws: Draws, text: str) -> None:
    """Flips of 200,000 zeros and 200,000 ones within 6.5 standard deviations: rate 1.6e-10 for each kind."""
    channel, rows = randomized_response(Decimal(text)), np.arange(400_000)
    values = (rows % 2).astype(np.uint8)
    symbols = randomize(values, channel, draws, rows)
    flip = float(channel.probability(0, 1))
    for value in (0, 1):
        flips = int((symbols != values)[values == value].sum())
        assert abs(flips - 200_000 * flip) < 6.5 * (200_000 * flip * (1 - flip)) ** 0.5


def test_rows_are_independent_of_their_company() -> None:
    channel, rows = randomized_response(Decimal(1)), np.arange(1000)
    values = (rows % 3 == 0).astype(np.uint8)
    whole = randomize(values, channel, AddressedDraws(7, 1000, 0), rows)
    some = rows[rows % 7 == 2]
    assert (randomize(values[some], channel, AddressedDraws(7, 1000, 0), some) == whole[some]).all()
    other = values.copy()
    other[500] ^= 1
    changed = randomize(other, channel, AddressedDraws(7, 1000, 0), rows) != whole
    assert not np.delete(changed, 500).any()


def test_what_does_not_fit_is_refused_without_telling_a_value() -> None:
    channel, rows = randomized_response(Decimal(1)), np.arange(3)
    bad = [
        (np.array([0, 1, 77], np.uint8), rows, "expected values below 2, got a larger one"),
        (np.array([0, 1, 1]), rows, "expected one uint8 value a row"),
        (np.array([0, 1], np.uint8), rows, "expected one uint8 value a row"),
        (np.array([0, 1, 1], np.uint8), np.array([0, 2, 1]), "increasing order"),
        (np.array([0, 1, 1], np.uint8), np.array([0, 1, 1]), "increasing order"),
    ]
    for values, where, message in bad:
        with pytest.raises(ValueError, match=message) as caught:
            randomize(values, channel, SecretDraws(), where)
        assert "77" not in str(caught.value)
    with pytest.raises(ValueError, match="at most 256 outcomes"):
        randomize(np.zeros(3, np.uint8), k_randomized_response(Decimal(1), 257), SecretDraws(), rows)
