"""Numbers that misled others carry their warning: in the table of a study, in JSON, on the terminal, in a report."""

import json
import math
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from protocol.study import cells
from protocol.warned import WARNINGS, code_of, warn
from server.estimators.base import Estimate
from server.outcome import interval
from studies import results
from studies.cli import main
from studies.in_process import run_cell
from studies.load import build, load
from studies.report.facts import facts
from studies.report.view import View
from studies.run import run
from studies.tails import heavy, tail_index

ROOT = Path(__file__).parents[1]
Say = pytest.CaptureFixture[str]
PROBLEM = {
    "kind": "pairwise",
    "dimension": 3,
    "features": "gaussian",
    "bound": 1,
    "theta": [Decimal("0.9"), Decimal(0), Decimal(0)],
}
ARMS = [
    {"trust": "local", "mechanism": "randomized-response", "estimator": "debiased"},
    {"trust": "local", "mechanism": "randomized-response", "estimator": "debiased-sgd"},
    {"trust": "central", "mechanism": "gaussian-statistic", "estimator": "mle"},
]
SCORED = ROOT / "studies" / "toml" / "quick.toml"


def told(n: int, epsilon: str, arms: list[dict[str, Any]] = ARMS, **problem: Any) -> list[set[str | None]]:
    """Codes of each outcome of a study of one cell."""
    content = {
        "study": {"name": "misleading", "seed": 2, "repetitions": 1},
        "problem": PROBLEM | problem,
        "grid": {"n": [n], "epsilon": [Decimal(epsilon)], "delta": [Decimal("1e-5")]},
        "arm": arms,
    }
    loaded = build(content, Path())
    (cell,) = cells(loaded.study)
    return [{code_of(text) for text in one.warnings} for one in run_cell(loaded.study, loaded.theta, cell)]


def test_every_warning_of_every_arm_has_a_code() -> None:
    """Of the study with all arms about pairs, where little is known; and what has no code is no code."""
    loaded = load(SCORED, ["study.repetitions=3", "grid.n=[5]"])
    for cell in cells(loaded.study):
        for one in run_cell(loaded.study, loaded.theta, cell):
            assert None not in map(code_of, one.warnings), one.warnings
    with pytest.raises(KeyError, match=r"protocol\.warned"):
        warn("no-such-code", "x")


@pytest.mark.parametrize(("epsilon", "nobody"), [("40", False), ("40.1", True), ("64", True)])
def test_a_level_that_protects_nobody(epsilon: str, nobody: bool) -> None:
    for codes in told(100, epsilon):
        assert ("protects-nobody" in codes) == nobody


def test_an_estimate_on_the_ball() -> None:
    """Ten labels at epsilon = 0.1: noise drives every estimate out, descent's as well, which claims no interval."""
    for codes in told(10, "0.1"):
        assert "on-the-ball" in codes
    for codes in told(20_000, "4", bound=9):
        assert "on-the-ball" not in codes


@pytest.mark.parametrize(("n", "few"), [(2, True), (3, False)])
def test_fewer_answers_than_parameters(n: int, few: bool) -> None:
    for codes in told(n, "1", ARMS[::2]):  # descent refuses rows that do not span the space
        assert ("few-rows" in codes) == few


def test_a_singular_covariance_gives_no_interval() -> None:
    """Neither a width of zero nor one of a rounding error."""
    loaded = load(SCORED, ["study.repetitions=1", "grid.n=[5]"])
    problem = replace(loaded.study.problem, sum_zero=False)
    size = problem.dimension
    covariance = np.zeros((size, size))
    covariance[0, 0] = 1.0
    for broken in (covariance, covariance * math.nan):
        estimate = Estimate(np.zeros(size), broken, False, (), 1, 0.0)
        assert interval(problem, estimate)[1:] == (None, None)


def fitted(said: Say, folder: Path, rows: list[str], *words: str) -> tuple[dict[str, Any], str]:
    """The JSON of a fit, and what it prints."""
    path = folder / "votes.csv"
    path.write_text("\n".join(("labeler,item_a,item_b,winner", *rows, "")), encoding="utf-8")
    asked = ["fit", str(path), *words, "--public-data", "--coins", "addressed", "--seed", "1"]
    assert main([*asked, "--json"]) == 0
    found = json.loads(said.readouterr().out)
    assert main(asked) == 0
    return found, said.readouterr().out


def test_a_fit_says_all_of_it(tmp_path: Path, capsys: Say) -> None:
    rows = ["r1,a,b,a", "r2,c,d,c"]
    found, shown = fitted(capsys, tmp_path, rows, "--trust", "local", "--epsilon", "64", "--bound", "1")
    codes = {code_of(text) for text in found["warnings"]}
    assert {"protects-nobody", "few-rows", "unconnected", "on-the-ball"} <= codes and None not in codes
    assert sum(code_of(text) == "on-the-ball" for text in found["warnings"]) == 1
    for code in codes:
        assert f"Warning ({code}): " in shown
    assert "a label is flipped with probability 1.1e-19" in shown


