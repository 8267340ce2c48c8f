"""Coins of rows: addresses do not depend on who reads them, and both kinds are uniform."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from client.draws import FAR, FEW_BYTES, AddressedDraws, Draws, SecretDraws
from protocol.coins import Address, Stream, words
from protocol.messages import Coins

pytestmark = pytest.mark.usefixtures("either_way")

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


@settings(max_examples=60)
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


@settings(max_examples=40)
@given(st.integers(0, 50), st.integers(1, 300), st.sampled_from([1, 2, 5, FAR, FAR + 1]))
def test_a_range_has_the_coins_of_its_rows(start: int, count: int, step: int) -> None:
    draws, rows = AddressedDraws(7, N, 1), range(start, start + count * step, step)
    assert draws.lanes(rows).tolist() == draws.lanes(np.array(rows)).tolist()


@pytest.mark.parametrize("gap", [FAR - 1, FAR, FAR + 1, FAR + 2])
def test_reading_on_and_seeking_give_the_same_coins(gap: int) -> None:
    draws, rows = AddressedDraws(7, N, 1), np.array([5, 6, 6 + gap, 7 + gap, 7 + 2 * gap, 7 + 9 * gap])
    whole = np.arange(rows[-1] + 1)
    for coins in (draws.lanes, draws.escalations, draws.fair):
        assert coins(rows).tolist() == coins(whole)[rows].tolist()
    assert draws.vectors(rows, 3).tolist() == draws.vectors(whole, 3)[rows].tolist()
    assert draws.steps(rows, 2).tolist() == draws.steps(whole, 2)[:, rows].tolist()


class Entropy:
    """The system's bytes as given, and how many were asked for at a time."""

    def __init__(self, nonce: int) -> None:
        self._nonce = nonce.to_bytes(16, "big")
        self.asked: list[int] = []

    def __call__(self, count: int) -> bytes:
        self.asked.append(count)
        return bytes([len(self.asked)] * 32) + self._nonce if count == 48 else bytes(count)


def stream(key: bytes, nonce: int, count: int) -> bytes:
    """AES-256 of nonce, nonce + 1, ... modulo 2^128: block by block, without a counter mode."""
    blocks = [((nonce + block) % (1 << 128)).to_bytes(16, "big") for block in range(-(-count // 16))]
    cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    return cipher.update(b"".join(blocks))[:count]


@pytest.mark.parametrize("nonce", [0, 12345 << 64, (1 << 128) - 2])
@pytest.mark.parametrize("rows", [FEW_BYTES // 2, FEW_BYTES // 2 + 1, 1 << 17, (1 << 17) + 1, (1 << 18) + 77])
def test_many_secret_bytes_are_aes_under_fresh_keys(monkeypatch: pytest.MonkeyPatch, nonce: int, rows: int) -> None:
    entropy = Entropy(nonce)
    monkeypatch.setattr("client.draws.os.urandom", entropy)
    found = SecretDraws().lanes(np.arange(rows)).astype("<u2").tobytes()
    sizes = [min(1 << 18, 2 * rows - start) for start in range(0, 2 * rows, 1 << 18)]
    assert entropy.asked == [48] * len(sizes)
    expected = [stream(bytes([place + 1] * 32), nonce, size) for place, size in enumerate(sizes)]
    assert found == b"".join(expected)


def test_few_secret_bytes_are_the_systems_and_many_have_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    entropy, draws = Entropy(0), SecretDraws()
    monkeypatch.setattr("client.draws.os.urandom", entropy)
    for size, coins in (
        (1, draws.fair),
        (2, draws.lanes),
        (8, draws.escalations),
        (32, lambda rows: draws.vectors(rows, 4)),
        (64, lambda rows: draws.steps(rows, 8)),
    ):
        entropy.asked.clear()
        coins(np.arange(FEW_BYTES // size - 1))
        coins(np.arange(FEW_BYTES // size))
        assert entropy.asked == [FEW_BYTES - size, 48]


FORKS = """
import os, sys
import numpy as np
from client.draws import SecretDraws
draws, rows = SecretDraws(), np.arange(1 << 14)
draws.lanes(rows)
for child in range(3):
    if not os.fork():
        break
else:
    child = 3
    for _ in range(3):
        os.wait()
open(sys.argv[1] + str(child), "wb").write(draws.lanes(rows).tobytes() + draws.lanes(rows[:64]).tobytes())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_forks_share_no_stream(tmp_path: Path) -> None:
    """A process that has drawn before and three forks of it: all 16-byte blocks differ (by chance not: 2^-101)."""
    root = Path(__file__).resolve().parents[2]
    subprocess.run([sys.executable, "-c", FORKS, str(tmp_path / "drawn")], cwd=root, check=True)
    drawn = [(tmp_path / f"drawn{child}").read_bytes() for child in range(4)]
    blocks = [one[place : place + 16] for one in drawn for place in range(0, len(one), 16)]
    assert len(set(blocks)) == len(blocks) == 4 * ((1 << 15) + 128) // 16
