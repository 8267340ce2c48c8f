"""Errors of means and descents of heavy-tailed records against the tables of an independent prototype.

Fixed runs are compared cell by cell: at most max(1, cells / 1000) means beyond 4 joint standard errors, none beyond 6.
The tables round theirs to one digit, so the larger one of theirs and ours stands for both. Seeds were chosen before the
first look. Rows whose errors have no variance compare medians with those of a draw by numpy.
"""

import csv
import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from protocol.decimals import decimal
from protocol.laws import Law
from protocol.numeric import numeric_channel
from server.mechanisms.composition import exact_noise_multiplier
from server.thresholds import local_threshold, mse_threshold
from studies.load import build
from studies.run import run
from studies.summary import Moments

DATA = Path(__file__).parent / "data"
DELTA, FAILURE = Decimal("1e-5"), 0.05
LOGS = math.log(2 / FAILURE)
CLASSIC = {"trust": "central", "mechanism": "gaussian-classical"}
Arm = dict[str, Any]
Row = Mapping[str, str]
Values = NDArray[np.float64]


def table(file: str, **wanted: Iterable[str]) -> list[Row]:
    """Rows of a file whose columns have one of the wanted values."""
    with (DATA / file).open(encoding="utf-8") as lines:
        next(lines)
        rows = list(csv.DictReader(lines))
    return [row for row in rows if all(row[name] in values for name, values in wanted.items())]


def pareto(tail: float) -> Law:
    """The law whose (1 + tail)-th moment is finite, and hardly more."""
    return Law.parse(f"pareto({tail + 1.1:.1f})")


def moment(tail: float) -> float:
    return pareto(tail).absolute_moment(1 + tail)