def records(said: Say, folder: Path, values: list[float], *words: str) -> tuple[dict[str, Any], str]:
    path = folder / "values.csv"
    path.write_text("\n".join(("id,x", *(f"{i},{value!r}" for i, value in enumerate(values)), "")), encoding="utf-8")
    asked = ["records", str(path), "--columns", "x", "--id", "id", *words]
    assert main([*asked, "--json"]) == 0
    found = json.loads(said.readouterr().out)
    assert main(asked) == 0
    return found, said.readouterr().out


def quantiles(index: float) -> list[float]:
    """Those of a law of this tail index, exactly."""
    return [float(value) for value in ((np.arange(2000) + 0.5) / 2000) ** (-1 / index)]


@pytest.mark.parametrize(("index", "code"), [(0.6, "no-mean"), (0.98, "no-mean"), (1.5, "no-variance"), (4.0, None)])
def test_a_mean_or_variance_that_is_not_there(index: float, code: str | None, tmp_path: Path, capsys: Say) -> None:
    found, shown = records(capsys, tmp_path, quantiles(index), "--trust", "clear")
    assert [code_of(text) for text in found["warnings"]] == ([] if code is None else [code])
    assert code is None or f"Warning ({code}): x: tail index" in shown


def test_records_say_that_a_level_protects_nobody_and_nothing_that_depends_on_them(tmp_path: Path, capsys: Say) -> None:
    claim = ("--trust", "central", "--epsilon", "64", "--delta", "1e-5", "--threshold", "3")
    public = ("--public-data", "--coins", "addressed", "--seed", "1")
    found, _ = records(capsys, tmp_path, quantiles(0.6), *claim, *public)
    assert [code_of(text) for text in found["warnings"]] == ["protects-nobody"]


@pytest.mark.parametrize(
    ("words", "codes"),
    [
        ("--labels 20000 --epsilon 64", {"protects-nobody"}),
        ("--labels 20 --epsilon 1", {"few-labels", "large-errors", "near-the-ball", "no-better-than-zero"}),
    ],
)
def test_doubts_of_a_plan_have_codes(words: str, codes: set[str], capsys: Say) -> None:
    assert main(["plan", *words.split(), "--json"]) == 0
    assert {code_of(text) for text in json.loads(capsys.readouterr().out)["doubts"]} == codes
    assert main(["plan", *words.split()]) == 0
    shown = capsys.readouterr().out
    assert all(f"Warning ({code}): " in shown for code in codes)


def test_a_report_counts_them_and_says_how_often_labels_are_flipped(tmp_path: Path) -> None:
    """Also where a table was written before warnings had codes."""
    loaded = load(SCORED, ["study.repetitions=2", "grid.n=[50]", "grid.epsilon=[1, 64]", "problem.bound=1.6"])
    table = run(loaded, tmp_path, jobs=1)
    lines = list(facts(View(loaded, table), {"numerics": "x", "sessions": []}))
    assert "Randomised response flips a label with probability 0.269 at ε = 1, 1.08e-19 at ε = 64." in lines
    for code in ("protects-nobody", "on-the-ball"):
        (line,) = (text for text in lines if text.startswith(f"Warning ({code}) in "))
        assert f"of {len(table)} estimates" in line
    place = results.SCHEMA.get_field_index("warnings")
    older = pa.array([["interval not valid: the ball constraint is active"]] * len(table), pa.list_(pa.string()))
    lines = list(
        facts(
            View(loaded, table.set_column(place, results.SCHEMA.field(place), older)), {"numerics": "x", "sessions": []}
        )
    )
    assert (
        f"Warning in {len(table)} of {len(table)} estimates: interval not valid: the ball constraint is active."
        in lines
    )


def test_a_report_says_where_errors_have_no_mean(tmp_path: Path) -> None:
    """Errors whose largest twentieth falls like x^-0.6: their mean over repetitions says nothing."""
    loaded = load(SCORED, ["study.repetitions=2", "grid.n=[50]"])
    table = run(loaded, tmp_path, jobs=1)
    one = table.slice(0, 1)
    many = pa.concat_tables([one] * 2000)
    place = results.SCHEMA.get_field_index("error_l2")
    for index, code in ((0.6, "no-mean"), (1.2, "no-variance"), (4.0, None)):
        wild = many.set_column(place, results.SCHEMA.field(place), pa.array(quantiles(index)))
        lines = [text for text in facts(View(loaded, wild), {"numerics": "x", "sessions": []}) if "tail index" in text]
        assert [text.split(": ")[0] for text in lines] == ([] if code is None else [f"Warning ({code})"])


def test_light_tails_are_not_suspected() -> None:
    """Errors of an estimate, a normal's length in three dimensions: no warning at any number of repetitions."""
    rng = np.random.Generator(np.random.Philox(3))
    for count in (20, 50, 100, 1000):
        for _ in range(200):
            tail = tail_index(np.linalg.norm(rng.normal(size=(count, 3)), axis=1))
            assert tail is None or not tail.no_variance
    assert heavy("x", tail_index(np.array(quantiles(4.0)))) is None  # type: ignore[arg-type]
    assert set(WARNINGS) >= {"no-mean", "no-variance"}
