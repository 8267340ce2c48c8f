"""The border for numbers: what it refuses, where its coins come from, and that a channel's law leaves it."""

import math
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.draws import FAR, AddressedDraws, SecretDraws
from client.vector_randomizer import randomize_vectors
from protocol.coins import Address, Stream, words
from protocol.numeric import NUMERIC, numeric_channel
from protocol.numeric.channel import NumericChannel

ROWS = np.arange(6, dtype=np.int64)


def channel(name: str, d: int = 3, threshold: str = "2") -> NumericChannel:
    parameters = {"epsilon": Decimal(1), "threshold": Decimal(threshold), "dimension": Decimal(d)}
    return numeric_channel(name, parameters | ({"delta": Decimal("1e-5")} if name == "gaussian" else {}))


def test_coins_of_numbers_are_the_documented_words() -> None:
    draws, rows = AddressedDraws(7, 40, 3, 2), np.arange(40)
    sequence = words(Address(7, Stream.NUMBERS, 40, 3, 2), 0, 200)
    assert draws.vectors(rows, 5).tolist() == sequence.reshape(40, 5).tolist()


@settings(max_examples=40)
@given(
    st.sets(st.one_of(st.integers(0, 300), st.integers(0, 20 * FAR), st.integers(0, (1 << 32) - 1)), max_size=20),
    st.sampled_from([1, 3, 64, 5000]),
)
def test_a_row_has_its_words_whoever_else_is_asked(chosen: set[int], count: int) -> None:
    rows = np.array(sorted(chosen), dtype=np.int64)
    draws = AddressedDraws(11, (1 << 32) - 1, 2)
    drawn = draws.vectors(rows, count)
    assert drawn.shape == (len(rows), count)
    for own, row in zip(drawn, rows.tolist(), strict=True):
        assert own.tolist() == draws.vectors(np.array([row]), count)[0].tolist()


def test_secret_words_are_fresh() -> None:
    drawn = SecretDraws().vectors(ROWS, 4)
    assert drawn.shape == (6, 4) and drawn.dtype == np.uint64
    assert (drawn != SecretDraws().vectors(ROWS, 4)).all()  # one equal by chance: 24 * 2^-64


def test_no_words_a_row_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 word"):
        AddressedDraws(7, 40, 3).vectors(ROWS, 0)


@pytest.mark.parametrize("name", sorted(NUMERIC))
def test_reports_are_the_channels_and_do_not_depend_on_the_split(name: str) -> None:
    made, draws = channel(name), AddressedDraws(3, 6, 0)
    values = np.linspace(-1, 1, 18).reshape(6, 3)
    whole = randomize_vectors(values, made, draws, ROWS)
    assert whole.tobytes() == made.report(values, draws.vectors(ROWS, made.words)).tobytes()
    for part in (slice(0, 2), slice(1, 6, 2), slice(4, 4)):
        assert randomize_vectors(values[part], made, draws, ROWS[part]).tobytes() == whole[part].tobytes()
    assert made.legal(whole).all()


@pytest.mark.parametrize("name", sorted(NUMERIC))
def test_secret_coins_need_a_live_channel(name: str) -> None:
    made, values = channel(name), np.zeros((6, 3))
    if made.live:
        assert made.legal(randomize_vectors(values, made, SecretDraws(), ROWS)).all()
    else:
        with pytest.raises(ValueError, match="expected a live channel"):
            randomize_vectors(values, made, SecretDraws(), ROWS)


@pytest.mark.parametrize("name", sorted(NUMERIC))
@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf, 2.0000001, -3.0, 1e300, 1e200])
def test_numbers_that_do_not_fit_are_refused_and_not_named(name: str, wrong: float) -> None:
    values = np.zeros((6, 3))
    values[4, 1] = wrong
    with pytest.raises(ValueError, match="expected") as caught:
        randomize_vectors(values, channel(name), AddressedDraws(3, 6, 0), ROWS)
    assert str(wrong) not in str(caught.value) or not math.isfinite(wrong)


def test_the_norm_is_the_channels() -> None:
    """A corner of the cube is within its bound, and out of the ball of the same size."""
    values, draws = np.full((6, 3), 2.0), AddressedDraws(3, 6, 0)
    randomize_vectors(values, channel("duchi-cube"), draws, ROWS)
    with pytest.raises(ValueError, match="expected numbers within l2"):
        randomize_vectors(values, channel("priv-unit"), draws, ROWS)


@settings(max_examples=50)
@given(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3), st.sampled_from(["0.1", "2", "3.3"]))
def test_rows_clipped_in_doubles_are_within(row: list[float], threshold: str) -> None:
    made, values = channel("priv-unit", 3, threshold), np.array([row])
    values *= min(1.0, made.bound / max(float(np.sqrt((values * values).sum())), 1e-300))
    report = randomize_vectors(values, made, AddressedDraws(3, 6, 0), np.array([2]))
    assert made.legal(report).all()


@pytest.mark.parametrize(
    ("values", "rows"),
    [
        (np.zeros((6, 3), dtype=np.float32), ROWS),
        (np.zeros((6, 2)), ROWS),
        (np.zeros((5, 3)), ROWS),
        (np.zeros(18), ROWS),
        (np.zeros((6, 3)), ROWS[::-1]),
        (np.zeros((6, 3)), np.zeros(6, dtype=np.int64)),
        (np.zeros((6, 3)), ROWS.reshape(6, 1)),
    ],
)
def test_wrong_shapes_are_refused(values: np.ndarray, rows: np.ndarray) -> None:
    with pytest.raises(ValueError, match="expected"):
        randomize_vectors(values, channel("duchi"), AddressedDraws(3, 6, 0), rows)


def test_a_planted_border_without_the_check_would_break_the_level() -> None:
    """Beyond the bound a lean exceeds its largest, and with it the level: why the border refuses."""
    made: Callable[..., np.ndarray] = channel("duchi", 1).report
    coins = np.array([[(1 << 64) - 1]], dtype=np.uint64)  # the last coin says -k for every number within
    assert made(np.array([[2.0]]), coins) < 0
    assert made(np.array([[2.0 * 2.2]]), coins) > 0
