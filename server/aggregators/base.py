"""What an aggregator is given and what it promises, and the arithmetic that all of them share.

Sums are exactly rounded, as by `math.fsum`, so that a result does not depend on the order of reports where the
mathematics does not, nor on a machine's linear algebra.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from server.kernels_reports import add_rows, add_squares, first_beyond

Array = NDArray[np.float64]

LARGEST = 2.0**480  # of a report: squares of differences, and sums of them, then stay finite
_COLUMNS = 250  # sorted at a time, to copy few; of a power of two all rows would share a few places of a cache
_ROUNDING = 2.0**-50  # bounds what rounding adds to a sensitivity, a report


@dataclass(frozen=True)
class Options:
    """How to aggregate; each aggregator reads what it needs.

    groups: how many groups `median-of-means` has; trim: how many values `trimmed-mean` leaves out at each end;
    faulty: how many lying reports krum and multi-krum expect; radius: how far a report may pull in one of the `steps`
    of centred-clipping, None: the median distance of reports to the start; start: where it starts, None: the
    coordinate median. A claim of central privacy needs a radius and a start that are public or already released.
    Raises ValueError for numbers out of range; what has to fit the number of reports is checked with them.
    """

    groups: int = 1
    trim: int = 0
    faulty: int = 0
    radius: float | None = None
    steps: int = 3
    start: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        for name, least in (("groups", 1), ("trim", 0), ("faulty", 0), ("steps", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"expected {name} to be an integer >= {least}, got {value!r}")
        if self.radius is not None and not 0.0 < self.radius <= LARGEST:
            raise ValueError(f"expected 0 < radius <= 2^480 (None for the usual one), got {self.radius}")
        if self.start is not None and not all(abs(value) <= LARGEST for value in self.start):
            raise ValueError("expected a start of finite numbers, got another value")


@dataclass(frozen=True)
class Sensitivity:
    """How far replacing one report moves an aggregate: any one coordinate, and in l2 norm; never rounded down."""

    coordinate: float
    l2: float


@dataclass(frozen=True)
class Aggregator:
    """One way to make one vector of many reports.

    function(reports (count, d), options) -> (d,); sensitivity(count, d, threshold, options) for reports in
    [-threshold, threshold]^d, None where there is no bound worth using; breakdown(count, options): the largest share of
    reports that may be anything while the aggregate stays bounded by the others; central: whether a claim of central
    privacy may rest on the sensitivity, where `refusal` says why not.

    Guarantee: none by itself. Of reports that are already private it is post-processing and costs nothing; a curator
    who adds noise scaled to the sensitivity has the noise's guarantee, for replacing one report of `count`, public.
    """

    function: Callable[[Array, Options], Array]
    sensitivity: Callable[[int, int, float, Options], Sensitivity] | None
    breakdown: Callable[[int, Options], float]
    central: bool = True
    refusal: str = ""

    def __post_init__(self) -> None:
        if self.central == bool(self.refusal) or (self.central and self.sensitivity is None):
            raise ValueError("expected a sensitivity for a central claim, or a refusal that says why not, got neither")


def check_reports(reports: Array) -> None:
    """Raise ValueError unless reports are float64 of shape (count, d), count, d >= 1, and |value| <= 2^480."""
    if not isinstance(reports, np.ndarray) or reports.dtype != np.float64:
        raise ValueError(f"expected reports in an array of float64, got {getattr(reports, 'dtype', type(reports))}")
    if reports.ndim != 2 or 0 in reports.shape:
        raise ValueError(f"expected reports of shape (count, d) with count, d > 0, got {reports.shape}")
    bad = first_beyond(np.ascontiguousarray(reports), LARGEST)
    if bad >= 0:
        raise ValueError(f"expected finite reports of at most 2^480, got others in row {bad}: leave such rows out")


def check_setting(count: int, dimension: int, threshold: float) -> None:
    """Raise ValueError unless count and d are at least 1 and 0 < threshold <= 2^480."""
    if count < 1 or dimension < 1:
        raise ValueError(f"expected count >= 1 and dimension >= 1, got {count} and {dimension}")
    if not 0.0 < threshold <= LARGEST:
        raise ValueError(f"expected 0 < threshold <= 2^480, got {threshold}")


def by_coordinate(bound: float, count: int, dimension: int) -> Sensitivity:
    """`bound` a coordinate and bound sqrt(d) in l2 norm, each raised past the rounding of an aggregate's arithmetic."""
    raised = bound * (1.0 + count * _ROUNDING)
    return Sensitivity(raised, raised * math.sqrt(dimension) * (1.0 + _ROUNDING))


def mean_rows(rows: Array) -> Array:
    """The mean of rows, each coordinate's sum exactly rounded; shape (d,)."""
    return weighted_sums(rows, np.ones(len(rows))) / len(rows) + 0.0  # no negative zero


def weighted_sums(rows: Array, weights: Array) -> Array:
    """sum_i w_i x_i, of products that are rounded one by one and whose sum is exactly rounded; shape (d,).

    The kernel's errors are off by less than half of (n + 2) 2^-52 times their sizes. Where that leaves a doubt about
    the double next to a sum, `math.fsum` sums again.
    """
    parts = np.zeros((3, rows.shape[1]))
    add_rows(np.ascontiguousarray(rows), weights, *parts)
    sums, errors, sizes = parts
    doubt = sizes * ((len(rows) + 2) * 2.0**-52)
    found: Array = sums + (errors - doubt)
    for j in np.flatnonzero(~(found == sums + (errors + doubt))).tolist():
        found[j] = math.fsum((rows[:, j] * weights).tolist())
    return found


def middle_mean(rows: Array, trim: int) -> Array:
    """The mean of each coordinate's values without its `trim` least and `trim` largest, of 2 trim < n; shape (d,)."""
    tiles = (np.sort(rows[:, first : first + _COLUMNS], axis=0) for first in range(0, rows.shape[1], _COLUMNS))
    return np.concatenate([mean_rows(tile[trim : len(rows) - trim]) for tile in tiles])


def median_rows(rows: Array) -> Array:
    """The median of each coordinate, of an even number the mean of the middle two; shape (d,)."""
    return middle_mean(rows, (len(rows) - 1) // 2)


def squared_distances(rows: Array, points: Array) -> Array:
    """||x_i - p_j||^2 by a plain loop over coordinates, shape (rows, points): a pair's bits depend on itself only."""
    total = np.zeros((len(rows), len(points)))
    add_squares(np.ascontiguousarray(rows), np.ascontiguousarray(points), total)
    return total


def distances(rows: Array, point: Array) -> Array:
    """||x_i - p||, shape (rows,)."""
    found: Array = np.sqrt(squared_distances(point[None, :], rows)[0])
    return found


def minority(count: int) -> float:
    """The largest share of `count` reports that is outvoted: floor((count - 1) / 2) of them."""
    return ((count - 1) // 2) / count
