"""Coins of the randomiser: the operating system's, or addressed ones in a simulation. The caller picks; no default.

A row owns a lane of 16 bits, and 47 further bits that are read only where the lane leaves its outcome open.
"""

import os
from dataclasses import replace
from itertools import pairwise
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from client.compiled import kernels
from protocol.coins import Address, Stream, Words, key_of, spans
from protocol.messages import Coins

Rows = NDArray[np.int64]
Places = NDArray[np.int64] | range  # rows; a range needs no memory and no look at each
ESCALATION_BITS = 47
LANES = 4  # in a word
MOST_STEPS = 64  # words of one row that shuffle its choices
FAR = 512  # where two rows are farther apart, another seek is cheaper than reading on
FEW_BYTES = 1 << 12  # below, the system's own bytes cost less than a key and a cipher
KEY_BYTES, NONCE_BYTES = 32, 16
_ZEROS = np.zeros(1 << 18, dtype=np.uint8).data  # what a key encrypts at most


class Draws(Protocol):
    """Uniform coins of rows: together, lane * 2^47 + escalation is uniform on 0, ..., 2^63 - 1."""

    @property
    def coins(self) -> Coins:
        """Where they come from, for the report."""

    def lanes(self, rows: Places) -> NDArray[np.uint16]:
        """16 bits for each row."""

    def escalations(self, rows: Rows) -> Words:
        """47 bits for each row, as uint64."""

    def fair(self, rows: Rows) -> NDArray[np.uint8]:
        """A fair bit for each row, which decides a tie."""

    def steps(self, rows: Rows, count: int) -> Words:
        """`count` words for each row, which shuffle choices; shape (count, rows)."""

    def vectors(self, rows: Rows, count: int) -> Words:
        """`count` words for each row, which randomise its numbers; shape (rows, count)."""

    def roundings(self, rows: Rows, count: int) -> Words:
        """`count` words for each row, which round its numbers to a grid; shape (rows, count)."""


