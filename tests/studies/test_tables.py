"""table-8.2.toml and ridge.toml against the tables of an independent prototype.

Two fixed runs are compared cell by cell: at most max(1, cells / 1000) means beyond 4 joint standard errors, none
beyond 6. The seeds were chosen before the first look.
"""

import csv
import math
import tomllib
from decimal import Decimal
from pathlib import Path

import pytest

from studies.load import Loaded, build, load
from studies.run import run
from studies.summary import Setting, summarise

TOML = Path(__file__).parents[2] / "studies" / "toml"
DATA = Path(__file__).parent / "data"
LOCAL, CLIPPED = "local/randomized-response", "central/gaussian-statistic-clipped/mle"
# Column -> the arm, and what its options have to say.
COLUMNS = {
    "mle": ("clear/none/mle", ""),
    "sgd_last": ("clear/none/sgd", ""),
    "rr_sgd_last": (f"{LOCAL}/debiased-sgd", "step="),
    "rr_sgd_pr": (f"{LOCAL}/debiased-sgd", "averaging=half"),
    "rr_debiased_exact": (f"{LOCAL}/debiased", ""),
    "rr_onestep": (f"{LOCAL}/one-step", ""),
    "rr_mle": (f"{LOCAL}/rr-mle", ""),
    "rr_map": (f"{LOCAL}/rr-map", ""),
    "rr_naive": (f"{LOCAL}/naive", ""),
    "obj_paper_sigma": ("central/objective-perturbation-paper/mle", ""),
    "obj_analytic": ("central/gaussian-statistic/mle", ""),
    "obj_clipped": (CLIPPED, ""),
}
RIDGE = {
    "debiased": (f"{LOCAL}/debiased", "-"),
    "debiased_tempered": (f"{LOCAL}/debiased", "ridge=tempered"),
    "rr_map": (f"{LOCAL}/rr-map", "-"),
    "central": (CLIPPED, "-"),
    "central_tempered": (CLIPPED, "ridge=tempered"),
}
Columns = dict[str, tuple[str, str]]


def expected(file: str, features: str, sizes: list[int]) -> dict[tuple[Setting, str], tuple[float, float]]:
    """Mean and standard error by setting and column, at some n."""
    with (DATA / file).open(encoding="utf-8") as lines:
        next(lines)
        rows = [row for row in csv.DictReader(lines) if row["features"] == features and int(row["n"]) in sizes]
    return {(_setting(row), row["column"]): (float(row["mean"]), float(row["standard_error"])) for row in rows}


def _setting(row: dict[str, str]) -> Setting:
    if not row["epsilon"]:
        return Setting(int(row["n"]), None, None)
    return Setting(int(row["n"]), float(row["epsilon"]), 1e-5)


def column(arm: str, columns: Columns) -> str | None:
    """The column that an arm belongs to; "-" asks for an arm without options."""
    name, _, options = arm.partition("[")
    for known, (whole, said) in columns.items():
        if name == whole and (not options if said == "-" else said in options):
            return known
    return None


def compare(loaded: Loaded, file: str, columns: Columns, out: Path) -> int:
    """Hold a study's means against a file's; returns how many cells were compared."""
    problem, grid = loaded.study.problem, loaded.study.grid
    found = {(one.setting, column(one.arm, columns)): one.moments for one in summarise(run(loaded, out))}
    apart = {}
    for key, (mean, error) in expected(file, problem.features, list(grid.n)).items():
        apart[key] = (found[key].mean - mean) / math.hypot(found[key].se, error)
    far = {key: distance for key, distance in apart.items() if abs(distance) > 4}
    assert len(far) <= max(1, len(apart) // 1000), far
    assert max(map(abs, apart.values())) <= 6, far
    return len(apart)


@pytest.mark.slow
@pytest.mark.parametrize(("features", "cells"), [("gaussian", 149), ("sphere", 141)])
def test_means_agree_with_the_prototype(features: str, cells: int, tmp_path: Path) -> None:
    study = load(TOML / "table-8.2.toml", [f"problem.features={features}"])
    assert compare(study, "tables.csv", COLUMNS, tmp_path) == cells


@pytest.mark.slow
@pytest.mark.parametrize("features", ["gaussian", "sphere"])
@pytest.mark.parametrize(("n", "repetitions"), [(30_000, 100), (100_000, 40)])
def test_means_of_large_samples_agree(features: str, n: int, repetitions: int, tmp_path: Path) -> None:
    """The arms whose large samples are in the table here: one step, and the mean of half of the path."""
    content = tomllib.loads((TOML / "table-8.2.toml").read_text("utf-8"), parse_float=Decimal)
    content["study"]["repetitions"], content["grid"]["n"] = repetitions, [n]
    content["problem"]["features"] = features
    content["arm"] = [arm for arm in content["arm"] if arm["estimator"] == "one-step" or arm.get("averaging")]
    assert compare(build(content, TOML), "tables.csv", COLUMNS, tmp_path) == 10


@pytest.mark.slow
@pytest.mark.parametrize("overrides", [[], ["grid.n=[30000]", "study.repetitions=40"]])
def test_means_with_a_prior_agree(overrides: list[str], tmp_path: Path) -> None:
    cells = compare(load(TOML / "ridge.toml", overrides), "ridge.csv", RIDGE, tmp_path)
    assert cells == (20 if overrides else 40)
