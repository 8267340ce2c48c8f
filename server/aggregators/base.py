"""What an aggregator is given, and what it promises."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from protocol.threads import spread
from server.kernels_reports import first_beyond

Array = NDArray[np.float64]

LARGEST = 2.0**480  # of a report: squares of differences, and sums of them, then stay finite
_PART = 1 << 17  # numbers that are looked at at a time
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


def check_shape(reports: Array) -> None:
    """Raise ValueError unless reports are float64 of shape (count, d), count, d >= 1."""
    if not isinstance(reports, np.ndarray) or reports.dtype != np.float64:
        raise ValueError(f"expected reports in an array of float64, got {getattr(reports, 'dtype', type(reports))}")
    if reports.ndim != 2 or 0 in reports.shape:
        raise ValueError(f"expected reports of shape (count, d) with count, d > 0, got {reports.shape}")


def check_reports(reports: Array) -> None:
    """Raise ValueError unless reports are float64 of shape (count, d), count, d >= 1, and |value| <= 2^480."""
    check_shape(reports)
    held, size = np.ascontiguousarray(reports), max(1, _PART // reports.shape[1])
    starts = range(0, len(held), size)
    found = spread(lambda start: first_beyond(held[start : start + size], 0, held.shape[1], LARGEST), starts)
    bad = next((start + row for start, row in zip(starts, found, strict=True) if row >= 0), None)
    if bad is not None:
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


def minority(count: int) -> float:
    """The largest share of `count` reports that is outvoted: floor((count - 1) / 2) of them."""
    return ((count - 1) // 2) / count
