"""What aggregators compute, what they refuse, and the laws that they keep."""

import math
from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from server.aggregators import AGGREGATORS
from server.aggregators.base import LARGEST, Options
from server.aggregators.krum import krum_scores
from server.aggregators.median_of_means import runs

Array = NDArray[np.float64]
Oracle = Callable[[str], float]
ONE_TO_NINE = np.array([[*range(1, 10), 100]], dtype=np.float64).T
NAMES = tuple(AGGREGATORS)


def aggregate(name: str, reports: Array, options: Options | None = None) -> Array:
    return AGGREGATORS[name].function(reports, options or Options())


def fitting(count: int) -> Options:
    """As much robustness as `count` reports allow."""
    return Options(groups=max(1, count // 2), trim=(count - 1) // 2, faulty=max(0, (count - 3) // 2))


def drawn(seed: int, count: int, dimension: int) -> Array:
    return np.random.default_rng(seed).standard_normal((count, dimension))


@st.composite
def report_sets(draw: st.DrawFn, least: int = 3) -> Array:
    """Whole numbers: a few reports of a few coordinates, ties among them."""
    count, dimension = draw(st.integers(least, 9)), draw(st.integers(1, 3))
    cells = st.lists(st.integers(-8, 8), min_size=count * dimension, max_size=count * dimension)
    return np.array(draw(cells), dtype=np.float64).reshape(count, dimension)


def test_oracles(heavy_oracle: Oracle) -> None:
    for groups, name in [(3, "MoM([1..9,100],m=3)"), (5, "MoM m=5"), (4, "MoM m=4")]:
        found = aggregate("median-of-means", ONE_TO_NINE, Options(groups=groups))
        assert found[0] == pytest.approx(heavy_oracle(name), rel=1e-14)
    truncated, clipped = np.where(ONE_TO_NINE <= 8.0, ONE_TO_NINE, 0.0), np.minimum(ONE_TO_NINE, 8.0)
    assert aggregate("mean", truncated)[0] == pytest.approx(heavy_oracle("trunc0 mean B=8"), rel=1e-14)
    assert aggregate("mean", clipped)[0] == pytest.approx(heavy_oracle("clip mean B=8"), rel=1e-14)


def test_values_by_hand() -> None:
    square = np.array([[0.0, 0.0], [0.0, 2.0], [2.0, 0.0], [2.0, 2.0]])
    assert aggregate("coordinate-median", ONE_TO_NINE)[0] == 5.5
    assert aggregate("trimmed-mean", ONE_TO_NINE, Options(trim=1))[0] == 5.5
    assert aggregate("geometric-median", square) == pytest.approx([1.0, 1.0], abs=1e-9)
    # Scores with f = 1 over seven nearest others: of 4 (squares 1 1 4 4 9 9 16), 5 and 6 the same, so the first wins.
    assert aggregate("krum", ONE_TO_NINE, Options(faulty=1))[0] == 4.0
    assert krum_scores(ONE_TO_NINE, Options(faulty=1))[3:6] == pytest.approx([44.0, 44.0, 44.0])
    assert aggregate("multi-krum", ONE_TO_NINE, Options(faulty=1))[0] == 5.0
    clipped = aggregate("centred-clipping", ONE_TO_NINE, Options(steps=1, radius=2.0, start=(5.0,)))
    assert clipped[0] == pytest.approx(5.0 + (-2 - 2 - 2 - 1 + 0 + 1 + 2 + 2 + 2 + 2) / 10)


def test_a_geometric_median_is_where_pulls_cancel() -> None:
    reports = drawn(3, 15, 4)
    found = aggregate("geometric-median", reports)
    pulls = reports - found
    assert np.abs((pulls / np.linalg.norm(pulls, axis=1)[:, None]).sum(axis=0)).max() < 1e-7


def test_a_geometric_median_at_a_report_and_of_reports_that_agree() -> None:
    cross = np.array([[0.0, 0.0], [3.0, 0.0], [-1.0, 0.0], [0.0, 5.0], [0.0, -2.0]])
    assert aggregate("geometric-median", cross) == pytest.approx([0.0, 0.0], abs=1e-6)
    agreed = np.array([[1.0, 2.0]] * 3 + [[9.0, 9.0]] * 2)
    assert (aggregate("geometric-median", agreed) == [1.0, 2.0]).all()
    assert (aggregate("centred-clipping", agreed) == [1.0, 2.0]).all()


def test_krum_by_a_plain_double_loop() -> None:
    reports, faulty = drawn(4, 11, 3), 3
    scores = [
        sum(sorted(float(((a - b) ** 2).sum()) for j, b in enumerate(reports) if j != i)[: 11 - faulty - 2])
        for i, a in enumerate(reports)
    ]
    options = Options(faulty=faulty)
    assert krum_scores(reports, options) == pytest.approx(scores, rel=1e-12)
    assert (aggregate("krum", reports, options) == reports[int(np.argmin(scores))]).all()
    best = reports[np.argsort(scores)[: 11 - faulty]]
    assert aggregate("multi-krum", reports, options) == pytest.approx(best.mean(axis=0), rel=1e-12)


def test_krum_in_blocks_is_krum(monkeypatch: pytest.MonkeyPatch) -> None:
    reports, options = drawn(5, 23, 3), Options(faulty=4)
    whole = krum_scores(reports, options)
    monkeypatch.setattr("server.aggregators.krum._MOST_DISTANCES", 50)
    assert (krum_scores(reports, options) == whole).all()


def test_groups_are_cut_before_anyone_looks() -> None:
    for count in range(1, 30):
        for groups in range(1, count + 1):
            found = runs(count, groups)
            assert [row for group in found for row in group] == list(range(count))
            assert min(map(len, found)) == count // groups
            assert max(map(len, found)) - min(map(len, found)) <= 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 2.0 * LARGEST])
