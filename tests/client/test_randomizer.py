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
from client.randomizer import BLOCK, FEW, as_range, randomize
from protocol.channel import TOTAL, DiscreteChannel
from protocol.coins import Stream
from protocol.mechanisms.randomized_response import k_randomized_response, randomized_response
from protocol.messages import Coins

pytestmark = pytest.mark.usefixtures("either_way")

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


def plain(values: NDArray[np.uint8], channel: DiscreteChannel, n: int, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
    """The definition: whole coins out of numpy's generator, and every threshold compared with them."""
    drawn = {
        stream: np.random.Philox(np.random.SeedSequence(7, spawn_key=(int(stream), n, 3, 0))).random_raw(n)
        for stream in (Stream.PRIVACY, Stream.ESCALATION)
    }
    lanes = drawn[Stream.PRIVACY][rows // 4] >> (16 * (rows % 4)).astype(np.uint64) & np.uint64(0xFFFF)
    coins = lanes << np.uint64(47) | drawn[Stream.ESCALATION][rows] >> np.uint64(17)
    return sum(column[values] <= coins for column in channel.thresholds.T).astype(np.uint8)


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
    *(k_randomized_response(Decimal(2), count) for count in (4, 5)),  # the most thresholds compared, and looked up
    table([LOW * 5], [LOW * 5 + 1]),  # a threshold whose 47 low bits are 0, and its neighbour in the same lane
    table([LOW], [1]),
    table([LOW - 1, 1, 1], [LOW, LOW, LOW]),
    table([TOTAL - 1], [1]),  # thresholds in the first and the last lane
]


@pytest.mark.parametrize("channel", CHANNELS)
def test_the_law_is_exactly_the_table(channel: DiscreteChannel) -> None:
    for value in range(min(len(channel.table), 7)):
        assert law(channel, value) == list(channel.table[value])


@settings(max_examples=150)
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
    for wrong in (k_randomized_response(Decimal(1), 257), table([], [])):
        with pytest.raises(ValueError, match="at most 256 outcomes"):
            randomize(np.zeros(3, np.uint8), wrong, SecretDraws(), rows)


@pytest.mark.parametrize("channel", [CHANNELS[2], CHANNELS[7], CHANNELS[8], CHANNELS[13], CHANNELS[-1]])
def test_symbols_are_those_of_the_definition_over_blocks_and_gaps(channel: DiscreteChannel) -> None:
    """Rows of three blocks, dense from any place of a word on, with gaps short and long, and alone."""
    n = 2 * BLOCK + 300
    values = (np.arange(n) * 31 % min(len(channel.table), 256)).astype(np.uint8)
    gaps = np.delete(np.arange(1, n), slice(70_000, 71_500))
    whole = plain(values, channel, n, np.arange(n))
    for rows in (np.arange(n), np.arange(3, n - 2), gaps, gaps[gaps % 3 != 1], np.arange(5, n, 999), np.array([n - 1])):
        assert (randomize(values[rows], channel, AddressedDraws(7, n, 3), rows) == whole[rows]).all()
    for run in (range(n), range(3, n - 2), range(2, n, 7), range(9, 10)):
        assert (randomize(values[np.array(run)], channel, AddressedDraws(7, n, 3), run) == whole[np.array(run)]).all()


def test_both_ways_to_find_a_threshold_are_tested() -> None:
    sizes = {channel.thresholds.size for channel in CHANNELS}
    assert {2, 6, 12, 20} <= sizes and 12 <= FEW < 20


def test_lanes_that_meet_a_threshold_are_settled_wherever_they_are() -> None:
    """Every row of a threshold's lane, at all borders of blocks: the escalation decides, and is asked for once."""
    channel = randomized_response(Decimal(1))
    thresholds = channel.thresholds[:, 0].tolist()
    coins = [TOTAL - 1] * (2 * BLOCK + 2)
    meeting = [0, 1, BLOCK - 1, BLOCK, 2 * BLOCK - 1, 2 * BLOCK, 2 * BLOCK + 1]
    for value, other in ((0, 1), (1, 0)):
        for place, row in enumerate(meeting):
            coins[row] = (thresholds[value], thresholds[value] - 1, thresholds[other])[place % 3]
        symbols, read = run(channel, value, coins)
        assert read == meeting
        assert symbols[meeting].tolist() == [int(coins[row] >= thresholds[value]) for row in meeting]
        assert np.delete(symbols, meeting).all()


def test_order_is_seen_at_borders_of_blocks_and_in_ranges() -> None:
    channel = randomized_response(Decimal(1))
    rows, values = np.arange(2 * BLOCK), np.zeros(2 * BLOCK, np.uint8)
    for row in (1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK - 1):
        wrong = rows.copy()
        wrong[row] = wrong[row - 1]
        with pytest.raises(ValueError, match="increasing order"):
            randomize(values, channel, SecretDraws(), wrong)
        with pytest.raises(ValueError, match="increasing order"):
            as_range(wrong)
    for order in (range(3, 0, -1), range(5, 1, -2)):
        with pytest.raises(ValueError, match="increasing order"):
            randomize(values[: len(order)], channel, SecretDraws(), order)


def test_rows_are_a_range_where_they_are_one() -> None:
    for rows in (np.arange(5), np.arange(7, 9), np.array([3])):
        assert as_range(rows) == range(int(rows[0]), int(rows[-1]) + 1)
    for rows in (np.array([0, 1, 3]), np.zeros(0, dtype=np.int64)):
        assert as_range(rows) is rows
