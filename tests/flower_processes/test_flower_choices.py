"""Top choices over real processes: the same results file as in-process, apart from where it was computed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from studies.load import load
from studies.run import run

ARMS = "".join(
    f"[[arm]]\ntrust = 'local'\nmechanism = '{mechanism}'\nestimator = '{estimator}'\n"
    for mechanism in ("k-randomized-response", "subset-selection", "random-pair")
    for estimator in ("debiased", "debiased-sgd", "rr-mle")
)
STUDY = f"""
study = {{ name = "choices", seed = 11, repetitions = 2 }}
problem = {{ kind = "choice", choices = 5, dimension = 3, features = "sphere", theta = [1.0, 0.0, -1.0], bound = 3.0 }}
grid = {{ n = [150], epsilon = [0.5], delta = [1e-5] }}
{ARMS}
[[arm]]
trust = "clear"
estimator = "mle"
[[arm]]
trust = "central"
mechanism = "gaussian-statistic-clipped"
estimator = "mle"
"""


@pytest.mark.slow
@pytest.mark.parametrize(("runtime", "clients"), [("simulation", 3), ("deployment", 2)])
def test_the_same_bits(command: Callable[..., Any], tmp_path: Path, runtime: str, clients: int) -> None:
    path = tmp_path / "choices.toml"
    path.write_text(STUDY, encoding="utf-8")
    expected = run(load(path), tmp_path / "reference", jobs=1).drop_columns("runtime")
    started = command("--on", runtime, "--clients", str(clients), study=path)
    code, words = started.end()
    assert code == 0, words
    assert pq.read_table(started.out / "results.parquet").drop_columns("runtime").equals(expected)