def test_a_value_that_is_no_report_never_reaches_an_aggregate(name: str, value: float) -> None:
    reports = drawn(1, 9, 3)
    reports[4, 1] = value
    with pytest.raises(ValueError, match="got others in row 4: leave such rows out"):
        aggregate(name, reports, fitting(9))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "reports",
    [
        np.zeros(9),
        np.zeros((0, 3)),
        np.zeros((9, 0)),
        np.zeros((9, 3, 1)),
        np.zeros((9, 3), dtype=np.float32),
        np.zeros((9, 3), dtype=np.int64),
        np.zeros((9, 3), dtype=object),
        [[0.0] * 3] * 9,
    ],
)
def test_another_shape_or_dtype_is_refused(name: str, reports: Array) -> None:
    with pytest.raises(ValueError, match="expected reports"):
        aggregate(name, reports, fitting(9))


@pytest.mark.parametrize("name", NAMES)
def test_the_largest_reports_do_not_overflow(name: str) -> None:
    reports = drawn(2, 9, 3)
    reports[0], reports[1] = LARGEST, -LARGEST
    found = aggregate(name, reports, fitting(9))
    assert np.isfinite(found).all()
    if name != "mean":
        assert np.abs(found).max() < 10.0


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("median-of-means", Options(groups=10), "expected 1 to 9 groups of 9 reports, got 10"),
        ("trimmed-mean", Options(trim=5), "expected trim < 9 / 2 of 9 reports, got 5"),
        ("krum", Options(faulty=4), r"expected 2 faulty \+ 2 < 9 reports, got faulty = 4"),
        ("multi-krum", Options(faulty=4), r"expected 2 faulty \+ 2 < 9 reports, got faulty = 4"),
        ("centred-clipping", Options(start=(0.0,)), "expected a start of 3 finite numbers, got 1"),
    ],
)
def test_options_that_do_not_fit_are_refused(name: str, options: Options, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        aggregate(name, drawn(1, 9, 3), options)
    if name != "centred-clipping":
        with pytest.raises(ValueError, match=message):
            AGGREGATORS[name].breakdown(9, options)


@pytest.mark.parametrize(
    "bad",
    [
        {"groups": 0},
        {"groups": 2.0},
        {"trim": -1},
        {"faulty": True},
        {"steps": 0},
        {"radius": 0.0},
        {"radius": math.nan},
        {"radius": math.inf},
        {"start": (math.nan,)},
    ],
)
def test_options_out_of_range_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="expected"):
        Options(**bad)  # type: ignore[arg-type]


