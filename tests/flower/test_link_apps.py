"""Other models of pairs over both Flower apps: the bits of the in-process runtime."""

from collections.abc import Callable
from dataclasses import fields
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Context, RecordDict

from client.sources.synthetic import write_truth
from protocol.arms import LINK_ESTIMATORS, MECHANISMS, Arm
from protocol.links import LINKS
from protocol.problem import Problem
from protocol.runconfig import read, write
from protocol.study import Grid, Study, cells
from server.app import app as server_app
from server.outcome import Outcome
from server.outcome_record import cell_name, decode
from studies.in_process import run_cell

THETA = np.array([1.0, 0.0, -1.0])


def study(model: str) -> Study:
    """Every arm with the first mechanisms of its trust model, few rows."""
    problem = Problem(3, "sphere", True, Decimal(2), None, "pairwise", model)
    arms = tuple(Arm(trust, MECHANISMS[trust, "pairwise"][0], name) for trust, name in LINK_ESTIMATORS)
    return Study(model, 3, 2, problem, Grid((45,), (Decimal("0.7"),), (Decimal("1e-5"),)), arms)


def plain(outcome: Outcome) -> list[str]:
    values = [getattr(outcome, item.name) for item in fields(outcome)]
    return [value.tobytes().hex() if isinstance(value, np.ndarray) else repr(value) for value in values]


@pytest.mark.parametrize("model", [name for name in LINKS if name != "btl"])
def test_every_arm_has_the_bits_of_the_in_process_runtime(
    grid: Any,
    virtual: Callable[[int], list[dict[str, Any]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    model: str,
) -> None:
    monkeypatch.setenv("HALFTRUTH_OUTCOMES", str(tmp_path))
    asked = study(model)
    config = {**write(asked), "truth": write_truth(THETA), "deadline": 5.0, "clients": 3}
    assert read(config).study.problem.model == model
    server_app(grid(virtual(3), config), Context(1, 1, {}, RecordDict(), config))
    (cell,) = cells(asked)
    lines = (tmp_path / f"{cell_name(cell)}.jsonl").read_text("utf-8").splitlines()
    expected = [plain(outcome) for outcome in run_cell(asked, THETA, cell)]
    assert [plain(decode(line, asked)) for line in lines] == expected
