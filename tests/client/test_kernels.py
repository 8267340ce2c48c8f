"""Compiled coins and choices: known answers, numpy's generator, and the numpy way to the same symbols, to the bit."""

import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from client import compiled, kernels, randomizer
from client.draws import ESCALATION_BITS, AddressedDraws, SecretDraws
from client.randomizer import BLOCK, FEW, randomize
from client.sources.table import Table
from protocol.channel import DiscreteChannel
from protocol.codec import decode_reply, encode_task
from protocol.coins import Address, Stream, key_of, spans
from protocol.mechanisms.randomized_response import k_randomized_response, randomized_response
from protocol.messages import Refusal, Task

ROOT = Path(__file__).resolve().parents[2]
WORD = st.integers(0, (1 << 64) - 1)
ALL_ONES = (1 << 64) - 1
CHANNELS = [
    randomized_response(Decimal(1)),
    randomized_response(Decimal("1e-9")),
    randomized_response(Decimal(40)),
    *(k_randomized_response(Decimal(2), count) for count in (3, 4, 5, 256)),
    DiscreteChannel(((1 << 62, 1 << 62), (1, (1 << 63) - 1), ((1 << 63) - 1, 1))),
    DiscreteChannel(((5, 1 << 60, (1 << 63) - (1 << 60) - 5), (1 << 61, 7, (1 << 63) - (1 << 61) - 7))),
]
# Random123's known answers for philox4x64-10: counter, key, words.
KNOWN = [
    ([0] * 4, [0] * 2, "16554d9eca36314c db20fe9d672d0fdc d7e772cee186176b 7e68b68aec7ba23b"),
    ([ALL_ONES] * 4, [ALL_ONES] * 2, "87b092c3013fe90b 438c3c67be8d0224 9cc7d7c69cd777b6 a09caebf594f0ba0"),
    (
        [0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89],
        [0x452821E638D01377, 0xBE5466CF34E90C6C],
        "a528f45403e61d95 38c72dbd566e9788 a5a1610e72fd18b5 57bd43b5e52b7fe6",
    ),
]


def by_numpy(values: NDArray[np.uint8], channel: DiscreteChannel, n: int, rows: range | NDArray[np.int64]) -> object:
    """Symbols with coins and choices of numpy."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("client.randomizer", "client.draws"):
            patch.setattr(f"{module}.kernels", lambda work: None)
        return randomize(values, channel, AddressedDraws(7, n, 3), rows).tolist()


def by_kernels(values: NDArray[np.uint8], channel: DiscreteChannel, n: int, rows: range | NDArray[np.int64]) -> object:
    """Symbols with compiled coins and choices, however few."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("client.randomizer", "client.draws"):
            patch.setattr(f"{module}.kernels", lambda work: kernels)
        return randomize(values, channel, AddressedDraws(7, n, 3), rows).tolist()


def values_for(channel: DiscreteChannel, n: int) -> NDArray[np.uint8]:
    """Every value that the channel takes, in no order."""
    return (np.arange(n) * 31 % 509 % min(len(channel.table), 256)).astype(np.uint8)


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN)
def test_known_answers_of_philox(counter: list[int], key: list[int], expected: str) -> None:
    """In every place of a plane, full or not."""
    for count in (1, kernels.PLANE - 1, kernels.PLANE):
        plane = np.zeros((4, kernels.PLANE), dtype=np.uint64)
        plane[:, :count] = np.array(counter, dtype=np.uint64)[:, None]
        kernels.philox(plane, np.uint64(key[0]), np.uint64(key[1]), count)
        words = [int(word, 16) for word in expected.split()]
        assert (plane[:, :count] == np.array(words, dtype=np.uint64)[:, None]).all()
        assert not plane[:, count:].any()


@given(WORD, WORD)
def test_a_product_is_exact(a: int, b: int) -> None:
    high, low = kernels.product(np.uint64(a), np.uint64(b))
    assert (int(high) << 64) + int(low) == a * b


