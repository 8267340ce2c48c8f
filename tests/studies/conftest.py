"""A small study with every arm, as text and on disk, and its results from one uninterrupted run."""

from pathlib import Path

import pytest

from studies.load import load
from studies.run import run

STUDY = """
[study]
name = "small"
seed = 11
repetitions = 20

[problem]
kind = "pairwise"
dimension = 4
features = "gaussian"
theta = [0.75, 0.25, -0.25, -0.75]
bound = 3.0
sum_zero = true

[grid]
n = [150, 1000]
epsilon = [0.5, 2.0]
delta = [1e-5]

[[arm]]
trust = "clear"
estimator = "mle"
[[arm]]
trust = "clear"
estimator = "sgd"
step = "oracle"
[[arm]]
trust = "local"
estimator = "debiased-sgd"
[[arm]]
trust = "local"
estimator = "debiased"
[[arm]]
trust = "local"
estimator = "rr-mle"
[[arm]]
trust = "local"
estimator = "rr-map"
tau = 0.5
[[arm]]
trust = "local"
estimator = "naive"
[[arm]]
trust = "central"
mechanism = "objective-perturbation-paper"
estimator = "mle"
[[arm]]
trust = "central"
mechanism = "gaussian-statistic"
estimator = "mle"
[[arm]]
trust = "central"
mechanism = "gaussian-statistic-clipped"
estimator = "mle"
radius = { gaussian = 2.5, sphere = 1.2 }
[[arm]]
trust = "none"
estimator = "zero"
"""


@pytest.fixture(scope="session")
def study_text() -> str:
    """The small study as a person would write it."""
    return STUDY


@pytest.fixture(scope="session")
def study_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small study on disk."""
    path = tmp_path_factory.mktemp("study") / "small.toml"
    path.write_text(STUDY, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def finished(study_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results folder of one uninterrupted run in one process."""
    out = tmp_path_factory.mktemp("finished")
    run(load(study_path), out, jobs=1)
    return out
