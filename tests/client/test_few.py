"""A few values go through the same law, coin for coin, as many."""

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from client import randomizer
from client.draws import AddressedDraws
from client.few import FEW_ROWS
from client.shared_draws import FEW, WINDOW, SharedDraws, shared_draws
from protocol.channel import TOTAL, DiscreteChannel
from protocol.mechanisms.randomized_response import k_randomized_response, randomized_response
from protocol.messages import Coins
from protocol.terms import with_coin

BINARY = randomized_response(Decimal(1))
CHANNELS = [BINARY, with_coin(BINARY), *(k_randomized_response(Decimal(2), count) for count in (3, 4))]
LOW = 1 << 47


class Given:
    """Coins given by row."""

    coins = Coins.OS

    def __init__(self, coins: list[int]) -> None:
        self._coins = np.array(coins, dtype=np.uint64)
        self.read: list[int] = []

    def lanes(self, rows: NDArray[np.int64]) -> NDArray[np.uint16]:
        return (self._coins[np.asarray(rows)] >> np.uint64(47)).astype(np.uint16)

    def escalations(self, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
        self.read.extend(rows.tolist())
        return self._coins[rows] & np.uint64(LOW - 1)


def alone(value: int, coin: int, channel: DiscreteChannel) -> tuple[int, bool]:
    """The symbol of one value by one coin, and whether the escalation was read."""
    draws = Given([coin])
    values = np.array([value], dtype=np.uint8)
    (symbol,) = randomizer.randomize(values, channel, draws, range(1))  # type: ignore[arg-type]
    return int(symbol), bool(draws.read)


@pytest.mark.parametrize("channel", CHANNELS)
def test_coins_at_every_edge(channel: DiscreteChannel) -> None:
    """Every threshold of every value, the coins beside it, and the borders of its lane."""
    tops = {threshold // LOW for threshold in channel.thresholds.ravel().tolist()}
    for threshold in channel.thresholds.ravel().tolist():
        lane = threshold // LOW
        near = {threshold - 1, threshold, threshold + 1, lane * LOW, lane * LOW - 1, (lane + 1) * LOW, 0, TOTAL - 1}
        for coin in (coin for coin in near if 0 <= coin < TOTAL):
            for value, cuts in enumerate(channel.thresholds.tolist()):
                assert alone(value, coin, channel) == (sum(cut <= coin for cut in cuts), coin // LOW in tops)


@settings(max_examples=100)
@given(st.integers(1, FEW_ROWS), st.integers(0, 3), st.randoms(use_true_random=False))
def test_few_values_get_what_they_get_among_many(count: int, which: int, random: object) -> None:
    channel, many = CHANNELS[which], 10 * FEW_ROWS
    values = (np.arange(many) % len(channel.table)).astype(np.uint8)
    expected = randomizer.randomize(values, channel, AddressedDraws(7, many, 0), np.arange(many))
    rows = np.array(sorted(random.sample(range(many), count)))  # type: ignore[attr-defined]
    assert (randomizer.randomize(values[rows], channel, AddressedDraws(7, many, 0), rows) == expected[rows]).all()
    assert (randomizer.randomize(values[rows], channel, SharedDraws(7, many, 0), rows) == expected[rows]).all()


@pytest.mark.parametrize("count", [1, FEW_ROWS, FEW_ROWS + 1])
def test_values_that_the_table_does_not_have(count: int) -> None:
    with pytest.raises(ValueError, match="values below 2"):
        randomizer.randomize(np.full(count, 2, dtype=np.uint8), BINARY, AddressedDraws(7, 99, 0), range(count))


def test_a_window_has_the_lanes_of_its_rows() -> None:
    n = 3 * WINDOW
    shared, plain = shared_draws(7, n, 1, 0), AddressedDraws(7, n, 1)
    assert shared_draws(7, n, 1, 0) is shared
    scattered = np.array([3, 70, 71, WINDOW - 1, WINDOW + 2])
    for rows in (
        range(5),
        range(WINDOW - 1, WINDOW + 1),
        range(FEW + 1),
        range(2 * WINDOW, 2 * WINDOW + FEW),
        range(0),
    ):
        assert (shared.lanes(rows) == plain.lanes(rows)).all()
        assert (shared.lanes(np.arange(rows.start, rows.stop)) == plain.lanes(rows)).all()
    for rows_of_a_file in (scattered[:4], scattered, scattered[-1:]):
        assert (shared.lanes(rows_of_a_file) == plain.lanes(rows_of_a_file)).all()
    with pytest.raises(ValueError, match="read-only"):
        shared.lanes(range(2))[0] = 1
