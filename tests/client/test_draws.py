"""Coins of rows: addresses do not depend on who reads them, and both kinds are uniform."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from client.draws import FAR, AddressedDraws, Draws, SecretDraws
from protocol.coins import Address, Stream, words
from protocol.messages import Coins

N = 100_000


def test_an_address_is_the_documented_place() -> None:
    draws, rows = AddressedDraws(7, 40, 3), np.arange(40)
    privacy, escalation = (
        words(Address(7, Stream.PRIVACY, 40, 3), 0, 10),
        words(Address(7, Stream.ESCALATION, 40, 3), 0, 40),
    )
    lanes = [int(privacy[row // 4]) >> 16 * (row % 4) & 0xFFFF for row in range(40)]
    assert draws.lanes(rows).tolist() == lanes
    assert draws.escalations(rows).tolist() == [int(word) >> 17 for word in escalation]


@settings(max_examples=60, deadline=None)
@given(st.sets(st.one_of(st.integers(0, 300), st.integers(0, 20 * FAR), st.integers(0, (1 << 32) - 1)), max_size=40))
def test_a_row_has_its_coins_whoever_else_is_asked(chosen: set[int]) -> None:
    rows = np.array(sorted(chosen), dtype=np.int64)
    draws = AddressedDraws(11, (1 << 32) - 1, 2)
    alone = [np.array([row]) for row in rows]
    assert draws.lanes(rows).tolist() == [int(draws.lanes(row)[0]) for row in alone]
    assert draws.escalations(rows).tolist() == [int(draws.escalations(row)[0]) for row in alone]


def test_any_split_of_rows_gives_the_same_coins() -> None:
    draws, rows = AddressedDraws(7, N, 0), np.arange(N)
    for parts in (3, 8, 1000):
        split = np.array_split(rows, parts)
        assert (np.concatenate([draws.lanes(part) for part in split]) == draws.lanes(rows)).all()
    assert (draws.lanes(rows[5::7]) == draws.lanes(rows)[5::7]).all()


def test_repetitions_n_and_seeds_have_different_coins() -> None:
    rows = np.arange(64)
    first = AddressedDraws(7, 64, 0).lanes(rows)
    for other in (
        AddressedDraws(8, 64, 0),
        AddressedDraws(7, 65, 0),
        AddressedDraws(7, 64, 1),
        AddressedDraws(7, 64, 0, 1),
    ):
        assert (other.lanes(rows) != first).any()


def test_secret_coins_are_fresh_and_say_what_they_are() -> None:
    rows = np.arange(64)
    assert (SecretDraws().lanes(rows) != SecretDraws().lanes(rows)).any()  # equal by chance: 2^-1024
    assert (SecretDraws().escalations(rows) < 1 << 47).all()
    assert (SecretDraws().coins, AddressedDraws(7, 1, 0).coins) == (Coins.OS, Coins.ADDRESSED)


@pytest.mark.parametrize("draws", [AddressedDraws(7, N, 0), SecretDraws()])
def test_coins_are_uniform(draws: Draws) -> None:
    """Chi-square of the upper and lower byte of lanes and the upper byte of escalations; rate 3e-10 for each kind."""
    rows = np.arange(N)
    lanes, escalations = draws.lanes(rows), draws.escalations(rows)
    for byte in (lanes >> 8, lanes & 255, (escalations >> np.uint64(39)).astype(np.int64)):
        counts = np.bincount(byte, minlength=256)
        statistic = ((counts - N / 256) ** 2 / (N / 256)).sum()
        assert statistic < chi2.isf(1e-10, 255)


def test_no_rows_need_no_coins() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    for draws in (AddressedDraws(7, 5, 0), SecretDraws()):
        assert len(draws.lanes(nothing)) == len(draws.escalations(nothing)) == 0