def play(row: Row, arms: list[Arm], repetitions: int, out: Path, **problem: Any) -> list[Values]:
    """True errors of arms at the setting of a row, (repetitions,) each: a study of one point of the grid."""
    tail = float(row["tail"])
    law = {"features": pareto(tail).describe, "moment": f"{moment(tail):.12g}"}
    content = {
        "study": {"name": "table", "seed": 20220723, "repetitions": repetitions},
        "problem": {"kind": "records", "model": "mean", "dimension": 1, **problem.pop("problem", {})},
        "records": {"tail": row["tail"], **law, **problem},
        "grid": {"n": [int(row["n"])], **({"epsilon": [Decimal(row["epsilon"])]} if row.get("epsilon") else {})},
        "arm": arms,
    }
    content["grid"] |= {"delta": [DELTA]} if "epsilon" in content["grid"] else {}
    loaded = build(content, DATA)
    found = run(loaded, out, jobs=1, block=max(1, 200_000 // int(row["n"])), overwrite=True)
    metric = "error_l2" if loaded.study.problem.model == "mean" else "excess_risk"
    names = [arm.name for arm in loaded.study.arms]
    assert len(set(names)) == len(names)
    by_arm = {name: found.filter([each == name for each in found["arm"].to_pylist()]) for name in names}
    return [by_arm[name][metric].to_numpy() for name in names]


def compare(rows: list[Row], found: list[Values]) -> list[float]:
    """Distances of our means from the table's, in joint standard errors."""
    apart = []
    for row, values in zip(rows, found, strict=True):
        ours, stated = Moments.of(values), float(row["standard_error"])
        gap = (ours.mean - float(row["mean"])) / math.hypot(ours.se, max(ours.se, stated))
        print({**row, "ours": f"{ours.mean:.4g}", "apart": f"{gap:+.2f}"})
        apart.append(gap)
    return apart


def judge(apart: list[float]) -> None:
    """The rule for tables."""
    far = [distance for distance in apart if abs(distance) > 4]
    assert len(far) <= max(1, len(apart) // 1000), far
    assert max(map(abs, apart)) <= 6


def settings(rows: list[Row], *columns: str) -> list[list[Row]]:
    """Rows by equal values of columns."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in columns), []).append(row)
    return list(groups.values())


def curator(row: Row, dimension: int = 1) -> tuple[float, float, int, float]:
    """What `mse_threshold` is told of a clipped mean: moment, tail, n, noise per unit of threshold."""
    n, tail = int(row["n"]), float(row["tail"])
    noise = exact_noise_multiplier(Decimal(row["epsilon"]), DELTA, 1) if row["epsilon"] else 0.0
    return moment(tail), tail, n, 2 * math.sqrt(dimension) * noise / n


def central(**options: Any) -> Arm:
    return {"trust": "central", "estimator": "mean", **options}


def arm_of_mean(row: Row) -> Arm:
    """The arm of a row of the tables of means."""
    tail, n, dimension = float(row["tail"]), int(row["n"]), int(row.get("dimension", "1"))
    known = moment(tail), tail, n
    loose = decimal(f"{mse_threshold(*curator(row, dimension), 'truncate'):.12g}", "") if row["epsilon"] else None
    whole = {"trust": "clear", "estimator": "mean"}
    groups = math.ceil(8 * LOGS) if dimension == 1 else math.ceil(4 * math.log(2 * dimension / FAILURE))
    cut = decimal(f"{(known[0] * n / LOGS) ** (1 / (1 + tail)):.12g}", "")
    printed = {**CLASSIC, "estimator": "algorithm-3"}
    arms: dict[str, Arm] = {
        "nonpriv_mean": whole,
        "nonpriv_MoM": {"trust": "clear", "estimator": "median-of-means", "groups": groups},
        "nonpriv_trunc": {**whole, "threshold": cut, "shape": "truncate"},
        "A1_paper": {"trust": "central", "estimator": "algorithm-1"},
        "A1_paperB_analytic": central(threshold="paper", shape="truncate"),
        "A1_boundB": central(mechanism="gaussian-classical", threshold="bound", shape="truncate"),
        "A1_mseB_analytic": central(shape="truncate"),
        "clip_paperB_classic": central(mechanism="gaussian-classical", threshold="paper"),
        "clip_paperB_analytic": central(threshold="paper"),
        "clip_mseB_analytic": central(threshold=loose),
        "clip_clipB_analytic": central(),
        "A3_d1": printed,
        "A3_paper": printed,
        "A3_clip": {**printed, "shape": "clip"},
        "A3_analytic": {"trust": "central", "mechanism": "gaussian", "estimator": "algorithm-3"},
        "truncmean_analytic": central(shape="truncate"),
        "clipmean_analytic": central(),
        "clipmean_same_tau_as_truncmean": central(threshold=loose),
        "l2clip_analytic": central(norm="l2"),
    }
    return arms[row["row"]]


def medians_agree(row: Row, ours: Values, theirs: Values) -> None:
    """Both medians within 4 of their joint standard errors, by the order statistics half a deviation away."""

    def centre(values: Values) -> tuple[float, float]:
        step = 0.5 / math.sqrt(len(values))
        low, middle, high = np.quantile(values, [0.5 - step, 0.5, 0.5 + step])
        return float(middle), float(high - low) / 2

    (here, own), (there, other) = centre(ours), centre(theirs)
    assert abs(here - there) <= 4 * math.hypot(own, other), (row, here, there)


def means(file: str, repetitions: int, out: Path, **wanted: Iterable[str]) -> list[float]:
    """Compare rows of a table of means."""
    apart: list[float] = []
    keys = [name for name in ("tail", "dimension", "epsilon", "n") if name in table(file)[0]]
    for rows in settings(table(file, **wanted), *keys):
        dimension = int(rows[0].get("dimension", "1"))
        found = play(rows[0], [arm_of_mean(row) for row in rows], repetitions, out, problem={"dimension": dimension})
        for row, values in zip(rows, found, strict=True):
            if row["row"] == "nonpriv_mean":
                tail, n = float(row["tail"]), int(row["n"])
                drawn = np.random.default_rng(n).pareto(tail + 1.1, (repetitions, n, dimension)).mean(axis=1) + 1
                medians_agree(row, values, np.sqrt(((drawn - pareto(tail).mean) ** 2).sum(axis=1)))
        kept = [pair for pair in zip(rows, found, strict=True) if pair[0]["row"] != "nonpriv_mean"]
        apart += compare([row for row, _ in kept], [values for _, values in kept])
    return apart


def test_means_in_one_dimension(tmp_path: Path) -> None:
    apart = means("heavy_mean.csv", 100, tmp_path, tail=["0.5"], epsilon=["", "1.0"], n=["1000"])
    assert len(apart) == 11
    judge(apart)