@settings(max_examples=60)
@given(report_sets(), st.lists(st.integers(-50, 50), min_size=3, max_size=3))
def test_moving_all_reports_moves_the_aggregate(reports: Array, shift: list[int]) -> None:
    move, options = np.array(shift[: reports.shape[1]], dtype=np.float64), fitting(len(reports))
    for name in NAMES:
        found = aggregate(name, reports + move, options)
        assert found == pytest.approx(aggregate(name, reports, options) + move, abs=1e-6), name


@settings(max_examples=60)
@given(report_sets(), st.randoms(use_true_random=False))
def test_the_order_of_reports_changes_no_bit(reports: Array, chance: Random) -> None:
    """Groups follow the order by definition; Krum's choice does where scores are equal, so a tiny slope breaks ties."""
    order = list(range(len(reports)))
    chance.shuffle(order)
    slope = np.random.default_rng(len(reports)).uniform(0.0, 0.1, reports.shape)
    for name in set(NAMES) - {"median-of-means"}:
        rows = reports + slope if "krum" in name else reports
        options = Options(trim=(len(rows) - 1) // 2, faulty=(len(rows) - 3) // 2)
        if "krum" in name and len(set(krum_scores(rows, options).tolist())) < len(rows):
            continue
        found = aggregate(name, rows, options).tobytes(), aggregate(name, rows[order], options).tobytes()
        assert found[0] == found[1], name


@settings(max_examples=60)
@given(report_sets())
def test_an_aggregate_lies_among_the_reports(reports: Array) -> None:
    for name in NAMES:
        found = aggregate(name, reports, fitting(len(reports)))
        assert (found >= reports.min(axis=0) - 1e-9).all() and (found <= reports.max(axis=0) + 1e-9).all(), name


@settings(max_examples=60)
@given(report_sets(least=5), st.sampled_from([-1e9, 1e9]), st.integers(0, 8))
def test_it_holds_up_to_its_breakdown_point(reports: Array, lie: float, first: int) -> None:
    """As many liars as an aggregator is said to stand, wherever they sit: it stays near the honest."""
    count = len(reports)
    options = fitting(count)
    for name in NAMES:
        liars = round(AGGREGATORS[name].breakdown(count, options) * count)
        lying = [(first + k) % count for k in range(liars)]
        said = reports.copy()
        said[lying] = lie
        honest = np.delete(reports, lying, axis=0)
        found = aggregate(name, said, options)
        # The geometric median's own bound is 2 (1 - share) / (1 - 2 share) <= 10 times the largest honest norm.
        assert np.abs(found).max() <= 10.0 * 8.0 * math.sqrt(3), name
        if name in ("coordinate-median", "trimmed-mean"):
            assert (found >= honest.min(axis=0)).all() and (found <= honest.max(axis=0)).all(), name


@pytest.mark.parametrize("name", ["mean", "coordinate-median", "median-of-means", "trimmed-mean", "geometric-median"])
def test_one_liar_more_breaks_it(name: str) -> None:
    reports, options = drawn(6, 9, 2), Options(groups=3, trim=2)
    liars = round(AGGREGATORS[name].breakdown(9, options) * 9) + 1
    reports[np.arange(liars) * 3 % 9 if name == "median-of-means" else np.arange(liars)] = 1e9
    assert np.abs(aggregate(name, reports, options)).max() > 1e7


@pytest.mark.parametrize("name", NAMES)
def test_a_row_is_not_changed_and_no_zero_is_negative(name: str) -> None:
    reports = drawn(7, 9, 3)
    kept = reports.copy()
    aggregate(name, reports, fitting(9))
    assert (reports == kept).all()
    assert not np.signbit(aggregate(name, np.full((9, 2), -0.0), fitting(9))).any()
    assert AGGREGATORS[name].function.__doc__ and AGGREGATORS[name].breakdown.__doc__