@settings(max_examples=60)
@given(st.tuples(WORD, WORD), st.integers(0, (1 << 62) - 1), st.integers(1, 80))
def test_blocks_are_those_of_numpys_generator(key: tuple[int, int], first: int, count: int) -> None:
    blocks = np.empty((count, 4), dtype=np.uint64)
    kernels.fill(np.uint64(key[0]), np.uint64(key[1]), first, blocks, np.empty((4, kernels.PLANE), dtype=np.uint64))
    generator = np.random.Philox(key=np.array(key, dtype=np.uint64), counter=np.array([first, 0, 0, 0], np.uint64))
    assert (blocks.reshape(-1) == generator.random_raw(4 * count)).all()


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 1 << 60), st.integers(0, 700)), max_size=8))
def test_words_are_those_of_an_address(runs: list[tuple[int, int]]) -> None:
    here = Address(11, Stream.PRIVACY, 5, 2)
    expected = np.concatenate([np.empty(0, dtype=np.uint64), *spans(here, runs)])
    assert kernels.words(key_of(here), runs).tolist() == expected.tolist()


def test_words_before_a_sequence_are_refused() -> None:
    for runs in ([(0, 4), (-1, 2)], [(3, -1)]):
        with pytest.raises(ValueError, match="expected start >= 0 and count >= 0"):
            kernels.words((1, 2), runs)


@settings(max_examples=50)
@given(
    st.sampled_from(CHANNELS),
    st.integers(0, 3 * kernels.ROWS + 1),
    st.one_of(st.integers(9, 100), st.integers(kernels.TILE - 40, kernels.TILE + 40), st.integers(9, 5000)),
    st.integers(1, 3),
)
def test_symbols_are_numpys_wherever_rows_begin(channel: DiscreteChannel, start: int, count: int, step: int) -> None:
    n, rows = 1 << 14, range(start, start + count * step, step)
    values = values_for(channel, n)[: len(rows)]
    assert by_kernels(values, channel, n, rows) == by_numpy(values, channel, n, rows)


@pytest.mark.parametrize("channel", CHANNELS)
def test_symbols_are_numpys_over_blocks_and_gaps(channel: DiscreteChannel) -> None:
    """So many rows that lanes meet thresholds; dense, with gaps, and split among channels as personal levels are."""
    n = BLOCK + 5000
    values, rows = values_for(channel, n), np.arange(n)
    mine = np.random.default_rng(1).random(n) < 0.3  # the rows of one level
    for some in (range(n), range(7, n), rows[mine], rows[~mine], np.delete(rows, slice(60_000, 62_000)), rows[::999]):
        own = values[np.asarray(some)]
        assert by_kernels(own, channel, n, some) == by_numpy(own, channel, n, some)


@pytest.mark.parametrize("channel", CHANNELS)
def test_lanes_that_leave_the_symbol_open_are_reported(channel: DiscreteChannel) -> None:
    """All lanes there are, thresholds among them: symbols, places and lanes of numpy's way, for each value."""
    tops = (channel.thresholds >> np.uint64(ESCALATION_BITS)).astype(np.uint16)
    is_top = randomizer._is_top(tops) if tops.size > FEW else np.zeros(0, dtype=np.bool_)
    lanes = np.arange(1 << 16).astype(np.uint16)
    for value in range(min(len(channel.table), 4)):
        values = np.full(len(lanes), value, dtype=np.uint8)
        found, expected = np.empty_like(values), np.empty_like(values)
        scratch = np.empty((2, len(lanes)), dtype=np.uint8)
        at, tied = kernels.select(tops, is_top, values, lanes, found)
        places, met = randomizer._by_numpy(scratch, tops, is_top, values, lanes, expected)
        assert (found == expected).all()
        assert set(tied.tolist()) == set(tops.ravel().tolist())
        assert at.tolist() == places.tolist() and tied.tolist() == met.tolist()


