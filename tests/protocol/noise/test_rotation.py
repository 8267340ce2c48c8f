"""The public rotation: an isometry that no rounding makes longer, the same bits everywhere, and flat."""

import hashlib
import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.linalg import hadamard

from protocol.grid import truncate
from protocol.messages import Mechanism, Task
from protocol.noise.rotation import BEYOND, coordinate_bound, padded, restored, rotated, signs_of
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.trust import Trust


def task(dimension: int = 10, **changes: int) -> Task:
    """A round about records."""
    problem = Problem(dimension, "records", False, None, kind="records", model="mean")
    menu = (Mechanism.of("skellam", epsilon=Decimal(1)),)
    base = Task(bytes(32), Trust.DISTRIBUTED, Unit.RECORD, problem, menu, 100, Decimal(1), Decimal("1e-5"), 0, 2)
    return replace(base, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("dimension", [1, 2, 3, 16, 100])
def test_it_is_what_its_formula_says(dimension: int) -> None:
    """Signs, zeros, Sylvester's matrix, and back."""
    values, signs = np.random.default_rng(3).normal(size=(7, dimension)), signs_of(task(dimension), 0)
    width = padded(dimension)
    whole = np.zeros((7, width))
    whole[:, :dimension] = values
    found = rotated(values, signs)
    np.testing.assert_allclose(found, whole * signs @ hadamard(width) / math.sqrt(width), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(restored(found, signs, dimension), values, rtol=1e-12, atol=1e-13)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 33).flatmap(lambda d: arrays(np.float64, (1, d), elements=st.floats(-1e9, 1e9))))
def test_no_row_gets_longer(values: np.ndarray) -> None:
    """Exactly, in rational numbers, also before truncation; then on the grid."""
    signs = signs_of(task(values.shape[1]), 1)
    found = rotated(values, signs)

    def squared(row: np.ndarray) -> Fraction:
        return sum((Fraction(one) ** 2 for one in row.tolist()), start=Fraction(0))

    assert squared(truncate(found[0], -40)) <= squared(values[0])
    if (np.abs(values[values != 0]) > 1e-200).all():
        assert squared(found[0]) <= squared(values[0])
        assert squared(found[0]) >= squared(values[0]) * (1 - Fraction(1, 1 << 42))


def test_rows_that_are_all_alike_get_no_longer_in_a_thousand_coordinates() -> None:
    """Where roundings could add up: one coordinate gets everything."""
    signs = signs_of(task(1000), 0)
    for value in (1 / 3, math.pi, 1 - 2.0**-53):
        values = np.zeros((1, 1024))
        values[0] = value * signs
        found = rotated(values, signs)[0].tolist()
        assert sum(Fraction(one) ** 2 for one in found) <= 1024 * Fraction(value) ** 2
        assert max(found) == found[0] and found[0] > 31.9 * value


def test_signs_are_public_and_of_their_round() -> None:
    """Whatever the level or the mechanism; another study, n, round or repetition has others."""
    signs = signs_of(task(1000), 0)
    assert set(signs.tolist()) == {-1.0, 1.0} and abs(signs.sum()) < 6.5 * 32  # false alarm below 1e-9
    np.testing.assert_array_equal(signs, signs_of(replace(task(1000), epsilon=Decimal(2)), 0))
    others = [task(1000, n=101), task(1000, round=1), replace(task(1000), study=b"1" * 32)]
    for other in [signs_of(each, 0) for each in others] + [signs_of(task(1000), 1)]:
        assert (other != signs).any()


def test_the_same_bits_as_ever() -> None:
    """Fixed, for clients of other machines and versions: bits of the signs and of rotated numbers."""
    signs = signs_of(task(5), 0)
    found = rotated(np.array([[0.1, -2.5, 1 / 3, 0.0, 7e-5]]), signs)
    assert hashlib.sha256(signs.tobytes() + found.tobytes()).hexdigest()[:16] == "a200456e299ce79e"


def test_coordinates_are_as_small_as_the_bound_says() -> None:
    """A sum along one axis is 1 long in it; rotated it is flat, and its bound is that of a chance of 2^-40."""
    values = np.zeros((1, 1000))
    values[0, 7] = 1.0
    assert np.abs(rotated(values, signs_of(task(1000), 0))).max() <= 1 / 32 < coordinate_bound(1.0, 1000)
    draws = np.random.default_rng(5).standard_t(3, size=(500, 1000))
    draws /= np.sqrt((draws**2).sum(axis=1))[:, None]
    most = np.abs(rotated(draws, signs_of(task(1000), 0))).max()
    assert 0.1 < most <= coordinate_bound(1.0, 1000)  # false alarm below 500 BEYOND
    assert BEYOND <= 1e-12 and coordinate_bound(3.0, 16) == 3.0


@pytest.mark.parametrize("values", [np.array([[np.nan]]), np.array([[np.inf]]), np.array([[1e300]]), np.zeros((1, 3))])
def test_what_cannot_be_rotated_is_refused(values: np.ndarray) -> None:
    with pytest.raises(ValueError, match="expected"):
        rotated(values, np.ones(1))
    with pytest.raises(ValueError, match="expected"):
        restored(np.zeros((1, 4)), np.ones(4), 5)
