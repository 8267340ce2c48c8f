"""Rounds about records over real processes: the results of in-process, apart from where they were made."""

from collections.abc import Callable

import pytest

from studies.flower.measure import measure

MOMENT = "tail = 0.5, moment = 16"
MEANS = f"""
study = {{ name = "means", seed = 11, repetitions = 2 }}
problem = {{ kind = "records", model = "mean", dimension = 3 }}
records = {{ features = "pareto(1.6)", {MOMENT} }}
grid = {{ n = [150], epsilon = [0.5], delta = [1e-5] }}
arm = [
  {{ trust = "clear", estimator = "mean" }},
  {{ trust = "central", estimator = "mean" }},
  {{ trust = "central", estimator = "mean", aggregate = "trimmed-mean", trim = 0.1 }},
  {{ trust = "central", estimator = "algorithm-3" }},
  {{ trust = "central", estimator = "median-of-means", groups = 5 }},
  {{ trust = "local", mechanism = "piecewise", estimator = "mean" }},
]
"""
DESCENTS = f"""
study = {{ name = "descents", seed = 11, repetitions = 2 }}
problem = {{ kind = "records", model = "linear", dimension = 3, theta = [0.5, 0.0, -0.5], bound = 2 }}
records = {{ features = "uniform(0, 1)", noise = "centred pareto(1.6)", per_holder = 2, {MOMENT} }}
grid = {{ n = [150], epsilon = [0.5], delta = [1e-5] }}
arm = [
  {{ trust = "central", estimator = "descent", rounds = 3, step = 0.1 }},
  {{ trust = "local", mechanism = "piecewise", estimator = "descent", rounds = 3, step = 0.1 }},
  {{ trust = "central", estimator = "hard-thresholding", sparsity = 2, rounds = 3, step = 0.1 }},
]
"""


@pytest.mark.slow
@pytest.mark.parametrize("study", [MEANS, DESCENTS], ids=["means", "descents"])
@pytest.mark.parametrize(("runtime", "clients"), [("simulation", 3), ("deployment", 2)])
def test_the_same_bits(expect_bits: Callable[[str, str, int], None], study: str, runtime: str, clients: int) -> None:
    expect_bits(study, runtime, clients)


@pytest.mark.slow
def test_rounds_of_private_convex_optimisation_are_measured() -> None:
    """Three of them; docs/RUNTIMES.md has twenty."""
    found = measure(clients=2, rounds=3, records=2_000, dimension=20)
    assert len(found.rounds) == 3 and (found.wall > 0).all() and found.cpu.sum() > 1
    assert found.by_program()["flower-superlink"] > 0
    assert "1 task, " in found.rounds[-1][1]
