"""Curves against the share of liars, and where they break down."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from studies.attacks.score import predicted
from studies.attacks.study_file import AttackStudy
from studies.summary import Moments


@dataclass(frozen=True)
class Place:
    """One curve: who lies, n, the level (None: no claim), and the arm."""

    liars: str
    n: int
    epsilon: float | None
    delta: float | None
    arm: str


@dataclass(frozen=True)
class Point:
    """One share of liars on a curve, over repetitions: error, angle to the truth in degrees, Kendall's tau.

    `angle` and `kendall` are None where an estimate is 0.
    """

    fraction: float
    error: Moments
    angle: Moments | None
    kendall: Moments | None


@dataclass(frozen=True)
class Curve:
    """A curve with its breakdown points.

    `measured`: where the mean error first crosses that of the answer 0, on a line between two shares of the grid;
    `predicted`: see `studies.attacks.score.predicted`. None: not reached, not known.
    """

    place: Place
    points: tuple[Point, ...]
    measured: float | None
    predicted: float | None


def curves(study: AttackStudy, table: pa.Table) -> Iterator[Curve]:
    """One curve for each kind of liars, n, level and arm, in the table's order."""
    truth = study.loaded.theta
    size = float(np.sqrt((truth**2).sum()))
    arms = {arm.name: arm for arm in study.loaded.study.arms}
    liars = {one.name: one for one in study.liars}
    groups: dict[Place, dict[float, list[dict[str, Any]]]] = {}
    keys = ("liars", "n", "epsilon", "delta", "arm")
    for row in table.select([*keys, "fraction", "error_l2", "angle", "kendall"]).to_pylist():
        place = Place(*(row[key] for key in keys))
        groups.setdefault(place, {}).setdefault(row["fraction"], []).append(row)
    for place, by_fraction in groups.items():
        points = tuple(_point(fraction, found) for fraction, found in by_fraction.items())
        expected = predicted(study, liars[place.liars], arms[place.arm], place.epsilon, place.n)
        yield Curve(place, points, _crossing(points, size), expected)


def _crossing(points: Sequence[Point], size: float) -> float | None:
    last: Point | None = None
    for point in points:
        if point.error.mean > size * (1 + 1e-9):
            if last is None:
                return point.fraction
            way = (size - last.error.mean) / (point.error.mean - last.error.mean)
            return last.fraction + max(0.0, way) * (point.fraction - last.fraction)
        last = point
    return None


def _point(fraction: float, rows: Sequence[dict[str, Any]]) -> Point:
    return Point(
        fraction=fraction,
        error=Moments.of(np.array([row["error_l2"] for row in rows])),
        angle=_moments(rows, "angle"),
        kendall=_moments(rows, "kendall"),
    )


def _moments(rows: Sequence[dict[str, Any]], name: str) -> Moments | None:
    values = [row[name] for row in rows if row[name] is not None]
    return Moments.of(np.array(values)) if values else None
