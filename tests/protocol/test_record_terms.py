"""How contributions are bounded, how far one moves a sum, and what names a run."""

from dataclasses import replace
from decimal import Decimal
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from protocol.grid import to_integers, truncate
from protocol.messages import Mechanism, Task
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.record_terms import CLIP, L2, LINF, TRUNCATE, Bounded, bounded, run_of, squared_sensitivity
from protocol.trust import Trust

WAYS = [Bounded(2.0, norm, shape) for norm in (LINF, L2) for shape in (CLIP, TRUNCATE)]


def size(values: np.ndarray, how: Bounded) -> np.ndarray:
    return np.abs(values).max(axis=1) if how.norm == LINF else np.sqrt((values**2).sum(axis=1))


@pytest.mark.parametrize("how", WAYS, ids=str)
@given(values=arrays(np.float64, (5, 3), elements=st.floats(width=64)))
def test_nothing_is_beyond_its_bound(how: Bounded, values: np.ndarray) -> None:
    found = bounded(values, how)
    assert np.isfinite(found).all() and (size(found, how) <= how.threshold).all()


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_what_is_within_stays(how: Bounded) -> None:
    values = np.array([[0.5, -1.0, 1.0], [0.0, 0.0, 0.0]])
    assert (bounded(values, how) == values).all()


def test_what_is_on_the_bound_stays_and_what_is_no_number_counts_as_nothing() -> None:
    values = np.array([[2.0, -2.0, np.nan], [np.inf, -np.inf, 2.1]])
    assert bounded(values, Bounded(2.0)).tolist() == [[2, -2, 0], [2, -2, 2]]
    assert bounded(values, Bounded(2.0, shape=TRUNCATE)).tolist() == [[2, -2, 0], [0, 0, 0]]


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_sensitivity_covers_every_pair_of_neighbours_and_is_tight(how: Bounded) -> None:
    """All pairs of points on a grid of units 1/2 in two coordinates; lengths lose one unit of a fine grid, or 2^-40."""
    power, points = -1, np.array(list(product(np.arange(-3.0, 3.5, 0.5), repeat=2)))
    held = to_integers(truncate(bounded(points, how), power), power)
    held = np.unique(held, axis=0)
    gaps = ((held[:, None] - held[None]) ** 2).sum(axis=2)
    most = squared_sensitivity(how, power, 2)
    assert gaps.max() == most if how.norm == LINF else gaps.max() <= most
    ends = to_integers(truncate(bounded(np.array([[9.0, 0.0], [-9.0, 0.0]]), replace(how, shape=CLIP)), -45), -45)
    assert 4 * int(ends[0, 0]) ** 2 >= (1 - 2e-12) * squared_sensitivity(how, -45, 2) / (2 if how.norm == LINF else 1)


@pytest.mark.parametrize("shape", [CLIP, TRUNCATE])
def test_no_row_of_many_coordinates_is_longer_than_its_bound(shape: str) -> None:
    """Squares below half a unit of the sum are lost one by one: 2^16 of them are 2^-38 of the length."""
    rows = np.full((3, 1 << 16), 2.0**-27.1)
    rows[:, 0] = (1 - 2.0**-44) ** 0.5, 1.0, 1 - 2.0**-45
    for threshold in (1.0, 1 + 2.0**-44, 2.0**-10):
        how = Bounded(threshold, L2, shape)
        for row in np.ldexp(truncate(bounded(rows, how), -60), 60).tolist():
            assert sum((2 * int(value)) ** 2 for value in row) <= squared_sensitivity(how, -60, len(row))


@pytest.mark.parametrize("shape", [CLIP, TRUNCATE])
@pytest.mark.parametrize(("threshold", "value"), [(1e-250, 1e-165), (1e-250, 1e300), (1e64, 1e200), (1e64, np.inf)])
def test_lengths_are_bounded_where_squares_vanish_or_overflow(shape: str, threshold: float, value: float) -> None:
    found = bounded(np.array([[value, 0.0], [-value, value]]), Bounded(threshold, L2, shape))
    assert (np.hypot(*found.T) <= threshold).all()


@given(st.decimals("1e-6", "1e6", places=8), st.integers(-40, 5), st.integers(1, 50))
def test_sensitivity_is_never_rounded_down(threshold: Decimal, power: int, dimension: int) -> None:
    for norm in (LINF, L2):
        how = Bounded.of(Mechanism.of("gaussian", threshold=threshold, **({"l2": Decimal(1)} if norm == L2 else {})))
        corner = np.full((1, dimension), 1e300)
        units = (
            to_integers(truncate(bounded(corner, how), power), power) if how.threshold < 2.0 ** (power + 53) else None
        )
        if units is not None:
            assert sum((2 * int(value)) ** 2 for value in units[0]) <= squared_sensitivity(how, power, dimension)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "threshold > 0"),
        ({"threshold": Decimal(0)}, "threshold > 0"),
        ({"threshold": Decimal(1), "rounds": Decimal("1.5")}, "whole number of rounds"),
        ({"threshold": Decimal(1), "rounds": Decimal(0)}, "whole number of rounds"),
        ({"threshold": Decimal(1), "l2": Decimal(2)}, "l2 = 1 or none"),
    ],
)
def test_parameters_out_of_range_are_refused(parameters: dict[str, Decimal], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Bounded.of(Mechanism.of("gaussian", **parameters))


def test_a_threshold_is_never_rounded_up() -> None:
    for text in ("0.1", "0.3", "1e-7", "123456.789"):
        assert Decimal(Bounded.of(Mechanism.of("x", threshold=Decimal(text))).threshold) <= Decimal(text)


def task(**changes: object) -> Task:
    mechanism = Mechanism.of(
        "gaussian", epsilon=Decimal(1), delta=Decimal("1e-5"), threshold=Decimal(2), rounds=Decimal(3)
    )
    problem = Problem(2, "records", sum_zero=False, bound=None, kind="records", model="mean")
    whole = Task(
        study=bytes(32),
        trust=Trust.CENTRAL,
        unit=Unit.RECORD,
        problem=problem,
        menu=(mechanism,),
        n=10,
        epsilon=Decimal(1),
        delta=Decimal("1e-5"),
        first_repetition=0,
        repetitions=1,
        exponent=-40,
    )
    return replace(whole, **changes)  # type: ignore[arg-type]


def test_rounds_of_a_run_differ_in_round_and_points_only() -> None:
    run = run_of(task())
    assert run == run_of(task(round=2, theta=np.ones((1, 2)))) == run_of(task(round=1, centre=np.ones((1, 2))))
    for other in ({"n": 11}, {"attempt": 1}, {"exponent": -39}, {"study": bytes(31) + b"x"}, {"first_repetition": 1}):
        assert run_of(task(**other)) not in (None, run)
    alone = Mechanism.of("gaussian", epsilon=Decimal(1), delta=Decimal("1e-5"), threshold=Decimal(2))
    assert run_of(task(menu=(alone,))) is None and run_of(task(trust=Trust.CLEAR)) is None
    assert run_of(task(trust=Trust.LOCAL)) not in (None, run)
