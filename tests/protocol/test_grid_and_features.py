"""Exact sums on a grid, and public features whose rows do not know of one another."""

import math
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from protocol.coins import Address, Stream
from protocol.features import (
    default_radius,
    differences,
    lift,
    norms,
    project,
    reduced_rows,
    rounded,
    row_bound,
)
from protocol.grid import exponent, to_integers, truncate
from protocol.problem import Problem

GAUSSIAN = Problem(5, "gaussian", True, Decimal(3))
SPHERE = Problem(5, "sphere", True, Decimal(3))
ITEMS = Problem(4, "items", True, None, np.array([[0, 1], [3, 2], [1, 3]], dtype=np.int32))
VALUES = Problem(2, "values", False, None, np.array([[0.5, 1.0], [-3.0, 4.0], [0.0, 0.0]]))


@given(st.integers(1, 10**7), st.floats(1e-30, 1e30))
def test_exponent_is_the_smallest_that_holds_every_sum(n: int, bound: float) -> None:
    power = exponent(n, bound)
    assert n * Fraction(bound) <= Fraction(2) ** (power + 52)
    assert n * Fraction(bound) > Fraction(2) ** (power + 51)


@given(hnp.arrays(np.float64, st.integers(1, 200), elements=st.floats(-4, 4)), st.integers(0, 2**32 - 1))
def test_sums_on_the_grid_do_not_depend_on_their_order(values: np.ndarray, seed: int) -> None:
    power = exponent(len(values), 4.0)
    cut = truncate(values, power)
    assert (np.abs(cut) <= np.abs(values)).all()
    exact = int(sum(int(k) for k in to_integers(cut, power)))
    order = np.random.Generator(np.random.Philox(seed)).permutation(len(cut))
    for total in (cut.sum(), cut[order].sum(), sum(cut[order].tolist()), cut @ np.ones(len(cut))):
        assert Fraction(float(total)) == exact * Fraction(2) ** power


def test_values_off_the_grid_are_refused() -> None:
    for bad in (0.3, np.nan, np.inf, 2.0**60):
        with pytest.raises(ValueError, match="expected"):
            to_integers(np.array([bad]), -2)
    for n, bound in ((0, 1.0), (5, 0.0), (5, np.nan), (5, np.inf), (5, -1.0)):
        with pytest.raises(ValueError, match="expected"):
            exponent(n, bound)


def column_by_column(row: list[float]) -> list[float]:
    """The projection of a row as it is written down."""
    sums = list(accumulate(row, initial=0.0))
    return [(sums[j] - j * row[j]) * (1.0 / math.sqrt(j * (j + 1))) for j in range(1, len(row))]


@pytest.mark.parametrize(("n", "dimension"), [(1, 2), (1, 300), (3, 5), (257, 2), (1000, 5), (30, 40)])
def test_projection_has_the_bits_of_a_plain_loop_whatever_its_shape(n: int, dimension: int) -> None:
    rng = np.random.default_rng([n, dimension])
    x = rng.normal(size=(n, dimension)) * rng.integers(-1, 2, (n, dimension))  # zeros of both signs among them
    expected = np.array([column_by_column(row) for row in x.tolist()])
    assert project(x).tobytes() == expected.tobytes()
    assert project(np.asfortranarray(x)).tobytes() == expected.tobytes()


@pytest.mark.parametrize("dimension", [2, 3, 5, 40])
def test_projection_is_an_isometry_of_what_sums_to_zero(dimension: int) -> None:
    basis = project(np.eye(dimension))
    assert np.allclose(basis.T @ basis, np.eye(dimension - 1), atol=1e-14)
    assert np.allclose(basis.sum(axis=0), 0, atol=1e-14)
    u = np.linspace(-1, 2, dimension - 1)
    assert np.allclose(lift(u), basis @ u, atol=1e-14)
    assert np.allclose(project(lift(u)[None])[0], u, atol=1e-14)
    assert abs(lift(u).sum()) < 1e-13


