"""What rows say of their size: counts against their definition, how far one row moves a sum, and what is no number."""

from dataclasses import replace
from decimal import Decimal
from itertools import product

import numpy as np
import pytest

from client.statistics import contributions, sizes
from protocol.grid import to_integers, truncate
from protocol.messages import Mechanism, Task
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.record_terms import CLIP, L2, LINF, TRUNCATE, Bounded, squared_sensitivity, width
from protocol.threshold_grid import ThresholdGrid
from protocol.trust import Trust

GRID = {"lowest": Decimal(-2), "highest": Decimal(4)}
INFINITY, NOTHING = float("inf"), float("nan")
ROWS = np.array([[0.0, -0.5], [0.5, 0.50001], [-1.0, 1.5], [NOTHING, 3.0], [INFINITY, NOTHING], [NOTHING, NOTHING]])


def task(trust: Trust, name: str, **parameters: Decimal) -> Task:
    problem = Problem(2, "records", sum_zero=False, bound=None, kind="records", model="mean")
    level = Decimal(1)
    mechanism = Mechanism.of(name, epsilon=level, **({"threshold": Decimal(1)} | parameters))
    return Task(bytes(32), trust, Unit.RECORD, problem, (mechanism,), 6, level, None, 0, 1)


def test_exceedances_are_what_they_say() -> None:
    asked = task(Trust.CENTRAL, "exceedances", **GRID)
    found = contributions(asked, Bounded(1.0), ROWS, np.arange(6))
    largest = [0.5, 0.50001, 1.5, 3.0, INFINITY, 0.0]
    assert sizes(ROWS).tolist() == largest
    thresholds = ThresholdGrid(-2, 4).thresholds
    assert found.tolist() == [[float(size > threshold) for threshold in thresholds] for size in largest]
    assert found.shape[1] == width(asked) == 7
    assert np.abs(found[:, None] - found[None]).max() == 1  # replacing a row moves each count by at most 1


def test_bits_are_about_the_threshold_that_the_number_of_the_row_names() -> None:
    asked = task(Trust.LOCAL, "duchi", dimension=Decimal(1), **GRID)
    rows = np.array([0, 1, 7, 30, 31, 40])
    found = contributions(asked, Bounded(1.0), ROWS, rows)
    thresholds = ThresholdGrid(-2, 4).thresholds
    wanted = [1.0 if size <= thresholds[row % 7] else -1.0 for size, row in zip(sizes(ROWS), rows, strict=True)]
    assert found[:, 0].tolist() == wanted and found.shape == (6, width(asked)) == (6, 1)


@pytest.mark.parametrize(("norm", "shape"), [(norm, shape) for norm in (LINF, L2) for shape in (CLIP, TRUNCATE)])
def test_counted_rows_are_those_beyond_and_the_sensitivity_covers_all_pairs(norm: str, shape: str) -> None:
    """All pairs of points of a grid, and what is no number; tight where coordinates are clipped one by one."""
    how = Bounded(1.0, norm, shape, counted=0.5)
    asked = task(Trust.CENTRAL, "gaussian", counted=Decimal("0.5"))
    points = np.array(list(product(np.arange(-2.0, 2.25, 0.25), repeat=2)))
    found = contributions(asked, how, points, np.arange(len(points)))
    beyond = (np.abs(points).max(axis=1) if norm == LINF else np.hypot(*points.T)) > 1
    near = np.abs(np.hypot(*points.T) - 1) < 1e-9
    assert (found[:, 2] == np.where(beyond, 0.5, 0.0))[~near | (norm == LINF)].all() and found.shape[1] == width(asked)
    assert (contributions(asked, replace(how, counted=0.0), points, np.arange(len(points))) == found[:, :2]).all()
    held = np.unique(to_integers(truncate(found, -30), -30), axis=0).astype(object)
    gaps = [sum((a - b) ** 2) for a, b in product(held, repeat=2)]
    most = squared_sensitivity(how, -30, 2)
    assert max(gaps) <= most
    if norm == LINF and shape == CLIP:  # of opposite corners only one is beyond
        assert max(gaps) == most
    strange = contributions(asked, how, ROWS[3:], np.arange(3))
    assert strange[:, 2].tolist() == [0.5, 0.5, 0.0]


def test_counted_is_at_most_the_threshold_and_only_of_sums() -> None:
    def read(**more: Decimal) -> Bounded:
        return Bounded.of(Mechanism.of("gaussian", threshold=Decimal(1), **more))

    assert read(counted=Decimal("0.3")).counted <= 0.3 and read().counted == 0
    for wrong in ({"counted": Decimal(-1)}, {"counted": Decimal("1.1")}, {"counted": Decimal(1), "rows": Decimal(1)}):
        with pytest.raises(ValueError, match="counted"):
            read(**wrong)
