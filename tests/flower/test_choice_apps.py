"""Top choices over both Flower apps: the bits of the in-process runtime, given features and sizes included."""

from collections.abc import Callable
from dataclasses import fields
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Context, RecordDict

from client.sources.synthetic import write_truth
from protocol.arms import CHOICE_ESTIMATORS, MECHANISMS, Arm
from protocol.problem import Problem
from protocol.runconfig import write
from protocol.study import Grid, Study, cells
from server.app import app as server_app
from server.outcome import Outcome
from server.outcome_record import cell_name, decode
from studies.in_process import run_cell

THETA = np.array([1.0, 0.0, -1.0])


def study(features: str) -> Study:
    """Every arm, few rows; given ones have two to four choices."""
    given, sizes = None, None
    if features == "values":
        rng = np.random.default_rng(2)
        sizes = rng.integers(2, 5, size=45).astype(np.int32)
        given = np.where(np.arange(4)[:, None] < sizes[:, None, None], rng.normal(size=(45, 4, 3)), 0.0)
    problem = Problem(3, features, True, Decimal(2), given, "choice", "plackett-luce", 4, sizes)
    arms = tuple(
        Arm(trust, mechanism, name)
        for trust, name in CHOICE_ESTIMATORS
        for mechanism in MECHANISMS[trust, "choice"]
        if name != "literal" or mechanism == "k-randomized-response"
    )
    return Study("choices", 3, 2, problem, Grid((45,), (Decimal("0.7"),), (Decimal("1e-5"),)), arms)


def plain(outcome: Outcome) -> list[str]:
    values = [getattr(outcome, item.name) for item in fields(outcome)]
    return [value.tobytes().hex() if isinstance(value, np.ndarray) else repr(value) for value in values]


@pytest.mark.parametrize(("features", "clients"), [("gaussian", 1), ("gaussian", 3), ("values", 4)])
def test_every_arm_has_the_bits_of_the_in_process_runtime(
    grid: Any,
    virtual: Callable[[int], list[dict[str, Any]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    features: str,
    clients: int,
) -> None:
    monkeypatch.setenv("HALFTRUTH_OUTCOMES", str(tmp_path))
    asked = study(features)
    config = {**write(asked), "truth": write_truth(THETA), "deadline": 5.0, "clients": clients}
    server_app(grid(virtual(clients), config), Context(1, 1, {}, RecordDict(), config))
    (cell,) = cells(asked)
    lines = (tmp_path / f"{cell_name(cell)}.jsonl").read_text("utf-8").splitlines()
    expected = [plain(outcome) for outcome in run_cell(asked, THETA, cell)]
    assert [plain(decode(line, asked)) for line in lines] == expected
