"""One study of each algorithm about records: the same bits, however rows are spread over clients."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from protocol.study import Cell
from studies.in_process import run_cell
from studies.load import build

CLEAR, LOCAL, CENTRAL = ({"trust": trust} for trust in ("clear", "local", "central"))
ROUNDS = {"rounds": 3, "step": Decimal("0.1")}
MEANS: list[dict[str, Any]] = [
    {**CLEAR, "estimator": "mean"},
    {**CLEAR, "estimator": "median-of-means", "groups": 8},
    {**CENTRAL, "estimator": "mean"},
    {**CENTRAL, "estimator": "mean", "norm": "l2", "shape": "truncate"},
    {**CENTRAL, "estimator": "algorithm-1"},
    {**CENTRAL, "estimator": "algorithm-3"},
    {**CENTRAL, "estimator": "median-of-means", "groups": 8},
    *(
        {**LOCAL, "estimator": "mean", "mechanism": name}
        for name in ("laplace", "discrete-laplace", "duchi", "piecewise", "hybrid")
    ),
    *({**LOCAL, "estimator": "mean", "mechanism": name} for name in ("duchi-cube", "duchi-ball", "gaussian")),
    *({**LOCAL, "estimator": "mean", "mechanism": name} for name in ("priv-unit", "priv-unit-gaussian")),
]
DESCENTS: list[dict[str, Any]] = [
    {**CLEAR, **ROUNDS, "estimator": "descent"},
    {**CENTRAL, **ROUNDS, "estimator": "descent"},
    {**CENTRAL, **ROUNDS, "estimator": "descent", "batches": "disjoint", "average": "last", "project": "box"},
    {**CENTRAL, **ROUNDS, "estimator": "algorithm-2-convex"},
    {**CENTRAL, **ROUNDS, "estimator": "algorithm-2-strong"},
    {**LOCAL, **ROUNDS, "estimator": "descent", "mechanism": "piecewise"},
    {**LOCAL, **ROUNDS, "estimator": "descent", "mechanism": "piecewise", "batches": "all"},
    {**LOCAL, **ROUNDS, "estimator": "descent", "mechanism": "gaussian", "batches": "all"},
]


@pytest.mark.parametrize(("model", "per_holder"), [("mean", 1), ("mean", 4), ("linear", 4), ("logistic", 1)])
def test_bits_do_not_depend_on_clients(model: str, per_holder: int) -> None:
    problem: dict[str, Any] = {"kind": "records", "model": model, "dimension": 3, "bound": 2}
    records: dict[str, Any] = {"features": "centred pareto(1.6)", "tail": Decimal("0.5"), "moment": 16}
    if model != "mean":
        problem |= {"theta": [Decimal("0.5"), 0, Decimal("-1")]}
        records |= {"features": "normal(0, 1)"}
    if model == "linear":
        records |= {"noise": "centred pareto(1.6)"}
    loaded = build(
        {
            "study": {"name": "bits", "seed": 31, "repetitions": 2},
            "problem": problem,
            "records": {**records, "per_holder": per_holder},
            "grid": {"n": [360], "epsilon": [1], "delta": [Decimal("1e-5")]},
            "arm": MEANS if model == "mean" else DESCENTS,
        },
        Path(),
    )
    cell = Cell(360, 0, 2)
    bits = {}
    for clients in (1, 3, 7):
        played = run_cell(loaded.study, loaded.theta, cell, clients)
        bits[clients] = [(one.arm.name, one.theta.tobytes()) for one in played]
    assert bits[1] == bits[3] == bits[7] and len(bits[1]) == 2 * len(loaded.study.arms)
