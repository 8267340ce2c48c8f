"""Claims of algorithms about records on the path that is executed: who is asked, what is released, what it costs."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from protocol.strict import StudyError
from protocol.study import Cell
from server.curator import LiveCurator
from server.record_rounds import play_records
from server.release import ReleaseLedger
from studies.in_process import in_process
from studies.load import Loaded, build

N = 60
SPARSE = {"sparsity": 1, "rounds": 2, "step": 1, "threshold": 5}
IN_SIMULATION_ONLY: list[dict[str, Any]] = [
    {"estimator": "algorithm-3"},
    {"estimator": "algorithm-2-convex", "rounds": 2},
    {"estimator": "algorithm-2-strong", "rounds": 2},
    {"estimator": "algorithm-5", "sparsity": 1, "rounds": 2, "step": 1},
    {"estimator": "hard-thresholding", **SPARSE},
    {"estimator": "hard-thresholding", "mechanism": "permute-and-flip", **SPARSE},
    {"estimator": "mean", "threshold": "private"},
    {"estimator": "mean", "threshold": "histogram"},
    {"estimator": "mean", "aggregate": "trimmed-mean", "trim": Decimal("0.1")},
]


def study(arm: dict[str, Any]) -> Loaded:
    content = {
        "study": {"name": "claims", "seed": 3, "repetitions": 1},
        "problem": {"kind": "records", "model": "mean", "dimension": 2, "bound": 50},
        "records": {"features": "pareto(1.6)", "tail": Decimal("0.5"), "moment": 16},
        "grid": {"n": [N], "epsilon": [Decimal(1)], "delta": [Decimal("1e-5")]},
        "arm": [{"trust": "central", **arm}],
    }
    return build(content, Path())


@pytest.mark.parametrize("arm", IN_SIMULATION_ONLY, ids=str)
def test_a_curator_who_cannot_add_the_noise_asks_nobody(arm: dict[str, Any]) -> None:
    """Asked first, holders would have paid for exact sums of which nothing comes."""
    loaded, asked = study(arm), []
    room = in_process(loaded.study, loaded.theta, 2)

    def ask(tasks: list[bytes]) -> list[bytes]:
        asked.extend(tasks)
        return room.ask(tasks)

    with ReleaseLedger(None) as ledger:
        server = replace(room.server, curator=LiveCurator(ledger))
        with pytest.raises(StudyError, match="expected simulated records"):
            list(play_records(loaded.study, Cell(N, 0, 1), ask, server))
    assert not asked
