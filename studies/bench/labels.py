"""Randomised response on one core: with addressed coins, and with the operating system's."""

import os
from decimal import Decimal
from importlib import import_module

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from client.draws import ESCALATION_BITS, AddressedDraws, Places, SecretDraws
from client.randomizer import BLOCK, Values, randomize
from protocol.channel import DiscreteChannel
from protocol.coins import Address, Stream, Words, words
from protocol.mechanisms.randomized_response import k_randomized_response, randomized_response
from studies.bench.figure import Prepared, Side, installed

SEED, EPSILON = 7, Decimal(1)
MANY, SOME = 1 << 20, BLOCK + 1000
BINARY = randomized_response(EPSILON)
CHANNELS = (BINARY, *(k_randomized_response(EPSILON, count) for count in (3, 16)))
LOWEST, HIGHEST = 0, (1 << ESCALATION_BITS) - 1


def addressed(small: bool) -> Prepared:
    """Coins of a simulation, beside floating-point numbers of numpy's own generator; the limit is compiled Philox.

    The process has the compiler that a server needs: a client without one has numpy alone.
    """
    kernels = import_module("client.kernels")
    n = SOME if small else MANY
    values, keep, generator = _values(n, 2), float(BINARY.probability(0, 0)), np.random.default_rng(SEED)

    made = np.empty((BLOCK // kernels.ROWS, 4), dtype=np.uint64)
    counters = np.empty((4, kernels.PLANE), dtype=np.uint64)

    def philox() -> None:
        for start in range(0, n // kernels.ROWS, len(made)):
            kernels.fill(np.uint64(SEED), np.uint64(n), start, made, counters)

    def others() -> list[int]:
        client = import_module("multi_freq_ldpy.pure_frequency_oracles.GRR").GRR_Client
        return [client(value, 2, float(EPSILON)) for value in values.tolist()]

    ours = Side("halftruth", lambda: randomize(values, BINARY, AddressedDraws(SEED, n, 0), range(n)))
    numpy = Side("numpy random(n) < p", lambda: values ^ (generator.random(n) >= keep))
    slow = installed("multi_freq_ldpy") and not small  # it compiles at every start
    peers = (numpy, Side("multi-freq-ldpy", others)) if slow else (numpy,)
    return Prepared(ours, peers, n, "M labels/s", _agree_with_philox, Side("Philox", philox))


def secret(small: bool) -> Prepared:
    """Coins of the operating system, exact to 2^-63, beside its own bytes; the limit is AES-256 in counter mode."""
    n = SOME if small else MANY
    values, keep = _values(n, 2), np.uint64(BINARY.table[0][0])
    zeros, made = np.zeros(2 * BLOCK, dtype=np.uint8), np.empty(2 * BLOCK + 15, dtype=np.uint8)

    def stream() -> None:
        cipher = Cipher(algorithms.AES(bytes(32)), modes.CTR(bytes(16))).encryptor()
        for start in range(0, n, BLOCK):
            cipher.update_into(zeros[: 2 * min(BLOCK, n - start)].data, made.data)

    def urandom() -> Values:
        return values ^ (np.frombuffer(os.urandom(8 * n), dtype="<u8") >> np.uint64(1) >= keep)

    ours = Side("halftruth", lambda: randomize(values, BINARY, SecretDraws(), range(n)))
    peers = (Side("os.urandom, 63 bits a label", urandom),)
    return Prepared(ours, peers, n, "M labels/s", _agree_with_coins_read, Side("AES-256-CTR", stream))


def _agree_with_philox() -> None:
    """The same bits as whole coins out of numpy's Philox, compared with all thresholds."""
    for channel in CHANNELS:
        values = _values(SOME, len(channel.table))
        lanes = _philox(Stream.PRIVACY, SOME // 4).astype("<u8").view("<u2")
        expected = _defined(values, channel, lanes, _philox(Stream.ESCALATION, SOME) >> np.uint64(17))
        assert (randomize(values, channel, AddressedDraws(SEED, SOME, 0), range(SOME)) == expected).all()


def _agree_with_coins_read() -> None:
    """The same bits as whole coins, whatever those bits are that nobody read."""
    for channel in CHANNELS:
        values, draws = _values(SOME, len(channel.table)), _Kept()
        symbols = randomize(values, channel, draws, range(SOME))
        for rest in (LOWEST, HIGHEST):
            low = np.full(SOME, rest, dtype=np.uint64)
            low[draws.read] = draws.low
            assert (symbols == _defined(values, channel, np.concatenate(draws.high), low)).all()


class _Kept(SecretDraws):
    """The operating system's coins, remembered."""

    def __init__(self) -> None:
        self.high: list[NDArray[np.uint16]] = []
        self.read: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self.low: Words = np.empty(0, dtype=np.uint64)

    def lanes(self, rows: Places) -> NDArray[np.uint16]:
        self.high.append(super().lanes(rows))
        return self.high[-1]

    def escalations(self, rows: NDArray[np.int64]) -> Words:
        self.read, self.low = rows, super().escalations(rows)
        return self.low


def _defined(values: Values, channel: DiscreteChannel, lanes: NDArray[np.uint16], low: Words) -> Values:
    """How many thresholds of a value are at most its coin, lane * 2^47 + low."""
    coins = lanes.astype(np.uint64) << np.uint64(ESCALATION_BITS) | low
    symbols = np.zeros(len(values), dtype=np.uint8)
    for column in channel.thresholds.T:
        symbols += column[values] <= coins
    return symbols


def _philox(stream: Stream, count: int) -> Words:
    sequence = np.random.SeedSequence(SEED, spawn_key=(int(stream), SOME, 0, 0))
    return np.random.Philox(sequence).random_raw(count)


def _values(n: int, count: int) -> Values:
    return (words(Address(SEED, Stream.LABELS, n), 0, n) % np.uint64(count)).astype(np.uint8)