@pytest.mark.parametrize("problem", [GAUSSIAN, SPHERE])
def test_rows_do_not_depend_on_how_they_are_cut(problem: Problem) -> None:
    address = Address(3, Stream.PROBLEM, 37, 1)
    whole = differences(problem, address, 0, 37)
    for cut in (1, 2, 9, 36):
        pieces = [differences(problem, address, a, min(a + cut, 37)) for a in range(0, 37, cut)]
        assert np.concatenate(pieces).tobytes() == whole.tobytes()
    reduced = reduced_rows(problem, 3, 37, 1, 0, 37)
    assert reduced_rows(problem, 3, 37, 1, 20, 33).tobytes() == reduced[20:33].tobytes()


def test_laws_of_drawn_features() -> None:
    """Second moments of 200,000 rows; six standard errors: false-alarm rate below 2e-9 an entry, 20 entries."""
    n = 200_000
    gaussian = reduced_rows(GAUSSIAN, 1, n, 0, 0, n)
    sphere = reduced_rows(SPHERE, 1, n, 0, 0, n)
    assert np.abs(gaussian.T @ gaussian / n - 2 * np.eye(4)).max() < 6 * 2 * math.sqrt(2 / n)
    assert np.abs(sphere.T @ sphere / n - 0.4 * np.eye(4)).max() < 6 * 0.4 * math.sqrt(2 / n)
    assert norms(sphere).max() <= 2


@pytest.mark.parametrize("problem", [GAUSSIAN, SPHERE, ITEMS, VALUES])
@pytest.mark.parametrize("radius", [None, 0.7])
def test_rounded_rows_fit_their_bound_and_weights(problem: Problem, radius: float | None) -> None:
    n = 3 if problem.design is not None else 500
    power = exponent(n, row_bound(problem, radius))
    rows = reduced_rows(problem, 5, n, 0, 0, n)
    cut = rounded(rows, power, radius)
    assert np.abs(cut.rows).max() <= row_bound(problem, radius)
    to_integers(cut.rows, power)
    if radius is None:
        assert cut.weights is None
    else:
        assert cut.weights is not None
        assert norms(cut.rows).max() <= radius * (1 + 1e-12)
        assert (cut.weights <= 1).all()
        assert np.allclose(cut.rows, rows * cut.weights[:, None], atol=2.0**power)


def test_default_radii() -> None:
    assert default_radius(GAUSSIAN, 10) == math.sqrt(8)
    assert default_radius(SPHERE, 10) == pytest.approx(math.sqrt(1.6))
    assert default_radius(ITEMS, 3) == math.sqrt(2)
    assert default_radius(VALUES, 3) == pytest.approx(math.sqrt((1.25 + 25) / 3))


def test_items_are_one_hot_differences() -> None:
    x = differences(ITEMS, Address(0, Stream.PROBLEM), 0, 3)
    assert x.tolist() == [[-1, 1, 0, 0], [0, 0, 1, -1], [0, -1, 0, 1]]
    with pytest.raises(ValueError, match="rows"):
        differences(ITEMS, Address(0, Stream.PROBLEM), 2, 4)


@pytest.mark.parametrize(
    "fields",
    [
        {"dimension": 1, "features": "gaussian", "sum_zero": True, "bound": None},
        {"dimension": 3, "features": "gauss", "sum_zero": True, "bound": None},
        {"dimension": 3, "features": "gaussian", "sum_zero": True, "bound": Decimal(0)},
        {"dimension": 3, "features": "gaussian", "sum_zero": True, "bound": Decimal("NaN")},
        {"dimension": 3, "features": "values", "sum_zero": True, "bound": None},
        {"dimension": 2, "features": "values", "sum_zero": False, "bound": None, "design": np.array([[1.0, np.nan]])},
        {"dimension": 1, "features": "values", "sum_zero": False, "bound": None, "design": np.array([[1e-161]])},
        {"dimension": 1, "features": "values", "sum_zero": False, "bound": None, "design": np.array([[1e161]])},
        {"dimension": 2, "features": "items", "sum_zero": False, "bound": None, "design": np.array([[1, 1]], "i4")},
        {"dimension": 2, "features": "items", "sum_zero": False, "bound": None, "design": np.array([[0, 2]], "i4")},
        {"dimension": 3, "features": "gaussian", "sum_zero": True, "bound": None, "model": "logit"},
    ],
)
def test_a_problem_that_does_not_fit_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="expected"):
        Problem(**fields)  # type: ignore[arg-type]
