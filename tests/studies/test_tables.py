"""table-8.2.toml against the tables of an independent prototype, in both modes.

Two fixed runs are compared cell by cell: at most max(1, cells / 1000) means beyond 4 joint standard errors, none
beyond 6. The seed was chosen before the first look.
"""

import csv
import math
from pathlib import Path

import pytest

from studies.load import load
from studies.run import run
from studies.summary import Setting, summarise

STUDY = Path(__file__).parents[2] / "studies" / "toml" / "table-8.2.toml"
DATA = Path(__file__).parent / "data" / "tables.csv"
COLUMNS = {
    "mle": ("clear", "none", "mle"),
    "sgd_last": ("clear", "none", "sgd"),
    "rr_sgd_last": ("local", "randomized-response", "debiased-sgd"),
    "rr_debiased_exact": ("local", "randomized-response", "debiased"),
    "rr_mle": ("local", "randomized-response", "rr-mle"),
    "rr_map": ("local", "randomized-response", "rr-map"),
    "rr_naive": ("local", "randomized-response", "naive"),
    "obj_paper_sigma": ("central", "objective-perturbation-paper", "mle"),
    "obj_analytic": ("central", "gaussian-statistic", "mle"),
    "obj_clipped": ("central", "gaussian-statistic-clipped", "mle"),
}


def expected(features: str) -> dict[tuple[Setting, str], tuple[float, float]]:
    with DATA.open(encoding="utf-8") as file:
        next(file)
        rows = [row for row in csv.DictReader(file) if row["features"] == features]
    return {
        (_setting(row), "/".join(COLUMNS[row["column"]])): (float(row["mean"]), float(row["standard_error"]))
        for row in rows
    }


def _setting(row: dict[str, str]) -> Setting:
    if not row["epsilon"]:
        return Setting(int(row["n"]), None, None)
    return Setting(int(row["n"]), float(row["epsilon"]), 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("features", ["gaussian", "sphere"])
def test_means_agree_with_the_prototype(features: str, tmp_path: Path) -> None:
    table = run(load(STUDY, [f"problem.features={features}"]), tmp_path)
    found = {(one.setting, one.arm.partition("[")[0]): one.moments for one in summarise(table)}
    apart = {}
    for key, (mean, error) in expected(features).items():
        apart[key] = (found[key].mean - mean) / math.hypot(found[key].se, error)
    far = {key: distance for key, distance in apart.items() if abs(distance) > 4}
    assert len(apart) == {"gaussian": 119, "sphere": 111}[features]
    assert len(far) <= max(1, len(apart) // 1000), far
    assert max(map(abs, apart.values())) <= 6, far
