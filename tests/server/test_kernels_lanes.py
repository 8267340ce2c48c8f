"""Several arms in one pass have the bits of each on its own."""

import math
from fractions import Fraction

import numpy as np
import pytest

from server.kernels import Array, compiled
from server.kernels_descent import descend
from server.kernels_elementary import logistic
from server.kernels_lanes import descend_lanes
from server.kernels_vector import (
    WIDTH,
    any_above,
    everywhere,
    line_of,
    multiply_add,
    total,
    turn_square,
    where_rising,
    write_line,
)


@pytest.mark.parametrize("bound", [math.inf, 0.7, 0.05])
@pytest.mark.parametrize("p", [1, 3, 11])
def test_every_lane_is_a_descent_of_its_own(p: int, bound: float) -> None:
    rng = np.random.default_rng(p)
    rows, doubled = rng.normal(size=(700, p)), (rng.random((700, WIDTH)) < 0.6).astype(np.uint8) * np.uint8(2)
    doubled[rng.random(doubled.shape) < 0.05] = 1  # ties
    flips, alphas = rng.uniform(0, 0.45, WIDTH), rng.uniform(0.05, 0.5, WIDTH)
    flips[0] = 0.0
    alphas[1] = 1e-9  # steps so long that an exponential ends
    channels = np.stack([1.0 - 2.0 * flips, flips, alphas * (1.0 - 2.0 * flips)])
    together = np.zeros((p, WIDTH))
    for start, end in ((0, 300), (300, 700)):  # a pass may come in parts
        descend_lanes(rows[start:end], doubled[start:end], channels, bound, float(start), together)
    columns = np.ascontiguousarray(rows.T)
    for lane in range(WIDTH):
        u = np.zeros(p)
        descend(columns, doubled[:, lane] / 2, channels[0, lane], flips[lane], alphas[lane], bound, 0.0, u)
        np.testing.assert_array_equal(together[:, lane], u)
        assert np.linalg.norm(u) <= bound * (1 + 1e-15)


@compiled
def _lanes_of(values: Array, number: float, found: Array) -> int:
    """Every operation of lanes, and of lanes with a number, on two lines of values; a line of `found` each."""
    x, y = line_of(values, 0), line_of(values, 1)
    write_line(found, 0, x + y)
    write_line(found, 1, number - x)
    write_line(found, 2, x * number)
    write_line(found, 3, x / y)
    write_line(found, 4, max(x, number))
    write_line(found, 5, min(x, y))
    write_line(found, 6, -abs(x))
    write_line(found, 7, math.sqrt(abs(x)))
    write_line(found, 8, logistic(x))
    write_line(found, 9, everywhere(number))
    return int(any_above(x, number))


def test_an_operation_of_lanes_is_that_of_each_number() -> None:
    rng = np.random.default_rng(5)
    for scale in (1.0, 1e-300, 1e300):
        values, number = rng.normal(size=(2, WIDTH)) * scale, 0.25 * scale
        values[0, :4] = 0.0, -0.0, math.inf, -math.inf
        found = np.empty((10, WIDTH))
        assert _lanes_of(values, number, found) == 1
        x, y = values
        with np.errstate(all="ignore"):
            sums = [x + y, number - x, x * number, x / y, np.maximum(x, number), np.minimum(x, y), -abs(x)]
        alone = [logistic(value) for value in x]
        np.testing.assert_array_equal(found, [*sums, np.sqrt(abs(x)), alone, np.full(WIDTH, number)])
        assert np.signbit(found[6]).all()
        assert _lanes_of(np.minimum(values, number), number, found) == 0


@compiled
def _sums_of(values: Array, found: Array) -> float:
    """What sums over rows are made of, on three lines of values; a line of `found` each, and the sum of the first."""
    x, y, z = line_of(values, 0), line_of(values, 1), line_of(values, 2)
    write_line(found, 0, multiply_add(x, y, z))
    write_line(found, 1, multiply_add(0.1, y, z))
    write_line(found, 2, where_rising(x, y, 1.0))
    write_line(found, 3, math.copysign(y, x))
    return total(x)


def _rounded_once(a: float, b: float, c: float) -> float:
    return float(Fraction(a) * Fraction(b) + Fraction(c))


def test_products_are_added_with_one_rounding_and_lanes_by_halves() -> None:
    values, found = np.random.default_rng(8).normal(size=(3, WIDTH)), np.empty((4, WIDTH))
    values[2] = -values[0] * values[1]  # what rounding took
    values[0, :2] = 0.0, -0.0
    halves = values[0]
    while halves.size > 1:
        halves = halves[: halves.size // 2] + halves[halves.size // 2 :]
    assert _sums_of(values, found) == halves[0]
    x, y, z = values
    np.testing.assert_array_equal(found[0], [_rounded_once(*three) for three in zip(x, y, z, strict=True)])
    np.testing.assert_array_equal(found[1], [_rounded_once(0.1, b, c) for b, c in zip(y, z, strict=True)])
    np.testing.assert_array_equal(found[2], np.where(x >= 0, y, 1.0))
    np.testing.assert_array_equal(found[3], np.copysign(y, x))


@compiled
def _turned(rows: Array, columns: Array) -> None:
    turn_square(rows, 2, 3, columns, 5)


def test_a_square_is_turned_where_it_lies() -> None:
    rows, columns = np.arange(63.0).reshape(7, 9), np.zeros((8, 16))
    _turned(rows, columns)
    expected = np.zeros((8, 16))
    expected[3:7, 5:9] = rows[2:6, 3:7].T
    np.testing.assert_array_equal(columns, expected)


def test_the_logistic_function_is_right_to_its_last_places() -> None:
    z = np.concatenate([np.random.default_rng(6).uniform(-700, 700, 2000), [0.0, -0.0, 1e300, -1e300]])
    exact = np.where(z >= 0, 1.0, np.exp(np.minimum(z, 0))) / (1.0 + np.exp(-abs(z)))
    ours = np.array([logistic(value) for value in z])
    np.testing.assert_allclose(ours[:-2], exact[:-2], rtol=5 * 2.0**-52)
    assert logistic(0.0) == 0.5 and ours[-2] == 1.0 and 0.0 < ours[-1] < 1e-300
