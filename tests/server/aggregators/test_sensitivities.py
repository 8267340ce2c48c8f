"""Replace-one sensitivities: every set of reports on a small grid against every neighbour of it."""

import math
from collections.abc import Callable
from itertools import pairwise, product

import numpy as np
import pytest
from numpy.typing import NDArray

from server.aggregators import AGGREGATORS, central_refusal
from server.aggregators.base import Options, Sensitivity

GRID = (-2.0, -1.0, 0.0, 1.0, 2.0)
THRESHOLD = 2.0
ROOM = 1.0 + 1e-12  # what may be added for rounding

Oracle = Callable[[str], float]
Columns = Callable[..., NDArray[np.float64]]


def bound(name: str, count: int, dimension: int, options: Options, threshold: float = THRESHOLD) -> Sensitivity:
    found = AGGREGATORS[name].sensitivity
    assert found is not None
    return found(count, dimension, threshold, options)


def largest_move(name: str, count: int, options: Options, columns: NDArray[np.float64], size: int) -> float:
    """The most that replacing one report moves one coordinate; `columns` are all sets, and each is a coordinate."""
    values = AGGREGATORS[name].function(columns, options).reshape((size,) * count)
    return max(float(np.ptp(values, axis=axis).max()) for axis in range(count))


CASES = [
    *(("mean", count, Options()) for count in (1, 2, 3, 5)),
    *(("coordinate-median", count, Options()) for count in (1, 2, 3, 4, 5)),
    *(("median-of-means", count, Options(groups=m)) for count in (4, 5) for m in range(1, count + 1)),
    *(("trimmed-mean", count, Options(trim=t)) for count, t in [(3, 1), (4, 1), (5, 1), (5, 2), (5, 0)]),
]


@pytest.mark.parametrize(("name", "count", "options"), CASES)
def test_it_is_the_largest_move_over_all_neighbours(
    name: str, count: int, options: Options, all_columns: Columns
) -> None:
    moved = largest_move(name, count, options, all_columns(GRID, count), len(GRID))
    said = bound(name, count, 1, options)
    assert moved <= said.coordinate <= moved * ROOM
    assert said.l2 == pytest.approx(said.coordinate, rel=1e-12) and said.l2 >= said.coordinate


