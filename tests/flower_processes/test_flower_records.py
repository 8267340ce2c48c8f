"""Rounds about records over real processes: the results of in-process, apart from where they were made."""

import tomllib
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from protocol.aggregates import AGGREGATES
from protocol.record_arms import LOOKING, RECORD_ESTIMATORS
from studies.flower.measured import Setting, Work, measure
from studies.load import build

MOMENT = "tail = 0.5, moment = 16"
MEANS = f"""
study = {{ name = "means", seed = 11, repetitions = 2 }}
problem = {{ kind = "records", model = "mean", dimension = 3, bound = 4 }}
records = {{ features = "pareto(1.6)", per_holder = 2, {MOMENT} }}
grid = {{ n = [150], epsilon = [0.5], delta = [1e-5] }}
arm = [
  {{ trust = "none", estimator = "zero" }},
  {{ trust = "clear", estimator = "mean" }},
  {{ trust = "clear", estimator = "median-of-means", groups = 5 }},
  {{ trust = "clear", estimator = "descent", rounds = 3 }},
  {{ trust = "clear", estimator = "hard-thresholding", sparsity = 2, rounds = 3 }},
  {{ trust = "central", estimator = "mean" }},
  {{ trust = "central", estimator = "mean", threshold = "private" }},
  {{ trust = "central", estimator = "mean", threshold = "histogram" }},
  {{ trust = "central", estimator = "recentred-mean", recentre = "always" }},
  {{ trust = "central", estimator = "algorithm-1" }},
  {{ trust = "central", estimator = "algorithm-3" }},
  {{ trust = "central", estimator = "median-of-means", groups = 5 }},
  {{ trust = "central", estimator = "descent", rounds = 3, threshold = "private" }},
  {{ trust = "central", estimator = "descent", rounds = 3, threshold = "adaptive" }},
  {{ trust = "central", estimator = "algorithm-2-convex", rounds = 3, threshold = "theory" }},
  {{ trust = "central", estimator = "algorithm-2-strong", rounds = 3 }},
  {{ trust = "central", estimator = "hard-thresholding", sparsity = 2, rounds = 3 }},
  {{ trust = "central", estimator = "algorithm-5", sparsity = 2, rounds = 3 }},
  {{ trust = "central", estimator = "mean", aggregate = "trimmed-mean", trim = 0.1 }},
  {{ trust = "central", estimator = "mean", aggregate = "centred-clipping" }},
  {{ trust = "central", estimator = "descent", rounds = 3, aggregate = "centred-clipping" }},
  {{ trust = "distributed", estimator = "mean" }},
  {{ trust = "distributed", estimator = "median-of-means", groups = 5 }},
  {{ trust = "distributed", estimator = "descent", rounds = 3 }},
  {{ trust = "local", estimator = "mean" }},
  {{ trust = "local", estimator = "mean", threshold = "private" }},
  {{ trust = "local", estimator = "recentred-mean", recentre = "always" }},
  {{ trust = "local", estimator = "descent", rounds = 3 }},
  {{ trust = "local", estimator = "descent", mechanism = "gaussian", batches = "all", rounds = 3 }},
  {{ trust = "local", estimator = "hard-thresholding", sparsity = 2, rounds = 3 }},
  {{ trust = "local", estimator = "two-phase", sparsity = 2, rounds = 2 }},
  {{ trust = "local", estimator = "votes", sparsity = 2, rounds = 2 }},
  {{ trust = "local", estimator = "mean", aggregate = "coordinate-median" }},
  {{ trust = "local", estimator = "mean", aggregate = "median-of-means", groups = 5 }},
  {{ trust = "local", estimator = "mean", aggregate = "trimmed-mean", trim = 0.1 }},
  {{ trust = "local", estimator = "mean", aggregate = "geometric-median" }},
  {{ trust = "local", estimator = "mean", aggregate = "krum", faulty = 0.1 }},
  {{ trust = "local", estimator = "mean", aggregate = "multi-krum", faulty = 0.1 }},
  {{ trust = "local", estimator = "descent", rounds = 3, aggregate = "centred-clipping" }},
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


def test_every_algorithm_aggregator_and_look_at_records_is_an_arm() -> None:
    """One study costs as many messages as its longest arm: whatever is added is an arm of it, too.

    But for neighbours = "add-remove", which no node file allows: it is for simulation.
    """
    arms = build(tomllib.loads(MEANS, parse_float=Decimal), Path()).study.arms
    assert {(arm.trust, arm.estimator) for arm in arms} == set(RECORD_ESTIMATORS)
    assert {arm.get("aggregate") or "mean" for arm in arms} == set(AGGREGATES)
    looks = {(arm.get("threshold"), arm.trust) for arm in arms}
    assert looks >= {(word, trust) for word, known in LOOKING.items() for trust, _ in known}


@pytest.mark.slow
@pytest.mark.parametrize("study", [MEANS, DESCENTS], ids=["means", "descents"])
@pytest.mark.parametrize(("runtime", "clients"), [("simulation", 3), ("deployment", 2)])
def test_the_same_bits(expect_bits: Callable[[str, str, int], None], study: str, runtime: str, clients: int) -> None:
    expect_bits(study, runtime, clients)


@pytest.mark.slow
@pytest.mark.parametrize(("executor", "careful"), [("stock", True), ("warm", True), ("warm", False)])
def test_rounds_of_private_convex_optimisation_are_measured(executor: str, careful: bool) -> None:
    """Three of them; docs/RUNTIMES.md has more."""
    found, idle = measure(Setting(executor, careful), Work(clients=2, rounds=3, records=2_000, dimension=20), idle=2.0)
    assert len(found.rounds) == 3 and (found.wall > 0).all() and (found.cpu > 0).all() and idle > 0
    assert found.by_program()["SuperLink"] > 0
    assert {"SuperLink", "SuperNodes"} <= set(found.growth())
    assert "1 task, " in found.rounds[-1][1]
