"""Thurstone's model over real processes: the same results file as in-process, apart from where it was computed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from studies.load import load
from studies.run import run

ARMS = "".join(
    f"[[arm]]\ntrust = '{trust}'\nestimator = '{estimator}'\n"
    for trust, estimator in (
        ("clear", "mle"),
        ("local", "matching"),
        ("local", "debiased-sgd"),
        ("local", "rr-mle"),
        ("central", "matching"),
    )
)
STUDY = f"""
study = {{ name = "thurstone", seed = 11, repetitions = 2 }}
problem = {{ kind = "pairwise", model = "thurstone", dimension = 3, features = "sphere", theta = [1, 0, 0], bound = 3 }}
grid = {{ n = [150], epsilon = [0.5], delta = [1e-5] }}
{ARMS}
"""


@pytest.mark.slow
@pytest.mark.parametrize(("runtime", "clients"), [("simulation", 3), ("deployment", 2)])
def test_the_same_bits(command: Callable[..., Any], tmp_path: Path, runtime: str, clients: int) -> None:
    path = tmp_path / "thurstone.toml"
    path.write_text(STUDY, encoding="utf-8")
    expected = run(load(path), tmp_path / "reference", jobs=1).drop_columns("runtime")
    started = command("--on", runtime, "--clients", str(clients), study=path)
    code, words = started.end()
    assert code == 0, words
    assert pq.read_table(started.out / "results.parquet").drop_columns("runtime").equals(expected)