@pytest.mark.parametrize("groups", [2, 3, 4, 5, 6, 7])
def test_medians_of_means_are_tight_for_odd_groups_and_half_of_it_for_even_ones(
    groups: int, all_columns: Columns
) -> None:
    """Seven reports at the ends of the range: the extremes of a monotone aggregator."""
    options = Options(groups=groups)
    moved = largest_move("median-of-means", 7, options, all_columns((-2.0, 2.0), 7), 2)
    said = bound("median-of-means", 7, 1, options).coordinate
    assert said == pytest.approx((4.0 if groups % 2 else 2.0) / (7 // groups), rel=1e-12)
    assert moved <= said <= moved * ROOM


@pytest.mark.parametrize("name", ["mean", "trimmed-mean", "coordinate-median", "median-of-means"])
def test_in_l2_norm_all_coordinates_move_together(name: str) -> None:
    options = Options(trim=1, groups=3)
    low, high = (np.repeat(rows, 4).reshape(5, 4) for rows in ([-2.0, -2, -2, 2, 2], [2.0, -2, -2, 2, 2]))
    function = AGGREGATORS[name].function
    moved = float(np.linalg.norm(function(high, options) - function(low, options)))
    assert moved <= bound(name, 5, 4, options).l2
    if name != "median-of-means":  # whose tight case is another one
        assert moved == pytest.approx(bound(name, 5, 4, options).l2, rel=1e-12)


@pytest.mark.parametrize(("steps", "radius"), [(1, 0.5), (1, 1.5), (2, 1.0), (3, 0.7)])
def test_centred_clipping_from_a_public_start(steps: int, radius: float) -> None:
    options = Options(steps=steps, radius=radius, start=(0.25, -0.5))
    points = [np.array(point) for point in product((-2.0, 0.0, 2.0), repeat=2)]
    function, found = AGGREGATORS["centred-clipping"].function, {}
    for chosen in product(range(len(points)), repeat=3):
        found[chosen] = function(np.array([points[index] for index in chosen]), options)
    moved = max(
        float(np.linalg.norm(value - found[(other, *chosen[1:])]))  # the order of reports does not matter
        for chosen, value in found.items()
        for other in range(len(points))
    )
    assert 0.2 * radius < moved <= bound("centred-clipping", 3, 2, options).l2


def test_one_step_of_centred_clipping_is_tight_and_shrinks_as_reports_grow_in_number() -> None:
    function = AGGREGATORS["centred-clipping"].function
    for count, steps in [(1, 1), (4, 1), (100, 1)]:
        options = Options(steps=steps, radius=0.5, start=(0.0,))
        low, high = np.zeros((count, 1)), np.zeros((count, 1))
        low[0], high[0] = -2.0, 2.0
        moved = float(function(high, options)[0] - function(low, options)[0])
        assert moved == pytest.approx(1.0 / count, rel=1e-12)
        assert moved <= bound("centred-clipping", count, 1, options).l2 <= moved * (1.0 + 1e-9)


def test_centred_clipping_claims_nothing_from_a_start_that_nobody_published() -> None:
    for options in (Options(), Options(radius=1.0), Options(start=(0.0,))):
        with pytest.raises(ValueError, match="public or already released"):
            bound("centred-clipping", 10, 1, options)
    with pytest.raises(ValueError, match="start of 2 finite numbers, got 1"):
        bound("centred-clipping", 10, 2, Options(radius=1.0, start=(0.0,)))


def test_a_start_at_the_median_is_why() -> None:
    """Three small steps from the coordinate median of five: one report moves it by far more than 2 steps radius / n."""
    options = Options(radius=0.01)
    low, high = (np.array([[value], [-2.0], [-2.0], [2.0], [2.0]]) for value in (-2.0, 2.0))
    function = AGGREGATORS["centred-clipping"].function
    assert float(function(high, options)[0] - function(low, options)[0]) > 3.9


@pytest.mark.parametrize("name", ["coordinate-median", "geometric-median", "krum", "multi-krum"])
def test_one_report_can_turn_what_a_claim_may_not_rest_on(name: str) -> None:
    """2f + 3 reports, as many at one end of the range as at the other, and one that decides."""
    options = Options(faulty=2)
    ends = [[-2.0] * 3] * 3 + [[2.0] * 3] * 3
    low, high = (np.array([[value] * 3, *ends]) for value in (-2.0, 2.0))
    function = AGGREGATORS[name].function
    moved = float(np.linalg.norm(function(high, options) - function(low, options)))
    whole = 4.0 * math.sqrt(3.0)
    assert moved == pytest.approx(whole if name != "multi-krum" else 0.6 * whole, rel=1e-12)
    assert (AGGREGATORS[name].sensitivity is None) == (name != "coordinate-median")


def test_which_aggregators_a_central_claim_may_rest_on() -> None:
    usable = {"mean", "median-of-means", "trimmed-mean", "centred-clipping"}
    assert {name for name in AGGREGATORS if central_refusal(name) is None} == usable
    for name in set(AGGREGATORS) - usable:
        assert f"got {name}: one report can" in str(central_refusal(name))
        assert AGGREGATORS[name].refusal
    assert all(AGGREGATORS[name].sensitivity is not None for name in usable)
    with pytest.raises(ValueError, match="expected an aggregator of mean, coordinate-median"):
        central_refusal("median")


def test_oracles(heavy_oracle: Oracle) -> None:
    assert bound("trimmed-mean", 10, 1, Options(trim=2), 1.0).coordinate == pytest.approx(
        heavy_oracle("trimmed mean sens n=10,t=2,tau=1"), rel=1e-12
    )
    assert bound("median-of-means", 12, 1, Options(groups=3), 1.0).coordinate == pytest.approx(
        heavy_oracle("MoM sens n=12,m=3,tau=1"), rel=1e-12
    )
    median = bound("median-of-means", 5, 1, Options(groups=5), 1.0), bound("coordinate-median", 5, 1, Options(), 1.0)
    for found in median:
        assert found.coordinate == pytest.approx(heavy_oracle("median sens (m=n=5)"), rel=1e-12)


@pytest.mark.parametrize("name", [name for name, one in AGGREGATORS.items() if one.sensitivity])
def test_it_grows_with_the_threshold_and_never_rounds_down(name: str) -> None:
    options = Options(groups=7, trim=3, radius=0.1, start=(0.0, 0.0))
    thresholds = [2.0**-30, 1.0 / 3.0, 1.0, 1e10]
    for small, large in pairwise(bound(name, 49, 2, options, threshold) for threshold in thresholds):
        assert small.coordinate < large.coordinate and small.l2 < large.l2
    exact = {"mean": 2 / 49, "trimmed-mean": 2 / 43, "median-of-means": 2 / 7, "coordinate-median": 2.0}
    assert bound(name, 49, 2, options, 1.0).coordinate > exact.get(name, 0.6 / 49)


@pytest.mark.parametrize("name", [name for name, one in AGGREGATORS.items() if one.sensitivity])
@pytest.mark.parametrize(
    ("count", "dimension", "threshold"), [(0, 1, 1.0), (5, 0, 1.0), (5, 1, 0.0), (5, 1, math.nan), (5, 1, math.inf)]
)
def test_settings_out_of_range_are_refused(name: str, count: int, dimension: int, threshold: float) -> None:
    options = Options(groups=2, trim=1, radius=0.1, start=(0.0,))
    with pytest.raises(ValueError, match="expected"):
        bound(name, count, dimension, options, threshold)
