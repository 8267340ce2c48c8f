"""Labelers at levels of their own over both Flower apps: the bits of the in-process runtime."""

from collections.abc import Callable
from dataclasses import fields
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Context, RecordDict

from client.sources.synthetic import write_truth
from protocol.arms import MENU, Arm
from protocol.population import Population
from protocol.problem import Problem
from protocol.runconfig import write
from protocol.study import Grid, Study, cells
from protocol.trust import Trust
from server.app import app as server_app
from server.outcome import Outcome
from server.outcome_record import cell_name, decode
from studies.in_process import run_cell

OPINIONS = np.array([[0.75, 0.0, -0.75], [0.5, 0.5, -1.0], [1.0, -0.5, -0.5]])  # the first is the mean of the others
STUDY = Study(
    name="levels",
    seed=5,
    repetitions=3,
    problem=Problem(3, "gaussian", True, Decimal(2)),
    grid=Grid((90,), (Decimal(1),), (Decimal("1e-5"),)),
    arms=(
        Arm(Trust.LOCAL, "randomized-response", "debiased"),
        *(Arm(Trust.LOCAL, MENU, name) for name in ("debiased", "debiased-sgd", "one-step", "rr-mle", "naive")),
    ),
    population=Population((Decimal("0.5"), Decimal(4)), (Decimal("0.5"), Decimal("0.5"))),
)


def plain(outcome: Outcome) -> list[str]:
    values = [getattr(outcome, item.name) for item in fields(outcome)]
    return [value.tobytes().hex() if isinstance(value, np.ndarray) else repr(value) for value in values]


@pytest.mark.parametrize("clients", [1, 4])
def test_levels_and_opinions_have_the_bits_of_the_in_process_runtime(
    grid: Any,
    virtual: Callable[[int], list[dict[str, Any]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    clients: int,
) -> None:
    monkeypatch.setenv("HALFTRUTH_OUTCOMES", str(tmp_path))
    config = {**write(STUDY), "truth": write_truth(OPINIONS), "deadline": 5.0, "clients": clients}
    server_app(grid(virtual(clients), config), Context(1, 1, {}, RecordDict(), config))
    (cell,) = cells(STUDY)
    lines = (tmp_path / f"{cell_name(cell)}.jsonl").read_text("utf-8").splitlines()
    outcomes = list(run_cell(STUDY, OPINIONS, cell))
    assert [plain(decode(line, STUDY)) for line in lines] == [plain(outcome) for outcome in outcomes]
    (menu,) = {outcome.levels for outcome in outcomes if outcome.arm.mechanism == MENU}
    assert sum(count for _, count in menu) == 90
    assert [level for level, _ in menu] == [Decimal("0.5"), 4]
