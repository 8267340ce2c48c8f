"""Centred clipping with real records, real coins and ledgers on disk: exact sums, paid once, whatever is released."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client.labeler import Node, answer
from client.ledger import DiskLedger
from client.ledger_view import read_labelers
from client.policy import Policy
from client.sources.record_columns import RecordColumns
from client.sources.record_table import read_record_table
from protocol.codec import decode_task
from protocol.privacy import Unit
from protocol.store import FeatureStore
from protocol.study import Cell
from protocol.trust import Trust
from server.curator import LiveCurator
from server.evidence import Server
from server.release import ReleaseLedger
from server.rounds import play
from studies.load import build

N = 64


@pytest.mark.parametrize("estimator", ["mean", "descent"])
def test_real_records_pay_once_for_all_rounds(tmp_path: Path, estimator: str) -> None:
    """Records near 5, the farthest 1e9. The last release has noise of 0.1: an error of 1 is ten deviations, 1e-22."""
    path = tmp_path / "records.csv"
    values = [4.5, 5.0, 5.5, 5.0] * (N // 4 - 1) + [5.0, 5.0, 1e9, 5.0]
    path.write_text("id,x\n" + "".join(f"r{row},{value}\n" for row, value in enumerate(values)), "utf-8")
    table = read_record_table(path, False, RecordColumns(("x",), "mean", id="id"))
    policy = Policy(trusts=frozenset({Trust.CENTRAL}), units=frozenset({Unit.RECORD}), label_cap=Decimal(8))
    node = Node(table, policy, DiskLedger(tmp_path / "ledger.sqlite"), "os", FeatureStore(None))
    options: dict[str, Any] = {"steps": 6} if estimator == "mean" else {"rounds": 6, "average": "last"}
    arm = {"trust": "central", "estimator": estimator, "aggregate": "centred-clipping", "threshold": 2, **options}
    loaded = build(
        {
            "study": {"name": "live", "seed": 1, "repetitions": 1},
            "problem": {"kind": "records", "model": "mean", "dimension": 1},
            "records": {"features": "constant(5)"},
            "grid": {"n": [N], "epsilon": [8], "delta": [Decimal("1e-5")]},
            "arm": [arm],
        },
        Path(),
    )
    asked = []

    def ask(raws: list[bytes]) -> list[bytes]:
        asked.extend(decode_task(raw) for raw in raws)
        return [answer(raw, node) for raw in raws]

    with ReleaseLedger(tmp_path / "curator.sqlite") as ledger:
        server = Server(FeatureStore(None), 1, LiveCurator(ledger))
        (outcome,) = play(loaded.study, Cell(N, 0, 1), ask, server)
    assert len(asked) == 6 and {each.epsilon for each in read_labelers(tmp_path / "ledger.sqlite")} == {Decimal(8)}
    assert outcome.claim is not None and (outcome.claim.epsilon, outcome.coins) == (8, "os")
    assert np.isfinite(outcome.theta).all()
    if estimator == "mean":  # three steps of 2 are enough
        assert abs(outcome.theta[0] - 5) < 1
    else:
        assert [task.centre is not None for task in asked] == [True] * 6
