"""Addresses of coins: positions, independence of splits, ranges, and golden words."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.coins import Address, Stream, normal, spans, uniform, words

# These words are the interface: another implementation of the addresses has to give the same.
GOLDEN = {
    Address(7, Stream.PRIVACY, 1000, 3, 0): (0, [13642464664826945938, 10118158494390723403, 18188750486743628632]),
    Address(7, Stream.LABELS, 1000, 3, 0): (5, [6700687963769119766, 12180544519072475897, 13155938180560377401]),
    Address((1 << 128) - 1, Stream.METRICS): (1, [8397243058147225183, 7908609996122305244, 6077403352165121559]),
}


@pytest.mark.parametrize("address", list(GOLDEN))
def test_golden_words(address: Address) -> None:
    start, expected = GOLDEN[address]
    assert words(address, start, len(expected)).tolist() == expected


@given(st.integers(0, 60), st.integers(0, 60))
def test_any_piece_is_a_piece_of_the_whole(start: int, count: int) -> None:
    address = Address(11, Stream.PROBLEM, 10, 2, 1)
    assert words(address, start, count).tolist() == words(address, 0, 120).tolist()[start : start + count]


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9)), max_size=8))
def test_pieces_in_any_order_are_pieces_of_the_whole(places: list[tuple[int, int]]) -> None:
    address = Address(11, Stream.PROBLEM, 10, 2, 1)
    whole = np.random.Philox(np.random.SeedSequence(11, spawn_key=(int(Stream.PROBLEM), 10, 2, 1))).random_raw(80)
    expected = [whole[start : start + count].tolist() for start, count in places]
    assert [drawn.tolist() for drawn in spans(address, places)] == expected


def test_threads_have_generators_of_their_own() -> None:
    """Four threads read long pieces of four sequences at once, each the words that it asked for."""
    addresses = [Address(3, Stream.LABELS, n) for n in range(4)]
    expected = [words(address, 9, 20_000).tolist() for address in addresses]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(10):
            found = pool.map(lambda address: words(address, 9, 20_000).tolist(), addresses)
            assert list(found) == expected


def test_streams_and_components_do_not_collide() -> None:
    addresses = [Address(5, stream, n, r, k) for stream in Stream for n in (0, 1) for r in (0, 1) for k in (0, 1)]
    first = {tuple(words(address, 0, 2).tolist()) for address in addresses}
    assert len(first) == len(addresses)


@pytest.mark.parametrize(
    ("name", "value"),
    [("seed", 1 << 128), ("seed", -1), ("n", 1 << 32), ("repetition", 1 << 32), ("round", -1)],
)
def test_components_out_of_range_are_refused(name: str, value: int) -> None:
    parts = {"seed": 1, "n": 1, "repetition": 1, "round": 1, name: value}
    with pytest.raises(ValueError, match=name):
        Address(stream=Stream.LABELS, **parts)


def test_uniform_is_open_and_symmetric_at_its_ends() -> None:
    ends = uniform(np.array([0, 2**64 - 1], dtype=np.uint64))
    assert ends.tolist() == [2.0**-53, 1 - 2.0**-53]
    low, high = normal(np.array([0, 2**64 - 1], dtype=np.uint64))
    assert low == pytest.approx(-high, rel=1e-12)
    assert 8.2 < high < 8.3


def test_global_numpy_seed_changes_nothing() -> None:
    address = Address(3, Stream.PRIVACY, 4)
    before = words(address, 0, 8).tolist()
    np.random.seed(42)
    assert words(address, 0, 8).tolist() == before