def test_any_kind_of_memory_gives_the_same() -> None:
    channel, n = CHANNELS[0], 3000
    values = values_for(channel, n)
    expected = by_numpy(values, channel, n, range(n))
    frozen, spread = values.copy(), np.repeat(values, 2)[::2]
    frozen.flags.writeable = False
    assert by_kernels(frozen, channel, n, range(n)) == by_kernels(spread, channel, n, range(n)) == expected


def test_lanes_that_do_not_fit_are_refused() -> None:
    tops, none, values = np.array([[1], [2]], np.uint16), np.zeros(0, np.bool_), np.zeros(5, np.uint8)
    with pytest.raises(ValueError, match="expected a lane and a symbol a value"):
        kernels.select(tops, none, values, np.zeros(4, np.uint16), values.copy())
    with pytest.raises(ValueError, match="expected a lane and a symbol a value"):
        kernels.select(tops, none, values, np.zeros(5, np.uint16), np.zeros(4, np.uint8))
    with pytest.raises(ValueError, match="row >= 0"):
        kernels.select_addressed(tops, none, values, (1, 2), -1, values.copy())


def test_compiled_secret_coins_follow_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flips of 400,000 labels within 6.5 standard deviations: rate 8e-11."""
    monkeypatch.setattr("client.randomizer.kernels", lambda work: kernels)
    channel, values = CHANNELS[0], (np.arange(400_000) % 2).astype(np.uint8)
    flips = int((randomize(values, channel, SecretDraws(), range(400_000)) != values).sum())
    flip = float(channel.probability(0, 1))
    assert abs(flips - 400_000 * flip) < 6.5 * (400_000 * flip * (1 - flip)) ** 0.5


def test_numpy_does_little_work_and_a_process_without_a_compiler_does_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_kernels", compiled.functools.cache(lambda: kernels))
    assert compiled.kernels(compiled.PAYS - 1) is None
    monkeypatch.delitem(sys.modules, "numba")
    assert compiled.kernels(compiled.ALONE - 1) is None
    assert compiled.kernels(compiled.ALONE) is kernels
    assert compiled.kernels(1) is kernels, "what is there is used"


ANSWERS = """
import sys
from pathlib import Path
from client.labeler import Node, answer
from client.ledger import DiskLedger
from client.policy import Policy
from client.sources.loading import read_table
from protocol.store import FeatureStore
folder = Path(sys.argv[1])
ledger = DiskLedger(folder / "state" / "ledger.sqlite", 30.0)
node = Node(read_table(folder / "votes.csv", False), Policy(), ledger, "os", FeatureStore(None))
(folder / "reply").write_bytes(answer((folder / "task").read_bytes(), node))
assert "numba" not in sys.modules
"""


def test_a_node_that_answers_a_task_imports_no_compiler(tmp_path: Path, desk: object, votes: Table) -> None:
    task: Callable[[Table], Task] = desk.task  # type: ignore[attr-defined]
    (tmp_path / "task").write_bytes(encode_task(task(votes)))
    subprocess.run([sys.executable, "-c", ANSWERS, str(tmp_path)], cwd=ROOT, check=True)
    assert not isinstance(decode_reply((tmp_path / "reply").read_bytes()), Refusal)


BROKEN = """
import sys
import numpy as np
from client import compiled
from client.draws import AddressedDraws
from client.randomizer import randomize
from protocol.mechanisms.randomized_response import randomized_response
from decimal import Decimal
sys.modules["numba"] = None
assert compiled.kernels(1 << 20) is None
n = 1 << 17
values = (np.arange(n) * 31 % 509 % 2).astype(np.uint8)
symbols = randomize(values, randomized_response(Decimal(1)), AddressedDraws(7, n, 3), range(n))
sys.stdout.buffer.write(symbols.tobytes())
"""


def test_where_the_compiler_cannot_be_imported_numpy_gives_the_same() -> None:
    done = subprocess.run([sys.executable, "-c", BROKEN], cwd=ROOT, check=True, capture_output=True)
    n = 1 << 17
    assert list(done.stdout) == by_kernels(values_for(CHANNELS[0], n), CHANNELS[0], n, range(n))
