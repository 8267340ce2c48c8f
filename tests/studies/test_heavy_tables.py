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
    content: dict[str, Any] = {
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
                coins = np.random.default_rng(n)
                each = [coins.pareto(tail + 1.1, (n, dimension)).mean(axis=0) + 1 for _ in range(repetitions)]
                drawn = np.array(each)
                medians_agree(row, values, np.sqrt(((drawn - pareto(tail).mean) ** 2).sum(axis=1)))
        kept = [pair for pair in zip(rows, found, strict=True) if pair[0]["row"] != "nonpriv_mean"]
        apart += compare([row for row, _ in kept], [values for _, values in kept])
    return apart


def arm_of_local(row: Row) -> Arm:
    """A mechanism and shape, at the threshold that is best for truncation in the worst case."""
    threshold, tail = Decimal(1), float(row["tail"])
    mechanism = {"pm": "piecewise", "gauss": "gaussian"}.get(row["mechanism"], row["mechanism"])
    level = {"epsilon": Decimal(row["epsilon"]), "delta": DELTA, "threshold": threshold, "dimension": Decimal(1)}
    if mechanism != "gaussian":
        level.pop("delta")
    worst = numeric_channel(mechanism, level).worst_mse
    best = local_threshold(moment(tail), tail, int(row["n"]), worst, "truncate")
    shape = {"trunc": "truncate"}.get(row["shape"], row["shape"])
    arm = {"trust": "local", "estimator": "mean", "mechanism": mechanism, "shape": shape}
    return {**arm, "threshold": decimal(f"{best:.12g}", "")}


def local_means(repetitions: Mapping[str, int], out: Path, **wanted: Iterable[str]) -> list[float]:
    """Compare rows of the table of holders who trust nobody."""
    apart: list[float] = []
    for rows in settings(table("heavy_local.csv", **wanted), "tail", "epsilon", "n"):
        found = play(rows[0], [arm_of_local(row) for row in rows], repetitions[rows[0]["n"]], out)
        apart += compare(rows, found)
    return apart


BOUNDED = {"trust": "central", "estimator": "descent"}
ARMS_OF_DESCENT: dict[str, Arm] = {
    "ERM_ols": {"trust": "clear", "estimator": "descent", "rounds": 100, "average": "last", "project": "none"},
    "A2_sc_paper": {"trust": "central", "estimator": "algorithm-2-strong"},
    "sc_truncmean_analytic": {**BOUNDED, "batches": "disjoint", "average": "last", "shape": "truncate"},
    "sc_clipmean_analytic": {**BOUNDED, "batches": "disjoint", "average": "last"},
    "A2_cvx_paper_avg": {"trust": "central", "estimator": "algorithm-2-convex"},
    "cvx_truncmean_gdp_last": {**BOUNDED, "average": "last", "shape": "truncate"},
    "cvx_clipmean_gdp_last": {**BOUNDED, "average": "last"},
    "cvx_clipmean_gdp_avg": BOUNDED,
}
GRADIENT_MOMENTS = {"0.5": "18.22", "0.9": "39.61"}  # that the prototype took; Monte Carlo


def descents(repetitions: int, out: Path, **wanted: Iterable[str]) -> list[float]:
    """Compare rows of the table of private regression: d = 5, 20 rounds, epsilon = 1, steps of 1/4."""
    apart: list[float] = []
    weights = [Decimal(f"{1 / math.sqrt(5):.16f}")] * 5
    problem = {"model": "linear", "dimension": 5, "bound": 2, "theta": weights}
    law = {"features": "uniform(0, 1.7320508075688772)"}
    for rows in settings(table("heavy_descent.csv", **wanted), "tail", "n"):
        tail = rows[0]["tail"]
        noise = {"noise": f"centred {pareto(float(tail)).describe}", "moment": GRADIENT_MOMENTS[tail]}
        arms = [{"step": Decimal("0.25"), "rounds": 20, **ARMS_OF_DESCENT[row["row"]]} for row in rows]
        found = play({**rows[0], "epsilon": "1.0"}, arms, repetitions, out, problem=problem, **law, **noise)
        for row, values in zip(rows, found, strict=True):
            if row["row"] == "ERM_ols":
                medians_agree(row, values, least_squares(row, repetitions))
        kept = [pair for pair in zip(rows, found, strict=True) if pair[0]["row"] != "ERM_ols"]
        apart += compare([row for row, _ in kept], [values for _, values in kept])
    return apart


def least_squares(row: Row, repetitions: int) -> Values:
    """Excess risks of least squares without privacy, by numpy."""
    coins, n, index = np.random.default_rng(int(row["n"])), int(row["n"]), float(row["tail"]) + 1.1
    metric, excess = 0.25 * np.eye(5) + 0.75, []
    for _ in range(repetitions):
        x, noise = coins.uniform(0, math.sqrt(3), (n, 5)), coins.pareto(index, n) + 1 - index / (index - 1)
        gap = np.linalg.lstsq(x, noise, rcond=None)[0]
        excess.append(gap @ metric @ gap / 2)
    return np.array(excess)


def medians_of_groups(repetitions: int, out: Path, **wanted: Iterable[str]) -> list[float]:
    """Compare where noise is added: to each group's mean, or to their median. Thresholds by what noise is left."""
    apart: list[float] = []
    for rows in settings(table("heavy_medians.csv", **wanted), "dimension"):
        dimension, groups = int(rows[0]["dimension"]), int(rows[0]["groups"])
        setting = {**rows[0], "n": "8000", "epsilon": "1"}
        known = curator(setting, dimension)

        def best(factor: float, known: tuple[float, float, int, float] = known) -> Decimal:
            return decimal(f"{mse_threshold(*known[:3], known[3] * factor):.12g}", "")

        analytic = {"trust": "central", "mechanism": "gaussian", "groups": groups}
        after = {**analytic, "estimator": "algorithm-3", "shape": "clip", "threshold": best(groups)}
        spread = math.sqrt(math.pi / 2 * groups)  # of a median of groups, per noise of the whole mean
        before = {**analytic, "estimator": "median-of-means", "threshold": best(spread)}
        apart += compare(
            rows, play(setting, [after, before, central()], repetitions, out, problem={"dimension": dimension})
        )
    return apart


def test_means_in_one_dimension(tmp_path: Path) -> None:
    apart = means("heavy_mean.csv", 100, tmp_path, tail=["0.5"], epsilon=["", "1.0"], n=["1000"])
    assert len(apart) == 11
    judge(apart)


def test_means_in_five_dimensions(tmp_path: Path) -> None:
    apart = means("heavy_dimensions.csv", 40, tmp_path, tail=["0.9"], dimension=["5"], epsilon=["", "1.0"], n=["2000"])
    assert len(apart) == 8
    judge(apart)


def test_means_of_holders_who_trust_nobody(tmp_path: Path) -> None:
    apart = local_means({"1000": 200}, tmp_path, tail=["0.9"], epsilon=["4.0"], n=["1000"])
    assert len(apart) == 10
    judge(apart)


def test_descents(tmp_path: Path) -> None:
    rows = [row for row in ARMS_OF_DESCENT if row != "ERM_ols"]
    apart = descents(10, tmp_path, tail=["0.5"], n=["4000"], row=rows)
    assert len(apart) == 7
    judge(apart)


@pytest.mark.slow
@pytest.mark.parametrize("tail", ["0.2", "0.5", "0.9"])
def test_all_means_in_one_dimension(tail: str, tmp_path: Path) -> None:
    apart = means("heavy_mean.csv", 300, tmp_path, tail=[tail])
    assert len(apart) == 145
    judge(apart)


@pytest.mark.slow
@pytest.mark.parametrize("tail", ["0.2", "0.5", "0.9"])
def test_all_means_of_holders_who_trust_nobody(tail: str, tmp_path: Path) -> None:
    apart = local_means({"1000": 200, "10000": 200, "100000": 100}, tmp_path, tail=[tail])
    assert len(apart) == 90
    judge(apart)


@pytest.mark.slow
@pytest.mark.parametrize("tail", ["0.5", "0.9"])
@pytest.mark.parametrize("dimension", ["5", "20"])
def test_all_means_in_several_dimensions(tail: str, dimension: str, tmp_path: Path) -> None:
    apart = means("heavy_dimensions.csv", 100, tmp_path, tail=[tail], dimension=[dimension])
    assert len(apart) == 45
    judge(apart)


@pytest.mark.slow
@pytest.mark.parametrize("n", ["4000", "16000", "40000"])
def test_all_descents(n: str, tmp_path: Path) -> None:
    apart = descents(100, tmp_path, n=[n])
    assert len(apart) == 14
    judge(apart)


@pytest.mark.slow
def test_noise_before_or_after_a_median(tmp_path: Path) -> None:
    apart = medians_of_groups(150, tmp_path)
    assert len(apart) == 6
    judge(apart)
