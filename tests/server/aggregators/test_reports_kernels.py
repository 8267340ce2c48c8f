"""Compiled loops over reports against plain numpy and `math.fsum`: the same bits, whatever the reports."""

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from server.aggregators.arithmetic import (
    distances,
    mean_rows,
    median_of_groups,
    median_rows,
    middle_mean,
    squared_distances,
    weighted_sums,
)
from server.aggregators.base import LARGEST, Options
from server.aggregators.krum import krum, krum_scores, multi_krum
from server.aggregators.median_of_means import runs
from server.kernels_reports import first_beyond

Array = NDArray[np.float64]
KINDS = ("normal", "heavy", "whole", "two values", "one value", "far apart", "cancelling")


def reports(kind: str, count: int, dimension: int, seed: int = 1) -> Array:
    random = np.random.default_rng(seed)
    found: dict[str, Array] = {
        "normal": random.standard_normal((count, dimension)),
        "heavy": random.standard_cauchy((count, dimension)) ** 5,
        "whole": random.integers(-3, 4, (count, dimension)).astype(float),
        "two values": random.choice([-1.5, 1.5], (count, dimension)),
        "one value": np.full((count, dimension), 0.1),
        "far apart": np.ldexp(
            random.standard_normal((count, dimension)), random.integers(-400, 470, (count, dimension))
        ),
        "cancelling": np.resize([1e300, 1.0, -1e300, 2.0**-60], (count, dimension)),
    }
    return np.clip(found[kind], -LARGEST, LARGEST)


def summed(rows: Array) -> list[float]:
    return [math.fsum(column) for column in rows.T.tolist()]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("count", "dimension"), [(1, 3), (2, 1), (7, 600), (200, 70)])
def test_sums_are_exactly_rounded(kind: str, count: int, dimension: int) -> None:
    rows, weights = reports(kind, count, dimension), np.random.default_rng(2).random(count)
    assert mean_rows(rows).tolist() == [total / count for total in summed(rows)]
    assert weighted_sums(rows, weights).tolist() == summed(rows * weights[:, None])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("count", "dimension"), [(1, 3), (12, 70), (13, 5), (1001, 300), (9000, 3)])
def test_the_middle_is_what_sorting_leaves(kind: str, count: int, dimension: int) -> None:
    rows = reports(kind, count, dimension)
    ordered = np.sort(rows, axis=0)
    for trim in sorted({0, 1, count // 10, count // 3, (count - 1) // 2}):
        if 2 * trim < count:
            kept = ordered[trim : count - trim]
            assert middle_mean(rows, trim).tolist() == [total / len(kept) + 0.0 for total in summed(kept)], trim


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("count", "dimension"), [(1, 3), (64, 9), (65, 70), (700, 1100)])
def test_medians_are_the_middle_of_all(kind: str, count: int, dimension: int) -> None:
    """Of rows, and of means of groups: few of them, which are sorted side by side, and many."""
    rows = reports(kind, count, dimension)
    assert (
        median_rows(rows).tolist() == (np.sort(rows, axis=0)[[(count - 1) // 2, count // 2]].sum(axis=0) / 2).tolist()
    )
    for groups in sorted({1, min(count, 20), min(count, 33), min(count, 66)}):
        cut = runs(count, groups)
        means = np.sort(
            [[total / len(group) for total in summed(rows[group.start : group.stop])] for group in cut], axis=0
        )
        assert median_of_groups(rows, cut).tolist() == ((means[(groups - 1) // 2] + means[groups // 2]) / 2).tolist()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 2 * LARGEST, -2 * LARGEST])
def test_whoever_looks_on_the_way_sees_every_place(value: float) -> None:
    """Of rows that are added up four by four, and of those that are left."""
    looking = (median_rows, lambda held: middle_mean(held, 2), lambda held: median_of_groups(held, [range(len(held))]))
    for count, row, column in itertools.product((7, 8), range(8), (0, 3, 8)):
        rows = reports("normal", count, 9)
        rows[row % count, column] = value
        for function in looking:
            with pytest.raises(ValueError, match=f"in row {row % count}:"):
                function(rows)


@pytest.mark.parametrize(("count", "dimension"), [(1, 3), (16, 8), (37, 21), (300, 700)])
def test_distances_to_a_point_are_those_to_one_of_many(count: int, dimension: int) -> None:
    rows, point = reports("heavy", count, dimension), reports("normal", 1, dimension)
    assert (distances(rows, point[0]) == np.sqrt(squared_distances(point, rows)[0])).all()


@pytest.mark.parametrize("threads", ["1", "2"])
def test_bits_do_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch, threads: str) -> None:
    rows = reports("heavy", 130, 4000)
    monkeypatch.setattr("protocol.threads.threads", lambda: 3)
    several = [function(rows).tobytes() for function in (median_rows, mean_rows, lambda held: middle_mean(held, 13))]
    monkeypatch.setattr("protocol.threads.threads", lambda: int(threads))
    assert several == [f(rows).tobytes() for f in (median_rows, mean_rows, lambda held: middle_mean(held, 13))]


def test_squared_distances_add_coordinate_after_coordinate() -> None:
    rows, points = reports("heavy", 9, 200), reports("normal", 130, 200)
    total = np.zeros((9, 130))
    for column, values in zip(rows.T, points.T, strict=True):
        total += (column[:, None] - values[None, :]) ** 2
    assert (squared_distances(rows, points) == total).all()
    assert (squared_distances(points, rows) == total.T).all()


def test_the_first_row_with_a_value_that_is_none() -> None:
    for value in (math.nan, math.inf, -math.inf, 2 * LARGEST):
        rows = reports("normal", 40, 33)
        assert first_beyond(rows, 0, 33, LARGEST) == -1
        rows[17:, 32] = value
        assert first_beyond(rows, 0, 33, LARGEST) == first_beyond(rows, 32, 33, LARGEST) == 17
        assert first_beyond(rows, 0, 32, LARGEST) == -1


@pytest.mark.parametrize("kind", [*KINDS[:5], "far from 0"])
@pytest.mark.parametrize("faulty", [0, 5, 14])
def test_krum_chooses_by_plain_scores(kind: str, faulty: int) -> None:
    """Reports far from 0, where products tell nothing of small distances, and scores that are equal, among them."""
    rows = 1e9 + reports("normal", 31, 8) if kind == "far from 0" else reports(kind, 31, 8)
    rows[:faulty] *= 1e3
    options = Options(faulty=faulty)
    order = np.argsort(krum_scores(rows, options), kind="stable")
    assert (krum(rows, options) == rows[order[0]] + 0.0).all()
    assert (multi_krum(rows, options) == mean_rows(rows[order[: 31 - faulty]])).all()
