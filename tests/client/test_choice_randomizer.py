"""The exact laws of reports about top choices: by coins, by sets, and at the level that the channel states."""

import itertools
import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from client.choice_randomizer import randomize_choices, select_subsets, shuffled
from client.draws import AddressedDraws, SecretDraws
from protocol.channel import TOTAL
from protocol.choice_law import CHOICE_LOCAL, ONE, PAIR, SUBSET, ChoiceLaw
from protocol.choice_pairs import BITS, scaled
from protocol.mechanisms.random_pair import random_pair
from protocol.mechanisms.randomized_response import k_randomized_response
from protocol.mechanisms.subset_selection import SubsetChannel, subset_selection
from protocol.messages import Coins

STEP = 1 << 64 - BITS


class Listed:
    """One row's coins, given."""

    coins = Coins.OS

    def __init__(self, coin: int, steps: tuple[int, ...]) -> None:
        self._coin, self._steps = coin, steps

    def lanes(self, rows: NDArray[np.int64]) -> NDArray[np.uint16]:
        return np.array([self._coin >> 47], dtype=np.uint16)

    def escalations(self, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
        return np.array([self._coin & (1 << 47) - 1], dtype=np.uint64)

    def fair(self, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        raise AssertionError("no tie here")

    def steps(self, rows: NDArray[np.int64], count: int) -> NDArray[np.uint64]:
        assert count == len(self._steps)
        return np.array(self._steps, dtype=np.uint64)[:, None]


def cuts(count: int) -> list[tuple[int, int]]:
    """(a 56-bit draw, how many draws are the same number below `count`)."""
    edges = [-(-(value << BITS) // count) for value in range(count + 1)]
    return [(start, stop - start) for start, stop in itertools.pairwise(edges)]


def law_of(channel: SubsetChannel, value: int) -> dict[int, Fraction]:
    """P(set | value), by every class of coins."""
    found: Counter[int] = Counter()
    sides = ((0, channel.hit), (channel.hit, TOTAL - channel.hit))
    draws = [cuts(channel.choices - 1 - step) for step in range(channel.subset)]
    for coin, many in sides:
        for steps in itertools.product(*draws):
            weight = many * math.prod(size for _, size in steps)
            words = tuple(draw * STEP for draw, _ in steps)
            row = np.zeros(1, dtype=np.int64)
            made = select_subsets(np.array([value], dtype=np.uint8), channel, Listed(coin, words), row)
            found[int(made[0])] += weight
    return {made: Fraction(count, TOTAL << BITS * channel.subset) for made, count in found.items()}


@pytest.mark.parametrize("count", [1, 2, 3, 7, 62, 256])
def test_draws_below_a_number_change_where_they_should(count: int) -> None:
    for value, (first, many) in enumerate(cuts(count)):
        drawn = np.array([first, first + many - 1], dtype=np.uint64) << np.uint64(64 - BITS)
        assert scaled(drawn, count).tolist() == [value, value]
        assert many in {(1 << BITS) // count, -(-(1 << BITS) // count)}


@pytest.mark.parametrize("choices", [2, 3, 4, 5])
@pytest.mark.parametrize("subset", [1, 2, 3])
def test_the_law_of_sets_is_within_its_level(choices: int, subset: int) -> None:
    if subset >= choices:
        return
    channel = SubsetChannel(choices, subset, TOTAL * 3 * subset // (2 * choices + subset))
    laws = [law_of(channel, value) for value in range(choices)]
    sets = set().union(*laws)
    assert len(sets) == math.comb(choices, subset) and all(made.bit_count() == subset for made in sets)
    assert all(sum(law.values()) == 1 for law in laws)
    worst = max(max(law[made] for law in laws) / min(law[made] for law in laws) for made in sets)
    exact = Decimal(worst.numerator) / Decimal(worst.denominator)
    assert exact.ln() <= channel.level + Decimal("1e-27")
    assert channel.level < exact.ln() * (1 + Decimal("1e-12")) + Decimal("1e-12")
    hit = Fraction(channel.hit, TOTAL)
    for value, law in enumerate(laws):
        for made, chance in law.items():
            ideal = hit / math.comb(choices - 1, subset - 1)
            if not made >> value & 1:
                ideal = (1 - hit) / math.comb(choices - 1, subset)
            assert abs(chance / ideal - 1) < Fraction(1, 10**14)


@pytest.mark.parametrize("epsilon", ["1e-9", "0.1", "1", "3", "12", "40"])
@pytest.mark.parametrize("choices", [2, 3, 5, 17, 63])
def test_the_level_is_close_to_the_asked_one_and_never_above(epsilon: str, choices: int) -> None:
    asked = Decimal(epsilon)
    for name in CHOICE_LOCAL:
        law = ChoiceLaw(name, asked, (2, choices) if choices > 2 else (2,), b"s" * 32 if name == PAIR else b"")
        assert Decimal("0.99") * asked <= law.level <= asked


def test_one_choice_of_two_is_randomised_response() -> None:
    channel = subset_selection(Decimal(1), 2)
    assert channel.subset == 1
    assert abs(channel.hit - k_randomized_response(Decimal(1), 2).table[0][0]) <= 2
    assert random_pair(Decimal(1)).table[:2] == k_randomized_response(Decimal(1), 2).table


@pytest.mark.parametrize("size", [5, 10, 40])
def test_the_size_of_sets_is_the_best(size: int) -> None:
    """Total variance of the de-biased one-hot vector, scale^2 k (1 - k / K), over all sizes k."""
    growth = math.exp(0.7)

    def spread(k: int) -> float:
        hit = k * growth / (k * growth + size - k)
        return float((hit - (k - hit) / (size - 1)) ** -2 * k * (1 - k / size))

    assert subset_selection(Decimal("0.7"), size).subset == min(range(1, size), key=spread)


def test_a_shuffle_takes_each_once() -> None:
    words = np.random.default_rng(5).integers(0, 1 << 64, size=(9, 400), dtype=np.uint64)
    picked = shuffled(words, 9)
    assert (np.sort(picked, axis=0) == np.arange(9)[:, None]).all()


@pytest.mark.parametrize("name", CHOICE_LOCAL)
def test_a_row_has_its_own_size_and_coins(name: str) -> None:
    """Any split of rows gives the same reports, and each is about the choices of its row."""
    law = ChoiceLaw(name, Decimal(1), (2, 4, 7), b"s" * 32 if name == PAIR else b"")
    rows = np.arange(300, dtype=np.int64)
    sizes = np.array([2, 4, 7], dtype=np.int32)[rows % 3]
    values = (rows % sizes).astype(np.uint8)
    pairs = np.stack([np.zeros(300, dtype=np.int64), sizes - 1], axis=1) if name == PAIR else None
    draws = AddressedDraws(3, 300, 0)
    whole = randomize_choices(values, law, sizes, pairs, draws, rows)
    for part in (slice(0, 113), slice(113, 300), slice(1, 300, 7)):
        own = None if pairs is None else pairs[part]
        again = randomize_choices(values[part], law, sizes[part], own, AddressedDraws(3, 300, 0), rows[part])
        assert (again == whole[part]).all()
    limit = {ONE: sizes, PAIR: np.full(300, 2), SUBSET: np.uint64(1) << sizes.astype(np.uint64)}[name]
    assert (whole < limit).all()


@pytest.mark.parametrize("draws", [AddressedDraws(8, 1, 0), SecretDraws()])
def test_sampled_sets_follow_the_law(draws: AddressedDraws | SecretDraws) -> None:
    """10 sets of 5 choices, 60,000 rows: a sum of 10 squared normals is beyond 90 with probability 6e-15."""
    channel = SubsetChannel(5, 2, TOTAL * 2 // 3)
    rows = np.arange(60_000, dtype=np.int64)
    made = select_subsets(np.full(len(rows), 3, dtype=np.uint8), channel, draws, rows)
    found = Counter(made.tolist())
    total = 0.0
    for pair in itertools.combinations(range(5), 2):
        chance = (2 / 3) / 4 if 3 in pair else (1 / 3) / 6
        seen = found[sum(1 << place for place in pair)]
        total += (seen - len(rows) * chance) ** 2 / (len(rows) * chance)
    assert total < 90


def test_wrong_values_are_refused() -> None:
    law = ChoiceLaw(ONE, Decimal(1), (3,))
    rows, sizes = np.arange(2), np.full(2, 3, dtype=np.int32)
    with pytest.raises(ValueError, match="below the number"):
        randomize_choices(np.array([0, 3], dtype=np.uint8), law, sizes, None, SecretDraws(), rows)
    with pytest.raises(ValueError, match="rows of sizes"):
        randomize_choices(np.array([0, 1], dtype=np.uint8), law, sizes - 1, None, SecretDraws(), rows)
    with pytest.raises(ValueError, match="expected subset-selection"):
        law.subsets(3)
    with pytest.raises(ValueError, match="expected a mechanism for choices"):
        ChoiceLaw("randomized-response", Decimal(1), (3,))
