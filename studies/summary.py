"""What a results table says: mean, standard error, interval, quartiles, coverage, and paired differences of arms.

The repetitions of a study share features, labels and coins between arms, so a difference of two arms is far more
precise than two error bars suggest: paired differences have a standard error of their own.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import pyarrow as pa
from scipy.special import stdtrit

from protocol.coins import Floats


@dataclass(frozen=True)
class Setting:
    """A point of the grid; arms that make no claim have no epsilon and no delta."""

    n: int
    epsilon: float | None
    delta: float | None


@dataclass(frozen=True)
class Moments:
    """Mean of some values, its standard error, and the 95 % interval mean +- t_{0.975, count - 1} se.

    With one value the standard error and the interval are NaN.
    """

    count: int
    mean: float
    se: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Floats) -> "Moments":
        """Moments of at least one value."""
        count, mean = len(values), float(values.mean())
        if count < 2:
            return cls(count, mean, np.nan, np.nan, np.nan)
        se = float(values.std(ddof=1) / np.sqrt(count))
        half = float(stdtrit(count - 1, 0.975)) * se
        return cls(count, mean, se, mean - half, mean + half)

    def reversed(self) -> "Moments":
        """Moments of the values with the other sign."""
        return Moments(self.count, -self.mean, self.se, -self.high, -self.low)


@dataclass(frozen=True)
class Summary:
    """One arm at one setting: a metric over repetitions, with median and quartiles.

    `boundary_rate`: share of estimates on the ball's boundary. `coverage`: share of coordinates and repetitions whose
    interval holds the truth, None where the arm states no interval.
    """

    setting: Setting
    arm: str
    moments: Moments
    median: float
    lower_quartile: float
    upper_quartile: float
    boundary_rate: float
    coverage: float | None


@dataclass(frozen=True)
class Difference:
    """left - right over common repetitions: positive where `right` has the smaller metric."""

    setting: Setting
    left: str
    right: str
    moments: Moments


@dataclass(frozen=True, eq=False)
class _Group:
    setting: Setting
    arm: str
    rows: pa.Table


def summarise(table: pa.Table, metric: str = "error_l2", theta: Floats | None = None) -> list[Summary]:
    """One summary per (n, epsilon, delta, arm), in the table's order; `theta` (d,) is needed for coverage."""
    return [_summary(group, metric, theta) for group in _groups(table)]


def by_group(table: pa.Table, metric: str) -> dict[tuple[Setting, str], Floats]:
    """A metric's values over repetitions, by setting and arm."""
    return {(group.setting, group.arm): group.rows[metric].to_numpy() for group in _groups(table)}


def paired(table: pa.Table, metric: str = "error_l2") -> list[Difference]:
    """Differences of all pairs of arms at one setting; an arm without epsilon meets the others at every epsilon."""
    groups: dict[Setting, dict[str, Mapping[int, float]]] = {}
    for group in _groups(table):
        groups.setdefault(group.setting, {})[group.arm] = _by_repetition(group, metric)
    found = []
    for setting, own in groups.items():
        everywhere = {} if setting.epsilon is None else groups.get(Setting(setting.n, None, None), {})
        pairs = [*product(everywhere.items(), own.items()), *combinations(own.items(), 2)]
        for (left, lefts), (right, rights) in pairs:
            common = sorted(lefts.keys() & rights.keys())
            if common:
                gap = np.array([lefts[repetition] - rights[repetition] for repetition in common])
                found.append(Difference(setting, left, right, Moments.of(gap)))
    return found


def _groups(table: pa.Table) -> Iterator[_Group]:
    """Runs of equal (n, epsilon, delta, arm): the order of a results file keeps them together."""
    names = ("n", "epsilon", "delta", "arm")
    keys = list(zip(*(table[name].to_pylist() for name in names), strict=True))
    starts = [row for row in range(len(keys)) if row == 0 or keys[row] != keys[row - 1]]
    for start, stop in zip(starts, [*starts[1:], len(keys)], strict=True):
        n, epsilon, delta, arm = keys[start]
        yield _Group(Setting(n, epsilon, delta), arm, table.slice(start, stop - start))


def _summary(group: _Group, metric: str, theta: Floats | None) -> Summary:
    values = group.rows[metric].to_numpy()
    lower, median, upper = np.quantile(values, [0.25, 0.5, 0.75])
    return Summary(
        setting=group.setting,
        arm=group.arm,
        moments=Moments.of(values),
        median=float(median),
        lower_quartile=float(lower),
        upper_quartile=float(upper),
        boundary_rate=float(np.mean(group.rows["hit_boundary"].to_numpy())),
        coverage=None if theta is None else _coverage(group.rows, theta),
    )


def _coverage(rows: pa.Table, theta: Floats) -> float | None:
    stated = rows.filter(rows["ci_low"].is_valid())
    if not len(stated):
        return None
    low, high = (np.array(stated[name].to_pylist()) for name in ("ci_low", "ci_high"))
    return float(np.mean((low <= theta) & (theta <= high)))


def _by_repetition(group: _Group, metric: str) -> Mapping[int, float]:
    return dict(zip(group.rows["repetition"].to_pylist(), group.rows[metric].to_pylist(), strict=True))