class AddressedDraws:
    """Coins of a simulation: reproducible, independent of how rows are split; they protect nobody.

    Lane of row r: bits 16 (r % 4), ..., 16 (r % 4) + 15 of word r // 4 in stream PRIVACY (lane 0 is the lowest).
    Escalation of row r: the top 47 bits of word r in stream ESCALATION. Fair bit of row r: the top bit of word r in
    stream LABELS, which draws synthetic labels and is free where labels come from a file.
    """

    coins = Coins.ADDRESSED

    def __init__(self, seed: int, n: int, repetition: int, round: int = 0) -> None:
        self._lanes = Address(seed, Stream.PRIVACY, n, repetition, round)

    @property
    def key(self) -> tuple[int, int]:
        """Of the sequence that all lanes are from."""
        return key_of(self._lanes)

    def lanes(self, rows: Places) -> NDArray[np.uint16]:
        """The row's lane; rows in increasing order."""
        runs, lines = _lines(rows, FAR, LANES)
        held = _read(self._lanes, [(start // LANES, count // LANES) for start, count in runs])
        return held.astype("<u8", copy=False).view("<u2")[lines]

    def escalations(self, rows: Rows) -> Words:
        """The row's escalation; rows in increasing order."""
        return self._words(Stream.ESCALATION, rows)[:, 0] >> np.uint64(64 - ESCALATION_BITS)

    def fair(self, rows: Rows) -> NDArray[np.uint8]:
        """The row's fair bit; rows in increasing order."""
        return (self._words(Stream.LABELS, rows)[:, 0] >> np.uint64(63)).astype(np.uint8)

    def steps(self, rows: Rows, count: int) -> Words:
        """Step j is the row's word of a sequence of its own; rows in increasing order."""
        if count > MOST_STEPS:
            raise ValueError(f"expected at most {MOST_STEPS} steps, got {count}")
        first = self._lanes.round * MOST_STEPS
        drawn = [self._words(Stream.SUBSETS, rows, round=first + step) for step in range(count)]
        return np.array(drawn, dtype=np.uint64).reshape(count, len(rows))

    def vectors(self, rows: Rows, count: int) -> Words:
        """Words r count, ..., r count + count - 1 of stream NUMBERS for row r; rows in increasing order."""
        if count < 1:
            raise ValueError(f"expected at least 1 word a row, got {count}")
        return self._words(Stream.NUMBERS, rows, count)

    def roundings(self, rows: Rows, count: int) -> Words:
        """Words r count, ..., r count + count - 1 of stream ROUNDING for row r; rows in increasing order."""
        return self._words(Stream.ROUNDING, rows, count)

    def _words(self, stream: Stream, rows: Rows, count: int = 1, **place: int) -> Words:
        """Words r count, ..., r count + count - 1 of a sequence for each row r, shape (rows, count)."""
        runs, lines = _lines(rows, FAR // count, 1)
        address = replace(self._lanes, stream=stream, **place)
        held = _read(address, [(start * count, size * count) for start, size in runs])
        return held.reshape(-1, count)[lines]


class SecretDraws:
    """Coins of the operating system: fresh at every call, known to nobody.

    A few bytes are the system's own. More are AES-256 in counter mode under a key and a nonce of the system's, 256 kB
    at most of each and then forgotten: no call leaves a state that a fork could share or a later leak give away.
    Whoever tells such bytes from uniform ones breaks AES-256 as a pseudo-random generator: that is assumed, as it is of
    the system's own generator. Source: derived, see docs/PRIVACY.md.
    """

    coins = Coins.OS

    def lanes(self, rows: Places) -> NDArray[np.uint16]:
        """Fresh bits; the rows only say how many."""
        return _secret(2 * len(rows)).view("<u2").astype(np.uint16, copy=False)

    def escalations(self, rows: Rows) -> Words:
        """Fresh bits; the rows only say how many."""
        return _secret_words(len(rows)) >> np.uint64(64 - ESCALATION_BITS)

    def fair(self, rows: Rows) -> NDArray[np.uint8]:
        """Fresh bits; the rows only say how many."""
        return _secret(len(rows)) & np.uint8(1)

    def steps(self, rows: Rows, count: int) -> Words:
        """Fresh bits; the rows only say how many."""
        return _secret_words(count * len(rows)).reshape(count, len(rows))

    def vectors(self, rows: Rows, count: int) -> Words:
        """Fresh bits; the rows only say how many."""
        return _secret_words(count * len(rows)).reshape(len(rows), count)

    def roundings(self, rows: Rows, count: int) -> Words:
        """Fresh bits; the rows only say how many."""
        return self.vectors(rows, count)


def _secret(count: int) -> NDArray[np.uint8]:
    """Bytes that nobody knows, by `SecretDraws`. Raises OSError where the system has none to give."""
    if count < FEW_BYTES:
        return np.frombuffer(os.urandom(count), dtype=np.uint8)
    drawn = np.empty(count + NONCE_BYTES - 1, dtype=np.uint8)  # the cipher wants room for a block in part
    for start in range(0, count, len(_ZEROS)):
        plain = _ZEROS[: count - start]
        secret = os.urandom(KEY_BYTES + NONCE_BYTES)
        cipher = Cipher(algorithms.AES(secret[:KEY_BYTES]), modes.CTR(secret[KEY_BYTES:]))
        made = cipher.encryptor().update_into(plain, drawn.data[start:])
        if made != len(plain):
            raise OSError(f"expected {len(plain)} secret bytes, got {made}")
    return drawn[:count]


def _secret_words(count: int) -> Words:
    return _secret(8 * count).view("<u8").astype(np.uint64, copy=False)


def _lines(rows: Places, far: int, unit: int) -> tuple[list[tuple[int, int]], slice | NDArray[np.int64]]:
    """Which lines to read for increasing rows, line r being row r's, and where among these each row's is.

    Lines are read in runs of (first, how many), both multiples of `unit`: as many as there are gaps above `far`.
    """
    if not len(rows):
        return [], slice(0)
    first, last = int(rows[0]), int(rows[-1])
    if last - first < far + len(rows):
        start = first - first % unit
        dense = last - first + 1 == len(rows)
        lines = slice(first - start, last - start + 1) if dense else np.asarray(rows) - start
        return [(start, last - last % unit + unit - start)], lines
    numbers = np.asarray(rows)
    cuts = (numbers[1:] - numbers[:-1] > far).nonzero()[0] + 1
    if unit == 1 and len(cuts) == len(numbers) - 1:  # each alone
        return [(row, 1) for row in numbers.tolist()], slice(None)
    edges = [0, *cuts.tolist(), len(numbers)]
    starts = numbers[edges[:-1]] // unit * unit
    stops = (numbers[[edge - 1 for edge in edges[1:]]] // unit + 1) * unit
    sizes = stops - starts
    shifts = np.cumsum(sizes) - stops  # lines held before a run, less its first line
    lines = numbers + np.repeat(shifts, [stop - start for start, stop in pairwise(edges)])
    return list(zip(starts.tolist(), sizes.tolist(), strict=True)), lines


def _read(address: Address, runs: list[tuple[int, int]]) -> Words:
    """Words start, ..., start + count - 1 of a sequence for each run of (start, count), joined."""
    fast = kernels(sum(count for _, count in runs))
    if fast is not None:
        found: Words = fast.words(key_of(address), runs)
        return found
    parts = spans(address, runs)
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, dtype=np.uint64), *parts])


def password() -> str:
    """A word that nobody guesses, 256 bits of the system's in hexadecimal: it lets in whom the holder told it."""
    return os.urandom(KEY_BYTES).hex()


def session_secret() -> bytes:
    """32 secret bytes, from which all keys of one session of secure aggregation are derived."""
    return os.urandom(KEY_BYTES)


def nonce() -> bytes:
    """12 bytes that no other message under the same key has, but with a chance below 2^-32 for 2^32 of them."""
    return os.urandom(12)


def marks(count: int) -> bytes:
    """`count` times 16 bytes of the system's: each tells a report from a copy of another one, and nothing else."""
    return os.urandom(16 * count)


def permutation(count: int) -> NDArray[np.int64]:
    """An order of `count` things, each as likely as any other, from the system's entropy: nobody knows what was where.

    By sorting keys of 128 bits, drawn again in the one case in 2^88 that two of a million are alike.
    """
    while True:
        keys = np.frombuffer(os.urandom(16 * count), dtype="<u8").reshape(count, 2)
        order = np.lexsort((keys[:, 1], keys[:, 0]))
        held = keys[order]
        if not (held[1:] == held[:-1]).all(axis=1).any():
            return order.astype(np.int64, copy=False)
