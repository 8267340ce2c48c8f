"""A small policy study, as text and on disk."""

from pathlib import Path

import pytest

POLICY_STUDY = """
[study]
name = "small"
seed = 3
repetitions = 2

[bandit]
worlds = 2
states = 3
actions = 3
dimension = 4
length = 2.0
theta = [1.0, -0.5, 0.25, -0.75]
bound = 2.0
shown = ["uniform", "rarely-best", "mostly-best"]
rare = 0.1

[policy]
names = ["greedy", "pessimistic", "pessimistic-in-ball", "pessimistic-by-state"]

[grid]
n = [60, 400]
epsilon = [1.0]
delta = [1e-5]

[[arm]]
trust = "clear"
estimator = "mle"
[[arm]]
trust = "local"
estimator = "debiased"
[[arm]]
trust = "local"
estimator = "rr-mle"
[[arm]]
trust = "local"
estimator = "rr-map"
[[arm]]
trust = "local"
estimator = "debiased-sgd"
[[arm]]
trust = "central"
mechanism = "gaussian-statistic"
estimator = "mle"
[[arm]]
trust = "central"
mechanism = "gaussian-statistic-clipped"
estimator = "mle"
[[arm]]
trust = "none"
estimator = "zero"
"""


@pytest.fixture(scope="session")
def policy_text() -> str:
    """The study as a person would write it."""
    return POLICY_STUDY


@pytest.fixture(scope="session")
def policy_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study on disk."""
    path = tmp_path_factory.mktemp("policy") / "small.toml"
    path.write_text(POLICY_STUDY, encoding="utf-8")
    return path
